"""Idioms of Python that the program's source and the examiner both recognize in a syntax tree."""

from __future__ import annotations

import ast


def is_main_test(test: ast.expr) -> bool:
    """Whether the test of an `if` compares `__name__`, as `__name__ == "__main__"` does."""
    return isinstance(test, ast.Compare) and isinstance(test.left, ast.Name) and test.left.id == "__name__"


def is_bare_constant(statement: ast.stmt) -> bool:
    """Whether a statement is nothing but a constant, and so does nothing: a docstring, or `...`."""
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)

"""The interpreter of the source stage: its tables of node kinds."""

from __future__ import annotations

import ast

from mpdoctor.source.interpreter.node_handlers import EXPRESSIONS, STATEMENTS

# Nothing happens in a `pass`; Python 3.12's `type X = …` and 3.14's template strings are not followed.
LEFT_OUT = {"Pass", "TypeAlias", "TemplateStr", "Interpolation"}


def test_every_kind_of_node_has_its_function() -> None:
    kinds = {*ast.expr.__subclasses__(), *ast.stmt.__subclasses__()}
    kinds = {kind for kind in kinds if kind.__module__ == "ast"}  # gast, which TensorFlow imports, has its own
    assert {kind.__name__ for kind in kinds - EXPRESSIONS.keys() - STATEMENTS.keys()} <= LEFT_OUT
    assert EXPRESSIONS.keys() | STATEMENTS.keys() <= kinds

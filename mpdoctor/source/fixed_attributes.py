"""Attributes that a module sets once, to a constant that is written there: `self.use_bias = False` in `__init__`,
`FP16 = False` in the body of a class of settings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator

# By these a program may set any attribute.
_SETS_ANY = re.compile(r"\bsetattr\b|__setattr__|__dict__|\bvars\(|\battr\.s\b|\battrs\b")


def sets_any_attribute(text: str) -> bool:
    """Whether a module may set an attribute that it does not name, by `setattr` or the like."""
    return _SETS_ANY.search(text) is not None


def fixed_attributes(tree: ast.Module, text: str) -> frozenset[str]:
    """The names of attributes that classes of the module set to a constant, as the first thing or in `__init__`, and
    that nothing else in it sets. Classes of the module that derive from each other may set what the other one has:
    theirs are left out."""
    classes = [node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)]
    names, bases = {cls.name for cls in classes}, set().union(*map(_bases, classes))
    alone = [cls for cls in classes if cls.name not in bases and not _bases(cls) & names]
    fixed = Counter(name for cls in alone for name in _fixed_in(cls))
    fixed.subtract(_set_names(tree))
    return frozenset(name for name, others in fixed.items() if others == 0 and not _names_in_quotes(text, name))


def _bases(cls: ast.ClassDef) -> set[str]:
    return {base.id for base in cls.bases if isinstance(base, ast.Name)}


def _names_in_quotes(text: str, name: str) -> bool:
    return f'"{name}"' in text or f"'{name}'" in text


def sets(text: str, name: str) -> bool:
    """Whether a module's text seems to set an attribute of that name, of whatever object."""
    sets = rf"\.{name}\b[^\w\n]*=(?!=)|\.{name}\b\s*[:,]|^\s+{name}\s*[:=]|[\"']{name}[\"']"
    return name in text and re.search(sets, text, re.MULTILINE) is not None


def _fixed_in(cls: ast.ClassDef) -> Iterator[str]:
    """The names that one class sets to a constant."""
    is_plain = not (cls.bases or cls.keywords or cls.decorator_list)
    for node in cls.body:
        if is_plain and isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant):
            yield from (target.id for target in node.targets if isinstance(target, ast.Name))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and node.args.args:
            yield from _fixed_of(node, node.args.args[0].arg)


def _fixed_of(function: ast.FunctionDef, itself: str) -> Iterator[str]:
    """The attributes of `itself` that a function sets to a constant on every path."""
    for node in function.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant) and len(node.targets) == 1:
            (target,) = node.targets
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == itself:
                yield target.attr


def _set_names(tree: ast.Module) -> Iterator[str]:
    """The names of all attributes that the module sets, once for each place; those of a class body too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from (
                name.id
                for statement in node.body
                for name in ast.walk(statement)
                if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
                if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
            )

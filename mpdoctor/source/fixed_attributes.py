"""Attributes that a module sets once, to a constant that is written there: `self.use_bias = False` in `__init__`,
`FP16 = False` in the body of a class of settings."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator
from functools import cached_property

# By these a program may set attributes that it does not name.
_SETS_ANY = re.compile(r"\bsetattr\b|__setattr__|__dict__|\bvars\(|\battr\.s\b|\battrs\b")


class AttributesSet:
    """The attributes that a module's text sets, of whatever objects."""

    def __init__(self, tree: ast.Module, text: str) -> None:
        self._tree, self._text = tree, text

    def may_set(self, name: str) -> bool:
        """Whether the module sets an attribute of that name, names it in quotes, or may set any by `setattr`."""
        if self.sets_any:
            return True
        return name in self._text and (name in self._places or _is_quoted(self._text, name))

    def sets_once(self, name: str) -> bool:
        """Whether each class that has the attribute sets it to one constant, in its body or in `__init__`, and nothing
        else in the module sets it. Classes of the module that derive from each other may set what the other one has:
        of theirs nothing is said."""
        if self.sets_any or name not in self._text or _is_quoted(self._text, name):
            return False
        return 0 < self._constants[name] == self._places[name]

    @cached_property
    def sets_any(self) -> bool:
        """Whether the module may set attributes that it does not name, by `setattr` or the like."""
        return _SETS_ANY.search(self._text) is not None

    @cached_property
    def _places(self) -> Counter[str]:
        """In how many places attributes are set, by name."""
        return Counter(_set_names(self._tree))

    @cached_property
    def _constants(self) -> Counter[str]:
        """How many of the places set them to a constant, as they are to be."""
        classes = [node for node in ast.walk(self._tree) if isinstance(node, ast.ClassDef)]
        names, bases = {cls.name for cls in classes}, set().union(*map(_bases, classes))
        alone = [cls for cls in classes if cls.name not in bases and not _bases(cls) & names]
        return Counter(name for cls in alone for name in _constants_of_class(cls))


def _is_quoted(text: str, name: str) -> bool:
    return f'"{name}"' in text or f"'{name}'" in text


def _bases(cls: ast.ClassDef) -> set[str]:
    return {base.id for base in cls.bases if isinstance(base, ast.Name)}


def _constants_of_class(cls: ast.ClassDef) -> Iterator[str]:
    """The names of the attributes that one class sets to a constant."""
    is_plain = not (cls.bases or cls.keywords or cls.decorator_list)
    for node in cls.body:
        if is_plain:
            yield from (target.id for target in _targets_of_constant(node) if isinstance(target, ast.Name))
        if isinstance(node, ast.FunctionDef) and node.name == "__init__" and node.args.args:
            yield from _constants_of_object(node, node.args.args[0].arg)


def _constants_of_object(function: ast.FunctionDef, itself: str) -> Iterator[str]:
    """The attributes of `itself` that a function sets to a constant on every path."""
    for node in function.body:
        for target in _targets_of_constant(node):
            if isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == itself:
                yield target.attr


def _targets_of_constant(node: ast.stmt) -> list[ast.expr]:
    """What `x = 1` or `x: int = 1` gives the constant to; [] for any other statement."""
    if not isinstance(node, (ast.Assign, ast.AnnAssign)) or not isinstance(node.value, ast.Constant):
        return []
    return node.targets if isinstance(node, ast.Assign) else [node.target]


def _set_names(tree: ast.Module) -> Iterator[str]:
    """The names of all attributes that the module sets, once for each place; those of a class body too."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load):
            yield node.attr
        elif isinstance(node, ast.ClassDef):
            yield from _names_of_body(node)


def _names_of_body(cls: ast.ClassDef) -> Iterator[str]:
    for statement in cls.body:
        if not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            names = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
            yield from (name.id for name in names if isinstance(name.ctx, ast.Store))

"""Edits of `get_config`: entries that it leaves out."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import put_around, put_before
from mpdoctor.semantics.source.edits.statements import logical_line_at
from mpdoctor.semantics.source.texts.syntax_trees import class_around, location_of

METHOD = "\n\n{indent}def get_config(self):\n{indent}    return {{**super().get_config(), {entries}}}"


def with_entries(facts: SourceFacts, class_at: Location, kept_as: Mapping[str, str]) -> list[Edit] | None:
    """The entries of these arguments in what the class's `get_config` returns, in one of its own where it has none.
    `kept_as`: the attribute that holds each. None where `__init__` keeps something made of an argument."""
    own = class_around(facts, class_at.line)
    if own is None or any((attribute, name) not in set(_kept(own)) for name, attribute in kept_as.items()):
        return None
    entries = ", ".join(f'"{name}": self.{attribute}' for name, attribute in kept_as.items())
    config = _method(own, "get_config")
    if config is None:
        method = _new_method(facts, own, entries)
        return [method] if method is not None else None
    returned = [node for node in ast.walk(config) if isinstance(node, ast.Return)]
    value = returned[0].value if len(returned) == 1 else None
    return _in_returned(facts, value, entries) if value is not None else None


def _in_returned(facts: SourceFacts, value: ast.expr, entries: str) -> list[Edit] | None:
    place = location_of(facts, value)
    if isinstance(value, ast.Dict) and value.values:
        last = location_of(facts, value.values[-1])
        behind = Location(facts.path, last.end_line, last.end_column, last.end_line, last.end_column)
        return [Edit(behind, f", {entries}")]
    if isinstance(value, ast.Name | ast.Call) and put_before(facts, place, "") is not None:
        return put_around(facts, place, "{**", f", {entries}}}")
    return None


def _new_method(facts: SourceFacts, own: ast.ClassDef, entries: str) -> Edit | None:
    line = logical_line_at(facts, own.end_lineno or 0)
    initializer = _method(own, "__init__")
    if line is None or line.shared or initializer is None or initializer.lineno == own.lineno:
        return None
    indent = facts.lines[initializer.lineno - 1][: initializer.col_offset]
    end = len(facts.lines[line.end - 1]) + 1
    return Edit(Location(facts.path, line.end, end, line.end, end), METHOD.format(indent=indent, entries=entries))


def _method(own: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((part for part in own.body if isinstance(part, ast.FunctionDef) and part.name == name), None)


def _kept(own: ast.ClassDef) -> Iterator[tuple[str, str]]:
    """(attribute, argument) of `self.rate = rate` in `__init__`."""
    initializer = _method(own, "__init__")
    for node in ast.walk(initializer) if initializer is not None else ():
        if isinstance(node, ast.Assign) and len(node.targets) == 1:
            yield from _pairs(node.targets[0], node.value)


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, str]]:
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for one, other in zip(target.elts, value.elts, strict=True):
            yield from _pairs(one, other)
    elif isinstance(target, ast.Attribute) and ast.unparse(target.value) == "self" and isinstance(value, ast.Name):
        yield target.attr, value.id

"""A remedy that mpdoctor tried in place, made in the source: `dtype="float32"` where each of its layers is made."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

GIVEN = 'dtype="float32"'


def edited(source: str, remedy: dict[str, Any], models: list[dict[str, Any]]) -> str:
    """Raises LookupError where a layer's line does not show the call that makes it."""
    classes = {layer["path"]: layer["class"] for model in models for layer in model["layers"]}
    tree, calls = ast.parse(source), {}
    for path, place in zip(remedy["layers"], remedy["locations"], strict=True):
        if place is None:
            raise LookupError(f"no line makes {path}")
        for call in _making(tree, place["line"], path, classes.get(path)):
            calls[(call.lineno, call.col_offset)] = call
            if path in remedy["with_parts"]:
                calls.update({(inner.lineno, inner.col_offset): inner for inner in _layers_given(call)})
    takers = [_taking_dtype(tree, call) for call in calls.values()]
    for call in sorted({(c.end_lineno, c.end_col_offset): c for c in takers}.values(), key=_end, reverse=True):
        source = _given_dtype(source, call)
    return source


def _end(call: ast.Call) -> tuple[int, int]:
    return call.end_lineno or 0, call.end_col_offset or 0


def _name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")


def _making(tree: ast.AST, line: int, path: str, kind: str | None) -> list[ast.Call]:
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and node.lineno <= line <= _end(node)[0]]
    fitting = [call for call in calls if (_name(call) == kind if kind else _name(call)[:1].isupper())]
    named = [call for call in fitting if path.rsplit("/", 1)[-1] in _names_given(call)]
    nearest = max((call.lineno for call in fitting), default=0)
    found = named or [call for call in fitting if call.lineno == nearest]
    if not found:
        raise LookupError(f"line {line} makes no {kind} {path}")
    return found


def _names_given(call: ast.Call) -> list[str]:
    return [word.value.value for word in call.keywords if word.arg == "name" and isinstance(word.value, ast.Constant)]


def _layers_given(call: ast.Call) -> Iterator[ast.Call]:
    for argument in call.args:
        for node in ast.walk(argument):
            if isinstance(node, ast.Call) and _name(node)[:1].isupper():
                yield node


def _taking_dtype(tree: ast.AST, call: ast.Call) -> ast.Call:
    """Of a class whose `__init__` takes no dtype, the call of super().__init__() in it."""
    for cls in ast.walk(tree):
        if not isinstance(cls, ast.ClassDef) or cls.name != _name(call):
            continue
        for method in cls.body:
            if isinstance(method, ast.FunctionDef) and method.name == "__init__" and method.args.kwarg is None:
                return next(n for n in ast.walk(method) if isinstance(n, ast.Call) and _name(n) == "__init__")
    return call


def _given_dtype(source: str, call: ast.Call) -> str:
    lines = source.splitlines(keepends=True)
    given = next((word.value for word in call.keywords if word.arg == "dtype"), None)
    if given is not None:
        line = lines[given.lineno - 1]
        lines[given.lineno - 1] = line[: given.col_offset] + '"float32"' + line[given.end_col_offset :]
        return "".join(lines)
    row, end = _end(call)
    before, after = lines[row - 1][: end - 1], lines[row - 1][end - 1 :]
    has_arguments = bool(call.args or call.keywords)
    comma = "" if not has_arguments or before.rstrip().endswith(",") else ", "
    lines[row - 1] = before + comma + GIVEN + after
    return "".join(lines)

"""Texts that a Python file puts together from others: f-strings, `+`, `%` and `.format()`. Nothing of it is run."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping, Sequence

_LONGEST = 10_000  # characters
_DEEPEST = 20


def text_from_expression(node: ast.expr, names: Mapping[str, str], depth: int = 0) -> str | None:
    """The text that an expression is for certain, with `names` in the place of variables."""
    if depth > _DEEPEST:
        return None
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.Name):
        return names.get(node.id)
    pattern, parts = _pattern_and_parts(node, lambda part: text_from_expression(part, names, depth + 1) or "")
    texts = [text_from_expression(part, names, depth + 1) for part in parts]
    known = [text for text in texts if text is not None]
    if not pattern or len(known) != len(parts) or sum(map(len, known)) > _LONGEST:
        return None
    return "".join(_interleaved(pattern.split("{}"), known))


def _pattern_and_parts(node: ast.expr, text_of: Callable[[ast.expr], str]) -> tuple[str, Sequence[ast.expr]]:
    """A text with `{}` for each part, and the parts; "" where an expression puts no text together, or by a format."""
    match node:
        case ast.JoinedStr(values):
            parts = [part.value if isinstance(part, ast.FormattedValue) else part for part in values]
            is_formatted = any(isinstance(part, ast.FormattedValue) and part.format_spec for part in values)
            return "" if is_formatted else "{}" * len(parts), parts
        case ast.BinOp(left, ast.Add(), right):
            return "{}{}", [left, right]
        case ast.BinOp(left, ast.Mod(), right):
            parts = right.elts if isinstance(right, ast.Tuple) else [right]
            pattern = text_of(left)
            fits = pattern.count("%") == pattern.count("%s") == len(parts)
            return pattern.replace("%s", "{}") if fits else "", parts
        case ast.Call(ast.Attribute(written, "format"), parts, []):
            pattern = text_of(written)
            return pattern if pattern.count("{") == pattern.count("{}") == len(parts) else "", parts
    return "", []


def _interleaved(around: list[str], inside: list[str]) -> list[str]:
    return [word for pair in zip(around, [*inside, ""], strict=True) for word in pair]

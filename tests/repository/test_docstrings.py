"""Docstrings of the package: the first words name what a function returns or does, so that each can be read alone."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = pytest.mark.fast

PACKAGE = Path(__file__).parents[2] / "mpdoctor"
# "Of a layer: …", "The same, but …", "By the ids of the classes.": the noun is in the name of the function at best
FRAGMENT = re.compile(
    r"(Of|It|They|Its|By (the|its|their|what)|With (the|these|those|what|its|all)|The same (of|as|with|by))\b|The same,"
)


def _documented() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                place = f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
                yield place, ast.get_docstring(node) or ""


def test_no_docstring_begins_with_a_fragment() -> None:
    assert [place for place, docstring in _documented() if FRAGMENT.match(docstring)] == []


@pytest.mark.parametrize(
    "docstring",
    ("Of a wrapper, or of a bare optimizer.", "The same, by the imports alone.", "By the ids of the classes."),
)
def test_fragments_are_found(docstring: str) -> None:
    assert FRAGMENT.match(docstring)

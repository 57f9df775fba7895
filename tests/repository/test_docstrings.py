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
# "None where nobody knows.": what it is otherwise is left to the reader
VALUE = re.compile(
    r"""(\[\]|\(\)|\{\}|b?""|-?\d[\d.]*|inf|None|True|False|MISSING|UNREAD) (where|before|for|if|of|in)\b"""
)
FIELD = re.compile(r"[a-z_]+(, [a-z_]+)*\n")
QUESTION = re.compile(r"_?(is|are|was|were|has|have|had|may|can)_\w+")


def _questions() -> Iterator[tuple[str, str]]:
    """The functions that answer yes or no, by their names, with their docstrings."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef) and isinstance(node.returns, ast.Name) and node.returns.id == "bool":
                docstring = ast.get_docstring(node)
                if docstring and QUESTION.fullmatch(node.name):
                    yield f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}", docstring


def _documented() -> Iterator[tuple[str, str]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
                place = f"{path.relative_to(PACKAGE)}:{node.lineno} {node.name}"
                yield place, ast.get_docstring(node) or ""


def test_no_docstring_begins_with_a_fragment() -> None:
    assert [place for place, docstring in _documented() if FRAGMENT.match(docstring)] == []


def test_no_docstring_begins_with_a_field() -> None:
    assert [place for place, docstring in _documented() if FIELD.match(docstring)] == []


def test_no_docstring_begins_with_what_there_is_otherwise() -> None:
    assert [place for place, docstring in _documented() if VALUE.match(docstring)] == []


def test_the_docstring_of_a_question_says_what_is_asked() -> None:
    assert [place for place, docstring in _questions() if not docstring.startswith(("Whether ", "Always "))] == []


@pytest.mark.parametrize(
    "docstring",
    ("Of a wrapper, or of a bare optimizer.", "The same, by the imports alone.", "By the ids of the classes."),
)
def test_fragments_are_found(docstring: str) -> None:
    assert FRAGMENT.match(docstring)


@pytest.mark.parametrize(
    "docstring", ("None where nobody knows.", "[] before the model is built.", "0.0 if it is open.")
)
def test_values_are_found(docstring: str) -> None:
    assert VALUE.match(docstring)

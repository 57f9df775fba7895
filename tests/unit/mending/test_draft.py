"""Edits made in files, and left out again: what stands in the files then, and where it stood before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.mending.draft import CannotEdit, Draft, Proposal
from mpdoctor.program.source_facts import SourceFacts

pytestmark = pytest.mark.fast


def edit(path: str, line: int, column: int, text: str, end: int = 0, cell: int = 0) -> Edit:
    return Edit(Location(path, line, column, line, end or column, cell), text)


def proposal(*edits: Edit, title: str = "") -> Proposal:
    return Proposal(title, True, "MP000", edits)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_proposals_of_a_round_are_counted_in_the_same_text_and_those_that_touch_wait() -> None:
    Path("a.py").write_text("a = 1\nb = 2\n")
    draft = Draft()
    sources = {"a.py": SourceFacts("a.py", "a = 1\nb = 2\n")}
    longer, other, same = edit("a.py", 1, 5, "1000", 6), edit("a.py", 2, 5, "3", 6), edit("a.py", 1, 5, "7", 6)
    made = draft.make([proposal(longer), proposal(same), proposal(other)], (), sources)
    assert list(made) == [0, 1]
    (file,) = draft.files((0, 1))
    assert (file.shown_as, file.before, file.after) == ("a.py", b"a = 1\nb = 2\n", b"a = 1000\nb = 3\n")
    assert draft.contents((1,)) == {Path("a.py").absolute(): b"a = 1\nb = 3\n"}
    assert draft.contents(()) == {}
    assert draft.edits((0, 1)) == {0: (longer,), 1: (other,)}


def test_an_import_that_two_of_them_need_is_there_once_and_as_long_as_one_of_them_is() -> None:
    Path("a.py").write_bytes(b"\xef\xbb\xbfx = 1\r\ny = 2\r\n")
    draft = Draft()
    given = edit("a.py", 1, 1, "import tensorflow as tf\n")
    draft.make([proposal(given, edit("a.py", 1, 5, "3", 6)), proposal(given, edit("a.py", 2, 5, "4", 6))], (), {})
    start = b"\xef\xbb\xbfimport tensorflow as tf\r\n"
    assert [file.after for file in draft.files((0, 1))] == [start + b"x = 3\r\ny = 4\r\n"]
    assert [file.after for file in draft.files((1,))] == [start + b"x = 1\r\ny = 4\r\n"]
    told = draft.edits((0, 1))
    assert (given in told[0], told[1]) == (True, (edit("a.py", 2, 5, "4", 6),))
    assert given in draft.edits((1,))[1]


def test_of_two_at_one_place_the_first_told_stands_first() -> None:
    Path("a.py").write_text("f(x)\n")
    draft = Draft()
    draft.make([proposal(edit("a.py", 1, 4, ", b=2"))], (), {})
    draft.make([proposal(edit("a.py", 1, 4, ", a=1"))], (0,), {"a.py": SourceFacts("a.py", "f(x, b=2)\n")})
    ((file,), told) = draft.files((0, 1)), draft.edits((0, 1))
    assert file.after == b"f(x, a=1, b=2)\n"
    assert [change.text for edits in told.values() for change in edits] == [", a=1", ", b=2"]


def test_what_builds_on_an_edit_goes_with_it() -> None:
    Path("a.py").write_text("a = 1\n")
    draft = Draft()
    draft.make([proposal(edit("a.py", 1, 5, "f(2)", 6))], (), {})
    draft.make([proposal(edit("a.py", 1, 7, "30", 8))], (0,), {})
    draft.make([proposal(edit("a.py", 1, 1, "ab", 2))], (0, 1), {})
    assert [file.after for file in draft.files((0, 1, 2))] == [b"ab = f(30)\n"]
    assert draft.closed((1, 2)) == (2,)
    assert draft.closed((0, 1, 2)) == (0, 1, 2)
    assert draft.edits((0, 1, 2))[1] == (edit("a.py", 1, 6, "30"),)


def test_a_cell_of_a_notebook_is_a_text_of_its_own() -> None:
    cells = [{"cell_type": "code", "source": ["a = 1\n", "b = 2"]}, {"cell_type": "code", "source": "c = 3"}]
    Path("a.ipynb").write_text(json.dumps({"cells": cells, "nbformat": 4}))
    draft = Draft()
    draft.make(
        [proposal(edit("a.ipynb", 2, 5, "7", 6, cell=1)), proposal(edit("a.ipynb", 1, 5, "8", 6, cell=2))], (), {}
    )
    (file,) = draft.files((0, 1))
    assert [cell["source"] for cell in json.loads(file.after)["cells"]] == [["a = 1\n", "b = 7"], "c = 8"]


@pytest.mark.parametrize(
    ("content", "examined", "why"),
    [
        (None, "", "can't be read"),
        (b"a = 2\n", "a = 1\n", "changed by somebody else meanwhile"),
        (b"# coding: utf-9\n", "", "encoding"),
    ],
)
def test_a_file_that_is_not_to_be_edited_is_told(content: bytes | None, examined: str, why: str) -> None:
    if content is not None:
        Path("a.py").write_bytes(content)
    with pytest.raises(CannotEdit, match=why):
        Draft().make([proposal(edit("a.py", 1, 1, "x"))], (), {"a.py": SourceFacts("a.py", examined)})

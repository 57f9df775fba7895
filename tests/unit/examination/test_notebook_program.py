"""A notebook as it is run: its cells as one Python text with the lines of the source stage, and what is left out."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.examination.event_reader import Notebook, event_from_line
from mpdoctor.examination.notebook_program import GivenTexts, NoProgram, as_run, given_texts
from mpdoctor.examiner.protocol.event_kinds import Failure
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import LineInCell, Location, line_in_cells, line_in_words, shown_location
from mpdoctor.facts.machine.environment import RUN_AS
from mpdoctor.program.source_record import Problem
from mpdoctor.project.targets import target_from_text
from mpdoctor.reporters.json.plain_values import object_from_place, plain
from mpdoctor.source.notebooks import program_from_notebook, source_from_notebook

# Cells, their program, and what of them is left out. "#" begins a cell of text.
CELLS: dict[str, tuple[list[str], str, list[str]]] = {
    "plain": (["x = 1", "y = 2\nz = 3"], "x = 1\ny = 2\nz = 3", []),
    "text between": (["x = 1", "# Title", "y = 2"], "x = 1\ny = 2", []),
    "magics": (
        ["%matplotlib inline\n!pip install -q keras\nx = 1", "%run helpers.py\nfiles = !ls"],
        "pass\npass\nx = 1\npass\nfiles = None",
        ["%run helpers.py", "files = !ls", "%matplotlib inline", "!pip install -q keras"],
    ),
    "each once": (["!ls", "!ls"], "pass\npass", ["!ls"]),
    "a whole cell": (["%%bash\nls\ncd x", "x = 1"], "\n\n\nx = 1", ["%%bash"]),
    "timed": (["%%time\nx = 1", "%time y = f(x)"], "\nx = 1\n0;    y = f(x)", []),
    "variables": (
        ["%env TF_USE_LEGACY_KERAS=1\n  # done", "%set_env SEED 3\n%env\n%env HOME=$PWD"],
        "import os as _os; _os.environ['TF_USE_LEGACY_KERAS'] = '1'\n  # done\n"
        "import os as _os; _os.environ['SEED'] = '3'\npass\npass",
        ["%env", "%env HOME=$PWD"],
    ),
    "prompts": ([">>> x = 1\n>>> y = 2"], "x = 1\ny = 2", []),
    "a citation": (["@misc{key,\n title={A}\n}", "x = 1"], "\n\n\nx = 1", []),
    "None is Python": (["x = None\npass"], "x = None\npass", []),
    "no cells": ([], "", []),
}


def notebook(cells: list[str]) -> bytes:
    kinds = [("markdown" if text.startswith("# ") else "code", text) for text in cells]
    return json.dumps({"cells": [{"cell_type": kind, "source": text} for kind, text in kinds]}).encode()


@pytest.mark.parametrize("name", CELLS)
def test_the_program_of_a_notebook(name: str) -> None:
    cells, text, left_out = CELLS[name]
    program, source = (
        program_from_notebook(notebook(cells), "n.ipynb"),
        source_from_notebook(notebook(cells), "n.ipynb"),
    )
    assert program is not None and not isinstance(source, Problem)
    assert (program.text, list(program.left_out)) == (text, left_out)
    assert program.cells == source.cells
    assert [node.lineno for node in ast.parse(text).body if not isinstance(node, ast.Pass)] == [
        node.lineno for node in source.tree.body if not isinstance(node, ast.Pass)
    ]


LINES = [
    "x = 1",
    "if x:",
    "    y = 2",
    "%time z = 3",
    "  %%time",
    "%%bash",
    "!ls \\",
    "%env A=1",
    ">>> x = 1",
    "x?",
    "",
]


@given(st.lists(st.lists(st.sampled_from(LINES), max_size=5).map("\n".join), max_size=4))
def test_a_program_has_the_lines_of_its_source(cells: list[str]) -> None:
    data = notebook(cells)
    program, source = program_from_notebook(data, "n.ipynb"), source_from_notebook(data, "n.ipynb")
    if program is not None:
        assert not isinstance(source, Problem)
        assert [type(node) for node in ast.walk(ast.parse(program.text))] == [type(n) for n in ast.walk(source.tree)]
        assert program.text.count("\n") == source.text.count("\n")


@pytest.mark.parametrize("data", [b"", b"{}", notebook(["x = ("]), notebook(["x = 1", "print 'x'"])])
def test_what_is_no_python_has_no_program(tmp_path: Path, data: bytes) -> None:
    assert program_from_notebook(data, "n.ipynb") is None
    (tmp_path / "n.ipynb").write_bytes(data)
    with pytest.raises(NoProgram, match="a cell in it that is no Python"):
        given_texts(target_from_text(str(tmp_path / "n.ipynb")), {})


def test_the_edited_text_of_a_notebook_is_run(tmp_path: Path) -> None:
    path = tmp_path / "n.ipynb"
    path.write_bytes(notebook(["x = 1"]))
    edited = {str(path.resolve()): notebook(["x = 2"]), "other.py": b"y"}
    given = given_texts(target_from_text(str(path)), edited)
    assert given == GivenTexts({str(path.resolve()): b"x = 2", "other.py": b"y"}, ((1, 1),))


@pytest.mark.parametrize(
    ("left_out", "said"),
    [
        ((), ""),
        (("%run a.py",), "`%run a.py`"),
        (("!a", "!b", "!c", "!d", "!e"), "`!a`, `!b`, `!c` and 2 more"),
        (("!" + "a" * 60,), f"`!{'a' * 58}…`"),
    ],
)
def test_the_report_names_what_was_left_out(left_out: tuple[str, ...], said: str) -> None:
    failed = ExaminationFacts(failure=FailureFacts("raised", "script"))
    facts = as_run(failed, GivenTexts({}, ((1, 1),), left_out))
    assert facts.environment == ((RUN_AS, "a script of its cells" + (said and f", without {said}")),)
    assert facts.failure is not None
    assert (said in facts.failure.how_it_ran) and facts.failure.left_out == said
    assert as_run(failed, GivenTexts({})) == failed


def test_lines_of_a_run_are_those_of_cells() -> None:
    cells = ((2, 1), (4, 4))
    raised = {"kind": "raised", "during": "script", "location": {"path": "/n.ipynb", "line": 5}}
    frames = [{"path": path, "line": 5, "function": "f", "text": "", "own": True} for path in ("/n.ipynb", "/a.py")]
    line = json.dumps({"event": "Failure", "facts": {**raised, "frames": frames}}).encode()
    event = event_from_line(line, Notebook("/n.ipynb", cells))
    assert isinstance(event, Failure) and event.facts.location is not None
    place, (in_cell, elsewhere) = event.facts.location, event.facts.frames
    assert place == Location("/n.ipynb", 5)  # what joins it with the source, whose lines are counted over all cells
    assert line_in_words(place) == "cell 4, line 2" and line_in_words(Location("a.py", 5)) == "line 5"
    assert shown_location(place) == Location("/n.ipynb", 2, cell=4)
    assert object_from_place(place) == {"path": "/n.ipynb", "line": 2, "cell": 4}
    assert plain(in_cell)["cell"] == 4 and plain(in_cell)["line"] == 2
    assert plain(elsewhere)["line"] == 5 and "cell" not in plain(elsewhere)


@pytest.mark.parametrize(("line", "cell", "number"), [(1, 2, 1), (3, 2, 3), (4, 4, 1), (9, 4, 6)])
def test_a_line_knows_its_cell(line: int, cell: int, number: int) -> None:
    known = line_in_cells(line, ((2, 1), (4, 4)))
    assert isinstance(known, LineInCell)
    assert (known, known.cell, known.number) == (line, cell, number)
    assert line_in_cells(line, ()) == line

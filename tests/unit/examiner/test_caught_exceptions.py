"""A script's own `except`: noted where it goes on, and the script runs as it is written."""

from __future__ import annotations

import ast
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mpdoctor.examiner.targets import caught_exceptions

pytestmark = pytest.mark.fast


@pytest.fixture(autouse=True)
def nothing_caught() -> Iterator[None]:
    caught_exceptions._caught.clear()
    yield
    caught_exceptions._caught.clear()


def run(folder: Path, text: str) -> tuple[list[tuple[str, int | None, int, bool]], dict[str, Any]]:
    """((exception, line, line of the except, whether a training call stands in the try), …), and the script's names."""
    path = folder / "script.py"
    path.write_text(text, encoding="utf-8")
    names: dict[str, Any] = {"__name__": "__main__"}
    exec(caught_exceptions.compiled(ast.parse(path.read_bytes(), str(path)), str(path)), names)
    told = caught_exceptions.caught_exceptions()
    return [
        (caught.exception, caught.location and caught.location.line, caught.caught_at.line, caught.before_training)
        for caught in told
    ], names


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("try:\n    1 / 0\nexcept Exception as error:\n    print(error)\n", [("ZeroDivisionError", 2, 3, False)]),
        ("try:\n    1 / 0\n    model.fit()\nexcept Exception: pass\n", [("ZeroDivisionError", 2, 4, True)]),
        (
            "def main():\n    {}['a']\n    model.fit()\n\ndef run():\n    main()\n\n"
            "try:\n    run()\nexcept KeyError:\n    pass\n",
            [("KeyError", 2, 10, True)],
        ),
        ("try:\n    try:\n        1 / 0\n    except Exception:\n        raise\nexcept Exception:\n    x = 1\n",
         [("ZeroDivisionError", 3, 6, False)]),
        ("try:\n    x = 1\nexcept Exception:\n    pass\n", []),
        ("for n in range(60):\n    try:\n        1 / 0\n    except ZeroDivisionError:\n        continue\n",
         [("ZeroDivisionError", 3, 4, False)] * 50),
    ],
    ids=["printed", "before-fit", "before-fit-in-a-function", "raised-again", "nothing", "in-a-loop"],
)  # fmt: skip
def test_what_is_caught_is_noted(tmp_path: Path, text: str, told: list[tuple[str, int, int, bool]]) -> None:
    assert run(tmp_path, text)[0] == told


def test_the_script_runs_as_it_is_written(tmp_path: Path) -> None:
    text = '''"""A docstring."""
from __future__ import annotations
import traceback

try:
    {}["a"]
except KeyError:
    """no docstring"""
    trace = traceback.format_exc()
x: "no name" = 1
'''
    names = run(tmp_path, text)[1]
    assert names["__doc__"] == "A docstring." and names["__annotations__"] == {"x": "'no name'"}
    assert "line 6, in <module>" in names["trace"]
    assert not any("mpdoctor" in name for name in names)


def test_an_error_in_the_text_is_that_of_python(tmp_path: Path) -> None:
    with pytest.raises(SyntaxError) as error:
        run(tmp_path, "try:\n  x = = 1\n")
    assert error.value.lineno == 2 and "script.py" in "".join(traceback.format_exception(error.value))

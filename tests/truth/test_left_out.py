"""What shows that an edit is needed: the script, plain Keras, or a check; here neither of the latter two is run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from . import left_out as module
from .generator import Script, script_from_seed
from .left_out import left_out, told
from .mends import Mend

pytestmark = pytest.mark.fast
SEED, NUMBER = 9, 12
TRAINS = {"raised": None, "optimizers": [{"loss": [1.0], "finite": [True], "dynamic": True}]}
RAISES = {"raised": "ValueError", "optimizers": []}


class Plain:
    """Raises where the first line of the script is left as it was."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def __enter__(self) -> Plain:
        return self

    def __exit__(self, *_: object) -> None: ...

    def record(self, script: Script, path: Path) -> dict[str, Any]:
        return TRAINS if path.read_text(encoding="utf-8").startswith("# first\n") else RAISES


def edit(title: str, text: str) -> dict[str, Any]:
    place = {"line": 1, "column": 1}
    return {"title": title, "path": "train.py", "start": place, "end": place, "text": text}


@pytest.mark.parametrize(
    ("edits", "checked", "shown_by"),
    [
        ({"one": "# first\n"}, "healthy", ["script"]),
        ({"one": "# first\n", "two": "# second\n"}, "healthy", ["plain Keras", ""]),
        ({"one": "# first\n", "two": "# second\n"}, "stuck", ["plain Keras", "check"]),
    ],
)
def test_what_shows_that_an_edit_is_needed(
    edits: dict[str, str], checked: str, shown_by: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "PlainKeras", Plain)
    monkeypatch.setattr(module, "report_of", lambda script, path: {"probes": [{"verdict": checked}], "findings": []})
    report = {"edits": [edit(title, text) for title, text in edits.items()]}
    script = script_from_seed(SEED, NUMBER)
    (tmp_path / f"{script.name}.mended.json").write_text(json.dumps(report), encoding="utf-8")
    row = Mend(SEED, NUMBER, "3", "epsilon vanishes", 0, True, 1, 2, [], [], list(edits), [], True)
    results = tmp_path / "results.jsonl"
    found = list(left_out([row], tmp_path, results))
    assert [result.shown_by for result in found] == shown_by
    assert list(left_out([row], tmp_path, results)) == []
    assert f"| nothing | {shown_by.count('')} |" in told(found)

"""What `--keep-run DIR` keeps of each run of the examiner: request, edited text, events and stderr, in a
folder of its own."""

from __future__ import annotations

import itertools
from pathlib import Path

from mpdoctor.facts.frozen import dataclass


@dataclass(frozen=True)
class KeptRun:
    """The files that one run is kept in; `edited` is the folder for edited source files. All are None where nothing is
    kept."""

    request: Path | None = None
    events: Path | None = None
    stderr: Path | None = None
    edited: Path | None = None


def kept_run(directory: Path | None) -> KeptRun:
    """Make the next of run-1, run-2, … below `directory`. What a program prints and is given may be secret: only this
    user can enter the folder.

    Raises OSError."""
    if directory is None:
        return KeptRun()
    for number in itertools.count(1):
        folder = directory / f"run-{number}"
        if not folder.exists():
            folder.mkdir(mode=0o700)
            return KeptRun(folder / "request.json", folder / "events.jsonl", folder / "stderr.txt", folder / "edited")
    raise AssertionError("numbers never end")

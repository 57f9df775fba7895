"""The line to the parent: JSON lines appended to a file in a private directory.

The file is opened anew for every line, so a script that closes all descriptors cannot cut the line, and the names
used here are bound at import, so a script that patches `json` or `os` cannot bend it.
"""

from __future__ import annotations

from dataclasses import asdict
from json import dumps as _dumps
from os import O_APPEND, O_CREAT, O_WRONLY
from os import close as _close
from os import open as _open
from os import write as _write
from typing import Any


class Events:
    """Events in the order in which they happened; `path` is the file that the parent reads."""

    def __init__(self, path: str) -> None:
        self._path = path

    def stage(self, text: str) -> None:
        """What happens now, in words for the progress bar."""
        self._append({"event": "stage", "text": text})

    def steps(self, done: int, total: int) -> None:
        """Training steps seen so far."""
        self._append({"event": "steps", "done": done, "total": total})

    def facts(self, kind: str, facts: Any) -> None:
        """A dataclass of mpdoctor.facts; a later "model" with the same id replaces the earlier one."""
        self._append({"event": "facts", "kind": kind, "facts": asdict(facts)})

    def note(self, **fields: Any) -> None:
        """Something small about the run itself: versions, statuses, files written."""
        self._append({"event": "note", **fields})

    def end(self) -> None:
        """The examiner has said all it has to say."""
        self._append({"event": "end"})

    def _append(self, event: Any) -> None:
        line = (_dumps(event) + "\n").encode("utf-8", "backslashreplace")
        descriptor = _open(self._path, O_WRONLY | O_APPEND | O_CREAT, 0o600)
        try:
            while line:
                line = line[_write(descriptor, line) :]
        finally:
            _close(descriptor)

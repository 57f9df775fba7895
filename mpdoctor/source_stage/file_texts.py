"""The bytes of source files: unsaved ones from the editor or standard input, all others from the disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mpdoctor.project.regular_files import bytes_from_file


class FileTexts:
    """The bytes of files, each read once. `passing`: the files whose text no later run will find under their name: it
    was handed over in their place, or they can't be read today."""

    def __init__(self, unsaved: Mapping[Path, bytes]) -> None:
        self._read = dict(unsaved)
        self.passing = set(unsaved)

    def of(self, path: Path) -> bytes:
        """b"" where it can't be read: the worker that reads it says why."""
        if path not in self._read:
            try:
                self._read[path] = bytes_from_file(path)
            except OSError:
                self._read[path] = b""
                self.passing.add(path)
        return self._read[path]

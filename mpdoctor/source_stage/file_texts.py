"""The bytes of source files: unsaved and edited ones as given, all others from disk."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from mpdoctor.project.asked_of_system import bytes_of


class FileTexts:
    """The bytes of files, each read once, and held until somebody else holds what they say."""

    def __init__(self, unsaved: Mapping[Path, bytes]) -> None:
        self.unsaved = unsaved
        self._read: dict[Path, bytes] = {}
        self._passing: set[Path] = set()

    def is_passing(self, path: Path) -> bool:
        """Whether no later run will find this text under the file's name: it was handed over in its place, or the file
        can't be read today."""
        return path in self._passing or path in self.unsaved

    def of(self, path: Path) -> bytes:
        """The bytes of the file; b"" where it can't be read: the worker that reads it says why."""
        if path not in self._read:
            try:
                self._read[path] = self.unsaved[path] if path in self.unsaved else bytes_of(path)
            except OSError:
                self._read[path] = b""
                self._passing.add(path)
        return self._read[path]

    def give_back(self, path: Path) -> None:
        """Hold the bytes of this file no longer. Asked for again, they are read again."""
        self._read.pop(path, None)

"""The bytes of source files: unsaved and edited ones as given, all others from disk."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from mpdoctor.project.asked_of_system import bytes_of

_RUN = (b'__name__ == "__main__"', b"__name__ == '__main__'")


class FileTexts:
    """The bytes of files, each read once."""

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

    def holding(self, paths: Iterable[Path], words: tuple[bytes, ...]) -> set[Path]:
        """The files whose bytes hold one of these words."""
        return {path for path in paths if any(word in self.of(path) for word in words)}

    def is_script(self, path: Path) -> bool:
        """Whether the file does something where it is run by itself, besides what it does where it is imported."""
        return bool(self.holding([path], _RUN))

"""Texts that replace the contents of files, found by any path that leads to a file."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path


class EditedFiles(Mapping[Path, bytes]):
    """`unsaved`: by absolute path; `edited`: by real path, and found through links as well. The first wins."""

    def __init__(self, unsaved: Mapping[Path, bytes], edited: Mapping[str, bytes]) -> None:
        self._unsaved = dict(unsaved)
        self._edited = {os.path.normcase(path): text for path, text in edited.items()}

    def __getitem__(self, path: Path) -> bytes:
        if path in self._unsaved or not self._edited:
            return self._unsaved[path]
        return self._edited[_real(path)]

    def __contains__(self, path: object) -> bool:
        return path in self._unsaved or (bool(self._edited) and isinstance(path, Path) and _real(path) in self._edited)

    def __iter__(self) -> Iterator[Path]:
        return iter(dict.fromkeys([*self._unsaved, *map(Path, self._edited)]))

    def __len__(self) -> int:
        return sum(1 for _ in self)


def _real(path: Path) -> str:
    return os.path.normcase(os.path.realpath(path))

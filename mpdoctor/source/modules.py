"""First-party modules: which file an import means, read once however many programs import it."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.facts.source import Problem
from mpdoctor.source.reading import Source, source_from_text

LARGEST = 3_000_000  # bytes of a file that is still read as a module


class Files:
    """The Python files around a program. Share one between programs of one directory: each file is parsed
    once."""

    def __init__(self) -> None:
        self._sources: dict[Path, Source | Problem] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}

    def source(self, path: Path, shown_as: str) -> Source | Problem:
        found = self._sources.get(path)
        if found is None:
            found = self._sources[path] = source_from_text(path.read_bytes(), shown_as)
        return found

    def find(self, root: Path, dotted: str) -> Path | None:
        """The file of a module below a directory: `a.b` is a/b.py or a/b/__init__.py."""
        key = (root, dotted)
        if key not in self._found:
            self._found[key] = _file_of(root, dotted)
        return self._found[key]


def _file_of(root: Path, dotted: str) -> Path | None:
    if not dotted or not all(part.isidentifier() for part in dotted.split(".")):
        return None
    place = root.joinpath(*dotted.split("."))
    for path in (place / "__init__.py", place.with_name(place.name + ".py")):
        try:
            if path.is_file() and path.stat().st_size <= LARGEST:
                return path
        except OSError:  # a name too long for the file system, or a directory that may not be read
            return None
    return None


def package_of(path: Path) -> tuple[Path, str]:
    """The directory above the outermost package that a file belongs to, and the file's package there ("" for
    none)."""
    directory, parts = path.parent, []
    while (directory / "__init__.py").is_file() and directory.parent != directory:
        parts.append(directory.name)
        directory = directory.parent
    return directory, ".".join(reversed(parts))

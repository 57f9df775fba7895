"""First-party modules: which file an import means; each file is read once, however many programs import it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from mpdoctor.program.source_facts import Problem
from mpdoctor.project.project_folder import Marks, import_roots, link_out
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.source.names import LIBRARIES
from mpdoctor.source.reading import Source, source_from_text

NOTEBOOK = ".ipynb"
LARGEST = 3_000_000  # bytes of a file that is still read as a module


class Files:
    """The Python files around a program. Share one between programs of one directory: each file is parsed
    once. `unsaved` holds the content of files that comes from elsewhere than the disk (standard input)."""

    def __init__(self, unsaved: Mapping[Path, bytes] = MappingProxyType({})) -> None:
        self._unsaved = unsaved
        self._sources: dict[Path, Source | Problem] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}
        self._import_roots: dict[Path, tuple[Path, ...]] = {}
        self._marks: dict[Path, Marks] = {}
        self.passed_over: dict[Path, None] = {}  # links out of the project, by which imports would go

    def source(self, path: Path, shown_as: str) -> Source | Problem:
        """Raises OSError where the file can't be read."""
        found = self._sources.get(path)
        if found is None:
            data = self._unsaved[path] if path in self._unsaved else bytes_from_file(path)
            found = self._sources[path] = _source_from_bytes(data, path, shown_as)
        return found

    def holds(self, path: Path) -> bool:
        """Whether this file was parsed already."""
        return path in self._sources

    def find(self, root: Path, dotted: str) -> Path | None:
        """The file of a module below a directory: `a.b` is a/b.py or a/b/__init__.py. A link out of the project leads
        to none of its modules."""
        key = (root, dotted)
        if key not in self._found:
            found = _file_of(root, dotted)
            link = link_out(str(found), str(root)) if found is not None else None
            if link is not None:
                self.passed_over[Path(link)] = None
            self._found[key] = found if link is None else None
        return self._found[key]

    def find_in_project(self, directory: Path, dotted: str) -> Path | None:
        """The file of a module that a script imports from the packages of the project around its directory. Those
        whose names rules know are libraries, wherever they lie."""
        if dotted.partition(".")[0] in LIBRARIES:
            return None
        return next(filter(None, (self.find(root, dotted) for root in self.import_roots(directory))), None)

    def import_roots(self, directory: Path) -> tuple[Path, ...]:
        """The directories that hold the packages of the projects around a directory, without the directory itself."""
        if directory not in self._import_roots:
            roots = import_roots(directory, self._marks)
            self._import_roots[directory] = tuple(root for root in roots if root != directory)
        return self._import_roots[directory]


def _source_from_bytes(data: bytes, path: Path, shown_as: str) -> Source | Problem:
    if path.suffix != NOTEBOOK:
        return source_from_text(data, shown_as)
    from mpdoctor.source.notebooks import source_from_notebook

    return source_from_notebook(data, shown_as)


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

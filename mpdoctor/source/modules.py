"""First-party modules: which file an import means; each file is read once, however many programs import it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from mpdoctor.program.source_record import Problem
from mpdoctor.project.asked_of_system import bytes_of, is_file, is_file_of_at_most
from mpdoctor.project.project_folder import Marks, import_roots, is_in_project, link_out
from mpdoctor.source.names import LIBRARIES
from mpdoctor.source.package_paths import AddedDirectories, directories_added_by
from mpdoctor.source.reading import Source, source_from_text

if TYPE_CHECKING:
    from mpdoctor.source.kept_sources import KeptSources
    from mpdoctor.source.plain_settings import SettingsFile

NOTEBOOK = ".ipynb"
LARGEST = 3_000_000  # bytes of a file that is still read as a module


class Files:
    """The Python files around a program. Share one between programs of one directory: each file is parsed
    once. `unsaved` holds the content of files that comes from elsewhere than the disk (standard input), and `read`
    gives that of the others. `kept`: what was parsed before."""

    def __init__(
        self,
        unsaved: Mapping[Path, bytes] = MappingProxyType({}),
        read: Callable[[Path], bytes] = bytes_of,
        kept: KeptSources | None = None,
    ) -> None:
        self._unsaved, self._read, self._kept = unsaved, read, kept
        self._sources: dict[Path, Source | Problem] = {}
        self._found: dict[tuple[Path, str], Path | None] = {}
        self._added: dict[tuple[Path, str], tuple[tuple[int, AddedDirectories], ...]] = {}  # by root and package
        self._import_roots: dict[Path, tuple[Path, ...]] = {}
        self._marks: dict[Path, Marks] = {}
        self._settings: dict[Path, SettingsFile] = {}
        self.passed_over: dict[Path, None] = {}  # links out of the project, by which imports would go

    def source(self, path: Path, shown_as: str) -> Source | Problem:
        """The parsed file. Raises OSError where it can't be read."""
        source = self._sources.get(path)
        if source is None:
            data = self._bytes_of(path)
            source = self._sources[path] = (
                _source_from_bytes(data, path, shown_as)
                if self._kept is None
                else self._kept.source(data, path, shown_as, _source_from_bytes)
            )
        return source

    def holds(self, path: Path) -> bool:
        """Whether this file was parsed already."""
        return path in self._sources

    def settings(self, path: Path, root: Path) -> SettingsFile:
        """A file of settings in the project around a directory: what lies elsewhere is nothing to quote."""
        from mpdoctor.source.plain_settings import NO_SETTINGS, settings_file  # of which few programs read any

        if path not in self._settings:
            is_inside = is_in_project(str(path), str(root))
            self._settings[path] = settings_file(path, self._bytes_of) if is_inside else NO_SETTINGS
        return self._settings[path]

    def find(self, root: Path, dotted: str) -> Path | None:
        """The file of a module below a directory: `a.b` is a/b.py or a/b/__init__.py, or lies in a directory that
        a/__init__.py adds to its `__path__`. A link out of the project leads to none of its modules."""
        key = (root, dotted)
        if key not in self._found:
            path = self._file_of(root, dotted)
            link = link_out(str(path), str(root)) if path is not None else None
            if link is not None:
                self.passed_over[Path(link)] = None
            self._found[key] = path if link is None else None
        return self._found[key]

    def find_in_project(self, directory: Path, dotted: str) -> Path | None:
        """The file of a module that a script imports from the packages of the project around its directory. Those
        whose names rules know are libraries, wherever they lie."""
        return None if dotted.partition(".")[0] in LIBRARIES else self._find_in_roots(directory, dotted)

    def is_held_by_project(self, directory: Path, dotted: str) -> bool:
        """Whether the project around a directory is the library itself that has this module."""
        return self._find_in_roots(directory, dotted) is not None

    def _find_in_roots(self, directory: Path, dotted: str) -> Path | None:
        return next(filter(None, (self.find(root, dotted) for root in self.import_roots(directory))), None)

    def looks_elsewhere_first(self, root: Path, dotted: str) -> bool:
        """Whether Python looks for this module in other directories before it does in that of its package."""
        return any(added.before for _, added in self._added_around(root, dotted.rpartition(".")[0]))

    def _file_of(self, root: Path, dotted: str) -> Path | None:
        around = self._added_around(root, dotted.rpartition(".")[0])
        if not around:
            return self._own_file_of(root, dotted)
        parts = dotted.split(".")
        added = [(".".join(parts[count:]), directories) for count, directories in around]
        before = (self.find(directory, rest) for rest, directories in added for directory in directories.before)
        behind = (self.find(directory, rest) for rest, directories in added for directory in directories.behind)
        return next(filter(None, before), None) or self._own_file_of(root, dotted) or next(filter(None, behind), None)

    def _own_file_of(self, root: Path, dotted: str) -> Path | None:
        if not dotted or not all(part.isidentifier() for part in dotted.split(".")):
            return None
        place = root.joinpath(*dotted.split("."))
        for path in (place / "__init__.py", place.with_name(place.name + ".py")):
            if path in self._unsaved or is_file_of_at_most(LARGEST, path):
                return path
        return None

    def _added_around(self, root: Path, package: str) -> tuple[tuple[int, AddedDirectories], ...]:
        """What a package and those around it add to their paths, each with the number of parts of its name."""
        if not package:
            return ()
        key = (root, package)
        if key not in self._added:
            own = self._added_by(root, package)
            outer = self._added_around(root, package.rpartition(".")[0])
            self._added[key] = outer if own == AddedDirectories() else (*outer, (package.count(".") + 1, own))
        return self._added[key]

    def _added_by(self, root: Path, package: str) -> AddedDirectories:
        path = self._own_file_of(root, f"{package}.__init__")
        try:
            return AddedDirectories() if path is None else directories_added_by(self._bytes_of(path), path)
        except OSError:  # whoever parses the file says why
            return AddedDirectories()

    def _bytes_of(self, path: Path) -> bytes:
        """The bytes of a file, unsaved or from disk. Raises OSError."""
        return self._unsaved[path] if path in self._unsaved else self._read(path)

    def import_roots(self, directory: Path) -> tuple[Path, ...]:
        """The directories that hold the packages of the projects around a directory, without the directory itself."""
        if directory not in self._import_roots:
            roots = import_roots(directory, self._marks, self.passed_over)
            self._import_roots[directory] = tuple(root for root in roots if root != directory)
        return self._import_roots[directory]


def _source_from_bytes(data: bytes, path: Path, shown_as: str) -> Source | Problem:
    if path.suffix != NOTEBOOK:
        return source_from_text(data, shown_as)
    from mpdoctor.source.notebooks import source_from_notebook

    return source_from_notebook(data, shown_as)


def package_of(path: Path) -> tuple[Path, str]:
    """The directory above the outermost package that a file belongs to, and the file's package there ("" for
    none)."""
    directory, parts = path.parent, []
    while is_file(directory / "__init__.py") and directory.parent != directory:
        parts.append(directory.name)
        directory = directory.parent
    return directory, ".".join(reversed(parts))

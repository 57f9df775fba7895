"""Prefilter on unparsed text: whether a finding could be in a file, and which first-party files it imports."""

from __future__ import annotations

import dataclasses
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.breakdown import breakdown_from_error
from mpdoctor.project.asked_of_system import ModuleNames
from mpdoctor.source.import_graph import Outline, Outlines, digest_of
from mpdoctor.source.imported_names import imported_names
from mpdoctor.source.modules import Files, package_of
from mpdoctor.source.names import LIBRARIES

_FRAMEWORK = (b"tensorflow", b"keras")
# Whatever shows mixed precision, asks for its API, or says which Keras is meant, holds one of these …
_SIGNS = (
    b"float16", b"fp16", b"bf16", b'half"', b"half'", b"mixed_precision", b"auto_mixed", b"AUTO_MIXED", b"floatx",
    b"dtype_policy", b"DTypePolicy", b"oss_scal", b"ossScal", b"scaled_loss", b"scale_loss", b"get_unscaled",
    b"LEGACY_KERAS", b"optimizers.legacy",
)  # fmt: skip
# … and training data may be wrong without any.
_TRAINS = (b".fit(", b"train_on_batch", b"from_tensor_slices")
# Where mixed precision is shown elsewhere it matters to what computes in a model or trains one.
_COMPUTES = (
    b"def call(", b"__call__", b"Layer", b"layers.", b"Model(", b"Model)", b"Sequential", b"applications", b"hub.",
    b"add_weight", b"Loss", b"Metric", b"ptimizer", b"GradientTape", b".compile(",
)  # fmt: skip
MOST_BEYOND = 400  # files that are not among those to look at, but imported by them


@dataclass(frozen=True)
class Glance:
    """What an unparsed text shows by itself, as a file of a certain package.

    may_speak
        Whether it may show mixed precision, or be wrong without any.
    names_framework
        Whether TensorFlow or Keras is named in it.
    may_compute
        Whether it may also hold what a model is made of, or trained by.
    imported
        Every dotted name that its import statements may mean.
    """

    may_speak: bool
    names_framework: bool
    may_compute: bool
    imported: tuple[str, ...] = ()


Look = Callable[[Path, bytes, bytes, str], Glance]
"""A file's path, its text, the digest of that, and the package that the file belongs to."""


def glance_from_text(text: bytes, package: str) -> Glance:
    return dataclasses.replace(_signs_in(text), imported=tuple(sorted(set(imported_names(text, package)))))


def _signs_in(text: bytes) -> Glance:
    names_framework = _holds_a_word(text, _FRAMEWORK)
    return Glance(
        names_framework and (_holds_a_word(text, _SIGNS) or _holds_a_word(text, _TRAINS)),
        names_framework,
        names_framework and _holds_a_word(text, _COMPUTES),
    )


def outlines_from_files(
    paths: Iterable[Path],
    read: Callable[[Path], bytes],
    look: Look = lambda path, text, digest, package: glance_from_text(text, package),
) -> Outlines:
    """The outlines of files, given by absolute paths, and of the first-party files that they import. `read` gives a
    file's bytes; `look` is for who remembers what texts have shown."""
    outlines, tree = Outlines(), _Tree(paths, read)
    waiting = deque(tree.given)
    while waiting:
        path = waiting.popleft()
        text = read(path)
        digest = digest_of(text)
        try:
            folder = tree.folder_of(path)
            seen = look(path, text, digest, folder.package)
            imports = frozenset(tree.imported_by(folder, seen.imported)) - {path}
            in_programs = frozenset(tree.imported_in_programs(folder, seen.imported)) - imports - {path}
        except Exception as error:
            seen, imports, in_programs = _signs_in(text), frozenset(), frozenset()
            outlines.breakdowns[path] = breakdown_from_error(str(path), error)
        outlines[path] = Outline(
            seen.may_speak, seen.names_framework, seen.may_compute, imports, len(text), digest, in_programs
        )
        waiting.extend(tree.newly_met(imports | in_programs))
    outlines.whole = tree.beyond < MOST_BEYOND and not outlines.breakdowns
    outlines.passed_over = tree.passed_over
    return outlines


@dataclass(frozen=True)
class _Root:
    """A directory that imports are looked up in. `prefix`: its path, with a slash at the end."""

    directory: Path
    prefix: str
    names: ModuleNames


@dataclass(frozen=True)
class _Folder:
    """A directory with files. `package`: dotted, "" for none; `top`: the directory above the outermost package;
    `project`: where the packages of the project around it lie."""

    own: _Root
    top: _Root
    project: tuple[_Root, ...]
    package: str


class _Tree:
    """Which file an import means: one of the given files, or one that lies beside them."""

    def __init__(self, paths: Iterable[Path], read: Callable[[Path], bytes]) -> None:
        self.given = dict.fromkeys(paths)
        self._known = {path.as_posix(): path for path in self.given}
        self._places = _places_of_modules(self._known)
        self._files = Files(read=read)
        self._folders: dict[str, _Folder] = {}
        self._roots: dict[Path, _Root] = {}
        self._found: dict[tuple[str, str], Path | None] = {}  # what the files of a package import is often the same
        self._with_given = {path.parent for path in self.given}
        self.beyond = 0

    @property
    def passed_over(self) -> tuple[Path, ...]:
        return tuple(self._files.passed_over)

    def folder_of(self, path: Path) -> _Folder:
        """The directory that a file lies in: one object for all of its files."""
        directory = os.path.dirname(path)  # noqa: PTH120 - of each file; a Path takes five times as long
        if directory not in self._folders:
            top, package = package_of(path)
            project = tuple(map(self._root, self._files.import_roots(path.parent)))
            self._folders[directory] = _Folder(self._root(path.parent), self._root(top), project, package)
        return self._folders[directory]

    def imported_by(self, folder: _Folder, names: Iterable[str]) -> Iterator[Path]:
        own = folder.package.partition(".")[0]
        for dotted in names:
            if dotted.endswith("."):
                yield from self._given_modules_of(folder, dotted)
                continue
            first = dotted.partition(".")[0]
            path = self._find(folder.top, first, dotted) if own and first == own else None
            path = path or self._find(folder.own, first, dotted) or self._find_in_project(folder, first, dotted)
            if path is not None:
                yield path

    def imported_in_programs(self, folder: _Folder, names: Iterable[str]) -> Iterator[Path]:
        """The files that these names mean in a program whose folder lies above the package, and is among the given
        ones."""
        if not folder.package or folder.top.directory not in self._with_given:
            return
        for dotted in names:
            path = self._find(folder.top, dotted.partition(".")[0], dotted)
            if path is not None:
                yield path

    def _given_modules_of(self, folder: _Folder, dotted: str) -> Iterator[Path]:
        """The given files that are modules of a package. A package may name itself as scripts do that lie above it."""
        within = dotted.replace(".", "/")
        is_itself = f".{folder.package}.".endswith(f".{dotted}")
        places = [folder.own.prefix] if is_itself else []
        places += [f"{root.prefix}{within}" for root in (folder.top, folder.own, *folder.project)]
        for place in places:
            modules = [path for path in self.given if path.as_posix().startswith(place) and path.suffix == ".py"]
            if modules:
                yield from (path for path in modules if path.as_posix().rpartition("/")[0] == place[:-1])
                return

    def newly_met(self, paths: Iterable[Path]) -> Iterator[Path]:
        for path in sorted(path for path in paths if path not in self.given and path.as_posix() not in self._known):
            self._known[path.as_posix()] = path
            self.beyond += 1
            yield path

    def _find(self, root: _Root, first: str, dotted: str) -> Path | None:
        """The file that a dotted name means below a directory; None for none. `first`: the name's first part, which for
        most imports is that of a library."""
        if first not in root.names and root.prefix + first not in self._places:
            return None
        asked = root.prefix, dotted
        if asked not in self._found or self.beyond >= MOST_BEYOND:
            self._found[asked] = self._looked_up(root, dotted)
        return self._found[asked]

    def _looked_up(self, root: _Root, dotted: str) -> Path | None:
        place = root.prefix + dotted.replace(".", "/")
        known = self._known.get(f"{place}/__init__.py") or self._known.get(f"{place}.py")
        if self.beyond >= MOST_BEYOND or (known and not self._files.looks_elsewhere_first(root.directory, dotted)):
            return known
        found = self._files.find(root.directory, dotted)
        return known if found is None else self._known.get(found.as_posix(), found)  # one object for each file

    def _find_in_project(self, folder: _Folder, first: str, dotted: str) -> Path | None:
        if first in LIBRARIES:
            return None
        return next(filter(None, (self._find(root, first, dotted) for root in folder.project)), None)

    def _root(self, directory: Path) -> _Root:
        if directory not in self._roots:
            self._roots[directory] = _Root(directory, f"{directory.as_posix().rstrip('/')}/", ModuleNames(directory))
        return self._roots[directory]


def _places_of_modules(paths: Iterable[str]) -> set[str]:
    """The paths of these files as modules, with all packages and directories above them. For texts that were never
    saved these are the only ones known."""
    places: set[str] = set()
    for path in paths:
        place = path.removesuffix(".py")
        while place not in places:
            places.add(place)
            place = place.rpartition("/")[0]
    return places


def _holds_a_word(text: bytes, words: tuple[bytes, ...]) -> bool:
    return any(word in text for word in words)

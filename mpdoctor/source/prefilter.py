"""Prefilter on unparsed text: whether a finding could be in a file, and which first-party files it imports."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.program.breakdown import breakdown_from_error
from mpdoctor.source.import_graph import Outline, Outlines, digest_of
from mpdoctor.source.imported_names import imported_names
from mpdoctor.source.modules import Files, package_of

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
    names_framework = _holds(text, _FRAMEWORK)
    return Glance(
        names_framework and (_holds(text, _SIGNS) or _holds(text, _TRAINS)),
        names_framework,
        names_framework and _holds(text, _COMPUTES),
    )


def outlines_from_files(
    paths: Iterable[Path],
    read: Callable[[Path], bytes],
    look: Look = lambda path, text, digest, package: glance_from_text(text, package),
) -> Outlines:
    """`paths`: absolute. `read` gives a file's bytes. `look`: for who remembers what texts have shown."""
    outlines, tree = Outlines(), _Tree(paths)
    waiting = deque(tree.given)
    while waiting:
        path = waiting.popleft()
        text = read(path)
        digest = digest_of(text)
        try:
            seen = look(path, text, digest, tree.package_of(path))
            imports = frozenset(tree.imported_by(path, seen.imported)) - {path}
            in_programs = frozenset(tree.imported_in_programs(path, seen.imported)) - imports - {path}
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


class _Tree:
    """Which file an import means: one of the given ones, or one that lies beside them."""

    def __init__(self, paths: Iterable[Path]) -> None:
        self.given = dict.fromkeys(paths)
        self._known = {path.as_posix(): path for path in self.given}
        self._directories = {path.parent for path in self.given}
        self._files = Files()
        self._packages: dict[Path, tuple[Path, str]] = {}
        self._names: dict[Path, frozenset[str]] = {}
        self.beyond = 0

    @property
    def passed_over(self) -> tuple[Path, ...]:
        return tuple(self._files.passed_over)

    def package_of(self, path: Path) -> str:
        return self._package_around(path)[1]

    def imported_by(self, path: Path, names: Iterable[str]) -> Iterator[Path]:
        directory = path.parent
        top, package = self._package_around(path)
        own = package.partition(".")[0]
        for dotted in names:
            first = dotted.partition(".")[0]
            roots = (top, directory) if own and first == own else (directory,)
            found = next(filter(None, (self._find(root, first, dotted) for root in roots)), None)
            if found is not None:
                yield found

    def imported_in_programs(self, path: Path, names: Iterable[str]) -> Iterator[Path]:
        """Where one of the given files lies above the package."""
        top = self._package_around(path)[0]
        if top == path.parent or top not in self._directories:
            return
        for dotted in names:
            found = self._find(top, dotted.partition(".")[0], dotted)
            if found is not None:
                yield found

    def _package_around(self, path: Path) -> tuple[Path, str]:
        """The directory above the outermost package, and the dotted package; one for all files of a directory."""
        directory = path.parent
        if directory not in self._packages:
            self._packages[directory] = package_of(path)
        return self._packages[directory]

    def newly_met(self, paths: Iterable[Path]) -> Iterator[Path]:
        for path in sorted(path for path in paths if path not in self.given and path.as_posix() not in self._known):
            self._known[path.as_posix()] = path
            self.beyond += 1
            yield path

    def _find(self, root: Path, first: str, dotted: str) -> Path | None:
        place = f"{root.as_posix()}/{dotted.replace('.', '/')}"
        known = self._known.get(f"{place}/__init__.py") or self._known.get(f"{place}.py")
        if known is not None or self.beyond >= MOST_BEYOND or first not in self._names_in(root):
            return known
        return self._files.find(root, dotted)

    def _names_in(self, directory: Path) -> frozenset[str]:
        """What a directory holds, without the suffix of Python's files."""
        if directory not in self._names:
            try:
                self._names[directory] = frozenset(entry.name.removesuffix(".py") for entry in directory.iterdir())
            except OSError:
                self._names[directory] = frozenset()
        return self._names[directory]


def _holds(text: bytes, words: tuple[bytes, ...]) -> bool:
    return any(word in text for word in words)

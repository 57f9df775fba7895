"""What a file's text tells before it is parsed: whether a finding could be in it, and which files it imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mpdoctor.source.modules import package_of

_FRAMEWORK = (b"tensorflow", b"keras")
# Whatever shows mixed precision, asks for its API, or says which Keras is meant, holds one of these …
_SIGNS = (
    b"float16", b"fp16", b"bf16", b'half"', b"half'", b"mixed_precision", b"auto_mixed", b"AUTO_MIXED", b"floatx",
    b"dtype_policy", b"DTypePolicy", b"oss_scal", b"ossScal", b"scaled_loss", b"scale_loss", b"get_unscaled",
    b"LEGACY_KERAS",
)  # fmt: skip
# … and training data may be wrong without any.
_TRAINS = (b".fit(", b"train_on_batch", b"from_tensor_slices")
# Where mixed precision is shown elsewhere it matters to what computes in a model or trains one.
_COMPUTES = (
    b"def call(", b"__call__", b"Layer", b"layers.", b"Model(", b"Model)", b"Sequential", b"applications", b"hub.",
    b"add_weight", b"Loss", b"Metric", b"ptimizer", b"GradientTape", b".compile(",
)  # fmt: skip
_IMPORT = re.compile(
    rb"^[ \t]*(?:from[ \t]+(\.*[\w.]*)[ \t]+import[ \t]*(\([^)]*\)|[^\n#;]*)|import[ \t]+([^\n#;]+))", re.M
)


@dataclass(frozen=True)
class Outline:
    """One file, not parsed.

    may_speak
        Whether it may show mixed precision, or be wrong without any.
    names_framework
        Whether TensorFlow or Keras is named in it.
    may_compute
        Whether it may also hold what a model is made of, or trained by.
    imports
        Those of the given files that it imports.
    size
        Of its text, in bytes.
    """

    may_speak: bool
    names_framework: bool
    may_compute: bool
    imports: frozenset[Path]
    size: int


class Outlines(dict[Path, Outline]):
    """By absolute path, those of the files that are looked at together."""

    def reached_from(self, starts: Iterable[Path]) -> set[Path]:
        """The files that these import, also through others."""
        reached: set[Path] = set()
        waiting = list(starts)
        while waiting:
            found = self[waiting.pop()].imports - reached
            reached |= found
            waiting += found
        return reached

    def imported_by(self, path: Path) -> list[Path]:
        """What a file imports, also through others, in an order that is the same whoever asks: what a module imports
        before it, and of modules that import one another the outermost package first."""
        return sorted(self.reached_from([path]) if path in self else (), key=self._ranks.__getitem__)

    @cached_property
    def _ranks(self) -> dict[Path, int]:
        return {
            path: rank for rank, path in enumerate(one for ring in _rings(self) for one in sorted(ring, key=_depth))
        }


def outlines_from_texts(texts: Mapping[Path, bytes]) -> Outlines:
    """`texts` by absolute path."""
    known = {path.as_posix(): path for path in texts}
    packages: dict[Path, tuple[Path, str]] = {}
    outlines = Outlines()
    for path, text in texts.items():
        if path.parent not in packages:
            packages[path.parent] = package_of(path)
        names_framework = _holds(text, _FRAMEWORK)
        outlines[path] = Outline(
            names_framework and (_holds(text, _SIGNS) or _holds(text, _TRAINS)),
            names_framework,
            names_framework and _holds(text, _COMPUTES),
            frozenset(_imported_files(path, text, *packages[path.parent], known)) - {path},
            len(text),
        )
    return outlines


def _rings(outlines: Mapping[Path, Outline]) -> Iterator[list[Path]]:
    """Files that import one another in a ring, what they import before them (R. Tarjan, Depth-first search and linear
    graph algorithms, 1972; without recursion)."""
    found: dict[Path, int] = {}
    lowest: dict[Path, int] = {}
    open_ones: list[Path] = []
    for start in outlines:
        way = [] if start in found else [(start, iter(sorted(outlines[start].imports)))]
        while way:
            path, further = way[-1]
            if path not in found:
                found[path] = lowest[path] = len(found)
                open_ones.append(path)
            following = next(further, None)
            if following is not None:
                if following not in found:
                    way.append((following, iter(sorted(outlines[following].imports))))
                else:
                    lowest[path] = min(lowest[path], lowest[following])
                continue
            way.pop()
            if way:
                lowest[way[-1][0]] = min(lowest[way[-1][0]], lowest[path])
            if lowest[path] == found[path]:
                ring = open_ones[open_ones.index(path) :]
                del open_ones[-len(ring) :]
                lowest |= dict.fromkeys(ring, len(outlines))
                yield ring


def _depth(path: Path) -> tuple[int, str]:
    return len(path.parts), path.as_posix()


def _holds(text: bytes, words: tuple[bytes, ...]) -> bool:
    return any(word in text for word in words)


def _imported_files(path: Path, text: bytes, top: Path, package: str, known: Mapping[str, Path]) -> Iterator[Path]:
    own = package.partition(".")[0]
    for dotted in set(_imported_names(text, package)):
        roots = (top, path.parent) if own and dotted.partition(".")[0] == own else (path.parent,)
        place = dotted.replace(".", "/")
        for root in roots:
            found = known.get(f"{root.as_posix()}/{place}/__init__.py") or known.get(f"{root.as_posix()}/{place}.py")
            if found is not None:
                yield found
                break


def _imported_names(text: bytes, package: str) -> Iterator[str]:
    """Every dotted name that an import statement may mean, those of the packages on the way included."""
    for source, names, modules in _IMPORT.findall(text):
        if modules:
            for module in modules.decode(errors="replace").split(","):
                yield from _with_packages(module.split()[0] if module.split() else "")
            continue
        of = _absolute(source.decode(errors="replace"), package)
        if of is None:
            continue
        yield from _with_packages(of)
        for name in names.decode(errors="replace").strip("()").replace("\\", " ").split(","):
            if name.split():
                yield f"{of}.{name.split()[0]}" if of else name.split()[0]


def _with_packages(dotted: str) -> Iterator[str]:
    """Python runs a package's `__init__` first."""
    parts = dotted.split(".")
    for count in range(1, len(parts) + 1):
        yield ".".join(parts[:count])


def _absolute(module: str, package: str) -> str | None:
    """None where a relative import leaves the package."""
    name = module.lstrip(".")
    level = len(module) - len(name)
    if not level:
        return name
    parts = package.split(".") if package else []
    if level - 1 > len(parts):
        return None
    return ".".join((*parts[: len(parts) - (level - 1)], *([name] if name else [])))

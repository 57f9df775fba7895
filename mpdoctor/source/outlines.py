"""What a file's text tells before it is parsed: whether a finding could be in it, and which files it imports."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
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
    imports
        Those of the given files that it imports.
    size
        Of its text, in bytes.
    """

    may_speak: bool
    names_framework: bool
    imports: frozenset[Path]
    size: int


def outlines_from_texts(texts: Mapping[Path, bytes]) -> dict[Path, Outline]:
    """`texts` by absolute path."""
    known = {path.as_posix(): path for path in texts}
    packages: dict[Path, tuple[Path, str]] = {}
    outlines = {}
    for path, text in texts.items():
        if path.parent not in packages:
            packages[path.parent] = package_of(path)
        names_framework = _holds(text, _FRAMEWORK)
        outlines[path] = Outline(
            names_framework and (_holds(text, _SIGNS) or _holds(text, _TRAINS)),
            names_framework,
            frozenset(_imported_files(path, text, *packages[path.parent], known)) - {path},
            len(text),
        )
    return outlines


def reached_from(starts: Iterable[Path], outlines: Mapping[Path, Outline]) -> set[Path]:
    """The files that these import, also through others."""
    reached: set[Path] = set()
    waiting = list(starts)
    while waiting:
        found = outlines[waiting.pop()].imports - reached
        reached |= found
        waiting += found
    return reached


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

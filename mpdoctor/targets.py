"""What the user pointed at."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

SUPPORTED = "a script (train.py), a factory (model.py:build_model or package.module:build_model) or a .keras file"
_SKIPPED_DIRECTORIES = {"__pycache__", "node_modules", "site-packages"}


class TargetError(Exception):
    """The target does not exist, or is nothing that mpdoctor can examine. The text says so to the user."""


@dataclass(frozen=True)
class Target:
    """One thing to examine.

    id
        The text as the user wrote it.
    kind
        "script" (model.py), "factory" (model.py:build_model, pkg.mod:factory), "keras-file" (model.keras),
        "directory" (every .py below it, source only).
    path
        The file or directory; None for a factory named by module (pkg.mod:factory).
    module, factory
        Of a factory: the module's dotted name where it was named so, and the function's name.
    """

    id: str
    kind: str
    path: Path | None = None
    module: str | None = None
    factory: str | None = None


def target_from_text(text: str) -> Target:
    """Raises TargetError."""
    # before anything else: a colon may be part of a file's name, or follow a drive letter
    if os.path.exists(text):  # noqa: PTH110 - Path.exists raises where a name is too long
        return _target_from_path(text, Path(text))
    place, colon, factory = text.rpartition(":")
    if not (colon and place and factory.isidentifier()):
        raise TargetError(_missing(text))
    if place.endswith(".py") or "/" in place or "\\" in place or os.path.isfile(place):  # noqa: PTH113
        return Target(text, "factory", path=_factory_file(place), factory=factory)
    if all(part.isidentifier() for part in place.split(".")):
        return Target(text, "factory", module=place, factory=factory)
    raise TargetError(f"{text!r} names no file and no function. mpdoctor examines {SUPPORTED}.")


def _factory_file(place: str) -> Path:
    path = Path(place)
    if os.path.isfile(path):  # noqa: PTH113 - as above
        if path.suffix == ".py":
            return path
        raise TargetError(f"{place} is no Python file, so no function can be taken from it.")
    raise TargetError(_missing(place))


def _target_from_path(text: str, path: Path) -> Target:
    if path.is_dir():
        if (path / "saved_model.pb").exists():
            raise TargetError(f"{text} is a SavedModel, which mpdoctor does not examine yet. It examines {SUPPORTED}.")
        if next(python_files(path), None) is None:
            raise TargetError(f"there is no Python file in {text} or below it.")
        return Target(text, "directory", path=path)
    if not path.is_file():
        raise TargetError(f"{text} is neither a file nor a directory.")
    if not os.access(path, os.R_OK):
        raise TargetError(f"{text} can't be read: permission denied.")
    suffix = path.suffix.lower()
    if suffix == ".py":
        return Target(text, "script", path=path)
    if suffix == ".keras":
        return Target(text, "keras-file", path=path)
    known = {
        ".h5": "an HDF5 file",
        ".hdf5": "an HDF5 file",
        ".ipynb": "a notebook",
        ".pb": "part of a SavedModel",
    }
    what = f"{known[suffix]}, which mpdoctor does not examine yet" if suffix in known else "nothing mpdoctor knows"
    raise TargetError(f"{text} is {what}. It examines {SUPPORTED}.")


def python_files(directory: Path) -> Iterator[Path]:
    """Every .py file below a directory, in order; hidden directories and installed packages are left out."""
    for folder, below, files in os.walk(directory):
        below[:] = sorted(name for name in below if not name.startswith(".") and name not in _SKIPPED_DIRECTORIES)
        yield from (Path(folder) / name for name in sorted(files) if name.endswith(".py"))


def _missing(text: str) -> str:
    """That it does not exist, with the name next to it that was perhaps meant."""
    path = Path(text)
    try:
        beside = sorted(p.name for p in path.parent.iterdir() if p.suffix in (".py", ".keras") or p.is_dir())
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        beside = []
    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.7)
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return f"no such file or directory: {shown!r}." + (f" Did you mean {path.with_name(near[0])}?" if near else "")

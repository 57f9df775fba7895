"""Targets of a check: a script, a factory, a notebook, a saved model, a directory or standard input."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.saved.file import SAVED
from mpdoctor.project.files import PathPatterns, files_below

SUPPORTED = (
    "a script (train.py), a factory (model.py:build_model or package.module:build_model), a notebook, a saved model "
    "(.keras, .h5 or a SavedModel directory) or a directory of source"
)
SAVED_SUFFIXES = {".keras": "keras-file", ".h5": "hdf5-file", ".hdf5": "hdf5-file"}
SAVED_MODEL = "saved_model.pb"
STDIN = "-"
SOURCE_ONLY = {"directory": "a directory", "stdin": "standard input"}  # never run


class TargetError(Exception):
    """The target does not exist, or is nothing that mpdoctor can examine. The text says so to the user."""


@dataclass(frozen=True)
class Target:
    """One thing to examine.

    id
        The text as the user wrote it.
    kind
        "script" (model.py), "factory" (model.py:build_model, pkg.mod:factory), "keras-file" (model.keras),
        "hdf5-file" (model.h5), "saved-model" (a directory with a saved_model.pb in it), "notebook" (notebook.ipynb),
        "directory" (every .py and .ipynb below it) and "stdin"; of the last two only the source is read.
    path
        The file or directory; None for a factory named by module (pkg.mod:factory).
    module, factory
        Of a factory: the module's dotted name where it was named so, and the function's name.
    content
        Of standard input: what came.
    files, denied, passed_over
        Of a directory, after `with_its_files`: the files in it, the directories that can't be listed and why, and the
        links that are not followed and why.
    """

    id: str
    kind: str
    path: Path | None = None
    module: str | None = None
    factory: str | None = None
    content: bytes | None = None
    files: tuple[Path, ...] = ()
    denied: tuple[tuple[Path, str], ...] = ()
    passed_over: tuple[tuple[Path, str], ...] = ()

    @property
    def is_script(self) -> bool:
        """Whether it is run from its first line on: a script, or the cells of a notebook in their order."""
        return self.kind in ("script", "notebook")

    @property
    def is_saved(self) -> bool:
        """Whether it is a saved model, which has no source to read."""
        return self.kind in SAVED


def target_from_content(content: bytes, name: str) -> Target:
    """Standard input, as if it were a file of this name."""
    return Target(STDIN, "stdin", path=Path(name), content=content)


def with_its_files(target: Target, exclude: Sequence[PathPatterns]) -> Target:
    """A directory together with what is in it; other targets as they are.

    Raises TargetError where nothing in it is left to look at."""
    if target.kind != "directory" or target.path is None:
        return target
    tree = files_below(target.path, exclude)
    if tree.files:
        return replace(target, files=tree.files, denied=tree.denied, passed_over=tree.passed_over)
    if any(path == target.path for path, _ in tree.denied):
        raise TargetError(f"{target.id} can't be read: {tree.denied[0][1]}.")
    left_out = files_below(target.path, everything=True).files
    nothing = f"there is no Python file in {target.id} or below it"
    if left_out:
        raise TargetError(f"{nothing} that `exclude` and .gitignore do not leave out.")
    raise TargetError(f"{nothing} but links that lead out of the project." if tree.passed_over else f"{nothing}.")


def target_from_text(text: str) -> Target:
    """The target that a text on the command line names. Raises TargetError."""
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
        return Target(text, "saved-model" if _holds_saved_model(path) else "directory", path=path)
    if not path.is_file():
        raise TargetError(f"{text} is neither a file nor a directory.")
    if not os.access(path, os.R_OK):
        raise TargetError(f"{text} can't be read: permission denied.")
    suffix = path.suffix.lower()
    if suffix == ".py":
        return Target(text, "script", path=path)
    if suffix in SAVED_SUFFIXES:
        return Target(text, SAVED_SUFFIXES[suffix], path=path)
    if suffix == ".ipynb":
        return Target(text, "notebook", path=path)
    if suffix in ("", ".pyw") and _is_python(path):
        return Target(text, "script", path=path)
    raise TargetError(f"{text} is {_other_kind(path) or f'nothing mpdoctor knows. It examines {SUPPORTED}'}.")


def _holds_saved_model(path: Path) -> bool:
    try:
        return (path / SAVED_MODEL).exists()
    except OSError:  # a directory that can't be entered: walking it says so
        return False


def _other_kind(path: Path) -> str:
    """What kind of file it is, and what to name instead; "" where that is not known."""
    if path.name in (SAVED_MODEL, "keras_metadata.pb", "fingerprint.pb"):
        return f"a part of a SavedModel: name its directory, {path.parent}"
    if path.suffix.lower() in (".pb", ".pbtxt"):
        return (
            "a frozen graph of TensorFlow 1 without its SavedModel: it has no variables and no signatures to examine. "
            "Name the SavedModel or the script that it was made from"
        )
    if path.suffix.lower() in (".tflite", ".onnx"):
        return "a converted model. Name the one that it was converted from"
    if path.suffix.lower() in (".index", ".ckpt") or path.name == "checkpoint" or ".data-0" in path.name:
        return "a checkpoint: it holds weights and no model. Name the script or the function that builds the model"
    return ""


def _is_python(path: Path) -> bool:
    """Whether it is a program in Python: one without a suffix tells its language in its first line."""
    with path.open("rb") as file:
        first = file.readline(200)
    return path.suffix == ".pyw" or (first.startswith(b"#!") and b"python" in first)


def _missing(text: str) -> str:
    """The message for a target that does not exist, with a similar name beside it that was perhaps meant."""
    path = Path(text)
    if os.path.islink(text):  # noqa: PTH114 - as above
        return f"{text} is a link that leads to no file."
    try:
        suffixes = (".py", ".ipynb", *SAVED_SUFFIXES)
        beside = sorted(p.name for p in path.parent.iterdir() if p.suffix in suffixes or p.is_dir())
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        beside = []
    import difflib  # of a mistake alone

    near = difflib.get_close_matches(path.name, beside, n=1, cutoff=0.7)
    shown = text if len(text) <= 200 else f"{text[:200]}…"
    return f"no such file or directory: {shown!r}." + (f" Did you mean {path.with_name(near[0])}?" if near else "")

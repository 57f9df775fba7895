"""Tells which files are the user's own, which of their lines is running, and what it names."""

from __future__ import annotations

import contextlib
import csv
import functools
import linecache
import os
import re
import sys
import sysconfig
from pathlib import Path
from types import CodeType, FrameType

from mpdoctor.examiner.exceptions import chain_of
from mpdoctor.examiner.process.autograph_files import OF_COPY, PREFIX
from mpdoctor.facts.location import Location

_PACKAGE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
_LIBRARIES = tuple(
    os.path.realpath(path) + os.sep
    for path in {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), _PACKAGE}
    if path
)

# Between a line of the user's and the function that it called, and of no interest.
_WRAPPERS = ("error_handler", "wrapper", "_method_wrapper", "inner", "wrapped", "decorated", "__new__", "__call__")
_IS_MACHINERY = re.compile(
    r"[/\\]tensorflow[/\\]python[/\\]autograph[/\\]|[/\\](tf_)?keras[/\\](src[/\\])?(engine[/\\]base_layer|layers[/\\]layer)\.py$"
).search

_NAME = re.compile(r"(?<![\w.\"'])[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*")
_classes: dict[type, Location | None] = {}


@functools.lru_cache(maxsize=None)
def is_own(filename: str) -> bool:
    """Whether a code object's file is the user's: neither installed, nor the standard library's, nor ours, nor made
    by autograph."""
    if filename.startswith("<") or PREFIX in filename or filename.endswith((".pyx", ".pxd", ".pxi")):
        return False
    path = os.path.realpath(filename)
    parts = path.split(os.sep)
    if "site-packages" in parts or "dist-packages" in parts:
        return False
    return not path.startswith(_LIBRARIES) and not _is_installed_elsewhere(path, path != os.path.abspath(filename))


def _is_installed_elsewhere(path: str, through_link: bool) -> bool:
    """Whether the file is of a package that is installed outside of site-packages: by `pip install --target FOLDER`,
    with that folder in PYTHONPATH or in a .pth file, or in a cache that site-packages links to."""
    folders = [os.path.realpath(folder) for folder in sys.path]
    if through_link:
        folders += map(str, Path(path).parents)
    for folder in folders:
        if path.startswith(folder + os.sep):
            top, *below = path[len(folder) + 1 :].split(os.sep)
            if (top, bool(below)) in _installed_in(folder):
                return True
    return False


@functools.lru_cache(maxsize=None)
def _installed_in(folder: str) -> frozenset[tuple[str, bool]]:
    """The files (with False) and folders (with True) directly in this folder that the RECORD files of its packages
    list."""
    installed: set[tuple[str, bool]] = set()
    try:
        records = [entry.path for entry in os.scandir(folder) if entry.name.endswith(".dist-info")]
    except OSError:  # sys.path also holds zip files, and folders that are gone
        return frozenset()
    for record in records:
        with contextlib.suppress(OSError), open(os.path.join(record, "RECORD"), encoding="utf-8", newline="") as lines:
            for listed in filter(None, csv.reader(lines)):
                top, *below = listed[0].split("/")
                installed.add((top, bool(below)))
    return frozenset(installed)


def own_code(frame: FrameType) -> bool:
    """Whether this frame runs code of the user's, or autograph's copy of it."""
    return PREFIX in frame.f_code.co_filename or is_own(frame.f_code.co_filename)


def called_by_user() -> bool:
    """Whether a line of the user's calls what runs here: the first frame that is none of ours."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE + os.sep):
        frame = frame.f_back
    return frame is not None and own_code(frame)


def called_by_line(frame: FrameType | None) -> CodeType | None:
    """The library's function that a line of the user's called and that led here; None where that line itself did."""
    called = None
    while frame is not None and not _runs_own_line(frame):
        code = frame.f_code
        is_between = code.co_name in _WRAPPERS or _IS_MACHINERY(code.co_filename) is not None
        if not is_between and not code.co_filename.startswith(_PACKAGE + os.sep):
            called = code
        frame = frame.f_back
    return called


def call_of_librarys_layer(frame: FrameType | None) -> CodeType | None:
    """The `call` of a library's layer, if this frame runs in it and neither in a constructor nor a `build`, which run
    once only; None else."""
    while frame is not None and not _runs_own_line(frame):
        name = frame.f_code.co_name.replace(OF_COPY, "")
        if name in ("build", "__init__"):
            return None
        if name == "call":
            return frame.f_code
        frame = frame.f_back
    return None


def _runs_own_line(frame: FrameType) -> bool:
    """Whether this frame runs a line of the user's, or its copy by autograph, which copies libraries' functions too."""
    filename = frame.f_code.co_filename
    if PREFIX in filename:
        return _original_line((filename, frame.f_lineno)) is not None
    return is_own(filename)


def own_location(frame: FrameType | None = None) -> Location | None:
    """The innermost line of the user's that is running now, None where there is none. Where autograph runs a copy of
    the user's function, the line of the original."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        filename = frame.f_code.co_filename
        if PREFIX in filename:
            original = _original_line((filename, frame.f_lineno))
            if original is not None:
                return original
        elif is_own(filename):
            return Location(os.path.abspath(filename), frame.f_lineno)
        frame = frame.f_back
    return None


def ran_own_code(error: BaseException) -> bool:
    """Whether a line of the user's ran between where an error is now and where it was raised. What autograph made of a
    library's function is the library's."""
    for cause in chain_of(error):
        traceback = cause.__traceback__
        while traceback is not None:
            code = traceback.tb_frame.f_code
            if is_own(code.co_filename):
                return True
            copied = (code.co_filename, traceback.tb_lineno)
            if PREFIX in code.co_filename and _original_line(copied) is not None:
                return True
            traceback = traceback.tb_next
    return False


def _original_line(copied: tuple[str, int]) -> Location | None:
    """Autograph keeps a map with each function that it made: from lines of its file to lines of the user's.

    Python's own way from a code to its functions, `gc.get_referrers`, touches objects that are under construction, and
    has ended the process."""
    transpiler = getattr(sys.modules.get("tensorflow.python.autograph.impl.api"), "_TRANSPILER", None)
    if transpiler is None:
        return None
    for made_of_one in list(transpiler._cache._cache.values()):
        for made in list(made_of_one.values()):
            origin = (made.source_map or {}).get(copied)
            if origin is not None and is_own(origin.loc.filename):
                return Location(os.path.abspath(origin.loc.filename), origin.loc.lineno)
    return None


def code_of_line(place: Location) -> str:
    """The text of a line, without the comment behind it."""
    return linecache.getline(place.path, place.line).partition("#")[0]


def names_in(code: str) -> tuple[str, ...]:
    """The names in a line of code, each once: `x`, `self.scale`."""
    return tuple(dict.fromkeys(_NAME.findall(code)))


def class_location(cls: type) -> Location | None:
    """The place of a class of the user's; None for a library's."""
    if cls not in _classes:  # Python parses the whole file for it
        _classes[cls] = _place_of_class(cls)
    return _classes[cls]


def _place_of_class(cls: type) -> Location | None:
    module = sys.modules.get(cls.__module__)
    filename = getattr(module, "__file__", None)
    if not filename or not is_own(filename):
        return None
    import inspect

    try:
        lines, first = inspect.getsourcelines(cls)
    except (OSError, TypeError):  # made by type(), typed in at run time, or its file is gone
        return _place_of_first_method(cls)
    decorators = next((n for n, line in enumerate(lines) if line.lstrip().startswith("class ")), 0)
    return Location(os.path.abspath(filename), first + decorators)


def _place_of_first_method(cls: type) -> Location | None:
    """The place of the first method of a class that no `class` statement made."""
    codes = [getattr(value, "__code__", None) for value in vars(cls).values()]
    places = [Location(os.path.abspath(c.co_filename), c.co_firstlineno) for c in codes if c and is_own(c.co_filename)]
    return min(places, key=lambda place: place.line, default=None)

"""Edited text in the place of files: a program and the processes that it starts are given it, and no file is touched.

Python reads what it is to execute with `io.open_code` (imports, `runpy`, `multiprocessing`, debuggers), and what it is
to show with `tokenize.open` (`linecache`, and with it tracebacks, `inspect` and autograph): both are replaced here.
Bytecode is neither read nor written for these files. A plain `open()` reads what the disk holds, and so does a process
that is started without PYTHONPATH (`python -I`, `python -E`, an environment of its own).
"""

from __future__ import annotations

# What Python itself has loaded when it starts: of any other module the program may have a neighbour of that name.
import _io
import io
import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import SourceFileLoader

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import CodeType, ModuleType
    from typing import IO, Any, Mapping, Sequence

MANIFEST = "MPDOCTOR_EDITED"  # the variable that tells child processes where it lies
CHILD_START = os.path.join(os.path.dirname(os.path.abspath(__file__)), "child_start")  # holds a sitecustomize
_STDLIB = os.path.dirname(os.path.abspath(os.__file__))


# --- the files by which it is handed over ---------------------------------------------------------------------------
def write_edited(folder: str, edited: Mapping[str, bytes]) -> str:
    """Put texts, by real path, into a new folder; returns the path of its manifest, which names each file's real path
    and that of its text, relative to the folder, each ended by a NUL: no module is needed to read that.

    Raises OSError."""
    os.mkdir(folder, 0o700)
    entries = []
    for number, (path, text) in enumerate(edited.items()):
        with open(os.path.join(folder, str(number)), "wb") as file:
            file.write(text)
        entries += [os.fsencode(path), str(number).encode()]
    manifest = os.path.join(folder, "manifest")
    with open(manifest, "wb") as file:
        file.write(b"".join(entry + b"\0" for entry in entries))
    return manifest


def read_edited(manifest: str) -> dict[str, bytes]:
    """The edited text that `write_edited` has written. Raises OSError."""
    entries = _content(manifest).split(b"\0")[:-1]
    folder = os.path.dirname(manifest)
    return {
        os.fsdecode(path): _content(os.path.join(folder, os.fsdecode(name)))
        for path, name in zip(entries[::2], entries[1::2])
    }


def _content(path: str) -> bytes:
    with open(path, "rb") as file:
        return file.read()


# --- which file is meant --------------------------------------------------------------------------------------------
class EditedSource:
    """Texts by real path, found by whatever path leads there."""

    def __init__(self, texts: Mapping[str, bytes]) -> None:
        self._texts = {os.path.normcase(path): text for path, text in texts.items()}
        self._identities = {_identity(path) for path in texts} - {None}

    def of(self, path: object) -> bytes | None:
        """The edited text of a file; None where the disk is to be read. Comparing the file's identity costs one look at
        the disk, and is nearly always enough."""
        if not isinstance(path, (str, bytes, os.PathLike)) or _identity(path) not in self._identities:
            return None
        return self._texts.get(os.path.normcase(os.path.realpath(os.fsdecode(path))))


def _identity(path: str | bytes | os.PathLike[str]) -> tuple[int, int] | None:
    """Device and number of a file; None where there is none."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a NUL character in the name
        return None
    return status.st_dev, status.st_ino


# --- what is replaced -----------------------------------------------------------------------------------------------
def install(manifest: str) -> EditedSource:
    """From now on this process, and each Python that it starts, executes and shows edited text.

    Raises OSError where the manifest can't be read."""
    edited = EditedSource(read_edited(manifest))
    _replace_open_code(edited)
    _keep_bytecode_away(edited)
    sys.meta_path.insert(0, _TokenizeHook(edited))  # a program with a neighbour token.py gets another tokenize
    if "tokenize" in sys.modules:
        _replace_open(sys.modules["tokenize"], edited)
    sys.dont_write_bytecode = True
    _tell_children(manifest)
    return edited


def _replace_open_code(edited: EditedSource) -> None:
    original = _io.open_code

    def open_code(path: str) -> IO[bytes]:
        text = edited.of(path)
        return original(path) if text is None else io.BytesIO(text)

    _io.open_code = io.open_code = open_code


def _keep_bytecode_away(edited: EditedSource) -> None:
    """A file without time and size has none: a .pyc of the old text has those of the file on the disk."""
    original = SourceFileLoader.path_stats

    def path_stats(loader: SourceFileLoader, path: str) -> Mapping[str, Any]:
        if edited.of(path) is not None:
            raise OSError(f"{path} is edited: its bytecode is that of another text")
        return original(loader, path)

    SourceFileLoader.path_stats = path_stats  # type: ignore[method-assign,assignment]


def _replace_open(tokenize: Any, edited: EditedSource) -> None:
    original = tokenize.open

    def open(filename: str) -> IO[str]:
        text = edited.of(filename)
        if text is None:
            return original(filename)
        buffer = io.BytesIO(text)
        encoding, _ = tokenize.detect_encoding(buffer.readline)
        buffer.seek(0)
        lines: Any = io.TextIOWrapper(buffer, encoding, line_buffering=True)
        lines.mode = "r"  # as tokenize sets it
        return lines

    tokenize.open = open


class _TokenizeHook:
    """Reaches the standard library's `tokenize` each time that it is executed."""

    def __init__(self, edited: EditedSource) -> None:
        self._edited = edited

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != "tokenize":
            return None
        others = (finder for finder in sys.meta_path if finder is not self)
        spec = next((candidate for finder in others if (candidate := finder.find_spec(name, path, target))), None)
        if spec is not None and spec.loader is not None and os.path.dirname(spec.origin or "") == _STDLIB:
            self._act_after_execution(spec.loader)
        return spec

    def _act_after_execution(self, loader: Any) -> None:
        execute = loader.exec_module

        def exec_module(module: ModuleType) -> None:
            execute(module)
            _replace_open(module, self._edited)

        loader.exec_module = exec_module


# --- child processes ------------------------------------------------------------------------------------------------
def _tell_children(manifest: str) -> None:
    before = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    os.environ["PYTHONPATH"] = os.pathsep.join([CHILD_START, *(p for p in before if p not in ("", CHILD_START))])
    os.environ[MANIFEST] = manifest


def install_in_child() -> None:
    """Like `install`, in a process that was started with MANIFEST in its environment."""
    edited = install(os.environ[MANIFEST])
    text = edited.of(sys.argv[0])
    if text is not None:
        sys.path_hooks.insert(0, _Script(sys.argv[0], text).finder_for)


class _Script:
    """`python FILE` reads the file past `io.open_code`. Before that, Python asks whether it is a directory or an
    archive with a `__main__` in it: this one is, and leaves the module as a plain run begins it."""

    def __init__(self, path: str, text: bytes) -> None:
        self._path, self._text = path, text  # the path as it was given; from Python 3.9 on it is made absolute

    def finder_for(self, entry: str) -> _Script:
        """A finder for the script. Raises ImportError for any other path."""
        if os.path.abspath(entry) != os.path.abspath(self._path):
            raise ImportError(f"{entry} is not the script")
        self._path = entry
        return self

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, origin=self._path) if name == "__main__" else None  # type: ignore[arg-type]

    def get_code(self, name: str) -> CodeType:
        """`runpy` gives the module a spec, which a script has not, and executes this."""
        return compile("__loader__.run()", self._path, "exec")

    def run(self) -> None:
        sys.path_hooks.remove(self.finder_for)
        sys.path.remove(self._path)
        sys.path_importer_cache.pop(self._path, None)
        if not (sys.flags.isolated or getattr(sys.flags, "safe_path", False)):
            sys.path.insert(0, os.path.dirname(os.path.realpath(self._path)))
        program = vars(sys.modules["__main__"])
        loader = SourceFileLoader("__main__", self._path)
        program.update(__spec__=None, __package__=None, __loader__=loader, __cached__=None)
        exec(compile(self._text, self._path, "exec", dont_inherit=True), program)

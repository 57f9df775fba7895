"""Blocked writes: while a training ends, creating or removing a file on the user's disk raises an OSError."""

from __future__ import annotations

import os
import sys
import tempfile
from contextlib import ExitStack, contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable, Iterator

from mpdoctor.examiner.process.patching import replace_for_now

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


# Events of Python's audit hooks that change the disk, and which of their arguments are paths.
_CHANGES = {
    "os.mkdir": (0,),
    "os.remove": (0,),
    "os.rename": (0, 1),
    "os.rmdir": (0,),
    "os.truncate": (0,),
    "os.link": (1,),
    "os.symlink": (1,),
    "shutil.rmtree": (0,),
}
_WRITING = set("wax+")
_WRITE_FLAGS = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC

_state = {"installed": False, "closed": False}


class FileLeftOut(PermissionError):
    """Raised in the place of what would have created, changed or removed a file."""

    def __init__(self, path: object) -> None:
        super().__init__(f"mpdoctor lets nothing be written here: {path}")
        self.path = str(path)[-80:]


@contextmanager
def no_files(keras: KerasAdapter) -> Iterator[None]:
    """While this context is active, Python, h5py, TensorFlow's file functions and checkpoints raise FileLeftOut in the
    place of writing. New temporary files stay allowed: autograph needs them."""
    import tensorflow as tf

    if not _state["installed"]:
        sys.addaudithook(_audit)
        _state["installed"] = True
    with ExitStack() as stack:
        for cls, name in _writers(keras, tf):
            stack.callback(replace_for_now(cls, name, _refuse(name)))
        _state["closed"] = True
        try:
            yield
        finally:
            _state["closed"] = False


def _writers(keras: KerasAdapter, tf: ModuleType) -> Iterator[tuple[type, str]]:
    """(class, method) of what writes files without asking Python."""
    for name in ("save", "save_weights", "export"):
        if hasattr(keras.Model, name):
            yield keras.Model, name
    yield tf.train.Checkpoint, "write"
    yield tf.train.Checkpoint, "save"
    yield tf.io.gfile.GFile, "write"
    yield tf.io.TFRecordWriter, "write"
    h5py: Any = sys.modules.get("h5py")
    if hasattr(h5py, "File"):
        yield h5py.File, "__init__"


def _refuse(name: str) -> Callable[..., object]:
    def refuse(original: Callable[..., object], instance: object, *args: object, **kwargs: object) -> object:
        mode = kwargs.get("mode", args[1] if len(args) > 1 else "r")
        if name == "__init__" and mode == "r":
            return original(instance, *args, **kwargs)
        raise FileLeftOut(next(iter(args), kwargs.get("filepath", "a file")))

    return refuse


def _audit(event: str, args: Any) -> None:
    if not _state["closed"]:
        return
    if event == "open":
        path, mode, flags = args
        writes = bool(_WRITING & set(mode)) if isinstance(mode, str) else bool((flags or 0) & _WRITE_FLAGS)
        if writes and not _is_allowed(path, flags or 0):
            raise FileLeftOut(path)
    elif event in _CHANGES:
        for place in _CHANGES[event]:
            if not _is_allowed(args[place], os.O_EXCL):
                raise FileLeftOut(args[place])


def _is_allowed(path: object, flags: int) -> bool:
    """Whether it is a descriptor that is open already, a device, or a new temporary file."""
    if not isinstance(path, (str, bytes)):
        return not hasattr(path, "__fspath__")
    absolute = os.path.abspath(os.fsdecode(path))
    if absolute.startswith(("/dev/", "/proc/")) and not absolute.startswith("/dev/shm/"):
        return True
    is_temporary = absolute.startswith(os.path.abspath(tempfile.gettempdir()) + os.sep)
    is_generated = os.path.basename(absolute).startswith(("tmp", "__autograph_generated_file"))
    return bool(flags & os.O_EXCL) and is_temporary and is_generated

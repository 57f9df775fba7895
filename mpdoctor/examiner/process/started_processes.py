"""Processes that the program starts: none of them is examined, so the report names them.

Forks are not among them: a fork holds the hooks, and is examined where it is the first to train. Nor is what a library
starts for its own purposes (workers that load data, loggers, `nvidia-smi`): no line of the program's asked for that.
"""

from __future__ import annotations

import os
import sys
from types import FrameType, ModuleType
from typing import Any, Callable, Mapping

from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import is_own, own_code
from mpdoctor.facts.processes import How, StartedProcess

MOST = 1000  # that one process tells
MOST_ARGUMENTS = 50
LONGEST_ARGUMENT = 500
# Libraries that run in other processes what a program gives them.
LAUNCHERS = frozenset(("billiard", "invoke", "joblib", "loky", "mpire", "multiprocess", "pathos", "plumbum", "sh"))
# Of the standard library, what starts processes for its own purposes, such as `uname -p`.
_ASK_THE_SYSTEM = frozenset(("_osx_support", "ctypes", "ensurepip", "platform", "pydoc", "uuid", "venv", "webbrowser"))
MULTIPROCESSING = "multiprocessing.process"


class StartedProcesses:
    """Tells of each process that a line of the program's starts, the moment that it does. `tell` is called in whichever
    process that happens; `first` says whether that is the examined one, `broke` ends it after a defect of ours."""

    def __init__(
        self, tell: Callable[[StartedProcess], None], first: Callable[[], bool], broke: Callable[[BaseException], None]
    ) -> None:
        self._tell, self._first, self._broke = tell, first, broke
        self._told = 0
        self._environment: Mapping[str, str] = {}

    def install(self) -> None:
        self._environment = dict(os.environ)
        sys.addaudithook(self._audit)
        if MULTIPROCESSING in sys.modules:
            self.watch_multiprocessing(sys.modules[MULTIPROCESSING])

    def watch_multiprocessing(self, module: ModuleType) -> None:
        """multiprocessing starts its processes past the audit hooks."""
        process = getattr(module, "BaseProcess", None)
        if isinstance(process, type):  # none of that is in a module of this name of the program's own
            replace_method(process, "start", self._start)

    def _start(self, original: Callable[..., object], process: Any, *args: object, **kwargs: object) -> object:
        function = _function_of(process)  # which it forgets when it has started
        result = original(process, *args, **kwargs)
        method = getattr(getattr(process, "_popen", None), "method", "")
        if method != "fork" and _asked_for_by_program(sys._getframe(1)):
            self._note("multiprocessing", (function,))
        return result

    def _audit(self, event: str, args: Any) -> None:
        if event not in _COMMANDS or self._told >= MOST:
            return
        frame = sys._getframe(1)
        try:
            if not _asked_for_by_program(frame) or (event == "os.posix_spawn" and _is_of(frame, "subprocess")):
                return  # subprocess has told of it
            how, arguments = _COMMANDS[event](args)
            if event == "os.exec":
                if not os.access(args[0], os.X_OK):  # one of the places where it is looked for
                    return
                how = "replaced" if self._first() else "command"
            directory = args[2] if event == "subprocess.Popen" else None
            changed = self._changed(args[2] or os.environ) if how == "replaced" else ()
            self._note(how, arguments, directory, changed)
        except Exception as error:  # the program would take it for an error of its own call
            self._broke(error)

    def _note(
        self, how: How, arguments: tuple[str, ...], directory: object = None, changed: tuple[str, ...] = ()
    ) -> None:
        self._told += 1
        cut = tuple(argument[:LONGEST_ARGUMENT] for argument in arguments[:MOST_ARGUMENTS])
        self._tell(StartedProcess(how, cut, _directory(directory), changed))

    def _changed(self, environment: Mapping[Any, Any]) -> tuple[str, ...]:
        now = {os.fsdecode(name): os.fsdecode(value) for name, value in environment.items()}
        changed = sorted(name for name, value in now.items() if self._environment.get(name) != value)
        return tuple(changed[:MOST_ARGUMENTS])


def _directory(given: object) -> str:
    try:
        return os.path.join(os.getcwd(), _text(given) if given is not None else "")
    except OSError:  # the working directory is gone
        return ""


def _text(value: object) -> str:
    return os.fsdecode(value) if isinstance(value, (str, bytes, os.PathLike)) else str(value)


def _texts(values: object) -> tuple[str, ...]:
    return tuple(map(_text, values)) if isinstance(values, (list, tuple)) else (_text(values),)


def _popen(args: Any) -> tuple[How, tuple[str, ...]]:
    executable, given = args[0], args[1]
    if isinstance(given, str):  # a whole line, on Windows
        return "shell", (given,)
    texts = _texts(given)
    if texts[1:2] == ("-c",) and os.path.basename(texts[0]) in ("sh", "bash", "dash", "zsh"):
        return "shell", texts[2:3]
    return "command", (_text(executable or texts[0]), *texts[1:])


_COMMANDS: dict[str, Callable[[Any], tuple[How, tuple[str, ...]]]] = {
    "subprocess.Popen": _popen,
    "os.system": lambda args: ("shell", (_text(args[0]),)),
    "os.exec": lambda args: ("command", (_text(args[0]), *_texts(args[1])[1:])),
    "os.posix_spawn": lambda args: ("command", (_text(args[0]), *_texts(args[1])[1:])),
    "os.spawn": lambda args: ("command", (_text(args[1]), *_texts(args[2])[1:])),
}


def _function_of(process: Any) -> str:
    """What the process runs, if it is a function or a class of the program's; "" for a worker of a pool."""
    target = getattr(process, "_target", None)
    named = type(process) if target is None else target
    module = sys.modules.get(getattr(named, "__module__", None) or "")
    name = getattr(named, "__qualname__", "")
    return str(name) if is_own(getattr(module, "__file__", None) or "<unknown>") else ""


def _asked_for_by_program(frame: FrameType | None) -> bool:
    """Whether no library but Python's own stands between a line of the program's, or the beginning of a thread, and
    this frame."""
    while frame is not None and not own_code(frame):
        module = str(frame.f_globals.get("__name__")).partition(".")[0]
        if module in _ASK_THE_SYSTEM or _library_of(frame.f_code.co_filename) not in ("", *LAUNCHERS):
            return False
        frame = frame.f_back
    return True


def _library_of(filename: str) -> str:
    """The name of the installed library that the file belongs to; "" for Python's own modules and for these hooks."""
    if filename.startswith(_PACKAGE):
        return "" if os.path.dirname(filename) == _HERE else "mpdoctor"
    parts = filename.replace("\\", "/").split("/")
    for folder in ("site-packages", "dist-packages"):
        if folder in parts[:-1]:
            return parts[parts.index(folder) + 1].replace(".py", "")
    return ""


_HERE = os.path.dirname(os.path.abspath(__file__))
_PACKAGE = os.path.dirname(os.path.dirname(_HERE)) + os.sep


def _is_of(frame: FrameType, module: str) -> bool:
    return frame.f_globals.get("__name__") == module

"""The process between mpdoctor and the examiner: nothing that a script has started outlives it.

A process group is not enough: setsid() leaves it, and a double fork leaves no trace of where it came from. Linux gives
orphans to the nearest ancestor that asks for them, so here they all become children of the keeper sooner or later.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading
import time

from mpdoctor.examiner.events import Events

PATIENCE = 5.0  # seconds until what cannot be killed (a process that waits for a disk) is left to itself
# prctl(2)
_DIE_WITH_PARENT = 1
_ADOPT_ORPHANS = 36


def is_kept() -> bool:
    """Whether this system has what a keeper needs."""
    return sys.platform == "linux"


def keep_examiner(events: Events) -> None:
    """Returns in a new process, which is to examine. The one that called stays behind, says how the new one ended, and
    ends whatever is left of it; at once, where its standard input comes to an end, because mpdoctor did."""
    examiner = os.fork()
    if examiner == 0:
        os.setsid()
        _control(_DIE_WITH_PARENT, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    _control(_ADOPT_ORPHANS, 1)
    threading.Thread(target=_end_with_mpdoctor, args=(examiner,), daemon=True).start()
    try:
        _, status = os.waitpid(examiner, 0)
        events.exited(status)
    finally:
        _end_all(examiner)
        os._exit(0)


def _control(option: int, value: int) -> None:
    import ctypes

    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _end_with_mpdoctor(examiner: int) -> None:
    while os.read(0, 1):
        pass
    _end_all(examiner)
    os._exit(0)


def _end_all(examiner: int) -> None:
    """Kill children until there are none: those of a killed child are the next."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(examiner, signal.SIGKILL)
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        for child in _children():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(child, signal.SIGKILL)
        time.sleep(0.005)


def _children() -> list[int]:
    own = str(os.getpid())
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", encoding="ascii", errors="replace") as file:
                    parent = file.read().rpartition(")")[2].split()[1]
            except (OSError, IndexError):  # it ended meanwhile
                continue
            if parent == own:
                found.append(int(name))
    return found

"""The process between mpdoctor and the examiner: nothing that a script has started outlives it.

A process group is not enough: setsid() leaves it, and a double fork leaves no trace of where it came from. Linux gives
orphans to the nearest ancestor that asks for them, so here they all become children of the keeper sooner or later.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import sys
import threading
import time
from typing import Iterable

from mpdoctor.examiner.protocol.events import Events

PATIENCE = 5.0  # seconds until what cannot be killed (a process that waits for a disk) is left to itself
# prctl(2)
_DIE_WITH_PARENT = 1
_ADOPT_ORPHANS = 36
_HIGHEST = 1 << 22  # process number that Linux gives, however it is set up
_NEAR = 1 << 15  # numbers, which is all that Linux gives where it is not set up for more


def is_supervised() -> bool:
    """Whether this system has what a keeper needs."""
    return sys.platform == "linux"


def supervise_examiner(events: Events) -> None:
    """Returns in a new process, which is to examine. The calling process stays behind, tells how the new one ended, and
    ends whatever is left of it: at once, where its standard input comes to an end, because mpdoctor has ended."""
    examiner = os.fork()
    if examiner == 0:
        os.setsid()
        _control(_DIE_WITH_PARENT, signal.SIGKILL)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        return
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT):
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
    """The processes started by this one. Where procfs does not list them, they are searched among all process numbers
    given since this one began."""
    return _own_among(_processes_in_procfs()) or next(filter(None, map(_own_among, _given_since())), [])


def _own_among(numbers: Iterable[int]) -> list[int]:
    """The system says of any number whether it is a child's that lives: no process may wait for another's."""
    own = []
    for number in numbers:
        try:
            if os.waitpid(number, os.WNOHANG)[0] == 0:
                own.append(number)
        except ChildProcessError:
            continue
    return own


def _processes_in_procfs() -> list[int]:
    try:
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return []


def _given_since() -> tuple[Iterable[int], ...]:
    """The process numbers that the system, which counts upwards and wraps around, has given since this process began.
    After a wrap the near ones come first: trying all four million takes longer than mpdoctor waits."""
    first, last = os.getpid() + 1, _newest()
    if first <= last:
        return (range(first, last + 1),)
    near = itertools.chain(range(first, first + _NEAR), range(2, last + 1))
    return near, range(first + _NEAR, _HIGHEST + 1)


def _newest() -> int:
    """A thread's number is of the same row as those of processes."""
    numbers: list[int] = []
    thread = threading.Thread(target=lambda: numbers.append(threading.get_native_id()))
    thread.start()
    thread.join()
    return numbers[0]

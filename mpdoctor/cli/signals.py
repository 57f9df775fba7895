"""Signal handling: on SIGTERM and the like mpdoctor cleans up as after Ctrl-C, then ends by that same signal.

Cleaning up is: end its processes, remove its temporary files, show the cursor again. Whoever sent the signal sees the
exit status that the signal causes."""

from __future__ import annotations

import contextlib
import signal
import sys
import time
from collections.abc import Iterator
from types import FrameType
from typing import NoReturn

# Of POSIX, and of Windows the break key and what little it knows of SIGTERM.
_NUMBERS = [
    getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGBREAK") if hasattr(signal, name)
]
# What was set otherwise stays: nohup ignores hangups, and a shell the interrupts of what runs in the background.
_REPLACED = (signal.SIG_DFL, signal.default_int_handler)
CLEANING_UP = 10.0  # seconds in which a second signal (a hangup is often followed by a SIGTERM) interrupts nothing


class EndedBySignal(BaseException):
    """Raised wherever the main thread is when such a signal comes."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


@contextlib.contextmanager
def raised_signals() -> Iterator[None]:
    """While this context is active, a signal that asks mpdoctor to end raises EndedBySignal."""
    last = -CLEANING_UP

    def end(number: int, _: FrameType | None) -> None:
        nonlocal last
        now = time.monotonic()
        if now - last < CLEANING_UP:
            return
        last = now
        raise EndedBySignal(number)  # not KeyboardInterrupt, which typer would end with in silence

    before = {number: signal.getsignal(number) for number in _NUMBERS}
    replaced = {number: handler for number, handler in before.items() if handler in _REPLACED}
    for number in replaced:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number, handler in replaced.items():
            signal.signal(number, handler)


def end_by(number: int) -> NoReturn:
    """End this process by the signal's default action, as if the signal had never been caught."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    sys.exit(128 + number)  # the first process of a container survives it

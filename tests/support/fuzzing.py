"""The fuzzers' common part: number of cases, seed, and limits of time and memory for one case."""

from __future__ import annotations

import random
import resource
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest
from two_at_once import closing_line

LONGEST_CASE = 20.0  # seconds of this process' own time
LARGEST_PROCESS = 2 * 2**30  # bytes of this process' peak memory
SECONDS = 36.0  # for each kind: five kinds are three minutes

Case = Callable[[random.Random], None]
Fuzz = Callable[[str, Case], None]


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("fuzzers of mpdoctor")
    group.addoption("--fuzz-seed", type=int, default=None, help="seed of the cases; a random one where it is left out")
    group.addoption("--fuzz-first", type=int, default=0, help="number of the first case, to run a failed one again")
    group.addoption("--fuzz-cases", type=int, default=None, help="cases of each kind, instead of a time")
    group.addoption("--fuzz-seconds", type=float, default=SECONDS, help="seconds for each kind")


@pytest.fixture
def fuzz(request: pytest.FixtureRequest) -> Fuzz:
    """Runs `case(random)` again and again, each time with a random generator of its own that the kind, the seed and the
    case's number decide. A case fails by raising; the failure says how to run that case alone."""
    option = request.config.getoption
    seed = option("--fuzz-seed")
    seed = secrets.randbelow(10**9) if seed is None else seed

    def run(kind: str, case: Case) -> None:
        started, number, first, count = time.monotonic(), 0, option("--fuzz-first"), option("--fuzz-cases")
        longest = 0.0
        while (number < count) if count is not None else (time.monotonic() - started < option("--fuzz-seconds")):
            case_started = time.process_time()
            try:
                with at_most(LONGEST_CASE):
                    case(random.Random(f"{kind} {seed} {first + number}"))
            except BaseException:
                again = f"--fuzz-seed {seed} --fuzz-first {first + number} --fuzz-cases 1"
                print(f"{kind}: case {first + number} failed. Again: pytest -m fuzz {request.node.nodeid} {again}")
                raise
            longest = max(longest, time.process_time() - case_started)
            number += 1
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        assert number, f"not a single case of {kind} ran"
        assert peak < LARGEST_PROCESS, f"{kind}: the process grew to {peak / 2**30:.1f} GiB; seed {seed}"
        cost = f"longest {longest:.1f} s, peak {peak / 2**20:.0f} MiB"
        closing_line(request.config, f"fuzz: {kind}: {number} cases, seed {seed}, {cost}")

    return run


class TookTooLong(BaseException):
    """None of what is tested catches it: TimeoutError would be an OSError."""


@contextmanager
def at_most(seconds: float) -> Iterator[None]:
    """Raises TookTooLong in the main thread after this many seconds of the process' own time, or ten times as many on
    the clock: a busy machine takes longer for the same."""

    def stop(*_: object) -> None:
        raise TookTooLong(f"the case took more than {seconds:.0f} s")

    timers = ((signal.SIGPROF, signal.ITIMER_PROF, seconds), (signal.SIGALRM, signal.ITIMER_REAL, 10 * seconds))
    before = [signal.signal(number, stop) for number, _, _ in timers]
    for _, timer, limit in timers:
        signal.setitimer(timer, limit)
    try:
        yield
    finally:
        for (number, timer, _), handler in zip(timers, before, strict=True):
            signal.setitimer(timer, 0)
            signal.signal(number, handler)

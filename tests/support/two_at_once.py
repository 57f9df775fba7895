"""Two tests at a time, each in a process of its own, where pytest-xdist is installed and much is to be run: the whole
suite, the slow tests, the environments. `-n 0` runs one after the other.

Most tests wait for a process that imports TensorFlow, and use one core. Neighbours stay together in one process, as far
as that leaves neither of the two idle: tests that ask for the same examination stand beside each other.

`closing_line` is what a test, or the choice of tests, has to say at the run's end, in whichever process it is.
"""

from __future__ import annotations

import os
from typing import Any

import pytest

AT_ONCE = 2
MANY = ("slow", "environments")


@pytest.hookimpl(tryfirst=True)  # before xdist reads it
def pytest_cmdline_main(config: pytest.Config) -> None:
    option = config.option
    if not config.pluginmanager.hasplugin("xdist") or option.numprocesses is not None or option.usepdb:
        return
    if hasattr(config, "workerinput"):  # this is one of the two
        return
    whole_suite = config.args_source is config.ArgsSource.TESTPATHS and option.markexpr != "fast"
    if (whole_suite or option.markexpr in MANY) and len(os.sched_getaffinity(0)) >= AT_ONCE:
        option.numprocesses = AT_ONCE
        option.dist = "worksteal"


def long_ones_first(items: list[pytest.Item]) -> None:
    """Begun last, it would run by itself at the end, and the other core idle."""
    items.sort(key=lambda item: item.get_closest_marker("long") is None)


LINES = pytest.StashKey[list[str]]()


def closing_line(config: pytest.Config, line: str) -> None:
    lines = config.stash.setdefault(LINES, [])
    if line not in lines:
        lines.append(line)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["closing_lines"] = session.config.stash.get(LINES, [])


@pytest.hookimpl(optionalhook=True)  # xdist's own
def pytest_testnodedown(node: Any, error: object) -> None:
    for line in getattr(node, "workeroutput", {}).get("closing_lines", []):
        closing_line(node.config, line)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    for line in config.stash.get(LINES, []):
        terminalreporter.write_line(line)

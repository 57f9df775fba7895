"""Options of the sample: its seed, how many scripts, and the first of them."""

from __future__ import annotations

from pathlib import Path

import pytest

SCRIPTS = 20  # ten seconds of one processor each


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("generated scripts of mpdoctor")
    group.addoption("--truth-seed", type=int, default=None, help="seed of the scripts; by default the commit's number")
    group.addoption("--truth-scripts", type=int, default=SCRIPTS, help="how many scripts")
    group.addoption("--truth-first", type=int, default=0, help="number of the first one, to run a failed one again")
    group.addoption("--truth-results", type=Path, default=None, help="file that keeps a line for each")


def seed_of(config: pytest.Config) -> int:
    """Each commit brings scripts of its own, and the same ones when it is tested again."""
    given: int | None = config.getoption("--truth-seed")
    return config.option.sample_seed if given is None else given

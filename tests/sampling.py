"""Long tables, of which a run takes a sample: `sample(rows, count)`. `--whole-tables` runs all of them."""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import pytest

Sample = Callable[[Sequence[Any], int], list[Any]]


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("long tables of mpdoctor")
    group.addoption("--whole-tables", action="store_true", help="every row of the long tables, instead of a sample")
    group.addoption("--sample-seed", type=int, default=None, help="seed of the samples; a random one by default")


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample:
    """Some rows, in their order; a failure prints the seed that takes them again."""
    seed = request.config.getoption("--sample-seed")
    seed = secrets.randbelow(10**6) if seed is None else seed

    def take(rows: Sequence[Any], count: int) -> list[Any]:
        if request.config.getoption("--whole-tables") or len(rows) <= count:
            return list(rows)
        print(f"{count} of {len(rows)} rows: --sample-seed {seed}, or all: --whole-tables")
        chosen = random.Random(seed).sample(range(len(rows)), count)
        return [rows[number] for number in sorted(chosen)]

    return take

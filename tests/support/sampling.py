"""Long tables, of which a run takes a sample. `--whole-tables` runs all of them.

`@pytest.mark.sampled(12)`: a run takes 12 of the rows that -m and -k leave of a parametrized test; tests that name the
same table, `sampled(12, "loops")`, share their rows. `sample(rows, count)` does the same within a test. `--share 0.4`
takes 40 % of all tests that are left then, `--live-share` of those in tests/live, which train models: without it, a run
of the whole suite takes LIVE_SHARE of them. The seed is the commit's number, so that each commit brings other rows, and
the same ones when it is tested again; `--sample-seed` takes those of another run again. It is printed with the closing
lines.
"""

from __future__ import annotations

import random
import secrets
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest
from two_at_once import closing_line

LIVE_SHARE = 0.25
Sample = Callable[[Sequence[Any], int], list[Any]]


def add_options(parser: pytest.Parser) -> None:
    group = parser.getgroup("long tables of mpdoctor")
    group.addoption("--whole-tables", action="store_true", help="every row of the long tables, instead of a sample")
    group.addoption("--share", type=float, default=1.0, help="of all tests that are chosen, run this part: 0.4")
    group.addoption("--live-share", type=float, default=None, help="the same for tests/live alone")
    group.addoption("--sample-seed", type=int, default=None, help="seed of the samples; the commit's number by default")


def choose_seed_and_shares(config: pytest.Config) -> None:
    """The seed and the shares, once: the processes that run tests beside this one are given its options."""
    option = config.option
    if option.sample_seed is None:
        option.sample_seed = seed_of_commit()
    if option.live_share is None:
        asked = option.keyword or getattr(option, "lf", False)  # without its plugin there is no --lf
        is_default = option.markexpr in config.getini("addopts") and not asked
        is_whole = config.args_source is config.ArgsSource.TESTPATHS
        option.live_share = LIVE_SHARE if is_whole and is_default else 1.0


def seed_of_commit() -> int:
    """A random number where there is no commit."""
    command = ["git", "rev-parse", "--short=7", "HEAD"]
    try:
        done = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return secrets.randbelow(2**28)
    return int(done.stdout[:7], 16)


def chosen(rows: Sequence[Any], count: int, seed: int, table: str = "") -> list[Any]:
    """So many of them, in their order."""
    if len(rows) <= count:
        return list(rows)
    numbers = random.Random(f"{table} {seed}").sample(range(len(rows)), count)
    return [rows[number] for number in sorted(numbers)]


def take_samples(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselects the other rows."""
    if config.option.whole_tables:
        return
    tables: dict[str, tuple[int, dict[str, None]]] = {}
    for item in items:
        for count, table, row in _rows_of(item):
            tables.setdefault(table, (count, {}))[1][row] = None
    taken = {
        table: set(chosen(list(rows), count, config.option.sample_seed, table))
        for table, (count, rows) in tables.items()
    }
    kept = [item for item in items if all(row in taken[table] for _, table, row in _rows_of(item))]
    cut = [f"{len(taken[table])} of {len(rows)} {_short(table)}" for table, (count, rows) in tables.items()
           if len(rows) > count]  # fmt: skip
    for name, share in (("tests/live", config.option.live_share), ("tests", config.option.share)):
        of = [item for item in kept if item.nodeid.startswith(f"{name}/")]
        if share < 1 and of:
            left_out = set(of).difference(chosen(of, round(share * len(of)), config.option.sample_seed, name))
            kept = [item for item in kept if item not in left_out]
            cut.append(f"{len(of) - len(left_out)} of {len(of)} {name}")
    if len(kept) < len(items):
        seed = f"--sample-seed {config.option.sample_seed} (all rows: --whole-tables)"
        closing_line(config, f"sample: {seed}: {', '.join(sorted(cut))}")
        gone = set(items).difference(kept)
        config.hook.pytest_deselected(items=[item for item in items if item in gone])
        items[:] = kept


def _short(table: str) -> str:
    """tests/live/test_battery.py::test_a_script is test_battery::test_a_script"""
    return table.rpartition("/")[2].replace(".py", "")


def _rows_of(item: pytest.Item) -> list[tuple[int, str, str]]:
    """(rows to take, name of the table, this row); none for a test that always runs."""
    mark = item.get_closest_marker("sampled")
    if mark is None:
        return []
    assert isinstance(item, pytest.Function), item.nodeid
    count, table = mark.args if len(mark.args) == 2 else (*mark.args, item.nodeid.partition("[")[0])
    return [(count, table, item.callspec.id)]


@pytest.fixture
def sample(request: pytest.FixtureRequest) -> Sample:
    """Some rows, in their order; a failure prints the seed that takes them again."""
    seed = request.config.option.sample_seed

    def take(rows: Sequence[Any], count: int) -> list[Any]:
        if request.config.option.whole_tables or len(rows) <= count:
            return list(rows)
        print(f"{count} of {len(rows)} rows: --sample-seed {seed}, or all: --whole-tables")
        return chosen(rows, count, seed, request.node.nodeid)

    return take

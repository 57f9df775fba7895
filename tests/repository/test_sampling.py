"""The sample of a long table: the same for one seed, in time every row, and all of what is asked for by name."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import sampling
import two_at_once
from sampling import chosen

pytest_plugins = ["pytester"]
CONFTEST = """
import pytest, sampling, two_at_once
pytest_cmdline_main = two_at_once.pytest_cmdline_main
pytest_addoption = sampling.add_options
pytest_configure = sampling.choose_seed_and_shares
pytest_collection_modifyitems = pytest.hookimpl(trylast=True)(sampling.take_samples)
pytest_sessionfinish = two_at_once.pytest_sessionfinish
pytest_testnodedown = two_at_once.pytest_testnodedown
pytest_terminal_summary = two_at_once.pytest_terminal_summary
"""
TABLE = """
import pytest

pytestmark = [pytest.mark.slow, pytest.mark.fast]

@pytest.mark.sampled(4, "shared")
@pytest.mark.parametrize("row", range(20))
def test_first(row): pass

@pytest.mark.sampled(4, "shared")
@pytest.mark.parametrize("row", range(20))
def test_second(row): pass

@pytest.mark.parametrize("row", range(20))
def test_whole(row): pass
"""


def test_a_seed_takes_the_same_rows_again_in_their_order() -> None:
    rows = list(range(50))
    assert chosen(rows, 10, 7, "table") == chosen(rows, 10, 7, "table") == sorted(chosen(rows, 10, 7, "table"))
    assert chosen(rows, 10, 7, "table") != chosen(rows, 10, 8, "table")
    assert chosen(rows, 50, 7) == chosen(rows, 60, 7) == rows


def test_every_row_is_run_by_some_commit() -> None:
    rows = list(range(120))
    commits = range(0xABC000, 0xABC000 + 40)
    assert {row for seed in commits for row in chosen(rows, 30, seed, "table")} == set(rows)


@pytest.fixture
def table(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makeini("[pytest]\ntestpaths = tests\n")
    pytester.mkdir("tests")
    (pytester.path / "tests" / "conftest.py").write_text(CONFTEST)
    (pytester.path / "tests" / "test_table.py").write_text(TABLE)
    return pytester


@pytest.mark.parametrize(
    ("arguments", "passed", "deselected"),
    [
        (["--sample-seed=7"], 28, 32),
        (["--sample-seed=7", "--whole-tables"], 60, 0),
        (["--sample-seed=7", "-k", "19 and not whole"], 2, 58),
    ],
)
def test_a_run_takes_a_sample(table: pytest.Pytester, arguments: list[str], passed: int, deselected: int) -> None:
    done = table.runpytest_inprocess("-p", "no:xdist", "-p", "no:cacheprovider", "-v", *arguments)
    done.assert_outcomes(passed=passed, deselected=deselected)
    rows = {name: {line.partition("[")[2].partition("]")[0] for line in done.outlines if f"::test_{name}[" in line}
            for name in ("first", "second")}  # fmt: skip
    assert rows["first"] == rows["second"]
    said = [line for line in done.outlines if line.startswith("sample: ")]
    assert said == (["sample: --sample-seed 7 (all rows: --whole-tables): 4 of 20 shared"] if passed == 28 else [])


@pytest.mark.parametrize(("arguments", "passed"), [((), 11), (("--whole-tables",), 60), (("-k", "whole"), 8)])
def test_a_run_takes_a_share_of_its_tests(table: pytest.Pytester, arguments: tuple[str, ...], passed: int) -> None:
    """Of what the samples leave: 40 % of 28, and of 20. Another commit takes others."""
    ran = {}
    for seed in (7, 8):
        done = table.runpytest_inprocess(
            "-p", "no:xdist", "-p", "no:cacheprovider", "-v", "--share=0.4", f"--sample-seed={seed}", *arguments
        )
        done.assert_outcomes(passed=passed, deselected=60 - passed)
        ran[seed] = [line for line in done.outlines if "::test_" in line]
    assert (ran[7] == ran[8]) is (passed == 60)


@pytest.mark.parametrize(
    ("arguments", "passed"),
    [
        ((), 2),  # 25 % of the ten that the default takes, and no share where tests are asked for:
        (("--whole-tables",), 10),
        (("--live-share=0.2",), 2),
        (("-k", "live"), 10),
        (("tests/live",), 10),
        (("-m", "slow"), 5),
    ],
)
def test_the_default_takes_a_share_of_the_tests_that_train(
    pytester: pytest.Pytester, arguments: tuple[str, ...], passed: int
) -> None:
    pytester.makeini("[pytest]\ntestpaths = tests\naddopts = -m 'not slow'\nmarkers = slow\n")
    (pytester.path / "tests" / "live").mkdir(parents=True)
    (pytester.path / "tests" / "conftest.py").write_text(CONFTEST)
    (pytester.path / "tests" / "live" / "test_live.py").write_text(
        "import pytest\n\n@pytest.mark.parametrize('row', range(10))\ndef test_live(row): pass\n\n"
        "@pytest.mark.slow\n@pytest.mark.parametrize('row', range(5))\ndef test_slow(row): pass\n"
    )
    done = pytester.runpytest_inprocess("-n", "0", "-p", "no:cacheprovider", "--sample-seed=7", *arguments)
    done.assert_outcomes(passed=passed, deselected=15 - passed)


@pytest.mark.parametrize(
    ("arguments", "processes"), [((), 2), (("-m", "slow"), 2), (("-m", "fast"), 0), (("-n", "0"), 0), (("tests",), 0)]
)
def test_two_processes_take_one_sample_and_say_so_once(
    table: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...], processes: int
) -> None:
    pytest.importorskip("xdist")
    if len(os.sched_getaffinity(0)) < two_at_once.AT_ONCE:
        pytest.skip("there is one core")
    monkeypatch.setenv("PYTHONPATH", str(Path(sampling.__file__).parent))
    done = table.runpytest_subprocess("-v", "-p", "no:cacheprovider", *arguments, timeout=200)
    done.assert_outcomes(passed=28, deselected=0 if processes else 32)
    workers = {line[:5] for line in done.outlines if line.startswith("[gw")}
    assert workers == {f"[gw{number}]" for number in range(processes)}
    assert len([line for line in done.outlines if line.startswith("sample: --sample-seed")]) == 1

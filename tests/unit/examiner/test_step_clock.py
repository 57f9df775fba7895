"""The clock of training steps: warming up, blocks, the budget."""

from __future__ import annotations

import pytest

from mpdoctor.examiner.probe.timed.step_clock import LARGEST_BLOCK, WARM_UP, StepClock


class Hours:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def run(step: float, between: float, wanted: int = 20, budget: float = 1e6, slow: int = 0) -> tuple[StepClock, int]:
    """The first step takes a hundred times as long; every `slow`-th one ten times."""
    hours = Hours()
    clock, steps = StepClock(wanted, budget, clock=hours), 0
    while not clock.has_enough and steps < 1000:
        if steps:
            hours.now += between
            clock.step_begins()
        took = step * (100 if not steps else 10 if slow and steps % slow == 0 else 1)
        hours.now += took
        clock.step_ends()
        steps += 1
    return clock, steps


@pytest.mark.parametrize(
    ("step", "between", "block"), [(0.001, 0.0, LARGEST_BLOCK), (0.0055, 0.0005, 4), (0.3, 0.1, 1), (0.004, 0.004, 3)]
)
def test_each_block_tells_the_seconds_of_a_step(step: float, between: float, block: int) -> None:
    clock, steps = run(step, between)
    assert clock.steps_a_block == block
    assert steps == WARM_UP + len(clock.blocks) * block and len(clock.blocks) * block >= 20
    for took, outside in clock.blocks:
        assert (took, outside) == (pytest.approx(step + between), pytest.approx(between, abs=1e-9))


def test_the_budget_ends_it_with_one_block_at_least() -> None:
    clock, steps = run(10.0, 0.0, budget=15.0)
    assert steps == 4 and [took for took, _ in clock.blocks] == [pytest.approx(10.0)]
    clock, _ = run(1.0, 0.0, budget=8.5, wanted=50)
    assert len(clock.blocks) == 5


def test_a_slow_step_of_the_warm_up_does_not_shorten_the_blocks() -> None:
    clock, _ = run(0.001, 0.0, slow=WARM_UP - 1)
    assert clock.steps_a_block == LARGEST_BLOCK


def test_the_device_is_waited_for_at_the_end_of_a_block_alone() -> None:
    waits: list[int] = []
    hours = Hours()
    clock = StepClock(20, 1e6, lambda: waits.append(1), hours)
    for _ in range(WARM_UP + 20):
        hours.now += 0.004
        clock.step_ends()
    assert clock.steps_a_block == 5 and len(waits) == WARM_UP + 4

"""The state machine of the loss scale: facts by hand, and what holds for every sequence of steps."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor import loss_scale
from mpdoctor.loss_scale import FLOAT32_MAX, LossScale, ScaleState

powers_of_two = st.integers(-10, 40).map(lambda exponent: 2.0**exponent)
sequences = st.lists(st.booleans(), max_size=200)
floors = st.one_of(st.none(), st.sampled_from([2.0**-10, 1.0, 8.0]))
caps = st.one_of(st.none(), st.sampled_from([2.0**20, FLOAT32_MAX]))


@st.composite
def scales(draw: st.DrawFn) -> LossScale:
    floor, cap = draw(floors), draw(caps)
    initial = min(max(draw(powers_of_two), floor or 0.0), cap or math.inf)
    interval = draw(st.one_of(st.none(), st.integers(1, 12)))
    return LossScale(initial, interval, floor=floor, cap=cap, hysteresis=draw(st.integers(1, 4)))


def states(scale: LossScale, steps: list[bool]) -> list[ScaleState]:
    """The state before each step, and the one after the last."""
    seen = [scale.start()]
    for finite in steps:
        seen.append(scale.step(seen[-1], finite).state)
    return seen


# Facts


def test_it_starts_where_it_is_told() -> None:
    assert LossScale(1024.0).start() == ScaleState(1024.0, 0, 0)
    assert LossScale().start().scale == 32768.0


def test_a_finite_step_is_applied_and_counted() -> None:
    assert LossScale(8.0).step(ScaleState(8.0, 4), True) == (ScaleState(8.0, 5, 0), True)


def test_an_overflow_halves_the_scale_skips_the_step_and_starts_the_count_again() -> None:
    assert LossScale(8.0).step(ScaleState(8.0, 4), False) == (ScaleState(4.0, 0, 0), False)


def test_the_scale_doubles_at_the_end_of_the_growth_interval_not_before() -> None:
    assert LossScale(8.0, 3).trajectory([True] * 7) == [8.0, 8.0, 8.0, 16.0, 16.0, 16.0, 32.0]


def test_a_skipped_step_starts_the_growth_interval_again() -> None:
    assert LossScale(8.0, 3).trajectory([True, True, False, True, True, True, True]) == [
        8.0, 8.0, 8.0, 4.0, 4.0, 4.0, 8.0,
    ]  # fmt: skip


def test_without_a_growth_interval_it_never_grows() -> None:
    assert LossScale(8.0, None).trajectory([True] * 5000)[-1] == 8.0


def test_keras_3_falls_for_ever_below_what_float32_can_hold() -> None:
    """170 steps without a finite gradient: TensorFlow holds the scale in float32, and there it is 0."""
    trajectory = loss_scale.keras3(2.0**15, 2000).trajectory([False] * 171)
    assert trajectory[50] == 2.0**-35
    assert 0.0 < trajectory[-1] < 1.4e-45


def test_keras_2_stays_at_one() -> None:
    assert loss_scale.keras2(2.0**15, 2000).trajectory([False] * 40)[-20:] == [1.0] * 20


def test_keras_2_raises_a_scale_that_began_below_one_to_one() -> None:
    assert loss_scale.keras2(0.25, 2000).trajectory([False, True]) == [0.25, 1.0]


def test_keras_2_does_not_grow_beyond_float32() -> None:
    largest = 2.0**127
    assert loss_scale.keras2(largest, 1).trajectory([True] * 4) == [largest] * 4


def test_keras_3_grows_beyond_float32() -> None:
    assert loss_scale.keras3(2.0**127, 1).trajectory([True, True])[-1] > FLOAT32_MAX


def test_keras_3_with_a_growth_interval_below_one_never_grows() -> None:
    assert loss_scale.keras3(8.0, 0).trajectory([True] * 9) == [8.0] * 9


def test_hysteresis_waits_for_the_second_overflow_and_skips_both() -> None:
    scale = LossScale(8.0, hysteresis=2)
    first = scale.step(scale.start(), False)
    second = scale.step(first.state, False)
    assert (first.state.scale, first.apply) == (8.0, False)
    assert (second.state.scale, second.apply) == (4.0, False)


def test_a_finite_step_makes_hysteresis_forget() -> None:
    assert LossScale(8.0, hysteresis=2).trajectory([False, True, False, True]) == [8.0] * 4


# What always holds


@given(scales(), sequences)
def test_the_scale_stays_between_floor_and_cap(scale: LossScale, steps: list[bool]) -> None:
    for state in states(scale, steps):
        assert scale.floor is None or state.scale >= scale.floor
        assert scale.cap is None or state.scale <= scale.cap


@given(scales(), sequences)
def test_one_step_halves_keeps_or_doubles_the_scale(scale: LossScale, steps: list[bool]) -> None:
    seen = states(scale, steps)
    for finite, before, after in zip(steps, seen, seen[1:], strict=False):
        ratio = after.scale / before.scale
        assert ratio in ((1.0, 2.0) if finite else (1.0, 0.5)) or after.scale == scale.floor


@given(scales(), sequences)
def test_exactly_the_finite_steps_are_applied(scale: LossScale, steps: list[bool]) -> None:
    seen = states(scale, steps)
    for finite, before in zip(steps, seen, strict=False):
        assert scale.step(before, finite).apply is finite


@given(scales(), sequences)
def test_the_counter_counts_finite_steps_since_a_skip_or_a_growth(scale: LossScale, steps: list[bool]) -> None:
    seen = states(scale, steps)
    run = 0
    for finite, after in zip(steps, seen[1:], strict=True):
        run = run + 1 if finite else 0
        if scale.growth_interval is not None:
            run %= scale.growth_interval
        assert after.counter == run


@given(powers_of_two, st.integers(1, 12), sequences)
def test_the_exponent_is_growths_minus_skips_where_nothing_bounds_it(
    initial: float, interval: int, steps: list[bool]
) -> None:
    """Without floor and cap the trajectory has a closed form, worked out here from runs of finite steps."""
    runs = "".join("x" if finite else " " for finite in steps).split(" ")
    exponent = sum(len(run) // interval for run in runs) - steps.count(False)
    assert states(LossScale(initial, interval), steps)[-1].scale == initial * 2.0**exponent


@given(scales(), sequences)
def test_with_hysteresis_the_scale_falls_once_for_so_many_overflows_in_a_row(
    scale: LossScale, steps: list[bool]
) -> None:
    seen = states(scale, steps)
    bad = 0
    for finite, before, after in zip(steps, seen, seen[1:], strict=False):
        bad = 0 if finite else bad + 1
        if after.scale < before.scale:
            assert bad % scale.hysteresis == 0


@given(scales(), sequences)
def test_trajectory_is_the_scale_before_each_step(scale: LossScale, steps: list[bool]) -> None:
    assert scale.trajectory(steps) == [state.scale for state in states(scale, steps)[:-1]]


@pytest.mark.parametrize("make", [loss_scale.keras2, loss_scale.keras3])
@given(steps=st.lists(st.booleans(), max_size=60))
def test_both_kerases_agree_while_the_scale_is_in_range(make: object, steps: list[bool]) -> None:
    """Between floor and cap there is one scheme: what differs between them is only what bounds the scale."""
    assert callable(make)
    assert make(2.0**62, 5).trajectory(steps) == LossScale(2.0**62, 5).trajectory(steps)

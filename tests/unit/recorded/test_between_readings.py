"""What the loss scale did between two readings of the monitor, beside what it really did."""

from __future__ import annotations

import importlib.util
import math
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor.loss_scale import keras3

PATH = Path(__file__).parents[3] / "mpdoctor" / "training" / "monitoring" / "between_readings.py"
SPEC = importlib.util.spec_from_file_location("between_readings", PATH)  # without its package, which imports TensorFlow
assert SPEC is not None and SPEC.loader is not None
between_readings = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(between_readings)


@given(st.integers(1, 30), st.integers(1, 20), st.lists(st.integers(0, 9), max_size=400))
@settings(max_examples=200, deadline=None)
def test_the_extremes_are_those_that_the_scale_had(growth_interval: int, every: int, drawn: list[int]) -> None:
    machine = keras3(2.0**15, growth_interval)
    every = min(every, growth_interval)
    state, before, scales, halvings = machine.start(), 2.0**15, [2.0**15], 0
    for number, value in enumerate(drawn, 1):
        state = machine.step(state, value != 0).state
        scales.append(state.scale)
        halvings += value == 0
        if number % every == 0:
            assert between_readings.extremes(before, state.scale, halvings) == (min(scales), max(scales))
            before, scales, halvings = state.scale, [state.scale], 0


@pytest.mark.parametrize(
    ("before", "after", "halvings"), [(1.0, 0.0, 3), (math.inf, 1.0, 3), (4.0, 4.0, None), (4.0, 4.0, 10**6)]
)
def test_of_a_scale_that_was_lost_nothing_is_inferred(before: float, after: float, halvings: int | None) -> None:
    assert between_readings.extremes(before, after, halvings) == (min(before, after), max(before, after))

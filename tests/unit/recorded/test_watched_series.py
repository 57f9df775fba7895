"""What the monitor reads of an optimizer, beside every step that it took: optimizers of Python numbers, in the place of
those of a Keras."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from mpdoctor.loss_scale import LossScale, keras2, keras3

TRAINING = Path(__file__).parents[3] / "mpdoctor" / "training"


class Inner:
    iterations = 0


class Stepped:
    """An optimizer around another one; `counts_skipped`: whether its iterations count the skipped steps, too."""

    def __init__(self, machine: LossScale, counts_skipped: bool) -> None:
        self.machine, self.state, self.counts_skipped = machine, machine.start(), counts_skipped
        self.inner_optimizer = Inner()
        self.initial_scale, self.dynamic_growth_steps = machine.initial_scale, machine.growth_interval

    dynamic_scale = property(lambda self: self.state.scale)
    dynamic_counter = property(lambda self: self.state.counter)

    def step(self, is_finite: bool) -> float:
        self.state = self.machine.step(self.state, is_finite).state
        self.inner_optimizer.iterations += is_finite or self.counts_skipped
        return float(self.state.scale)


# How the monitor knows Keras 3: by the name and the module of a base class.
BaseOptimizer = type("BaseOptimizer", (Stepped,), {"__module__": "keras.src.optimizers.base_optimizer"})


@pytest.fixture
def watched_series(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModuleType]:
    """The module without TensorFlow, which it asks for its version alone."""
    package = ModuleType("mpdoctor.training")
    package.__path__ = [str(TRAINING)]
    before = set(sys.modules)
    monkeypatch.setitem(sys.modules, "tensorflow", ModuleType("tensorflow"))
    monkeypatch.setitem(sys.modules, "mpdoctor.training", package)
    import mpdoctor.training.monitoring.watched_series as module

    yield module
    for name in set(sys.modules) - before:
        if name.startswith("mpdoctor.training"):
            del sys.modules[name]


def optimizer_of(kind: str, growth_interval: int) -> Any:
    if kind == "Keras 3":
        return BaseOptimizer(keras3(2.0**15, growth_interval), counts_skipped=False)
    if kind == "Keras 2":
        return Stepped(keras2(2.0**15, growth_interval), counts_skipped=True)
    return ours(kind == "ours in Keras 3", growth_interval, cap=3.0 * 2.0**17)


def ours(is_keras3: bool, growth_interval: int, **given: Any) -> Any:
    bounds = {"floor": 4.0, "cap": 2.0**127, "hysteresis": 1, **given}
    base, counts_skipped = (BaseOptimizer, False) if is_keras3 else (Stepped, True)
    optimizer = base(LossScale(2.0**15, growth_interval, **bounds), counts_skipped)
    optimizer._bounds = SimpleNamespace(**bounds)
    return optimizer


KINDS = ["Keras 3", "Keras 2", "ours in Keras 3", "ours in Keras 2"]
GAPS = st.lists(st.integers(0, 140), max_size=8)  # finite steps before each skipped one
STEPS = {"growth_interval": st.integers(1, 60), "every": st.integers(1, 40), "gaps": GAPS}
LIMITS = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])


@pytest.mark.parametrize("kind", KINDS)
@given(**STEPS)
@LIMITS
def test_skipped_steps_and_extremes_are_those_that_were(
    watched_series: Any, kind: str, growth_interval: int, every: int, gaps: list[int]
) -> None:
    for row, scales, skipped in readings(watched_series, optimizer_of(kind, growth_interval), every, gaps):
        assert (row.skipped, row.scale, row.low, row.high) == (skipped, scales[-1], min(scales), max(scales))


@pytest.mark.parametrize("is_keras3", [True, False])
@given(**{**STEPS, "growth_interval": st.integers(12, 60)})  # it does not come to the cap
@LIMITS
def test_skipped_steps_are_counted_with_a_hysteresis(
    watched_series: Any, is_keras3: bool, growth_interval: int, every: int, gaps: list[int]
) -> None:
    for row, scales, skipped in readings(watched_series, ours(is_keras3, growth_interval, hysteresis=3), every, gaps):
        assert (row.skipped, row.scale) == (skipped, scales[-1])


def readings(
    watched_series: Any, optimizer: Any, every: int, gaps: list[int]
) -> Iterator[tuple[Any, list[float], int]]:
    """(what a reading told, the scale before these steps and after each, how many of them were skipped)"""
    series = watched_series.WatchedSeries(watched_series.WatchedOptimizer(optimizer), 0, every)
    finite = [is_finite for gap in gaps for is_finite in [True] * gap + [False]]
    scales, skipped = [2.0**15], 0
    for number, is_finite in enumerate(finite, 1):
        scales.append(optimizer.step(is_finite))
        skipped += not is_finite
        if series.count(1) or number == len(finite):
            yield series.read()[0], scales, skipped
            scales, skipped = scales[-1:], 0

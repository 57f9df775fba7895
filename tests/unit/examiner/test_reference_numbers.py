"""Gradients in 16 bits against float32, and the search for the loss scales that fit: on arrays, without a training."""

from __future__ import annotations

import math
import time
from types import SimpleNamespace
from typing import Any

import pytest

from mpdoctor.facts.reference import ScaleRoom

pytestmark = pytest.mark.fast


def numbers(np: Any, *values: float) -> Any:
    return np.array(values, np.float32)


def test_a_variable_in_16_bits_and_in_float32() -> None:
    np = pytest.importorskip("numpy")
    from mpdoctor.examiner.reference.comparison import variables_compared

    half = {"a": numbers(np, 0, 3, 4, 0), "b": numbers(np, math.inf, 1), "c": numbers(np, 0, 0)}
    single = {"a": numbers(np, 1e-9, 3, 4, 0), "b": numbers(np, 1, 1), "c": numbers(np, 1e-6, 0)}
    a, b, c = variables_compared(half, single)
    assert (a.nonzero, a.flushed, a.overflowed) == (3, pytest.approx(1 / 3), 0)
    assert (a.cosine, a.size) == (pytest.approx(1), pytest.approx(1))
    assert (b.overflowed, b.cosine, b.size) == (0.5, None, None)
    assert (c.flushed, c.cosine, c.is_relevant, c.underflows) == (1, None, False, False)


@pytest.mark.parametrize(("noise", "equal"), [(0.0, True), (1e-6, True), (1e-2, False)])
def test_two_runs_that_repeat_each_other(noise: float, equal: bool) -> None:
    np = pytest.importorskip("numpy")
    from mpdoctor.examiner.reference.comparison import repeats

    first = {"a": np.ones(64, np.float32)}
    assert repeats(first, {"a": first["a"] + np.float32(noise)}) is equal


# (exponent of the weight's gradient, factor of what is between layers against it)
BATCHES = [
    [(-20, 1.0)],
    [(-40, 1.0)],
    [(10, 1.0)],
    [(-20, 2.0**7)],
    [(-20, 2.0**-9)],
    [(-20, 1.0), (-14, 1.0)],
    [(-20, 2.0**3), (-24, 2.0**5), (-18, 1.0)],
    [(-30, 1.0), (0, 2.0**8)],
]


class Runner:
    """A step of two layers in float16: what is between them, and the weight's gradient, which is made of it."""

    def __init__(self, np: Any) -> None:
        self.np, self.runs = np, 0

    def gradient(self, kept: Any, scale: float) -> Any:
        np = self.np
        with np.errstate(over="ignore", invalid="ignore"):
            between = (kept.gradient * kept.factor * scale).astype(np.float16).astype(np.float64)
            return (between / kept.factor).astype(np.float16).astype(np.float64) / scale

    def run(self, kept: Any, scale: float) -> Any:
        self.runs += 1
        return SimpleNamespace(gradients={"w": self.gradient(kept, scale)})


def twins(np: Any, exponent: int, factor: float) -> Any:
    gradient = np.linspace(0.5, 1, 64) * 2.0**exponent
    kept = SimpleNamespace(gradient=gradient, factor=factor)
    single = SimpleNamespace(gradients={"w": gradient})
    return SimpleNamespace(kept=kept, single=single, weights={"w"}, largest=2.0**exponent)


@pytest.mark.parametrize("batches", BATCHES)
def test_the_room_is_what_every_scale_tried_would_give(batches: list[tuple[int, float]]) -> None:
    np = pytest.importorskip("numpy")
    from mpdoctor.examiner.reference.comparison import cosine
    from mpdoctor.examiner.reference.scale_search import ScaleSearch

    runner, given = Runner(np), [twins(np, *batch) for batch in batches]
    room = ScaleSearch(runner, given, time.monotonic() + 60).room()  # type: ignore[arg-type]
    assert isinstance(room, ScaleRoom)
    powers = range(-24, 61)
    gradients = {p: [(runner.gradient(twin.kept, 2.0**p), twin.kept.gradient) for twin in given] for p in powers}
    finite = [p for p in powers if all(np.isfinite(half).all() for half, _ in gradients[p])]
    kept = [p for p in finite if all(np.mean(half == 0) < 0.05 for half, _ in gradients[p])]
    assert room.overflows_above == 2.0 ** max(finite)
    held = [p for p in kept if p + 1 in kept and p + 2 in kept]
    assert room.flushes_below == (2.0 ** min(held) if held else None)
    assert room.lowest == (2.0 ** min(min(held) + 2, max(finite) - 2) if held else None)
    assert room.replays <= 16 + 13 * len(batches)
    middle = gradients[round(math.log2(room.middle))] if room.middle is not None else []
    turned = [1 - cosine({"w": half}, {"w": single}) for half, single in middle]
    assert (room.cosine is None) is room.is_empty
    assert room.cosine is None or 1 - room.cosine == max(turned)
    assert room.is_empty is (not held)
    if room.is_empty:
        assert room.overflowing == ("w",)


class LuckyRunner(Runner):
    """At one power nothing is lost, and at the next one more than before."""

    def gradient(self, kept: Any, scale: float) -> Any:
        found = super().gradient(kept, scale)
        lost = scale <= 2.0**12 and scale != 2.0**LUCKY
        return self.np.where(self.np.arange(found.size) < 8, 0.0, found) if lost else found


LUCKY = 6


@pytest.mark.parametrize("exponent", [-24, -30])
def test_one_power_that_holds_by_luck_is_no_end_of_the_room(exponent: int) -> None:
    np = pytest.importorskip("numpy")
    from mpdoctor.examiner.reference.scale_search import ScaleSearch

    runner = LuckyRunner(np)
    room = ScaleSearch(runner, [twins(np, exponent, 1.0)], time.monotonic() + 60).room()  # type: ignore[arg-type]
    assert room is not None
    assert (room.flushes_below, room.lowest) == (2.0**13, 2.0**15)


def test_the_budget_ends_the_search() -> None:
    np = pytest.importorskip("numpy")
    from mpdoctor.examiner.reference.scale_search import OutOfTime, ScaleSearch

    with pytest.raises(OutOfTime):
        ScaleSearch(Runner(np), [twins(np, -20, 1.0)], time.monotonic() - 1).room()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("lowest", "above", "highest", "middle"),
    [
        (2.0**9, 2.0**19, 2.0**17, 2.0**13),
        (2.0**-11, 2.0**18, 2.0**16, 2.0**8),
        (2.0**-9, 2.0**-2, 2.0**-4, 2.0**-4),
        (2.0**9, 2.0**10, 2.0**8, None),
        (None, 2.0**10, 2.0**8, None),
        (None, None, None, None),
        (2.0**9, float("inf"), float("inf"), None),  # of a damaged report
        (float("nan"), 2.0**19, 2.0**17, None),
        (-(2.0**9), -4.0, -1.0, None),
    ],
)
def test_what_to_write(lowest: float | None, above: float | None, highest: float | None, middle: float | None) -> None:
    room = ScaleRoom(lowest, above)
    assert (room.highest, room.middle) == (highest, middle)
    assert room.is_empty is (middle is None)

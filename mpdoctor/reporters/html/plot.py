"""The geometry of the pictures: a course over the steps, and bars of magnitudes.

A picture is as high as its box in pixels, so that its labels keep their size, and is stretched to the width of the
page: whatever is text stands beside it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.training import StepFacts, TensorFacts
from mpdoctor.facts.written_numbers import number_text
from mpdoctor.reporters.text.plot import power_from_scale

WIDTH, HEIGHT, MARGIN = 1000, 180, 12
MOST_TICKS = 5
SMALLEST_POWER, LARGEST_POWER = -1074, 1023  # of two, that a float holds
LARGEST = sys.float_info.max
MOST_POINTS = 2000


@dataclass(frozen=True)
class Tick:
    y: float
    label: str


@dataclass(frozen=True)
class Run:
    """Steps in a row that have something in common, as an interval of the picture's width."""

    x: float
    width: float


@dataclass(frozen=True)
class Course:
    """A number over the steps.

    lines
        Points of each unbroken stretch, "x,y x,y …".
    areas
        The same, closed down to the ground.
    gone
        Steps in which the number is not finite, or there is none.
    """

    ticks: tuple[Tick, ...]
    lines: tuple[str, ...]
    areas: tuple[str, ...]
    gone: tuple[Run, ...]


def course_of_scale(steps: Sequence[StepFacts]) -> Course | None:
    """The loss scale on an axis of powers of two; a scale of 0 lies at the bottom. None without a finite scale."""
    powers = [power_from_scale(step.loss_scale) for step in steps]
    finite = [power for power in powers if power is not None and math.isfinite(power)]
    if not finite:
        return None
    low, high = math.floor(min(finite)), math.ceil(max(finite))
    low, high = (low - 1, high + 1) if low == high else (low, high)
    high = min(high, LARGEST_POWER)
    low = max(min(low, high - 1), SMALLEST_POWER)
    values = [None if power is None else min(max(power, float(low)), float(high)) for power in powers]
    return _course(values, low, high, _powers_between(low, high), lambda power: number_text(2.0**power))


def course_of_loss(steps: Sequence[StepFacts]) -> Course | None:
    return courses_of_losses([[step.loss for step in steps]])[0]


def courses_of_losses(losses: Sequence[Sequence[float | None]]) -> list[Course | None]:
    """The losses of several trainings on one axis, each over as many steps as the longest has; None for one without a
    finite loss."""
    longest = max(map(len, losses), default=0)
    finite = [[_finite(loss) for loss in series] + [None] * (longest - len(series)) for series in losses]
    known = [loss for series in finite for loss in series if loss is not None]
    if not known or not math.isfinite(max(known) - min(known)):
        return [None] * len(losses)
    low, high = min(known), max(known)
    if low == high:
        around = max((abs(low) or 1) / 2, 2.0**SMALLEST_POWER)
        low, high = max(low - around, -LARGEST), min(high + around, LARGEST)
    middle = min(max(low / 2 + high / 2, low), high)
    return [
        _course(series, low, high, [low, middle, high], number_text)
        if any(loss is not None for loss in series)
        else None
        for series in finite
    ]


def _finite(loss: float | None) -> float | None:
    return loss if loss is not None and math.isfinite(loss) else None


def runs(chosen: Sequence[bool]) -> tuple[Run, ...]:
    """The intervals in which it holds."""
    spans: list[list[int]] = []
    for step, holds in enumerate(chosen):
        if holds and spans and spans[-1][1] == step:
            spans[-1][1] += 1
        elif holds:
            spans.append([step, step + 1])
    unit = WIDTH / max(len(chosen), 1)
    return tuple(Run(round(first * unit, 2), round((end - first) * unit, 2)) for first, end in spans)


@dataclass(frozen=True)
class Bar:
    """How large a tensor got, as a share of the picture's width; `limit` is where float16 ends."""

    frame: TensorFacts
    width: float
    limit: float
    is_finite: bool


def bars_from_frames(frames: Sequence[TensorFacts]) -> list[Bar]:
    """A bar per frame on an axis of powers of ten, from the smallest to well beyond the largest float16."""
    exponents = [math.log10(frame.largest) for frame in frames if 0 < frame.largest < math.inf]
    low = min([*exponents, 0.0]) - 1
    high = max([*exponents, math.log10(FLOAT16_LIMIT)]) + 1

    def width(value: float) -> float:
        return round(WIDTH * (math.log10(value) - low) / (high - low), 2) if 0 < value < math.inf else 0.0

    limit = width(FLOAT16_LIMIT)
    bars = []
    for frame in frames:
        is_finite = not frame.nonfinite > 0 and math.isfinite(frame.largest)
        bars.append(Bar(frame, width(frame.largest) if is_finite else float(WIDTH), limit, is_finite))
    return bars


def _course(
    values: Sequence[float | None], low: float, high: float, ticks: Sequence[float], label: Callable[[float], str]
) -> Course:
    def y(value: float) -> float:
        return round(MARGIN + (HEIGHT - 2 * MARGIN) * ((high - value) / (high - low)), 2)

    unit = WIDTH / len(values)
    every = max(1, len(values) // MOST_POINTS)
    stretches: list[list[tuple[float, float]]] = [[]]
    for step, value in enumerate(values):
        if value is None:
            stretches.append([])
        elif step % every == 0 or step == len(values) - 1:
            stretches[-1].append((round((step + 0.5) * unit, 2), y(value)))
    # a single step is a short line
    drawn = [stretch if len(stretch) > 1 else _short_line(*stretch[0], unit) for stretch in stretches if stretch]
    return Course(
        tuple(Tick(y(value), label(value)) for value in ticks),
        tuple(" ".join(f"{x:g},{y:g}" for x, y in stretch) for stretch in drawn),
        tuple(
            " ".join(f"{x:g},{y:g}" for x, y in [(stretch[0][0], HEIGHT), *stretch, (stretch[-1][0], HEIGHT)])
            for stretch in drawn
        ),
        runs([value is None for value in values]),
    )


def _short_line(x: float, y: float, long: float) -> list[tuple[float, float]]:
    return [(max(x - long / 2, 0.0), y), (min(x + long / 2, float(WIDTH)), y)]


def _powers_between(low: int, high: int) -> list[float]:
    """A few of them, the ends and 2^0 = 1 among them."""
    step = max(1, math.ceil((high - low) / (MOST_TICKS - 1)))
    powers = {low, high, *range(high, low, -step)}
    if low < 0 < high:
        powers = {power for power in powers if power in (low, high) or abs(power) >= step / 2} | {0}
    close = {power for power in powers if power != low and power - low < step / 2}
    return sorted(powers - close)

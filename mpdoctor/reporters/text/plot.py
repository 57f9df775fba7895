"""Small plots in text: the loss scale over the steps, sparklines."""

from __future__ import annotations

import math
from collections.abc import Sequence

LEVELS = " ▁▂▃▄▅▆▇█"
PLAIN_LEVELS = " .:-=+*##"
ROWS = 5
WIDEST = 60


def columns_from_steps(number: int, widest: int = WIDEST) -> list[range]:
    """Which steps (from 0) each column stands for: one each, or several where there are too many."""
    columns = min(number, widest)
    return [range(number * at // columns, number * (at + 1) // columns) for at in range(columns)]


def sparkline(values: Sequence[float | None], widest: int, blocks: bool) -> str:
    """One character a value or a group of values; `?` where none of them is a finite number."""
    levels = (LEVELS if blocks else PLAIN_LEVELS)[1:]
    means = []
    for steps in columns_from_steps(len(values), widest):
        finite = [value for step in steps if (value := values[step]) is not None and math.isfinite(value)]
        # neither sums nor spans of the largest floats are floats: their halves are
        means.append(sum(value / 2 / len(finite) for value in finite) if finite else None)
    known = [mean for mean in means if mean is not None]
    if not known:
        return ""
    low, high = min(known), max(known)
    span = (high - low) or 1.0
    top = len(levels) - 1
    return "".join("?" if mean is None else levels[round((mean - low) / span * top)] for mean in means)


def rows_from_scales(scales: Sequence[float | None], blocks: bool) -> tuple[list[str], list[str]]:
    """A filled curve of powers of two, top row first, with the label of each row ("2^15", …).

    A scale of 0 is drawn as `0` on the ground, inf as `∞` at the top; a missing one or NaN leaves a gap."""
    powers = [power_from_scale(scale) for scale in scales]
    finite = [power for power in powers if power is not None and math.isfinite(power)]
    low, high = (min(finite), max(finite)) if finite else (0.0, 0.0)
    rows = ROWS if high > low else 1
    ground = low - (high - low) / (rows * 8 - 1) if high > low else low - 1  # the lowest still has something to see
    levels = LEVELS if blocks else PLAIN_LEVELS
    fine = len(levels) - 1
    infinite = "∞" if blocks else "i"
    grid = []
    for row in range(rows - 1, -1, -1):
        line = ""
        for power in powers:
            if power is None:
                line += " "
            elif power == -math.inf:
                line += "0" if row == 0 else " "
            elif power == math.inf:
                line += infinite if row == rows - 1 else levels[-1]
            else:
                filled = round((power - ground) / (high - ground) * rows * fine)
                line += levels[min(max(filled - row * fine, 0), fine)]
        grid.append(line)
    labels = [""] * rows
    labels[-1] = f"2^{round(low)}"
    labels[0] = f"2^{round(high)}"
    return grid, labels


def power_from_scale(scale: float | None) -> float | None:
    """The power of 2 that a loss scale is; None where it is no scale."""
    if scale is None or math.isnan(scale) or scale < 0:
        return None
    if scale == 0:
        return -math.inf
    return math.inf if math.isinf(scale) else math.log2(scale)

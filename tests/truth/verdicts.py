"""The verdict on plain Keras' own record, by the table of docs/verdicts.md: the first line that fits.

Written from that page and from nothing of mpdoctor's, so that the two can disagree.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FEWEST, HALVINGS, HALVINGS_OF_THE_UNFIT, LOWEST = 10, 5, 1, 2.0**-14
SHORTEST_GROWTH = 10  # a shorter growth interval allows no skip
NUMBERS = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


@dataclass(frozen=True)
class History:
    """The first steps of one optimizer. `scales` hold None where nothing is scaled; `losses` where none was seen."""

    keras: str
    scales: tuple[float | None, ...]
    skipped: tuple[bool, ...]
    losses: tuple[float | None, ...]
    moved: bool
    sound: bool
    dynamic: bool
    growth: int | None
    raised: bool = False
    unfit: bool = False
    device_alone: bool = False

    @property
    def late(self) -> tuple[bool, ...]:
        """Whether the steps of the last third were skipped."""
        return self.skipped[len(self.skipped) - len(self.skipped) // 3 :]

    @property
    def last_scale(self) -> float:
        return (self.scales[-1] if self.scales else None) or 0.0

    @property
    def skips_since_applied(self) -> int:
        return sum(self.skipped[self.skipped.index(False) :]) if False in self.skipped else 0

    @property
    def skips_allowed(self) -> int:
        to_settle = HALVINGS_OF_THE_UNFIT if self.unfit else HALVINGS
        since = len(self.skipped) - (self.skipped.index(False) if False in self.skipped else 0)
        return to_settle + (since // self.growth if self.growth and self.growth >= SHORTEST_GROWTH else 0)

    @property
    def leaves_float16_unscaled(self) -> bool:
        """At rest below 1 after skipped steps (Keras 3), or more than one of them at the floor of 1 (Keras 2)."""
        if not self.dynamic or not any(self.skipped):
            return False
        if self.keras == "3":
            return self.last_scale < 1
        at_floor = [skip for scale, skip in zip(self.scales, self.skipped, strict=True) if skip and scale == 1]
        return self.last_scale <= 1 and len(at_floor) > HALVINGS_OF_THE_UNFIT

    @property
    def loses_unfit_batches(self) -> bool:
        """Batches whose loss is inf or NaN overflow at every scale."""
        return sum(
            skip and loss is not None and not math.isfinite(loss)
            for skip, loss in zip(self.skipped, self.losses, strict=True)
        ) > HALVINGS_OF_THE_UNFIT  # fmt: skip

    @property
    def loss_is_sound(self) -> bool:
        applied = (loss for loss, skipped in zip(self.losses, self.skipped, strict=True) if not skipped)
        return all(loss is None or math.isfinite(loss) for loss in applied)

    @property
    def went_through_zero(self) -> bool:
        return 0.0 in self.scales

    @property
    def falls_without_end(self) -> bool:
        """Keras 3: below 1 with the whole last third skipped; below 2^-14; or grown to inf."""
        if self.keras != "3" or not self.dynamic or None in self.scales:
            return False
        reached_infinity = any(scale is not None and math.isinf(scale) for scale in self.scales)
        return reached_infinity or self.last_scale < LOWEST or (all(self.late) and self.last_scale < 1)


def history_from_record(keras: str, record: dict[str, Any], steps: int, unfit: bool, device_alone: bool) -> History:
    """Of its first optimizer, as far as `steps` go. A record without any has raised."""
    if not record["optimizers"]:
        return History(keras, (), (), (), False, True, False, None, record["raised"] is not None)
    row = record["optimizers"][0]
    seen = len(row["finite"])
    losses = tuple(number_from_json(loss) for loss in row["loss"][:steps])
    skipped = tuple(row["dynamic"] and not finite for finite in row["finite"][:steps])
    ends = steps >= seen
    failing = [loss for loss, skip in zip(losses, skipped, strict=True) if skip]
    # A loss that is inf or NaN before it is scaled is so at every scale.
    known_unfit = any(loss is not None and not math.isfinite(loss) for loss in failing)
    return History(
        keras,
        tuple(number_from_json(scale) for scale in row["scale"][:steps]),
        skipped,
        losses,
        row["last_moved"] if ends else row["moved"][steps],
        row["last_sound"] if ends else row["sound"][steps],
        row["dynamic"],
        row["growth"],
        record["raised"] is not None and ends,
        unfit or known_unfit,
        device_alone and (any(skipped) or not all(loss is None or math.isfinite(loss) for loss in losses)),
    )


def number_from_json(value: float | str | None) -> float | None:
    """The number that a record holds; JSON has none for nan and inf."""
    return NUMBERS[value] if isinstance(value, str) else value


def _is_not_finite(history: History) -> bool:
    return not (history.sound and history.loss_is_sound)


def _still_falls(history: History) -> bool:
    lowest = 1.0 if history.keras != "3" else LOWEST
    above = history.last_scale > 1 if history.keras != "3" else history.last_scale >= 1
    return bool(history.late) and all(history.late) and above and history.last_scale > lowest


TABLE: tuple[tuple[str, Callable[[History], bool]], ...] = (
    ("failed", lambda history: history.raised),
    ("inconclusive", lambda history: history.device_alone),
    ("not-finite", lambda history: _is_not_finite(history) and not history.went_through_zero),
    ("inconclusive", lambda history: len(history.skipped) < FEWEST or _still_falls(history)),
    ("stuck", lambda history: history.keras != "3" and all(history.late) and history.last_scale <= 1),
    ("collapsing", lambda history: history.falls_without_end),
    ("not-finite", _is_not_finite),
    ("overflowing", lambda history: any(history.late) and history.skips_since_applied > history.skips_allowed),
    ("overflowing", lambda history: history.leaves_float16_unscaled or history.loses_unfit_batches),
    ("settling", lambda history: any(history.late)),
    ("no-update", lambda history: not history.moved and not all(history.skipped)),
    ("healthy", lambda history: True),
)


def verdict_of(history: History) -> str:
    return next(verdict for verdict, fits in TABLE if fits(history))

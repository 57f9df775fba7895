"""What a run file says of measured steps, put together by layer and by gradient.

Whoever wrote the file, a line is taken as a whole, each field of its type and within its limits, or not at all.
"""

from __future__ import annotations

import dataclasses

from mpdoctor.recorded.json_values import magnitude, shortened_text
from mpdoctor.recorded.run_facts import MeasuredPart

KINDS = {"layers": "layer", "gradients": "gradient"}
MOST_IN_LINE = 256  # of each kind
MOST_PARTS = 1024
LONGEST_NAME = 100
LONGEST_DTYPE = 20


class MeasuredParts:
    """Sums what the measured steps of one series say of each layer and gradient."""

    def __init__(self) -> None:
        self.steps = 0
        self._parts: dict[tuple[str, str], MeasuredPart] = {}

    def parts(self) -> tuple[MeasuredPart, ...]:
        """All parts, layers before gradients."""
        return tuple(part for kind in KINDS.values() for part in self._parts.values() if part.kind == kind)

    def take(self, step: int, record: dict[str, object]) -> bool:
        """Add a measured step. False where its record is none that can be read, and then nothing was added."""
        seen = [_parts(record.get(name), kind, step) for name, kind in KINDS.items()]
        if any(parts is None for parts in seen):
            return False
        self.steps += 1
        for part in (part for parts in seen for part in parts or ()):
            self._add(part, step)
        return True

    def _add(self, part: MeasuredPart, step: int) -> None:
        """Join what one step measured of a layer or a gradient to what earlier steps did: the last, and the
        extremes."""
        key = part.kind, part.name
        known = self._parts.get(key)
        if known is None:
            if len(self._parts) < MOST_PARTS:
                self._parts[key] = part
            return
        is_larger = part.largest > known.largest
        self._parts[key] = dataclasses.replace(
            known,
            last=part.last,
            largest=max(part.largest, known.largest),
            largest_step=step if is_larger else known.largest_step,
            zero=max(part.zero, known.zero),
            subnormal=max(part.subnormal, known.subnormal),
            not_finite=max(part.not_finite, known.not_finite),
            not_finite_step=known.not_finite_step or part.not_finite_step,
        )


def _parts(rows: object, kind: str, step: int) -> list[MeasuredPart] | None:
    if not isinstance(rows, list) or len(rows) > MOST_IN_LINE:
        return None
    parts = [_part(row, kind, step) for row in rows]
    return None if None in parts else [part for part in parts if part is not None]


def _part(row: object, kind: str, step: int) -> MeasuredPart | None:
    """The part that a row tells of: [name, dtype, largest, and the shares that are not finite, 0 and subnormal]; None
    for a row that is none."""
    if not isinstance(row, list) or len(row) != 6:
        return None
    name, dtype, *told = row
    numbers = [magnitude(value) for value in told]
    if not isinstance(name, str) or not isinstance(dtype, str) or None in numbers:
        return None
    largest, not_finite, zero, subnormal = [number for number in numbers if number is not None]
    if max(not_finite, zero, subnormal) > 1:
        return None
    return MeasuredPart(
        name=shortened_text(name, LONGEST_NAME),
        kind=kind,
        dtype=shortened_text(dtype, LONGEST_DTYPE),
        first=largest,
        last=largest,
        largest=largest,
        largest_step=step,
        zero=zero,
        subnormal=subnormal,
        not_finite=not_finite,
        not_finite_step=step if not_finite else 0,
    )

"""Single values of a run file, each of its type and within its limits."""

from __future__ import annotations

import math


def shortened_text(text: str, longest: int) -> str:
    """The text, or its beginning, as it can be written: JSON may hold half of a pair of surrogates."""
    return text[:longest].encode("utf-8", "replace").decode("utf-8")


def whole_number(value: object, largest: int) -> int | None:
    """The value if it is a whole number from 0 to the largest, else None."""
    return value if type(value) is int and 0 <= value <= largest else None


def magnitude(value: object) -> float | None:
    """The value if it is a finite number and at least 0, else None. Raises OverflowError where it is larger than any
    float."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    number = float(value)
    return number if 0 <= number < math.inf else None


def magnitude_or_inf(value: object) -> float | None:
    """Like `magnitude`, or inf, which JSON has as a text."""
    return math.inf if value == "inf" else magnitude(value)

"""How findings and reports alike write measured numbers, counts of things, and the beginning of a sentence."""

from __future__ import annotations


def magnitude_text(value: float) -> str:
    """How large a tensor's values are: 312, 5.83, 110,556, 6.7e+08. With commas, because it is read beside 65504."""
    return f"{value:,.0f}" if 999.5 <= abs(value) < 1e7 else f"{value:.3g}"


def number_text(value: float) -> str:
    """A loss, a loss scale, a count: 0.0427, 32768, 2.91e-11, inf. Without commas, as code has the loss scale."""
    is_whole = abs(value) < 1e7 and (abs(value) >= 999.5 or value == int(value))
    return str(round(value)) if is_whole else f"{value:.3g}"


def count(number: int, noun: str) -> str:
    """A number of things: "1 step", "2 steps"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def capitalized(text: str) -> str:
    """The text as the beginning of a sentence: its first letter is a capital, names in it stay as they are."""
    return text[:1].upper() + text[1:]

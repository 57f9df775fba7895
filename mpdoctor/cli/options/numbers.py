"""Types of numeric options: other values are refused in a sentence that says which numbers are allowed."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TypeVar

import typer

Number = TypeVar("Number", int, float)


def whole_number(least: int) -> Callable[[str | int], int]:
    """The whole number in a text. Raises typer.BadParameter where the text is none, or the number is too small."""
    return lambda text: _number(text, int, least, f"a whole number, {least} or more")


def seconds(text: str | float) -> float:
    """The seconds in a text. Raises typer.BadParameter where the text is no number, or below 0."""
    return _number(text, float, 0.0, "a number of seconds, 0 or more")


def _number(text: str | float, kind: Callable[[str | float], Number], least: Number, wanted: str) -> Number:
    try:
        number = kind(text)
    except ValueError:
        raise typer.BadParameter(f"{text!r} is not {wanted}.") from None
    if math.isnan(number) or number < least:
        raise typer.BadParameter(
            f"{text} is too small: give {wanted}." if number < least else f"{text} is not {wanted}."
        )
    return number

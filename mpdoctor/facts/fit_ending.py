"""The end of a fit(): an error that was caught there, and what could not be measured."""

from __future__ import annotations

from typing import Literal

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.frozen import dataclass

# "fit" is the end of fit(): callbacks, an epoch's end, the training's own.
NotMeasured = Literal["first number not finite", "what holds the weights", "two loss scales", "fit"]


@dataclass(frozen=True)
class EndingFacts:
    """An epoch's end and fit's own, gone through once after the last step that was looked at.

    failure
        The error that left fit() there; None where it came to its end.
    not_looked
        (what, reason) of what could not be measured.
    """

    failure: FailureFacts | None = None
    not_looked: tuple[tuple[NotMeasured, str], ...] = ()

"""How the end of a fit() went."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.facts.failure import FailureFacts


@dataclass(frozen=True)
class EndingFacts:
    """An epoch's end and fit's own, gone through once after the last step that was looked at.

    failure
        The error that left fit() there; None where it came to its end.
    not_looked
        (code, reason) of what could not be looked at.
    """

    failure: FailureFacts | None = None
    not_looked: tuple[tuple[str, str], ...] = ()

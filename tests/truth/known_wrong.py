"""What mpdoctor is known to get wrong on these scripts: counted, shown in docs/accuracy.md, and left out of the shares.

An entry that is right by now is one to delete: `python -m tests.truth table` and the sample in test_truth.py say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .comparing import Outcome


@dataclass(frozen=True)
class KnownWrong:
    """One claim about one kind of script. `keras` is "" where it is wrong in both; `instead` is what is said."""

    kind: str
    claim: str
    instead: str
    keras: str = ""

    def covers(self, outcome: Outcome, claim: str) -> bool:
        return (self.kind, self.claim) == (outcome.kind, claim) and self.keras in ("", outcome.keras)


KNOWN_WRONG: tuple[KnownWrong, ...] = ()


def entry_for(outcome: Outcome, claim: str) -> KnownWrong | None:
    return next((entry for entry in KNOWN_WRONG if entry.covers(outcome, claim)), None)


def right_by_now(outcomes: Iterable[Outcome]) -> Iterator[tuple[KnownWrong, int]]:
    """Entries that no script bears out any more, with the number of scripts that were right."""
    outcomes = list(outcomes)
    for entry in KNOWN_WRONG:
        judged = [getattr(o, entry.claim) for o in outcomes if entry.covers(o, entry.claim)]
        if judged and False not in judged:
            yield entry, len(judged)

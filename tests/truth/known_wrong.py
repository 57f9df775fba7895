"""What mpdoctor is known to get wrong on these scripts: shown in docs/measurements.md, and left out of its shares.

An entry that is right by now is one to delete: `python -m tests.truth table` and the sample in test_truth.py say which.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from .comparing import Outcome
from .generator import script_from_seed


@dataclass(frozen=True)
class KnownWrong:
    """One claim about one kind of script. `keras` is "" where it is wrong in both, `holds` what the script's text must
    hold; `instead` is what is said."""

    kind: str
    claim: str
    instead: str
    keras: str = ""
    holds: str = ""

    def covers(self, outcome: Outcome, claim: str) -> bool:
        if (self.kind, self.claim) != (outcome.kind, claim) or self.keras not in ("", outcome.keras):
            return False
        return self.holds in script_from_seed(outcome.seed, outcome.number).text


KNOWN_WRONG: tuple[KnownWrong, ...] = (
    KnownWrong("short_script", "verdict_equal", "the verdict on 50 steps, of which the script has 24"),
)


def entry_for(outcome: Outcome, claim: str) -> KnownWrong | None:
    return next((entry for entry in KNOWN_WRONG if entry.covers(outcome, claim)), None)


def right_by_now(outcomes: Iterable[Outcome]) -> Iterator[tuple[KnownWrong, int]]:
    """Entries that no script bears out any more, with the number of scripts that were right."""
    outcomes = list(outcomes)
    for entry in KNOWN_WRONG:
        judged = [getattr(o, entry.claim) for o in outcomes if entry.covers(o, entry.claim)]
        if judged and False not in judged:
            yield entry, len(judged)

"""The counts: shares by claim, scripts by disease, and every disagreement that is not known."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from .comparing import Outcome
from .known_wrong import KNOWN_WRONG, entry_for, right_by_now

# (claim, in words, the least share)
CLAIMS: tuple[tuple[str, str, float], ...] = (
    ("as_meant", "plain Keras does what the script was made to do", 0.9),
    ("silent", "healthy scripts without a warning or an error", 1.0),
    ("steps_equal", "loss scale and skipped steps equal at every step", 1.0),
    ("verdict_equal", "verdict as plain Keras' own steps give it", 1.0),
    ("culprit_right", "the culprit layer is named", 0.95),
    ("cause_right", "the cause is named, and no other one", 0.95),
)


@dataclass(frozen=True)
class Share:
    """How often a claim held among the scripts that make it: those known to be wrong counted apart."""

    claim: str
    words: str
    least: float
    right: int
    judged: int
    known: int

    @property
    def share(self) -> float:
        return self.right / self.judged if self.judged else 1.0

    @property
    def is_enough(self) -> bool:
        """Of a few scripts one may be wrong where not all are to be right."""
        return self.judged - self.right <= math.ceil((1 - self.least) * self.judged)


def shares(outcomes: Iterable[Outcome]) -> list[Share]:
    return [_share(list(outcomes), *claim) for claim in CLAIMS]


def _share(outcomes: list[Outcome], claim: str, words: str, least: float) -> Share:
    known = [o for o in outcomes if o.as_meant or claim not in ("culprit_right", "cause_right")]
    judged = [o for o in known if getattr(o, claim) is not None]
    counted = [o for o in judged if entry_for(o, claim) is None]
    right = sum(getattr(o, claim) is True for o in counted)
    return Share(claim, words, least, right, len(counted), len(judged) - len(counted))


def disagreements(outcomes: Iterable[Outcome]) -> list[tuple[Outcome, str]]:
    """(script, claim) of all that is wrong and not known to be."""
    return [(o, claim) for o in outcomes for claim in o.wrong if entry_for(o, claim) is None]


def markdown_from_outcomes(outcomes: list[Outcome]) -> str:
    parts = [
        f"{len(outcomes)} scripts: {_count(outcomes, lambda o: o.keras == '3')} in Keras 3, "
        f"{_count(outcomes, lambda o: o.keras != '3')} in tf_keras; "
        f"{_count(outcomes, lambda o: o.disease == 'healthy')} healthy, "
        f"{_count(outcomes, lambda o: o.disease != 'healthy')} with a defect.",
        _shares_table(outcomes),
        _later(outcomes),
        "By disease, what is known to be wrong included:",
        *(_diseases_table(outcomes), _known_table(outcomes), _unknown_list(outcomes), _right_by_now(outcomes)),
    ]
    return "\n\n".join(part for part in parts if part)


def _count(outcomes: list[Outcome], fits: Callable[[Outcome], bool]) -> int:
    return sum(map(fits, outcomes))


def _shares_table(outcomes: list[Outcome]) -> str:
    lines = ["| What | Right | Share | Wanted | Known to be wrong, not counted |", "|---|---|---|---|---|"]
    for share in shares(outcomes):
        counts = f"{share.right} of {share.judged} | {share.share:.1%} | {share.least:.0%}"
        lines.append(f"| {share.words} | {counts} | {share.known} |")
    return "\n".join(lines)


def _later(outcomes: list[Outcome]) -> str:
    """A short training cannot show all: how often it did."""
    same = _count(outcomes, lambda o: o.plain_verdict == o.plain_verdict_of_all)
    return (
        f"In {same} of {len(outcomes)} scripts plain Keras' own verdict after the steps that mpdoctor took is also its "
        "verdict after all steps of the script, 320 at most."
    )


def _diseases_table(outcomes: list[Outcome]) -> str:
    lines = ["| Scripts | Runs | Steps equal | Verdict | Culprit | Cause |", "|---|---|---|---|---|---|"]
    for disease in sorted({o.disease for o in outcomes}, key=lambda name: (name != "healthy", name)):
        of_disease = [o for o in outcomes if o.disease == disease]
        cells = [
            share_of(of_disease, claim) for claim in ("steps_equal", "verdict_equal", "culprit_right", "cause_right")
        ]
        lines.append(f"| {disease} | {len(of_disease)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def share_of(outcomes: Iterable[object], claim: str) -> str:
    """How many of those that were judged by this claim fulfil it: "3 of 4"; "–" where none was."""
    judged = [getattr(o, claim) for o in outcomes if getattr(o, claim) is not None]
    return f"{sum(judged)} of {len(judged)}" if judged else "–"


def _known_table(outcomes: list[Outcome]) -> str:
    if not KNOWN_WRONG:
        return ""
    lines = ["| Known to be wrong | Keras | What | What is said instead | Seen |", "|---|---|---|---|---|"]
    for entry in KNOWN_WRONG:
        judged = [getattr(o, entry.claim) for o in outcomes if entry.covers(o, entry.claim)]
        seen = f"wrong in {judged.count(False)} of {len(judged)}"
        quantity = entry.claim.partition("_")[0]
        kind = f"`{entry.kind}`" + (f" with {entry.holds}" if entry.holds else "")
        lines.append(f"| {kind} | {entry.keras or 'both'} | {quantity} | {entry.instead} | {seen} |")
    return "\n".join(lines)


def _unknown_list(outcomes: list[Outcome]) -> str:
    told = [f"- {text_from_disagreement(outcome, claim)}" for outcome, claim in disagreements(outcomes)]
    return "\n".join(["Wrong, and not known before:", "", *told]) if told else ""


def _right_by_now(outcomes: list[Outcome]) -> str:
    return "\n".join(
        f"Right by now in all of {number}, to be deleted: {entry.kind}, {entry.claim}, {entry.keras or 'both'}"
        for entry, number in right_by_now(outcomes)
    )


def text_from_disagreement(outcome: Outcome, claim: str) -> str:
    o = outcome
    difference = {
        "as_meant": f"plain Keras: {o.plain_verdict}, raised {o.plain_raised}",
        "silent": " / ".join(o.said),
        "steps_equal": o.difference,
        "verdict_equal": f"{o.verdict} ({o.why}), plain Keras: {o.plain_verdict}",
        "culprit_right": f"named `{o.named}`",
        "cause_right": " / ".join(o.said) or "nothing said",
    }[claim]
    again = f"`python -m tests.truth show {o.seed} {o.number}`"
    return f"{o.kind}, Keras {o.keras}, {o.style}, {o.steps} steps ({again}): {claim}: {difference}"

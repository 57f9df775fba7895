"""Answers to a finding: proposals that are made together."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.finding import Finding
from mpdoctor.mending.draft import Proposal


@dataclass(frozen=True)
class Answer:
    """One way to answer a finding: proposals that are made together and can be left out one by one.

    `from_trial`: a remedy that was tried in place, not an edit of the rule's. `is_last`: made where none of the others
    helped."""

    finding: Finding
    proposals: tuple[Proposal, ...]
    from_trial: bool = False
    is_last: bool = False


@dataclass(frozen=True)
class Proposed:
    """`answers`: of each finding that has some, the best first. `without`: why a remedy that healed is no edit."""

    answers: tuple[tuple[Answer, ...], ...]
    without: tuple[str, ...] = ()

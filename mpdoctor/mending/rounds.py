"""The mend loop: apply proposals, examine again, repeat; then drop every edit that turns out to be unnecessary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from mpdoctor.finding import NO_RUN, Diagnosis, Edit, Finding
from mpdoctor.fixes.choices import Sources
from mpdoctor.mending.answers import Answer, Proposed
from mpdoctor.mending.draft import CannotEdit, Draft, Proposal
from mpdoctor.mending.health import (
    Defect,
    defects_of,
    failing,
    is_better,
    is_healthy,
    is_no_worse,
    is_stopped,
    sight_of,
    sights_of,
)
from mpdoctor.mending.intended_dtypes import without_intended
from mpdoctor.mending.starting_scales import steps_skipped

MOST_ROUNDS = 6
NO_DEFECTS: Counter[Defect] = Counter()

Contents = Mapping[Path, bytes]  # what stands in files in the place of what lies on the disk
Seen = tuple[Diagnosis, Sources]
Examine = Callable[[Contents], Seen]
Propose = Callable[[Diagnosis, Sources], Proposed]
Ask = Callable[[Seen], Sequence[Proposal]]


def nothing_asked(seen: Seen) -> Sequence[Proposal]:
    return ()


@dataclass(frozen=True)
class State:
    """The program with these proposals made, and what an examination of it said."""

    kept: tuple[int, ...]
    diagnosis: Diagnosis
    sources: Sources

    @property
    def is_healthy(self) -> bool:
        return is_healthy(self.diagnosis)


@dataclass
class Course:
    """The outcome of mending a program.

    rounds, examinations
        How often edits were made and the program examined with them, and all examinations, those with edits left out
        included.
    tried
        Proposals that brought nothing.
    stopped
        What ended the program with some of those, and neither before nor after.
    hindered
        Why a proposal was no edit, or could not be made.
    """

    before: State
    after: State
    rounds: int = 0
    examinations: int = 0
    tried: list[Proposal] = field(default_factory=list)
    stopped: list[Finding] = field(default_factory=list)
    hindered: list[str] = field(default_factory=list)


class MendLoop:
    """The mend loop for one program. `examine` runs the program, `read` looks at its source alone; either is given the
    contents of the edited files."""

    def __init__(self, draft: Draft, examine: Examine, read: Examine, propose: Propose) -> None:
        self._draft, self._examine, self._read, self._propose = draft, examine, read, propose
        self._seen: dict[frozenset[tuple[Path, bytes]], Seen] = {}
        self._read_already: dict[frozenset[tuple[Path, bytes]], Seen] = {}
        self._examined: set[int] = set()  # proposals that the program was run with
        self._hindered: dict[str, None] = {}
        self._needed: dict[tuple[int, ...], frozenset[int]] = {}  # of a choice, those that a trial saw to be needed

    def run(self, asked: Ask = nothing_asked, at_last: Ask = nothing_asked) -> Course:
        """What came of mending. `asked`: what is to be made first and to stay, whatever comes of it. `at_last`: what a
        mended program may have beside, and keeps if it skips fewer steps with it.

        Raises CannotEdit where that can't be made."""
        before = self._state_with(())
        course = Course(before, before)
        state, asked_for = before, tuple[int, ...]()
        wanted = asked((before.diagnosis, before.sources))
        if wanted:
            asked_for = tuple(self._draft.make(wanted, (), before.sources))
            state = self._state_with(asked_for)
            course.rounds = 1
        best = self._best_of_rounds(state, course)
        course.after = self._with_fewer_skips(self._without_needless(best, asked_for), at_last, course)
        course.tried = self._proposals_without_use(best.kept)
        course.stopped = self._what_stopped_it(before, course.after)
        course.hindered, course.examinations = list(self._hindered), len(self._seen)
        return course

    def _with_fewer_skips(self, state: State, at_last: Ask, course: Course) -> State:
        wanted = at_last((state.diagnosis, state.sources)) if state.kept and state.is_healthy else ()
        made = self._make_edits(wanted, state.kept, state.sources) if wanted else {}
        if not made:
            return state
        course.rounds += 1
        new = self._state_with((*state.kept, *made))
        is_good = new.is_healthy and is_no_worse(new.diagnosis, state.diagnosis)
        return new if is_good and steps_skipped(new.diagnosis) < steps_skipped(state.diagnosis) else state

    def _proposals_without_use(self, kept: Sequence[int]) -> list[Proposal]:
        made = self._draft.proposals
        helpful = {(made[number].code, made[number].title) for number in kept}
        tried = {(made[number].code, made[number].title): made[number] for number in sorted(self._examined)}
        return [proposal for key, proposal in tried.items() if key not in helpful]

    def _what_stopped_it(self, before: State, after: State) -> list[Finding]:
        known = [(finding.code, finding.message) for state in (before, after) for finding in state.diagnosis.findings]
        findings = [finding for diagnosis, _ in self._seen.values() for finding in diagnosis.findings]
        ends = {(end.code, end.message): end for end in findings if end.code in NO_RUN}
        return [finding for key, finding in ends.items() if key not in known]

    # --- rounds -------------------------------------------------------------------------------------------------------
    def _best_of_rounds(self, state: State, course: Course) -> State:
        best = state
        while not state.is_healthy and course.rounds < MOST_ROUNDS:
            kept = self._next_edits(state)
            if kept is None:
                if state is best:
                    break
                state = best  # that way led to nothing
                continue
            course.rounds += 1
            new = self._state_with(kept)
            gone = sights_of(state.diagnosis) - sights_of(new.diagnosis)
            if gone or is_better(new.diagnosis, state.diagnosis):
                state = new
            if is_better(new.diagnosis, best.diagnosis):
                best = new
        return best

    def _next_edits(self, state: State) -> tuple[int, ...] | None:
        """The first choice of edits with which the program was not examined yet; None where there is none left."""
        proposed = self._propose(state.diagnosis, state.sources)
        self._hindered.update(dict.fromkeys(proposed.without))
        for proposals in _choices(proposed):
            made = self._make_edits(proposals, state.kept, state.sources)
            kept = self._without_consequences((*state.kept, *made), made, state)
            if self._changed_files(kept) not in self._seen:
                whole = self._with_revealed(kept, state) if is_stopped(state.diagnosis) else kept
                self._needed[whole] = _seen_to_be_needed(made, proposals) if whole == kept else frozenset()
                return whole
        return None

    def _without_consequences(
        self, kept: tuple[int, ...], made: Mapping[int, Proposal], state: State
    ) -> tuple[int, ...]:
        """The edits without those that turn out unnecessary: each answers a finding of the source that is also gone
        with the other edits alone."""
        if len(made) < 2:
            return kept
        fixes = {f.fix.edits for f in failing(self._seen_in_source(state.kept)[0]) if f.fix is not None}
        for number in reversed([number for number, proposal in made.items() if proposal.edits in fixes]):
            rest = self._draft.closed([other for other in kept if other != number])
            if len(rest) == len(kept) - 1 and not self._shows_more(rest, kept):
                kept = rest
        return kept

    def _with_revealed(self, kept: tuple[int, ...], state: State) -> tuple[int, ...]:
        """These edits, and edits for the findings that they reveal. Behind a line that raises, the source stage reports
        nothing; once the line is mended it does, and that is edited too before the program runs again."""
        known = sights_of(self._seen_in_source(state.kept)[0])
        for _ in range(MOST_ROUNDS):
            diagnosis, sources = self._seen_in_source(kept)
            revealed = [finding for finding in diagnosis.findings if sight_of(finding) not in known]
            answers = self._propose(replace(diagnosis, findings=tuple(revealed)), sources).answers
            made = self._make_edits(
                [proposal for answer, *_ in answers for proposal in answer.proposals], kept, sources
            )
            if not made or self._changed_files((*kept, *made)) in self._seen:
                break
            kept = (*kept, *made)
        return kept

    def _make_edits(self, proposals: Sequence[Proposal], kept: Sequence[int], sources: Sources) -> dict[int, Proposal]:
        """The proposals as edits of the draft, by number; {} where a file cannot be edited."""
        try:
            return self._draft.make(proposals, kept, sources)
        except CannotEdit as reason:
            self._hindered[str(reason)] = None
            return {}

    # --- what is not needed ---------------------------------------------------------------------------------------
    def _without_needless(self, state: State, asked_for: Sequence[int]) -> State:
        """An edit is needed if without it a defect comes back, or the training looks worse. What a trial in place
        showed before the last edits were made is not asked again."""
        needed = {*asked_for, *self._needed.get(state.kept, ())}
        for number in reversed(state.kept):
            if number in needed or number not in state.kept:
                continue
            rest = self._draft.closed([other for other in state.kept if other != number])
            if set(asked_for) <= set(rest) and self._is_as_good(rest, state):
                state = self._state_with(rest)
        return state

    def _is_as_good(self, kept: tuple[int, ...], state: State) -> bool:
        is_new = (
            self._changed_files(kept) not in self._seen
        )  # the source alone may tell, which takes a fraction of the time
        if is_new and self._shows_more(kept, state.kept, defects_of(state.diagnosis)):
            return False
        return is_no_worse(self._state_with(kept).diagnosis, state.diagnosis)

    def _shows_more(self, kept: tuple[int, ...], than: tuple[int, ...], seen: Counter[Defect] = NO_DEFECTS) -> bool:
        """Whether the source has defects with these edits that it has not with the others, and that were not seen."""
        these, those = (self._without_intended(self._seen_in_source(each)[0], each) for each in (kept, than))
        return bool(defects_of(these) - defects_of(those) - seen)

    # --- examinations, of which none is made twice ----------------------------------------------------------------
    def _changed_files(self, kept: Sequence[int]) -> frozenset[tuple[Path, bytes]]:
        return frozenset(self._draft.contents(kept).items())

    def _state_with(self, kept: tuple[int, ...]) -> State:
        key = self._changed_files(kept)
        self._examined.update(kept)
        if key not in self._seen:
            self._seen[key] = self._examine(dict(key))
        diagnosis, sources = self._seen[key]
        if not is_stopped(diagnosis):
            diagnosis = self._without_intended(diagnosis, kept)
        return State(kept, diagnosis, sources)

    def _seen_in_source(self, kept: tuple[int, ...]) -> Seen:
        key = self._changed_files(kept)
        if key not in self._read_already:
            self._read_already[key] = self._read(dict(key))
        return self._read_already[key]

    def _without_intended(self, diagnosis: Diagnosis, kept: Sequence[int]) -> Diagnosis:
        """Without what the edits bring about on purpose."""
        unedited = self._seen[self._changed_files(())][0]
        return without_intended(diagnosis, [self._draft.proposals[number] for number in kept], sights_of(unedited))


def _choices(proposed: Proposed) -> Iterator[list[Proposal]]:
    """Which edits to make at once: all that rules know to the letter; then those that were tried on a batch, whose
    trial says more once the rest is right. Where neither helps, every answer by itself, one after the other."""
    firsts = [
        next((one for one in answers if not (one.from_trial or one.is_last)), None) for answers in proposed.answers
    ]
    of_rules = [answer for answer in firsts if answer is not None]
    tried = [answers[0] for answers in proposed.answers if answers[0].from_trial]
    everything = sorted((one for answers in proposed.answers for one in answers), key=lambda answer: answer.is_last)
    for chosen in (of_rules, tried, *([answer] for answer in everything)):
        if chosen:
            yield _proposals(chosen)


def _proposals(answers: Sequence[Answer]) -> list[Proposal]:
    """Each edit once. Where there were several trials, none counts as needed: no trial has seen its edit together with
    those of the others."""
    by_edits: dict[tuple[Edit, ...], Proposal] = {}
    for answer in answers:
        for proposal in answer.proposals:
            known = by_edits.setdefault(proposal.edits, proposal)
            by_edits[proposal.edits] = replace(known, needed=known.needed or proposal.needed)
    several = len({frozenset(proposal.edits for proposal in answer.proposals) for answer in answers}) > 1
    return [replace(proposal, needed=proposal.needed and not several) for proposal in by_edits.values()]


def _seen_to_be_needed(made: Mapping[int, Proposal], proposals: Sequence[Proposal]) -> frozenset[int]:
    """A trial has seen an edit beside all those that it proposed, and beside these alone."""
    if len(made) < len(proposals):
        return frozenset()
    return frozenset(number for number, proposal in made.items() if proposal.needed)

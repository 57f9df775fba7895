"""The loop of mending, with an examiner that follows a script: what it says depends on the text alone."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.finding import Diagnosis, Edit, Finding, Fix, Severity
from mpdoctor.fixes.choices import Sources
from mpdoctor.mending.answers import Answer, Proposed
from mpdoctor.mending.draft import Draft, Proposal
from mpdoctor.mending.proposals import proposals_from_diagnosis
from mpdoctor.mending.rounds import MOST_ROUNDS, Contents, Course, MendLoop, Propose, Seen
from mpdoctor.program.source_facts import SourceFacts

pytestmark = pytest.mark.fast


@dataclass
class Doctor:
    """Finds what stands in a line: `E1` is an error of rule E1, `E1>ok` one whose fix writes `ok`, `E1?` a warning;
    `E1<x` holds only as long as some line begins with `#x`. `static`: the codes that the source alone shows."""

    static: str = ""
    trained: list[str] = field(default_factory=list)
    read: list[str] = field(default_factory=list)

    def examine(self, contents: Contents) -> Seen:
        text = self.text(contents)
        self.trained.append(text)
        return self.seen(text, ".")

    def glance(self, contents: Contents) -> Seen:
        text = self.text(contents)
        self.read.append(text)
        return self.seen(text, self.static or "$^")

    def text(self, contents: Contents) -> str:
        return contents.get(Path("a.py").absolute(), Path("a.py").read_bytes()).decode()

    def seen(self, text: str, codes: str) -> Seen:
        lines = text.split("\n")
        found = []
        for number, line in enumerate(lines, 1):
            told = re.fullmatch(r"#(?P<code>\w+)(?P<mild>\?)?(?:<(?P<as_long>\w+))?(?:>(?P<fix>.*))?", line)
            holds = told and (not told["as_long"] or any(other.startswith(f"#{told['as_long']}") for other in lines))
            if told and holds and re.match(codes, told["code"]):
                found.append(self.finding(number, line, told))
        failing = any(finding.fails_a_run(Severity.WARNING) for finding in found)
        diagnosis = Diagnosis((), tuple(found), (), (), (), (), (), {}, 0, int(failing), "", "")
        return diagnosis, {"a.py": SourceFacts("a.py", text)}

    def finding(self, number: int, line: str, told: re.Match[str]) -> Finding:
        place = Location("a.py", number, 1, number, len(line) + 1)
        fix = told["fix"]
        edits = None if fix is None else Fix(f"{told['code']} to {fix}", False, (Edit(place, fix.replace("|", "\n")),))
        severity = Severity.WARNING if told["mild"] else Severity.ERROR
        return Finding("", "", place, code=told["code"], layer=told["code"], severity=severity, fix=edits)


Told = tuple[str, int, int]  # the text in the end, rounds, examinations


def told_of(
    text: str,
    static: str = "",
    asked: Callable[[Seen], list[Proposal]] | None = None,
    propose: Propose = proposals_from_diagnosis,
) -> tuple[Course, Told]:
    Path("a.py").write_text(text)
    doctor, draft = Doctor(static), Draft()
    loop = MendLoop(draft, doctor.examine, doctor.glance, propose)
    course = loop.run(asked) if asked is not None else loop.run()
    (after,) = [file.after.decode() for file in draft.files(course.after.kept)] or [text]
    assert course.examinations == len(doctor.trained) == len(set(doctor.trained))
    last_round = (
        [number for number in course.after.kept if draft.proposals[number].needed] if course.rounds == 1 else []
    )
    unsure = len(draft.proposals) - len(last_round)  # what no trial saw to be needed
    assert course.examinations <= 1 + course.rounds + unsure  # as it is, once a round, and once without each of those
    return course, (after, course.rounds, course.examinations)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize(
    ("text", "mended", "after", "rounds", "examinations"),
    [
        ("fine", True, "fine", 0, 1),
        ("#E1>ok", True, "ok", 1, 2),  # the only edit: without it, it was seen before
        ("#E1?>ok", True, "ok", 1, 2),
        ("#E1", False, "#E1", 0, 1),
        ("#E1>#E1", False, "#E1>#E1", 1, 2),  # the edit changes nothing
        ("#E1>ok\n#E2>ok", True, "ok\nok", 1, 4),
        ("#E1>#E2>ok", True, "ok", 2, 3),  # a defect comes to light behind another one
        ("#E1>ok\n#E2", False, "ok\n#E2", 1, 2),  # what helps is kept, though not all is well
        ("#E1\n#E2>#E3", False, "#E1\n#E2>#E3", 1, 2),
    ],
)
def test_rounds(text: str, mended: bool, after: str, rounds: int, examinations: int) -> None:
    course, told = told_of(text)
    assert (course.after.is_healthy, *told) == (mended, after, rounds, examinations)


def test_an_edit_that_was_not_needed_is_dropped() -> None:
    # E2 comes of E1 and goes with it
    course, told = told_of("#E1>ok\n#E2<cause>ok\n#cause?>gone")
    assert course.after.is_healthy
    assert told[0] == "ok\n#E2<cause>ok\ngone"


def test_an_edit_that_the_source_shows_to_be_needed_is_not_left_out_in_a_training() -> None:
    assert told_of("#E1>ok\n#E2>ok")[1] == ("ok\nok", 1, 4)
    assert told_of("#E1>ok\n#E2>ok", static="E")[1] == ("ok\nok", 1, 2)


@pytest.mark.parametrize(
    ("text", "static", "after", "rounds", "examinations"),
    [
        ("#E1>#E2>ok", "E", "ok", 1, 2),
        ("#E1>#E2>#E3>ok", "E", "ok", 1, 2),
        ("#E1>ok|#E2>ok\n#E3>ok", "E", "ok\nok\nok", 1, 2),
        ("#E1>#L2>ok", "E", "ok", 2, 3),  # the source shows nothing of it
        ("#E1>#L2>#E3>#E4>ok", "E", "ok", 2, 3),
        ("#E1>#E2", "E", "#E1>#E2", 1, 2),
    ],
)
def test_what_the_source_shows_behind_a_mended_line_is_mended_in_the_same_round(
    text: str, static: str, after: str, rounds: int, examinations: int
) -> None:
    assert told_of(text, static=static)[1] == (after, rounds, examinations)


@pytest.mark.parametrize(
    ("text", "static", "after", "rounds", "examinations"),
    [
        ("#E1>ok\n#E2<cause>ok\n#cause?>gone", ".", "ok\n#E2<cause>ok\ngone", 1, 2),
        ("#E2<E1>ok\n#E3<E1>ok\n#E1>gone", ".", "#E2<E1>ok\n#E3<E1>ok\ngone", 1, 2),
        ("#E1>ok\n#L2<cause>ok\n#cause?>gone", "E|c", "ok\n#L2<cause>ok\ngone", 1, 3),  # L2 was seen in the training
        ("#E2<E1>ok\n#E1<E2>ok", ".", "ok\n#E1<E2>ok", 1, 2),  # either one does
    ],
)
def test_an_edit_of_what_is_gone_with_the_others_is_not_made(
    text: str, static: str, after: str, rounds: int, examinations: int
) -> None:
    course, told = told_of(text, static=static)
    assert told == (after, rounds, examinations)
    assert course.tried == []


def of_trials(needed: str, together: bool = True) -> Propose:
    """What is proposed comes of trials in place, of one of all of it or of several. They saw these codes' edits to be
    needed."""

    def propose(diagnosis: Diagnosis, sources: Sources) -> Proposed:
        found = [answer for (answer, *_) in proposals_from_diagnosis(diagnosis, sources).answers]
        seen = [
            replace(proposal, needed=bool(re.match(needed, proposal.code)))
            for answer in found
            for proposal in answer.proposals
        ]
        sets = [tuple(seen)] * len(seen) if together else [(proposal,) for proposal in seen]
        answers = zip(found, sets, strict=True)
        return Proposed(tuple((Answer(answer.finding, proposals, from_trial=True),) for answer, proposals in answers))

    return propose


@pytest.mark.parametrize(
    ("text", "propose", "after", "rounds", "examinations"),
    [
        ("#E1>ok\n#E2>ok", of_trials("E"), "ok\nok", 1, 2),
        ("#E1>ok\n#E2>ok\n#E3>ok", of_trials("E"), "ok\nok\nok", 1, 2),
        ("#E1>ok\n#E2>ok\n#E3>ok", of_trials("E[12]"), "ok\nok\nok", 1, 3),
        ("#E1>ok\n#E2<cause>ok\n#cause?>gone", of_trials("E1|cause"), "ok\n#E2<cause>ok\ngone", 1, 3),
        ("#E1>ok\n#E2<cause>ok\n#cause?>gone", of_trials("E|c", together=False), "ok\n#E2<cause>ok\ngone", 1, 5),
        ("#E1>#E2>ok\n#E3>ok", of_trials("E"), "ok\nok", 2, 5),  # in the first round no trial saw the second's edit
    ],
)
def test_what_a_trial_saw_to_be_needed_is_not_left_out_in_a_training(
    text: str, propose: Propose, after: str, rounds: int, examinations: int
) -> None:
    assert told_of(text, propose=propose)[1] == (after, rounds, examinations)


def test_what_is_proposed_last_is_made_where_nothing_else_helped() -> None:
    """The first answer to a finding brings E9, which is worse; the second mends it."""

    def propose(diagnosis: Diagnosis, sources: Sources) -> Proposed:
        proposed = proposals_from_diagnosis(diagnosis, sources)
        if not proposed.answers:
            return proposed
        ((first,), *others) = proposed.answers
        (proposal,) = first.proposals
        (edit,) = proposal.edits
        better = replace(proposal, title="better", edits=(replace(edit, text="ok"),))
        return replace(proposed, answers=((first, Answer(first.finding, (better,), is_last=True)), *others))

    assert told_of("#E1>#E1|#E9", propose=propose)[1][:2] == ("ok", 2)


def test_what_breaks_more_than_it_mends_does_not_stay() -> None:
    course, told = told_of("#E1>#E2|#E3|#E4")
    assert told[0] == "#E1>#E2|#E3|#E4"
    assert [proposal.title for proposal in course.tried] == ["E1 to #E2|#E3|#E4"]


@pytest.mark.parametrize(
    ("text", "stopped"), [("#E1>#MP002", ["MP002"]), ("#MP002", []), ("#E1>#E2|#E3", []), ("#MP003\n#E1>ok", [])]
)
def test_what_ends_the_program_behind_an_edit_is_told(text: str, stopped: list[str]) -> None:
    assert [end.code for end in told_of(text)[0].stopped] == stopped


def test_where_all_edits_together_make_it_worse_each_is_tried_alone() -> None:
    course, told = told_of("#E1>#bad\n#E2>ok\n#E3<bad\n#E4<bad")
    assert not course.after.is_healthy
    assert told[0] == "#E1>#bad\nok\n#E3<bad\n#E4<bad"
    assert [proposal.title for proposal in course.tried] == ["E1 to #bad"]


def test_a_defect_that_only_moves_ends_the_rounds() -> None:
    text = "#E0"
    for number in range(1, 30):
        text = f"#E{number}>{text}"
    course, told = told_of(text)
    assert told[1] == MOST_ROUNDS
    assert not course.after.is_healthy


def test_edits_of_the_same_place_are_made_in_turn() -> None:
    class Two(Doctor):
        def seen(self, text: str, codes: str) -> Seen:
            diagnosis, sources = super().seen(text, codes)
            found = [f for f in diagnosis.findings if f.code == "E1"]
            twice = [Finding("", "", f.location, code=c, layer=c, severity=f.severity, fix=f.fix) for f in found
                     for c in ("E1", "E9")]  # fmt: skip
            return Diagnosis((), tuple(twice), (), (), (), (), (), {}, 0, int(bool(twice)), "", ""), sources

    Path("a.py").write_text("#E1>ok")
    doctor, draft = Two(), Draft()
    course = MendLoop(draft, doctor.examine, doctor.glance, proposals_from_diagnosis).run()
    assert [file.after for file in draft.files(course.after.kept)] == [b"ok"]
    assert len(course.after.kept) == 1


def test_what_the_user_asked_for_stays_and_what_it_brings_is_mended() -> None:
    def asked(seen: Seen) -> list[Proposal]:
        return [Proposal("policy", False, "", (Edit(Location("a.py", 1, 1, 1, 1), "#E1>ok\n"),))]

    course, told = told_of("fine", asked=asked)
    assert (course.after.is_healthy, told) == (True, ("ok\nfine", 2, 3))


def test_a_file_that_cannot_be_edited_is_told() -> None:
    Path("a.py").write_bytes("# coding: latin-1\n#E1>\u20ac".encode("utf-8"))
    doctor, draft = Doctor(), Draft()
    doctor.text = lambda contents: "other\n#E1>ok"  # type: ignore[method-assign]
    course = MendLoop(draft, doctor.examine, doctor.glance, proposals_from_diagnosis).run()
    assert course.after.kept == ()
    assert course.hindered == ["a.py: it was changed by somebody else meanwhile"]

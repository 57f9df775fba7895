"""`mpdoctor mend` of a script, from top to bottom: settings in, Mended out."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.fixes.diffs import diff_from_files
from mpdoctor.fixes.rounds import EditedFile
from mpdoctor.mended import Mended, NeededEdit
from mpdoctor.mending.draft import Draft
from mpdoctor.mending.examining import examiner_of_edits, reader_of_edits
from mpdoctor.mending.intended_dtypes import classes_with_intended
from mpdoctor.mending.policy_switch import is_in_force, switch_to
from mpdoctor.mending.proposals import proposals_from_diagnosis
from mpdoctor.mending.rounds import Course, MendLoop, nothing_asked
from mpdoctor.mending.starting_scales import lower_starts
from mpdoctor.progress import Progress
from mpdoctor.project.interpreters import NoInterpreter, interpreter_for
from mpdoctor.settings.options import Settings

NOWHERE = Location("", 0)


def mend(settings: Settings, progress: Progress, policy: str = "") -> tuple[Mended, list[EditedFile]]:
    """What came of it, and the files as they are to be. Nothing is written.

    Raises CannotEdit where the program can't be switched to `policy`."""
    content = {t.path.absolute(): t.content for t in settings.targets if t.path is not None and t.content is not None}
    draft = Draft(content)
    propose = partial(proposals_from_diagnosis, has_own_wrapper=_runs_here(settings))
    loop = MendLoop(draft, examiner_of_edits(settings, progress), reader_of_edits(settings, progress), propose)
    asked = switch_to(policy, settings.targets[0], content) if policy else nothing_asked
    course = loop.run(asked, lower_starts)
    files = draft.files(course.after.kept)
    return _mended_from_course(course, draft, files, policy), files


def _runs_here(settings: Settings) -> bool:
    """Whether the program runs in the interpreter that mpdoctor itself is installed in."""
    try:
        return interpreter_for(settings.targets[0], settings.python).absolute() == Path(sys.executable).absolute()
    except NoInterpreter:
        return False


def _mended_from_course(course: Course, draft: Draft, files: list[EditedFile], policy: str) -> Mended:
    kept = course.after.kept
    in_force = not policy or is_in_force(policy, course.after.diagnosis)
    changes, made = draft.edits(kept), draft.proposals
    edits = [
        NeededEdit(made[number].title, made[number].safe, made[number].code, changes[number]) for number in changes
    ]
    return Mended(
        before=course.before.diagnosis,
        after=course.after.diagnosis,
        is_healthy=course.after.is_healthy and in_force,
        rounds=course.rounds,
        examinations=course.examinations,
        edits=tuple(sorted(edits, key=lambda needed: min((edit.location for edit in needed.edits), default=NOWHERE))),
        patch=diff_from_files(files),
        tried=tuple((proposal.code, proposal.title) for proposal in course.tried),
        hindered=tuple(course.hindered),
        policy=policy,
        policy_in_force=in_force,
        stopped=tuple(course.stopped),
        own_code_of=classes_with_intended(course.after.diagnosis),
    )

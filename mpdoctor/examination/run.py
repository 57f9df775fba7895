"""Runs one examination: writes the Request, starts the examiner, reads its events until it ends or times out."""

from __future__ import annotations

import os
import shutil
import sys
import time
from dataclasses import replace
from pathlib import Path

from mpdoctor.examination.event_reader import EventReader, Notebook
from mpdoctor.examination.examination_facts import ExaminerCrashed, facts_from_seen
from mpdoctor.examination.kept_run import KeptRun, kept_run
from mpdoctor.examination.notebook_program import NoProgram, as_run, given_texts
from mpdoctor.examination.private_directory import private_directory
from mpdoctor.examination.process import ExaminerProcess
from mpdoctor.examination.seen import Seen
from mpdoctor.examination.shown_output import stream_to_show
from mpdoctor.examiner.process.edited_source import write_edited
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.machine.environment import CHOSEN, EnvironmentFacts
from mpdoctor.progress import Progress
from mpdoctor.project.interpreters import Choice, NoInterpreter, choice_for
from mpdoctor.project.targets import Target
from mpdoctor.settings.options import Settings

POLL = 0.03  # seconds between two looks at the events


def examine(
    target: Target,
    settings: Settings,
    progress: Progress,
    policy: str,
    outputs: bool = False,
    timed: bool = False,
    passes_float32: bool = False,
) -> ExaminationFacts:
    """Run one target in the user's own interpreter under `policy` and bring home what was seen. `outputs`: of a saved
    model what it puts out for made-up inputs, the same for each file of this model, in place of a training.
    `timed`: how long its training step takes as it is, in place of what a watched training shows.
    `passes_float32`: of a script, each fit() up to the first that has mixed precision.

    Raises ExaminerCrashed."""
    try:
        chosen = choice_for(target, settings.python)
        given = given_texts(target, settings.edited)
    except (NoInterpreter, NoProgram) as reason:
        return ExaminationFacts(failure=FailureFacts("unusable", "start", message=str(reason)))
    with private_directory() as folder:
        edited = write_edited(str(folder / "edited"), given.texts) if given.texts else None
        request = replace(_request(target, settings, policy, folder), edited=edited, cells=given.cells)
        request = replace(request, outputs=outputs, timed=timed, passes_float32=passes_float32)
        seen = _run_examiner(chosen, request, settings, progress)
    facts = as_run(_with_command_line(facts_from_seen(seen, policy), target, settings), given)
    if not chosen.because:
        return facts
    return replace(facts, environment=(*facts.environment, (CHOSEN, f"{chosen.path}, {chosen.because}")))


def _with_command_line(facts: ExaminationFacts, target: Target, settings: Settings) -> ExaminationFacts:
    if facts.failure is None or not target.is_script:
        return facts
    given = (target.id, *settings.script_args)
    return replace(facts, failure=replace(facts.failure, command_line=given))


def environment_from_interpreter(python: Path, settings: Settings, progress: Progress) -> EnvironmentFacts:
    """Ask an interpreter what it is and computes on; nothing else is run there.

    Raises ExaminerCrashed."""
    with private_directory() as folder:
        request = Request(
            kind="environment", path=None, module=None, factory=None, arguments=(), events=str(folder / "events.jsonl")
        )
        seen = _run_examiner(Choice(python), request, settings, progress)
    if seen.crashed is not None:
        raise ExaminerCrashed(seen.crashed)
    known = seen.environment_facts()
    if seen.ended or known.problem:
        return known
    how = "did not come to an end" if seen.outcome == "timed-out" else "killed the process"
    return replace(known, problem=f"importing TensorFlow {how}. Its last words: {seen.last_words or 'none'}")


def _request(target: Target, settings: Settings, policy: str, folder: Path) -> Request:
    return Request(
        kind=target.kind,
        path=str(target.path.resolve()) if target.path else None,
        module=target.module,
        factory=target.factory,
        arguments=settings.script_args,
        events=str(folder / "events.jsonl"),
        probe=settings.probe,
        steps=settings.steps,
        budget=settings.budget,
        policy=policy,
        seed=_seed(target, settings),
        custom_objects=settings.custom_objects,
        allow_code_in_file=settings.allow_code_in_file,
        all_fits=settings.all_fits,
        what_if=settings.what_if,
        second_training=settings.second_training,
        reference=settings.reference,
        recorded_batch=str(settings.recorded_batch) if settings.recorded_batch else None,
        holds_policy=settings.holds_policy,
    )


def _seed(target: Target, settings: Settings) -> int | None:
    """Where the batches are made up, all chance is this examination's: two of them are to say the same. A script draws
    as it does by itself."""
    return 0 if settings.seed is None and not target.is_script else settings.seed


def _environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **({"CUDA_VISIBLE_DEVICES": "-1"} if settings.device == "cpu" else {})}


def _run_examiner(chosen: Choice, request: Request, settings: Settings, progress: Progress) -> Seen:
    """What was seen until the examiner ended, or was stopped: it was in no training step in time, or a step hung."""
    written = Path(request.events).with_name("request.json")
    written.touch(mode=0o600, exist_ok=False)  # the script's arguments may hold a password
    written.write_text(request.to_json(), encoding="utf-8")
    kept = kept_run(settings.keep_run)
    if kept.request is not None:
        _keep_request(request, kept)
    reader = EventReader(Path(request.events), kept.events, Notebook(request.path, request.cells))
    progress.stage(f"starting {chosen.path if chosen.because else chosen.path.name}")
    shown = stream_to_show(request.kind, sys.stderr.buffer) if settings.show_output else None
    process = ExaminerProcess(chosen.path, written, _environment(settings), kept.stderr, shown)
    seen = Seen()
    try:
        _follow(process, reader, seen, settings, progress)
    finally:
        process.end()
    seen.seconds = process.seconds
    while not seen.ended:
        _take_new(reader, seen, progress)
        if not reader.is_behind:
            break
    seen.passed_over += reader.passed_over
    if seen.signal is None and seen.exit_code is None:
        seen.signal, seen.exit_code = process.signal_and_exit_code()
    seen.last_words, seen.last_printed = process.last_words(), process.last_printed()
    reader.close()
    return seen


def _follow(process: ExaminerProcess, reader: EventReader, seen: Seen, settings: Settings, progress: Progress) -> None:
    """Take what the examiner tells, until it has ended or told nothing for too long: the outcome."""
    allowed = settings.timeout  # seconds since the start, until the next thing is told
    begun = 0
    while not seen.outcome:
        ended = process.has_ended()
        _take_new(reader, seen, progress)
        if seen.budgets > begun:  # what has a budget of its own has just begun
            begun, allowed = seen.budgets, process.seconds + settings.budget + settings.timeout
        if ended or seen.ended:
            seen.outcome = "ended"
        elif process.seconds > allowed:
            seen.outcome = "timed-out"
        elif not reader.is_behind:
            time.sleep(POLL)


def _keep_request(request: Request, kept: KeptRun) -> None:
    """Keep the request, with the edited text where it will be found afterwards."""
    assert kept.request is not None and kept.edited is not None
    if request.edited is not None:
        manifest = Path(request.edited)
        shutil.copytree(manifest.parent, kept.edited)
        request = replace(request, edited=str((kept.edited / manifest.name).absolute()))
    kept.request.write_text(request.to_json(), encoding="utf-8")


def _take_new(reader: EventReader, seen: Seen, progress: Progress) -> None:
    for event in reader.new():
        seen.take(event, progress)

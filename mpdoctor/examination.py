"""The parent's end of the examiner: what it is asked, what its events tell, and what a dead process left behind."""

from __future__ import annotations

import os
import tempfile
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from mpdoctor.examiner.request import Request
from mpdoctor.examiner_process import QUIET, EventReader, ExaminerProcess
from mpdoctor.facts.environment import EnvironmentFacts, labels_from_environment
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved_graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.interpreters import NoInterpreter, interpreter_for
from mpdoctor.progress import Progress
from mpdoctor.settings import Settings
from mpdoctor.targets import Target

POLL = 0.03  # seconds between two looks at the events


class ExaminerCrashed(Exception):
    """The examiner itself broke: a defect of ours. The text is its traceback."""


def examine(target: Target, settings: Settings, progress: Progress, policy: str) -> ExaminationFacts:
    """Run one target in the user's own interpreter under `policy` and bring home what was seen.

    Raises ExaminerCrashed."""
    try:
        python = interpreter_for(target, settings.python)
    except NoInterpreter as reason:
        return ExaminationFacts(failure=FailureFacts("unusable", "start", message=str(reason)))
    with tempfile.TemporaryDirectory(prefix="mpdoctor-", ignore_cleanup_errors=True) as folder:
        request = _request(target, settings, policy, Path(folder))
        seen = _watched(python, request, settings, progress)
    return _facts(seen, policy)


def environment_from_interpreter(python: Path, settings: Settings, progress: Progress) -> EnvironmentFacts:
    """Ask an interpreter what it is and computes on; nothing else is run there.

    Raises ExaminerCrashed."""
    with tempfile.TemporaryDirectory(prefix="mpdoctor-", ignore_cleanup_errors=True) as folder:
        request = Request("environment", None, None, None, (), str(Path(folder) / "events.jsonl"))
        seen = _watched(python, request, settings, progress)
    if "crashed" in seen.notes:
        raise ExaminerCrashed(seen.notes["crashed"])
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
        seed=settings.seed,
        custom_objects=settings.custom_objects,
        allow_code_in_file=settings.allow_code_in_file,
    )


def _environment(settings: Settings) -> dict[str, str]:
    return {**os.environ, **({"CUDA_VISIBLE_DEVICES": "-1"} if settings.device == "cpu" else {})}


# --- what the events tell -----------------------------------------------------------------------------------------
@dataclass
class _Seen:
    """What the events have told so far; and in the end, how the process ended: "ended" by itself or "timed-out"."""

    notes: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    built: dict[str, Any] = field(default_factory=dict)  # compiled, and perhaps never looked at again
    graphs: list[Any] = field(default_factory=list)
    trainings: list[Any] = field(default_factory=list)
    failure: Any = None
    steps: int = 0
    environment: Any = None
    signal: int | None = None
    exit_code: int | None = None
    training: bool = False
    ended: bool = False
    outcome: str = ""
    seconds: float = 0.0
    last_words: str = ""

    def take(self, event: dict[str, Any], progress: Progress) -> None:
        kind = event.pop("event")
        if kind == "stage":
            self.training = self.training or event["text"] == "training"
            progress.stage(event["text"])
        elif kind == "steps":
            self.steps = event["done"]
            progress.steps(event["done"], event["total"])
        elif kind == "note":
            self.notes.update(event)
        elif kind == "end":
            self.ended = True
        elif kind == "exited":
            self.signal, self.exit_code = event["signal"], event["exit_code"]
        elif event["kind"] == "model":
            self.models[event["facts"]["id"]] = event["facts"]
        elif event["kind"] == "built":
            self.built[event["facts"]["id"]] = event["facts"]
        elif event["kind"] == "graph":
            self.graphs.append(event["facts"])
        elif event["kind"] == "training":
            self.trainings.append(event["facts"])
        elif event["kind"] == "environment":
            self.environment = event["facts"]
        else:
            self.failure = event["facts"]

    def environment_facts(self) -> EnvironmentFacts:
        """Without the variables that mpdoctor itself has set there."""
        known: EnvironmentFacts = _converter().structure(self.environment or {}, EnvironmentFacts)
        variables = {name: value for name, value in known.variables.items() if name in os.environ or name not in QUIET}
        return replace(known, variables=variables)


def _watched(python: Path, request: Request, settings: Settings, progress: Progress) -> _Seen:
    """Until the examiner ends, or no training step was reached in time, or a step never returns."""
    written = Path(request.events).with_name("request.json")
    written.write_text(request.to_json(), encoding="utf-8")
    reader = EventReader(Path(request.events))
    progress.stage(f"starting {python.name}")
    process = ExaminerProcess(python, written, _environment(settings))
    seen = _Seen()
    first_step_at: float | None = None
    try:
        while not seen.outcome:
            ended = process.has_ended()
            _take_all(reader, seen, progress)
            if first_step_at is None and seen.steps:
                first_step_at = process.seconds
            limit = settings.timeout if first_step_at is None else first_step_at + settings.budget + settings.timeout
            if ended or seen.ended:
                seen.outcome = "ended"
            elif process.seconds > limit:
                seen.outcome = "timed-out"
            else:
                time.sleep(POLL)
    finally:
        process.end()
    seen.seconds = process.seconds
    if not seen.ended:
        _take_all(reader, seen, progress)
    if seen.signal is None and seen.exit_code is None:
        seen.signal, seen.exit_code = process.signal_and_exit_code()
    seen.last_words = process.last_words()
    reader.close()
    return seen


def _take_all(reader: EventReader, seen: _Seen, progress: Progress) -> None:
    for event in reader.new():
        seen.take(event, progress)


# --- what it brought home -----------------------------------------------------------------------------------------
def _facts(seen: _Seen, policy: str) -> ExaminationFacts:
    if "crashed" in seen.notes:
        raise ExaminerCrashed(seen.notes["crashed"])
    convert = _converter()
    failure = convert.structure(seen.failure, FailureFacts) if seen.failure else None
    if failure is None and not seen.ended:
        failure = _sudden_end(seen)
    known = seen.models if seen.ended else {**seen.built, **seen.models}
    models = tuple(convert.structure(model, ModelFacts) for model in known.values())
    graphs = tuple(_graph(convert.structure(graph, SavedGraphFacts)) for graph in seen.graphs)
    trainings = tuple(convert.structure(training, TrainingFacts) for training in seen.trainings)
    keras = convert.structure(seen.notes["keras"], Keras) if "keras" in seen.notes else None
    return ExaminationFacts(
        python=seen.notes.get("python", ""),
        keras=keras or (models[0].keras if models else None),
        models=models,
        graphs=graphs,
        trainings=trainings,
        failure=failure,
        model_status=("done", "") if models or graphs else ("failed", "no model was seen"),
        training_status=_training_status(seen, trainings, failure),
        not_restored=seen.notes.get("not_restored", ""),
        stand_ins=tuple(seen.notes.get("stand_ins", ())),
        files_written=tuple(seen.notes.get("files_written", ())),
        environment=tuple(labels_from_environment(seen.environment_facts()).items()),
        forced_policy=None if policy == "auto" else policy,
    )


def _graph(graph: SavedGraphFacts) -> SavedGraphFacts:
    return replace(graph, path=shown_path(graph.path, Path.cwd()))


def _sudden_end(seen: _Seen) -> FailureFacts:
    died = seen.outcome != "timed-out"
    return FailureFacts(
        kind="died" if died else "timed-out",
        during="training" if seen.training else "script",
        signal=seen.signal if died else None,
        exit_code=seen.exit_code if died else None,
        saw_model=bool(seen.models or seen.built),
        seconds=seen.seconds,
        last_words=seen.last_words,
    )


def _training_status(
    seen: _Seen, trainings: tuple[TrainingFacts, ...], failure: FailureFacts | None
) -> tuple[str, str]:
    if "training_status" in seen.notes:
        status, reason = seen.notes["training_status"]
        return status, reason
    if trainings:
        failed = trainings[0].failure is not None
        return ("failed", "the training step raised") if failed else ("done", "")
    if failure is not None and failure.during == "training":
        return "failed", "it ended before a step was seen"
    return "skipped", "no training call was reached"


def _converter() -> Any:
    import cattrs  # only where an examination is read; `--static` and `explain` never need it

    converter = cattrs.Converter(forbid_extra_keys=False)
    here = Path.cwd()

    def location(value: Any, _: Any) -> Location:
        return Location(**{**value, "path": shown_path(value["path"], here)})

    converter.register_structure_hook(Location, location)
    return converter


def shown_path(path: str, here: Path) -> str:
    """Relative to the working directory where it lies below it."""
    try:
        return str(Path(path).relative_to(here))
    except ValueError:
        return path

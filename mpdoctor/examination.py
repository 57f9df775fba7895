"""The parent's end of the examiner: spawn, events, time-out, and what a dead process left behind."""

from __future__ import annotations

import collections
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import threading
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import IO, Any

from mpdoctor.examiner.request import Request
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

START = Path(__file__).parent / "examiner" / "start.py"
POLL = 0.03  # seconds between two looks at the events
LAST_WORDS = 40  # lines of stderr that are kept
# Loggers that would open a connection of their own during the few steps that we train.
QUIET = {
    "WANDB_MODE": "disabled",
    "COMET_MODE": "disabled",
    "NEPTUNE_MODE": "debug",
    "CLEARML_OFFLINE_MODE": "1",
    "MPLBACKEND": "Agg",
    "TF_CPP_MIN_LOG_LEVEL": "2",
    "TF_FORCE_GPU_ALLOW_GROWTH": "true",
}


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
        (Path(folder) / "request.json").write_text(request.to_json(), encoding="utf-8")
        progress.stage(f"starting {python.name}")
        process = _Process([str(python), str(START), str(Path(folder) / "request.json")], _environment(settings))
        seen = _Seen()
        reader = _EventReader(Path(request.events))
        outcome = _watch(process, reader, seen, settings, progress)
        return _facts(seen, outcome, process, policy)


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
    environment = {**QUIET, **os.environ}
    if settings.device == "cpu":
        environment["CUDA_VISIBLE_DEVICES"] = "-1"
    return environment


# --- the process ------------------------------------------------------------------------------------------------
class _Process:
    """The examiner in a process group of its own; its output is drained, and only the end of it kept."""

    def __init__(self, command: list[str], environment: dict[str, str]) -> None:
        self.started = time.monotonic()
        self._process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._errors: collections.deque[bytes] = collections.deque(maxlen=LAST_WORDS)
        assert self._process.stdout is not None and self._process.stderr is not None
        for stream, kept in ((self._process.stdout, None), (self._process.stderr, self._errors)):
            threading.Thread(target=self._drain, args=(stream, kept), daemon=True).start()

    @staticmethod
    def _drain(stream: IO[bytes], kept: collections.deque[bytes] | None) -> None:
        while chunk := stream.readline(65536):
            if kept is not None:
                kept.append(chunk)

    @property
    def seconds(self) -> float:
        return time.monotonic() - self.started

    def exit_code(self) -> int | None:
        return self._process.poll()

    def kill(self) -> None:
        """End it and whatever it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if hasattr(os, "killpg"):
                os.killpg(self._process.pid, signal.SIGKILL)
            else:
                self._process.kill()
        self._process.wait()

    def last_words(self) -> str:
        """The end of stderr, without TensorFlow's own log lines."""
        lines = b"".join(self._errors).decode("utf-8", "replace").splitlines()
        return "\n".join(line for line in lines if line.strip() and not _is_log_line(line))[-2000:]


def _is_log_line(line: str) -> bool:
    head = line.split(" ", 1)[0]
    return (
        line.startswith(("To enable the following instructions", "WARNING: All log messages before absl"))
        or (len(head) == 5 and head[0] in "IWE" and head[1:].isdigit())
        or " tensorflow/" in line[:60]
        or " external/" in line[:60]
    )


class _EventReader:
    """Reads the events that were appended since the last look; an unfinished line waits for its rest."""

    def __init__(self, path: Path) -> None:
        self._path, self._offset = path, 0

    def new(self) -> list[dict[str, Any]]:
        try:
            with self._path.open("rb") as file:
                file.seek(self._offset)
                data = file.read()
        except FileNotFoundError:
            return []
        complete = data[: data.rfind(b"\n") + 1]
        self._offset += len(complete)
        return [event for event in map(_event_from_line, complete.split(b"\n")) if event is not None]


def _event_from_line(line: bytes) -> dict[str, Any] | None:
    """None for what is no event: a full disk or a fork of the script's cuts a line, and the next one follows it."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) and "event" in event else None


@dataclass
class _Seen:
    """What the events have told so far."""

    notes: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Any] = field(default_factory=dict)
    built: dict[str, Any] = field(default_factory=dict)  # compiled, and perhaps never looked at again
    graphs: list[Any] = field(default_factory=list)
    trainings: list[Any] = field(default_factory=list)
    failure: Any = None
    steps: int = 0
    training: bool = False
    ended: bool = False

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
        elif event["kind"] == "model":
            self.models[event["facts"]["id"]] = event["facts"]
        elif event["kind"] == "built":
            self.built[event["facts"]["id"]] = event["facts"]
        elif event["kind"] == "graph":
            self.graphs.append(event["facts"])
        elif event["kind"] == "training":
            self.trainings.append(event["facts"])
        else:
            self.failure = event["facts"]


def _watch(process: _Process, reader: _EventReader, seen: _Seen, settings: Settings, progress: Progress) -> str:
    """Until the examiner ends: "ended", "timed-out" (no training step in time, or a step that never returns)."""
    first_step_at: float | None = None
    try:
        while True:
            code = process.exit_code()
            for event in reader.new():
                seen.take(event, progress)
            if code is not None:
                return "ended"
            if first_step_at is None and seen.steps:
                first_step_at = process.seconds
            limit = settings.timeout if first_step_at is None else first_step_at + settings.budget + settings.timeout
            if process.seconds > limit:
                return "timed-out"
            time.sleep(POLL)
    finally:
        process.kill()


# --- what it brought home -----------------------------------------------------------------------------------------
def _facts(seen: _Seen, outcome: str, process: _Process, policy: str) -> ExaminationFacts:
    if "crashed" in seen.notes:
        raise ExaminerCrashed(seen.notes["crashed"])
    convert = _converter()
    failure = convert.structure(seen.failure, FailureFacts) if seen.failure else None
    if failure is None and (outcome == "timed-out" or not seen.ended):
        failure = _sudden_end(seen, outcome, process)
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
        files_written=tuple(seen.notes.get("files_written", ())),
        environment=tuple((seen.notes.get("environment") or {}).items()),
        forced_policy=None if policy == "auto" else policy,
    )


def _graph(graph: SavedGraphFacts) -> SavedGraphFacts:
    return replace(graph, path=shown_path(graph.path, Path.cwd()))


def _sudden_end(seen: _Seen, outcome: str, process: _Process) -> FailureFacts:
    code = process.exit_code()
    died = outcome != "timed-out"
    return FailureFacts(
        kind="died" if died else "timed-out",
        during="training" if seen.training else "script",
        signal=-code if died and code is not None and code < 0 else None,
        exit_code=code if died and code is not None and code >= 0 else None,
        saw_model=bool(seen.models or seen.built),
        seconds=process.seconds,
        last_words=process.last_words(),
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

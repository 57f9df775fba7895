"""In which order a program is checked and timed under its policies, and which are not timed."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mpdoctor.comparing.comparing import compare
from mpdoctor.examination.examination_facts import ExaminerCrashed
from mpdoctor.facts.examination import ExaminationFacts, OperationTime, ProfileFacts, TimingFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import PredictionFacts, TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Probe, Stage, TargetReport, Verdict
from mpdoctor.progress import Progress, SilentProgress
from mpdoctor.project.targets import Target
from mpdoctor.reporters.rendering import report_from_compared
from mpdoctor.settings.options import Settings

SETTINGS = Settings((Target("a.py", "script", Path("a.py")),))
EMPTY = Diagnosis((), (), (), (), (), (), (), {}, 0, 0, "", "")
TRAINING = TrainingFacts(ModelFacts("m", "m", "Model", "float32", Keras("keras")), "real", "CPU", 50)
TRAINED = dataclasses.replace(EMPTY, probes=(Probe(TRAINING, Verdict.HEALTHY, ""),))
RAISED = dataclasses.replace(EMPTY, probes=(Probe(TRAINING, Verdict.FAILED, ""),))
PREDICTED = dataclasses.replace(TRAINING, prediction=PredictionFacts("predict", 1, 4))
PREDICTS = dataclasses.replace(EMPTY, probes=(Probe(PREDICTED, Verdict.HEALTHY, ""),))
SEARCHES = dataclasses.replace(
    PREDICTS,
    targets=(TargetReport("a.py", "a.py", "script", Keras(), stages={"training": Stage("skipped", "it searches")}),),
)
TIMING = TimingFacts("fit", ((0.1, 0.01),), 1, 5)
TIMED = ExaminationFacts(timing=TIMING)


class Machine:
    """Under each policy what it was told to bring; the order in which it was asked."""

    def __init__(self, diagnoses: dict[str, Diagnosis], *seen: ExaminationFacts | Exception) -> None:
        self.diagnoses, self.seen = diagnoses, list(seen)
        self.asked: list[str] = []
        self.settings: list[Settings] = []

    def diagnose(self, settings: Settings, progress: Progress) -> Diagnosis:
        self.asked.append(f"check {settings.policy}")
        self.settings.append(settings)
        return self.diagnoses.get(settings.policy, TRAINED)

    def time(self, settings: Settings, progress: Progress) -> ExaminationFacts:
        self.asked.append(settings.policy)
        self.settings.append(settings)
        brings = self.seen.pop(0) if self.seen else TIMED
        if isinstance(brings, Exception):
            raise brings
        return brings


NAN = float("nan")
WRITTEN = [
    dataclasses.replace(TIMING, blocks=()),
    dataclasses.replace(TIMING, blocks=((0.1, 0.0), (0.0, 0.0))),
    dataclasses.replace(TIMING, blocks=((NAN, 0.0),)),
    dataclasses.replace(TIMING, blocks=((0.1, 0.2),)),
    dataclasses.replace(TIMING, profile=ProfileFacts(0, 1.0, 1.0, 1.0)),
    dataclasses.replace(TIMING, profile=ProfileFacts(1, 1.0, 1.0, 0.0)),
    dataclasses.replace(TIMING, profile=ProfileFacts(1, 1.0, 1.0, 1.0, (OperationTime("Cast", 1, NAN),))),
]


@pytest.mark.parametrize("written", WRITTEN)
def test_times_that_a_program_wrote_itself_are_none(written: TimingFacts) -> None:
    machine = Machine({}, TIMED, ExaminationFacts(timing=written))
    compared = compare(SETTINGS, ["float32", "mixed_float16"], 1, SilentProgress(), machine.diagnose, machine.time)
    assert not compared.runs[1].known and compared.exit_code == 2
    assert "the times that it sent back are invalid" in report_from_compared(compared, "terminal")


def test_the_policies_take_turns_and_each_is_held_against_the_program() -> None:
    machine = Machine({})
    compared = compare(SETTINGS, ["float32", "mixed_float16"], 2, SilentProgress(), machine.diagnose, machine.time)
    assert machine.asked == ["check float32", "check mixed_float16", *["float32", "mixed_float16"] * 2]
    assert all(
        settings.holds_policy and not settings.what_if and not settings.second_training for settings in machine.settings
    )
    assert [run.timings for run in compared.runs] == [(TIMING, TIMING)] * 2 and compared.rounds == 2


@pytest.mark.parametrize(
    ("diagnosis", "reason"),
    [
        (RAISED, "its training raises"),
        (PREDICTS, "the program only predicts"),
        (SEARCHES, "it searches"),
        (EMPTY, "no training was seen"),
    ],
)
def test_what_does_not_train_is_not_timed(diagnosis: Diagnosis, reason: str) -> None:
    machine = Machine({"mixed_float16": diagnosis})
    compared = compare(SETTINGS, ["float32", "mixed_float16"], 2, SilentProgress(), machine.diagnose, machine.time)
    assert machine.asked.count("mixed_float16") == 0
    assert (compared.runs[1].timings, compared.runs[1].not_timed) == ((None, None), reason)


@pytest.mark.parametrize(
    ("seen", "reason", "status"),
    [
        (ExaminationFacts(not_timed="its step runs eagerly"), "its step runs eagerly", 2),
        (ExaminationFacts(), "it ended before its steps were timed", 2),
        (ExaminerCrashed("Traceback"), "mpdoctor itself failed", 3),
    ],
)
def test_what_brings_no_time_is_not_asked_again(seen: ExaminationFacts | Exception, reason: str, status: int) -> None:
    machine = Machine({}, TIMED, seen)
    compared = compare(SETTINGS, ["float32", "mixed_float16"], 3, SilentProgress(), machine.diagnose, machine.time)
    assert machine.asked[2:] == ["float32", "mixed_float16", "float32", "float32"]
    assert (compared.runs[1].known, compared.runs[1].not_timed) == ([], reason)
    assert compared.exit_code == status

"""The same small scripts in each environment: each gets the findings, the captured model, the chain of optimizers, the
verdict and the exit status that its marks say, in TensorFlow 2.4 on Python 3.8 as in the newest with Keras 3.

What differs between them is written at the mark: `expect[3]`, `verdict[2.4]`. Where the wrapper around a new-style
optimizer is called LossScaleOptimizerV3, the test knows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from checking import Check, contents
from environments import ENVIRONMENTS, NEWER_PYTHON, Environment, needs_environment
from marks import Marks, marks_from_source

from mpdoctor.examiner.keras.adapter_choice import adapter_for

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "every_keras"
SAMPLED = 60  # of about 180 in all
STEPS = "30"  # of a healthy training the last third skips none: 20 are enough for a scale to find its place
SEED = "7"  # initial weights decide which of the first steps are skipped
NEW_STYLE = ("2.15", "tf_keras")


@dataclass(frozen=True)
class Case:
    """One script in one environment."""

    path: Path
    marks: Marks
    environment: Environment

    @property
    def name(self) -> str:
        return f"{self.path.stem}-{self.environment.name}"

    def setting(self, name: str, default: str = "none") -> str:
        return self.marks.setting(name, self.environment.keras, default)

    def check(self) -> Check:
        factory = self.setting("target", "")
        target = f"{self.path.name}:{factory}" if factory else self.path.name
        steps = self.setting("steps", STEPS)
        seed = self.setting("seed", SEED)
        return self.environment.check(target, "--steps", steps, "--seed", seed, directory=SCRIPTS)


def cases() -> list[Case]:
    found = []
    for environment in (*ENVIRONMENTS, NEWER_PYTHON):
        for path in sorted(SCRIPTS.glob("*.py")):
            marks = marks_from_source(path.read_text(encoding="utf-8"))
            applies = marks.setting("keras", default=environment.keras).replace(" ", "").split(",")
            if environment.keras in applies:
                found.append(Case(path, marks, environment))
    return found


ALL = cases()


@pytest.fixture(scope="module", autouse=True)
def unchanged() -> Iterator[None]:
    before = contents(SCRIPTS)
    yield
    assert contents(SCRIPTS) == before, "a check changed a file of the user's"


@pytest.mark.environments
@pytest.mark.sampled(SAMPLED)
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.name, marks=needs_environment(case.environment)) for case in ALL]
)
def test_a_script_gets_its_diagnosis(case: Case) -> None:
    diagnosis = case.check()
    report = diagnosis.report
    found = sorted((finding["code"], finding["line"], finding["what_if"]) for finding in report["findings"])
    expected = sorted((mark.code, mark.line, mark.what_if) for mark in case.marks.findings(case.environment.keras))
    assert found == expected, str(diagnosis)
    assert [described(model) for model in report["models"]] == listed(case.setting("model")), str(diagnosis)
    assert [chain(model) for model in report["models"] if model["optimizer"]["chain"]] == listed(optimizer(case))
    assert [probe["verdict"] for probe in report["probes"]] == listed(case.setting("verdict")), str(diagnosis)
    assert diagnosis.exit_code == int(case.setting("exit")), str(diagnosis)
    assert case.setting("raised", default="") in str(report["findings"]), str(diagnosis)
    assert not report["crashed"]
    assert "Traceback" not in diagnosis.stderr


def listed(marked: str) -> list[str]:
    return [] if marked == "none" else [marked]


def described(model: dict[str, Any]) -> str:
    """net = Sequential(Dense, Dense)"""
    layers = ", ".join(layer["class"] for layer in model["layers"] if layer["class"] != "InputLayer")
    return f"{model['name']} = {model['class']}({layers})"


def chain(model: dict[str, Any]) -> str:
    return " > ".join(link["class"] for link in model["optimizer"]["chain"])


def optimizer(case: Case) -> str:
    marked = case.setting("optimizer")
    if case.environment.keras in NEW_STYLE and ("optimizer", case.environment.keras) not in case.marks.settings:
        return marked.replace("LossScaleOptimizer", "LossScaleOptimizerV3")
    return marked


@pytest.mark.parametrize("environment", (*ENVIRONMENTS, NEWER_PYTHON), ids=lambda environment: environment.name)
def test_the_table_can_be_run_here(environment: Environment) -> None:
    """Skipped, with the reason, where it cannot."""
    if environment.missing:
        pytest.skip(environment.missing)
    assert len([case for case in ALL if case.environment == environment]) >= 25


@pytest.mark.parametrize("version", ["2.4.3", "2.3.1"])
def test_a_package_keras_from_before_it_was_tensorflows_is_left_alone(version: str) -> None:
    module = ModuleType("keras")
    module.__version__ = version
    assert adapter_for(module) is None


def test_marks_name_what_they_speak_of() -> None:
    for case in ALL:
        assert case.setting("exit") in ("0", "1", "2"), case.name
        if case.setting("exit") == "0":
            mistakes = [m for m in case.marks.findings(case.environment.keras) if not m.what_if]
            assert not mistakes, case.name

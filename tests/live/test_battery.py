"""The battery: training scripts with a known disease, and healthy ones, written as different people would.

Each gets the verdict, the layer that broke, the findings of the training and the exponent of the loss scale that its
marks say. What Keras' own optimizers do to the same scripts in 300 steps, without mpdoctor, is kept in
fixtures/battery/plain_training.json (made by `python tests/support/plain_training.py --table`); the verdicts agree with
it.
"""

from __future__ import annotations

import shlex
import statistics
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from checking import Check, check, contents, needs_keras
from marks import Marks, marks_from_source
from plain_training import BATTERY, numbers_from_runs, row_from_own_process, rows_of_table
from samples import training

from mpdoctor.facts.training import GradientCulpritFacts, StepFacts
from mpdoctor.finding import Severity, Verdict
from mpdoctor.loss_scale import LossScale, keras2, keras3
from mpdoctor.rules.registry import all_rules
from mpdoctor.semantics.live.verdict import FEWEST_STEPS, verdict_from_training

ROWS = rows_of_table()
SAMPLED = 26  # scripts; ten seconds of a processor each
NO_ROW: dict[str, Any] = {"raised": None, "loss": None, "optimizers": []}  # a test of its own says that one is missing
# Rules that a training shows, the training of a float32 twin apart.
LIVE = {
    *("MP306", "MP313", "MP315", "MP401", "MP402", "MP403", "MP405", "MP408", "MP413", "MP503", "MP511", "MP601"),
    "MP605",
    *("MP901", "MP902", "MP903", "MP904", "MP905", "MP907", "MP909", "MP910", "MP911", "MP912"),
}
REGISTERED = {rule.code for rule in all_rules()}


@dataclass(frozen=True)
class Script:
    """One script of the battery in one Keras."""

    path: Path
    marks: Marks
    keras: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(BATTERY).with_suffix('').as_posix()}-{self.keras}"

    @property
    def is_healthy(self) -> bool:
        return self.path.parent.name == "healthy"

    @property
    def verdicts(self) -> list[str]:
        return self.marks.setting("verdict", self.keras).split(", ")

    @property
    def exponents(self) -> str:
        """ "" for a disease that says nothing of the loss scale."""
        return self.marks.setting("exponent", self.keras, default="0" if self.is_healthy else "")

    def expected(self) -> list[tuple[str, int]]:
        """(code, line or 0); what no rule of this version looks for is left out."""
        found = ((mark.code, mark.line or 0) for mark in self.marks.findings(self.keras) if not mark.what_if)
        return sorted(finding for finding in found if finding[0] in REGISTERED)

    def check(self) -> Check:
        arguments = shlex.split(self.marks.setting("args"))
        return check(
            self.path.name,
            *("--budget", "300"),  # on two slow cores ResNet50 takes longer than the usual 60 seconds
            *(["--", *arguments] if arguments else []),
            directory=self.path.parent,
            keras=self.keras,
        )


def scripts() -> list[Script]:
    found = []
    for path in sorted(BATTERY.rglob("*.py")):
        marks = marks_from_source(path.read_text(encoding="utf-8"))
        found += [Script(path, marks, keras) for keras in marks.keras]
    return found


ALL = scripts()


def each_script(
    *marks: pytest.MarkDecorator, of: Callable[[Script], bool] = lambda script: True
) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "script", [pytest.param(s, id=s.name, marks=[*marks, needs_keras(s.keras)]) for s in ALL if of(s)]
    )


TOO_SLOW = "its --budget was spent: this machine is too slow for it"


@pytest.fixture(scope="module", autouse=True)
def unchanged() -> Iterator[None]:
    before = contents(BATTERY)
    yield
    assert contents(BATTERY) == before, "a check changed a file of the user's"


# --- what mpdoctor says -----------------------------------------------------------------------------------------
@each_script(pytest.mark.slow, pytest.mark.sampled(SAMPLED))
def test_a_script_gets_its_diagnosis(script: Script) -> None:
    diagnosis = script.check()
    report = diagnosis.report
    if has_spent_budget(report) and any(probe["steps"] < FEWEST_STEPS for probe in report["probes"]):
        pytest.skip(TOO_SLOW)
    told = [f for f in report["findings"] if not f["what_if"] and (f["severity"] != Severity.INFO or is_measured(f))]
    assert [probe["verdict"] for probe in report["probes"]] == script.verdicts, str(diagnosis)
    assert sorted((f["code"], f["line"] or 0) for f in told) == script.expected(), str(diagnosis)
    assert diagnosis.exit_code == int(script.marks.setting("exit", script.keras)), str(diagnosis)
    assert not report["crashed"]
    culprit = script.marks.setting("culprit", script.keras)
    if culprit:
        assert culprit in culprits(report["probes"]), str(diagnosis)
    if script.exponents:
        assert_exponents(script, report)


def is_measured(finding: dict[str, Any]) -> bool:
    return finding["code"] in LIVE and finding["stage"] != "source"


def assert_exponents(script: Script, report: dict[str, Any]) -> None:
    """Of the loss scale in the size of an update: within 0.1 of 0 where there is none, else at least 0.9 of it."""
    found = [exponent(probe) for probe in report["probes"]]
    if None in found and has_spent_budget(report):
        pytest.skip(TOO_SLOW)
    wanted = [None if word == "none" else float(word) for word in script.exponents.split(", ")]
    wanted *= len(found) if len(wanted) == 1 else 1
    assert len(found) == len(wanted), found
    for seen, right in zip(found, wanted, strict=True):
        assert (seen is None) == (right is None)
        if right is not None and seen is not None:
            assert abs(seen) <= 0.1 if right == 0 else seen * right >= 0.9, found


def has_spent_budget(report: dict[str, Any]) -> bool:
    return any(probe["ended"] == "budget" for probe in report["probes"])


def culprits(probes: list[dict[str, Any]]) -> list[str]:
    """Names of the layers that broke, the last part of each path."""
    found = []
    for probe in probes:
        if probe.get("culprit"):
            found.append(probe["culprit"]["overflow"]["layer"])
        if probe["gradients"].get("culprit"):
            found.append(probe["gradients"]["culprit"]["layer"])
    return [path.rsplit("/", 1)[-1] for path in found]


def exponent(probe: dict[str, Any]) -> float | None:
    seen = probe["gradients"]["scale_dependence"]
    return statistics.median(value for _, value in seen["exponents"]) if seen else None


# --- what Keras does --------------------------------------------------------------------------------------------
def steps_from_row(row: dict[str, Any], keras: str, number: int) -> tuple[StepFacts, ...]:
    """The history of the first steps, the scale as the pure state machine has it."""
    skipped = set(numbers_from_runs(row["skipped"]))
    finite = [step not in skipped for step in range(row["steps"])][:number]
    scales = machine_from_row(row, keras).trajectory(finite) if row["growth"] else [row["scale"]] * len(finite)
    return tuple(StepFacts(scale, applied) for scale, applied in zip(scales, finite, strict=True))


def machine_from_row(row: dict[str, Any], keras: str) -> LossScale:
    return (keras3 if keras == "3" else keras2)(row["initial"], row["growth"])


def rows_with_verdicts() -> list[Any]:
    """(script, one row of its optimizers, its marked verdict)"""
    return [
        pytest.param(script, row, Verdict(verdict), id=f"{script.name}-{number}")
        for script in ALL
        for number, (row, verdict) in enumerate(
            zip(ROWS.get(script.name, NO_ROW)["optimizers"], script.verdicts, strict=False)
        )
    ]


@pytest.mark.parametrize(("script", "row", "verdict"), rows_with_verdicts())
def test_the_verdict_agrees_with_what_keras_does(script: Script, row: dict[str, Any], verdict: Verdict) -> None:
    last_third = range(row["steps"] - row["steps"] // 3, row["steps"])
    late = [step for step in numbers_from_runs(row["skipped"]) if step in last_third]
    is_sound = row["weights_finite"] and row["weights_moved"]
    if verdict in (Verdict.HEALTHY, Verdict.SETTLING):
        often = row["growth"] and row["growth"] < row["steps"]
        assert is_sound
        assert len(late) <= (len(last_third) // row["growth"] + 1 if often else 1)
    elif verdict is Verdict.STUCK:
        assert (len(late), row["scale"]) == (len(last_third), 1.0)
    elif verdict is Verdict.COLLAPSING:
        assert not is_sound or len(late) == len(last_third)
        assert row["scale"] == "inf" or row["scale"] < 1
    elif verdict is Verdict.OVERFLOWING:
        goes_on = len([step for step in numbers_from_runs(row["skipped"]) if step >= 50]) >= 2
        assert is_sound
        assert goes_on or row["scale"] < 1
    elif verdict is Verdict.NOT_FINITE:
        assert not row["weights_finite"] or isinstance(ROWS[script.name]["loss"], str)
    elif verdict is Verdict.NO_UPDATE:
        assert not row["weights_moved"]
    elif verdict is Verdict.FAILED:
        assert ROWS[script.name]["raised"]
    else:
        assert row["steps"] < FEWEST_STEPS or set(range(50)) <= set(numbers_from_runs(row["skipped"]))


@pytest.mark.parametrize(("script", "row", "verdict"), rows_with_verdicts())
def test_its_own_history_gives_the_verdict(script: Script, row: dict[str, Any], verdict: Verdict) -> None:
    """What mpdoctor judges after 50 steps is what the numbers of Keras' own run give."""
    if verdict in (Verdict.NOT_FINITE, Verdict.FAILED):
        pytest.skip("the loss, or an error, that the table does not hold")
    if verdict is Verdict.INCONCLUSIVE and row["scale"] <= 1:
        pytest.skip("a kernel of the device, which the table does not hold")
    facts = training(
        steps_from_row(row, script.keras, 50),
        floor=None if script.keras == "3" else 1.0,
        growth_interval=row["growth"],
        initial_scale=row["initial"],
        weights_changed=row["weights_moved"],
        ended="script",
        gradient_culprit=GradientCulpritFacts(49, "", without_scale=True) if script.marks.setting("culprit") else None,
    )
    assert verdict_from_training(facts)[0] is verdict


@pytest.mark.parametrize(("script", "row", "verdict"), rows_with_verdicts())
def test_our_state_machine_ends_where_keras_does(script: Script, row: dict[str, Any], verdict: Verdict) -> None:
    if row["growth"]:
        skipped = set(numbers_from_runs(row["skipped"]))
        finite = [step not in skipped for step in range(row["steps"])]
        scale = machine_from_row(row, script.keras).trajectory([*finite, True])[-1]
        assert struct.unpack("f", struct.pack("f", scale))[0] == float(row["scale"])


def test_the_table_has_a_row_for_every_script() -> None:
    assert set(ROWS) == {script.name for script in ALL}
    for script in ALL:
        row = ROWS[script.name]
        assert (row["raised"] is not None) == (script.verdicts == ["failed"]), script.name
        if "failed" not in script.verdicts and "six_steps" not in script.name:
            assert len(row["optimizers"]) == len(script.verdicts), script.name
            assert all(optimizer["steps"] >= 300 for optimizer in row["optimizers"]), script.name


ONE_OF_EACH = {(script.verdicts[0], script.keras): script.name for script in ALL}.values()


@each_script(pytest.mark.slow, pytest.mark.sampled(6), of=lambda script: script.name in ONE_OF_EACH)
def test_a_script_does_again_what_the_table_says(script: Script) -> None:
    """Rounding depends on the processor, so that a step more or less may be skipped."""
    again, row = row_from_own_process(script.path, script.keras), ROWS[script.name]
    assert again["raised"] == row["raised"]
    for now, then in zip(again["optimizers"], row["optimizers"], strict=True):
        exact = ("steps", "initial", "growth", "weights_finite", "weights_moved")
        assert {name: now[name] for name in exact} == {name: then[name] for name in exact}
        assert abs(len(numbers_from_runs(now["skipped"])) - len(numbers_from_runs(then["skipped"]))) <= 2
        assert now["scale"] == then["scale"] or 0.25 <= float(now["scale"]) / float(then["scale"]) <= 4


# --- the battery itself -----------------------------------------------------------------------------------------
def test_every_verdict_and_every_live_rule_has_a_script() -> None:
    marked = {mark.code for script in ALL for mark in script.marks.findings(script.keras)}
    exponents = {script.marks.setting("exponent", script.keras) for script in ALL}
    assert {verdict for script in ALL for verdict in script.verdicts} == set(Verdict)
    assert marked >= LIVE - {"MP912"}  # which MP401 to MP405 and MP306 explain
    assert {"1", "-1"} <= exponents


def test_the_battery_is_large_enough() -> None:
    sick = {script.path for script in ALL if not script.is_healthy}
    healthy = {script.path for script in ALL if script.is_healthy}
    assert (len(sick) >= 24, len(healthy) >= 16) == (True, True)
    for script in ALL:
        if script.is_healthy:
            assert (script.expected(), script.marks.setting("exit", script.keras)) == ([], "0"), script.name
            assert set(script.verdicts) == {"healthy"}

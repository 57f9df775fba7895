"""Of a very long diagnosis a person is shown as much as can be read, and how to see the rest; machines get all of it,
in a time that grows with its length and no faster."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Callable
from xml.etree import ElementTree

import pytest
import samples
from fuzzing import at_most

from mpdoctor.cli.output import OutputFormat
from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Crashed, Diagnosis, Skipped
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.reporters.rendering import report_from_diagnosis


def findings(number: int, **more: object) -> Diagnosis:
    finding = dataclasses.replace(samples.SHADOWED, **more)  # type: ignore[arg-type]
    told = (
        dataclasses.replace(finding, location=Location(f"{n}.py", n + 1), fingerprint=f"{n:x}") for n in range(number)
    )
    return samples.diagnosis(*told)


def targets(number: int) -> Diagnosis:
    """Each with a finding without a line, a model, a stage that was skipped."""
    wanted = samples.static().targets[0]
    nowhere = dataclasses.replace(samples.SHADOWED, location=None, excerpt=None, layer="dense", stage="model")
    return dataclasses.replace(
        findings(0),
        targets=tuple(dataclasses.replace(wanted, id=f"{n}.py", path=f"{n}.py") for n in range(number)),
        findings=tuple(dataclasses.replace(nowhere, target=f"{n}.py", model=f"{n}.py#1") for n in range(number)),
        models=tuple((f"{n}.py", dataclasses.replace(samples.model(), id=f"{n}.py#1")) for n in range(number)),
    )


def probes(number: int) -> Diagnosis:
    return dataclasses.replace(samples.collapsing(), probes=samples.collapsing().probes * number)


def asides(number: int) -> Diagnosis:
    return dataclasses.replace(
        findings(1, also_seen=tuple(AlsoSeen("MP201", "model", f"text {n} " * 9) for n in range(number))),
        skipped=tuple(Skipped("MP912", f"reason {n}") for n in range(number)),
        crashed=tuple(Crashed("MP912", f"file{n}.py", "KeyError") for n in range(number)),
    )


def words(number: int) -> Diagnosis:
    text = " ".join(f"word{n % 7}" for n in range(number))
    return findings(3, message=text, help=text[::-1], also_seen=(AlsoSeen("MP302", "model", text[::-1]),))


def lines(number: int) -> Diagnosis:
    layer = samples.layer("x" * number)
    return samples.diagnosis(*findings(2, message="`" * number).findings, models=(("train.py", samples.model(layer)),))


LONG: dict[str, tuple[Callable[[int], Diagnosis], int]] = {
    "findings": (findings, 60_000),
    "targets": (targets, 3_000),
    "probes": (probes, 500),
    "asides": (asides, 10_000),
    "words": (words, 100_000),
    "lines": (lines, 500_000),
}


@pytest.mark.slow
@pytest.mark.sampled(20)
@pytest.mark.parametrize("form", OutputFormat)
@pytest.mark.parametrize("name", LONG)
def test_a_very_long_diagnosis_is_shown_in_time(form: OutputFormat, name: str) -> None:
    make, number = LONG[name]
    diagnosis = make(number)
    with at_most(100):
        assert report_from_diagnosis(diagnosis, form.value)


@pytest.mark.slow
def test_a_very_long_diagnosis_is_read_in_time() -> None:
    text = json_reporter.render(findings(60_000))
    with at_most(100):
        assert len(diagnosis_from_json(text).findings) == 60_000


@pytest.mark.parametrize("form", ["terminal", "svg"])
@pytest.mark.parametrize("what_if", [True, False])
def test_people_are_shown_what_can_be_read_and_told_how_much_is_left(form: str, what_if: bool) -> None:
    from mpdoctor.reporters.svg import MOST_FINDINGS as IN_A_PICTURE
    from mpdoctor.reporters.terminal import MOST_FINDINGS

    most = {"terminal": MOST_FINDINGS, "svg": IN_A_PICTURE}[form]
    short: dict[str, object] = {"what_if": what_if, "excerpt": None, "help": "", "also_seen": (), "message": "short"}
    shown = told(report_from_diagnosis(findings(most + 7, **short), form))
    assert shown.count("errorMP302") == most
    assert "…and7morefindings:`--output-formatconcise`namesthem,`--reportFILE.html`showsthem" in shown
    assert "morefindings" not in told(report_from_diagnosis(findings(5), form))


def told(report: str) -> str:
    """Its words, without blanks."""
    if report.startswith("<svg"):
        report = "".join(ElementTree.fromstring(report).itertext())
    return "".join(report.split())


def test_the_terminal_says_how_much_more_there_is() -> None:
    """Further sights, what was not done, trainings."""
    shown = report_from_diagnosis(asides(300), "terminal")
    assert shown.count("\n") < 500
    assert len([line for line in shown.split("\n") if "more" in line]) >= 3
    shown = report_from_diagnosis(probes(100), "terminal")
    assert shown.count("Training  collapsing") < 100
    assert "more trainings" in shown


def test_machines_get_all_of_it() -> None:
    diagnosis = findings(1_200)
    assert report_from_diagnosis(diagnosis, "concise").count("\n") == 1_200
    assert report_from_diagnosis(diagnosis, "github").count("\n") == 1_200
    assert len(json.loads(report_from_diagnosis(diagnosis, "json"))["findings"]) == 1_200
    assert len(json.loads(report_from_diagnosis(diagnosis, "gitlab"))) == 1_200
    assert len(json.loads(report_from_diagnosis(diagnosis, "sarif"))["runs"][0]["results"]) == 1_200
    assert len(ElementTree.fromstring(report_from_diagnosis(diagnosis, "junit")).findall(".//failure")) == 1_200
    assert report_from_diagnosis(diagnosis, "html").count("<article") == 1_200

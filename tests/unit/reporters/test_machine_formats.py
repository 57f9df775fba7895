"""Reports for other tools: GitLab's code quality, JUnit and SARIF, each validated by a reader of that format."""

from __future__ import annotations

import dataclasses
import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import jsonschema
import pytest
import samples
from hypothesis import given
from hypothesis import strategies as st
from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Diagnosis, Finding, Severity, Stage
from mpdoctor.reporters import github, gitlab, junit, sarif
from mpdoctor.reporters import json as json_reporter

SCHEMAS = Path(__file__).parents[2] / "support" / "schemas"
# As it was published, from the package sarif-om (MIT licence, Microsoft).
SARIF = json.loads((SCHEMAS / "sarif-2.1.0-rtm.4.json").read_text(encoding="utf-8"))
GITLAB = json.loads((SCHEMAS / "gitlab-code-quality.json").read_text(encoding="utf-8"))
EVERY = [*samples.SAMPLES.values(), samples.hostile]
CELL = dataclasses.replace(samples.SHADOWED, location=Location("a b.ipynb", 2, 5, 2, 9, cell=3), also_seen=())
NOWHERE = dataclasses.replace(samples.SHADOWED, location=None, excerpt=None, stage="model", also_seen=())


def entries(diagnosis: Diagnosis) -> list[dict[str, Any]]:
    told: list[dict[str, Any]] = json.loads(gitlab.render(diagnosis))
    jsonschema.validate(told, GITLAB, cls=jsonschema.Draft202012Validator)
    return told


def sarif_run(diagnosis: Diagnosis) -> dict[str, Any]:
    log = json.loads(sarif.render(diagnosis))
    jsonschema.validate(log, SARIF, cls=jsonschema.Draft4Validator, format_checker=jsonschema.FormatChecker())
    run: dict[str, Any] = log["runs"][0]
    return run


def suites(diagnosis: Diagnosis) -> list[TestSuite]:
    return list(JUnitXml.fromstring(junit.render(diagnosis).encode()))


def cases(diagnosis: Diagnosis) -> list[TestCase]:
    return [case for suite in suites(diagnosis) for case in suite]


def outcomes(diagnosis: Diagnosis) -> dict[str, str]:
    """What became of each testcase, by its name: "passed", "Failure", "Error", "Skipped"."""
    return {case.name: type(case.result[0]).__name__ if case.result else "passed" for case in cases(diagnosis)}


# --- GitLab's code quality ------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sample", EVERY)
def test_gitlab_gets_one_entry_a_finding(sample: Any) -> None:
    told = entries(sample())
    assert len(told) == len(sample().findings)
    assert len({entry["fingerprint"] for entry in told}) == len(told)
    assert gitlab.render(sample()).isascii()


@pytest.mark.parametrize(
    ("finding", "severity", "location"),
    [
        (samples.SHADOWED, "major", {"path": "train.py", "lines": {"begin": 12}}),
        (dataclasses.replace(CELL, severity=Severity.WARNING), "minor", {"path": "a b.ipynb"}),
        (dataclasses.replace(NOWHERE, severity=Severity.INFO), "info", {"path": "train.py"}),
        (dataclasses.replace(samples.SHADOWED, what_if=True), "info", {"path": "train.py", "lines": {"begin": 12}}),
        (
            dataclasses.replace(samples.SHADOWED, location=Location("", 12)),
            "major",
            {"path": ".", "lines": {"begin": 12}},
        ),
    ],
)
def test_what_gitlab_is_told(finding: Finding, severity: str, location: dict[str, Any]) -> None:
    (entry,) = entries(samples.diagnosis(finding))
    assert (entry["severity"], entry["location"]) == (severity, location)
    assert entry["check_name"] == "MP302 attribute-shadowed-by-wrapper"
    assert entry["description"].endswith("fix: Set it on the optimizer inside: `opt.inner_optimizer.epsilon = 1e-4`.")


def test_gitlab_tells_cell_and_policy_in_words() -> None:
    said = [entry["description"] for entry in entries(samples.diagnosis(CELL, samples.what_if().findings[0]))]
    assert said[0].startswith("MP302: cell 3, line 2: `opt.epsilon")
    assert said[1].startswith("MP201: under mixed_float16: The model's")


# --- JUnit ----------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("sample", EVERY)
def test_junit_counts_what_it_holds(sample: Any) -> None:
    diagnosis = sample()
    read = suites(diagnosis)
    for suite in read:
        kinds = [type(case.result[0]) for case in suite if case.result]
        assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (
            len(list(suite)), kinds.count(Failure), kinds.count(Error), kinds.count(Skipped),
        )  # fmt: skip
    failing = [finding for finding in diagnosis.findings if finding.fails_a_run(Severity.WARNING)]
    assert sum(suite.failures for suite in read) == len(failing)
    names = [(suite.name, case.classname, case.name) for suite in read for case in suite]
    assert len(set(names)) == len(names)
    assert junit.render(diagnosis).isascii()


def test_junit_tells_what_was_looked_at() -> None:
    assert outcomes(samples.healthy()) == dict.fromkeys(("source stage", "model stage", "training stage"), "passed")
    assert outcomes(samples.static())["training stage"] == "Skipped"
    failed = outcomes(samples.failing_script())
    assert (failed["model stage"], failed["training stage"]) == ("Error", "Skipped")
    assert outcomes(dataclasses.replace(samples.failing_script(), exit_code=1))["model stage"] == "Skipped"
    assert [suite.name for suite in suites(samples.several_trainings())] == ["train.py", "mpdoctor"]
    assert outcomes(samples.several_trainings())["MP912 did not look"] == "Skipped"
    assert outcomes(samples.hostile())["MP999 broke"] == "Error"


@pytest.mark.parametrize(
    ("severity", "fail_on", "outcome"),
    [
        (Severity.ERROR, Severity.ERROR, "Failure"),
        (Severity.WARNING, Severity.ERROR, "Skipped"),
        (Severity.WARNING, Severity.WARNING, "Failure"),
        (Severity.INFO, Severity.WARNING, "Skipped"),
        (Severity.INFO, Severity.INFO, "Failure"),
    ],
)
def test_a_testcase_fails_where_the_run_does(severity: Severity, fail_on: Severity, outcome: str) -> None:
    finding = dataclasses.replace(samples.SHADOWED, severity=severity)
    name = "MP302 attribute-shadowed-by-wrapper: opt.epsilon = 1e-4"
    assert outcomes(samples.diagnosis(finding, fail_on=fail_on))[name] == outcome
    what_if = dataclasses.replace(finding, what_if=True)
    assert outcomes(samples.diagnosis(what_if, fail_on=fail_on))[name] == "Skipped"


def test_a_testcase_keeps_its_name_when_lines_are_added_above() -> None:
    assert samples.SHADOWED.location is not None and samples.SHADOWED.excerpt is not None
    lower = dataclasses.replace(
        samples.SHADOWED,
        location=dataclasses.replace(samples.SHADOWED.location, line=20, end_line=20),
        excerpt=dataclasses.replace(samples.SHADOWED.excerpt, first_line=19),
    )
    before, after = (samples.diagnosis(finding) for finding in (samples.SHADOWED, lower))
    assert outcomes(before) == outcomes(after)
    assert list(outcomes(samples.diagnosis(samples.SHADOWED, lower)))[-1].endswith("opt.epsilon = 1e-4 (2)")
    layered = dataclasses.replace(NOWHERE, layer="encoder/dense")
    assert list(outcomes(samples.diagnosis(layered)))[-1] == "MP302 attribute-shadowed-by-wrapper: layer encoder/dense"


def test_what_a_failure_says() -> None:
    failure = cases(samples.one_error())[-1].result[0]
    assert (failure.type, failure.message) == ("error", samples.SHADOWED.message)
    assert failure.text.splitlines()[0] == "train.py:12:1"
    assert "\nfix: Set it on the optimizer inside" in failure.text
    assert "\nalso seen (MP302, model): the wrapper's epsilon" in failure.text


@given(st.text(alphabet=st.characters(), max_size=40))
def test_junit_is_well_formed_whatever_a_name_holds(name: str) -> None:
    finding = dataclasses.replace(
        samples.SHADOWED, layer=name, message=name, help=name, location=Location(name, 3), excerpt=None
    )
    target = dataclasses.replace(samples.TARGET, id=name, stages={"source": Stage("skipped", name)})
    diagnosis = samples.diagnosis(dataclasses.replace(finding, target=name), targets=(target,))
    assert len(cases(diagnosis)) == 2


# --- a finding without a line gets none -----------------------------------------------------------------------------
def numbers_after(pattern: str, text: str) -> list[int]:
    return [int(number) for number in re.findall(pattern, text)]


@pytest.mark.parametrize(("finding", "place"), [(NOWHERE, "train.py"), (CELL, "cell 3, line 2")])
def test_no_format_makes_a_line_up(finding: Finding, place: str) -> None:
    diagnosis = samples.diagnosis(finding)
    assert "line=" not in github.render(diagnosis)
    assert f"::{place}: `opt.epsilon" in github.render(diagnosis)
    assert "lines" not in entries(diagnosis)[0]["location"]
    assert ElementTree.fromstring(junit.render(diagnosis)).findall(".//testcase[@line]") == []
    assert "region" not in sarif_run(diagnosis)["results"][0]["locations"][0]["physicalLocation"]


@pytest.mark.parametrize("sample", EVERY)
def test_every_line_is_one_that_was_seen(sample: Any) -> None:
    diagnosis = sample()
    lines = {finding.location.line for finding in diagnosis.findings if finding.location}
    assert set(numbers_after(r",line=(\d+)", github.render(diagnosis))) <= lines
    assert {place["lines"]["begin"] for e in entries(diagnosis) if "lines" in (place := e["location"])} <= lines
    marked = ElementTree.fromstring(junit.render(diagnosis)).findall(".//testcase[@line]")
    assert {int(str(case.get("line"))) for case in marked} <= lines
    seen = lines | {also.line for finding in diagnosis.findings for also in finding.also_seen}
    for _, model in diagnosis.models:
        places = [
            model.call.location,
            *(place for layer in model.layers for place in (layer.made_at, layer.class_location)),
        ]
        seen |= {place.line for place in places if place is not None}
    shown = json.dumps(sarif_run(diagnosis)["results"])
    assert set(numbers_after(r'"startLine": (\d+)', shown)) <= seen


# --- SARIF: where live findings stand -------------------------------------------------------------------------------
def layered(**more: Any) -> Diagnosis:
    """A finding about `encoder/dense` that knows no line."""
    finding = dataclasses.replace(NOWHERE, layer="encoder/dense", **more)
    return samples.diagnosis(finding, models=(("train.py", samples.model(samples.layer("encoder/dense"))),))


def with_layer(diagnosis: Diagnosis, **more: Any) -> Diagnosis:
    ((target, model),) = diagnosis.models
    layer = dataclasses.replace(model.layers[0], **more)
    return dataclasses.replace(diagnosis, models=((target, dataclasses.replace(model, layers=(layer,))),))


def location_of(diagnosis: Diagnosis) -> dict[str, Any]:
    (location,) = sarif_run(diagnosis)["results"][0]["locations"]
    return dict(location)


CLASS, MADE = Location("layers.py", 4), Location("train.py", 9, 5)


@pytest.mark.parametrize(
    ("diagnosis", "path", "line", "what"),
    [
        (layered(), "train.py", 31, "the training call"),
        (with_layer(layered(), made_at=MADE), "train.py", 9, "where layer encoder/dense is made"),
        (
            with_layer(layered(), made_at=MADE, class_location=CLASS, own_class=True),
            "layers.py",
            4,
            "the class of layer encoder/dense",
        ),
        (with_layer(layered(), class_location=CLASS), "train.py", 31, "the training call"),
        (layered(model=None), "train.py", 31, "the training call"),
    ],
)
def test_a_live_finding_without_a_line_is_led_to_one_that_was_seen(
    diagnosis: Diagnosis, path: str, line: int, what: str
) -> None:
    location = location_of(diagnosis)
    assert location["physicalLocation"]["artifactLocation"]["uri"] == path
    assert location["physicalLocation"]["region"]["startLine"] == line
    assert location["message"] == {"text": what}


@pytest.mark.parametrize(
    "diagnosis",
    [
        layered(stage="source"),
        layered(model="another"),
        layered(target="other.py"),
        dataclasses.replace(layered(), models=(("train.py", samples.model(kind="none")),)),
    ],
)
def test_in_doubt_there_is_a_file_and_no_line(diagnosis: Diagnosis) -> None:
    assert "region" not in location_of(diagnosis)["physicalLocation"]


def test_layers_are_logical_locations() -> None:
    assert location_of(layered())["logicalLocations"] == [
        {"name": "dense", "fullyQualifiedName": "sequential/encoder/dense", "kind": "member"}
    ]
    several = location_of(layered(evidence={"layers": ["encoder/dense", "head"]}))["logicalLocations"]
    assert [layer["fullyQualifiedName"] for layer in several] == ["sequential/encoder/dense", "sequential/head"]
    unknown = location_of(dataclasses.replace(layered(), models=()))["logicalLocations"]
    assert unknown == [{"name": "dense", "fullyQualifiedName": "encoder/dense", "kind": "member"}]
    collapse = sarif_run(samples.collapsing())["results"][-1]["locations"][0]
    assert collapse["logicalLocations"] == [
        {"name": "sequential", "fullyQualifiedName": "sequential", "kind": "object"}
    ]
    assert "logicalLocations" not in location_of(samples.diagnosis(dataclasses.replace(samples.SHADOWED, model=None)))


def test_evidence_becomes_related_locations() -> None:
    also = (
        AlsoSeen("MP302", "model", "with a line", "train.py", 12),
        AlsoSeen("MP905", "training", "without a place"),
        AlsoSeen("MP907", "training", "in a file", "other.py"),
        AlsoSeen("MP101", "source", "in a cell", "a.ipynb", 4, 2),
    )
    finding = dataclasses.replace(samples.SHADOWED, also_seen=also)
    (result,) = sarif_run(samples.diagnosis(finding))["results"]
    told = [
        (
            related["id"],
            related["physicalLocation"]["artifactLocation"]["uri"],
            related["physicalLocation"].get("region"),
            related["message"]["text"],
        )
        for related in result["relatedLocations"]
    ]
    assert told == [
        (1, "train.py", {"startLine": 12}, "MP302: with a line"),
        (2, "train.py", None, "MP905: without a place"),
        (3, "other.py", None, "MP907: in a file"),
        (4, "a.ipynb", None, "cell 2, line 4: MP101: in a cell"),
    ]


def test_no_link_leads_nowhere() -> None:
    """`helpUri` stands only where the documentation is published."""
    rule = dataclasses.replace(samples.one_error().rules[0], url="")
    told = sarif_run(dataclasses.replace(samples.one_error(), rules=(rule,)))["tool"]["driver"]
    assert "helpUri" not in told["rules"][0]
    assert "informationUri" not in told
    assert sarif_run(samples.one_error())["tool"]["driver"]["rules"][0]["helpUri"].startswith("https://example.org/")


def test_json_says_what_fails_the_run() -> None:
    assert json.loads(json_reporter.render(samples.diagnosis(fail_on=Severity.ERROR)))["fail_on"] == "error"

"""A diagnosis that somebody crafted: whatever stands in any of its strings, no report holds anything that commands a
terminal, reorders what is read, or speaks to the CI in whose log it stands."""

from __future__ import annotations

import collections.abc
import dataclasses
import json
import re
import types
import typing
from enum import Enum
from typing import Any
from xml.etree import ElementTree

import html5lib
import pytest
import samples

from mpdoctor.cli import main
from mpdoctor.cli.output import Output, OutputFormat, put_out
from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.rendering import report_from_diagnosis

SEEN = "seen"  # what every string holds besides, so that a report without any of them is noticed
COMMANDS = "\n::error::a\r\n ::add-mask::b\n##[error]c\n\u3000::warning file=x::d##[debug]e ##vso[task.x]f"
CONTROL = "\x1b]0;title\x07\x1b[2J\x00\x08\x7f\x9b31m\x85\u202e\u2066\u2028\u2029\ufeff\ud800\udcff\ufffe\t"
HOSTILE = [
    pytest.param(SEEN + CONTROL, id="control"),
    pytest.param(COMMANDS + SEEN, id="commands"),
    pytest.param("::error::" + SEEN, id="command in front"),
    pytest.param(f"{'x ' * 30}::error::{SEEN} " * 4, id="commands where lines are broken"),
    pytest.param(f"{SEEN}\n```\n::error::\n```", id="commands in blocks"),
]
# What is no text of anybody's, and what a loaded diagnosis was checked for.
CLOSED = {(Keras, "package"): "keras"}


def filled(kind: Any, text: str, within: tuple[Any, str] = (None, "")) -> Any:
    """One of a type, with this text in every string that it and everything in it can hold."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if within in CLOSED:
        return CLOSED[within]
    if dataclasses.is_dataclass(kind):
        hints = typing.get_type_hints(kind)
        return kind(
            **{field.name: filled(hints[field.name], text, (kind, field.name)) for field in dataclasses.fields(kind)}
        )
    if origin in (typing.Union, types.UnionType):
        return filled(next(member for member in inner if member is not type(None)), text)
    if origin is typing.Literal:
        return inner[0]
    if origin is tuple:
        return (filled(inner[0], text),) if inner[1:] == (...,) else tuple(filled(member, text) for member in inner)
    if origin is frozenset:
        return frozenset({filled(inner[0], text)})
    if origin in (dict, collections.abc.Mapping):
        value = filled(inner[1], text)
        return {text: value, "source": value, "layers": [text, text]} if inner[1] is Any else {
            text: value, "source": value,
        }  # fmt: skip
    if isinstance(kind, type) and issubclass(kind, Enum):
        return next(iter(kind))
    plain = {str: text, int: 1, float: 1.5, bool: True, Any: text, object: text}
    return plain[kind]


def crafted(text: str) -> Diagnosis:
    diagnosis: Diagnosis = filled(Diagnosis, text)
    (probe,), (finding,) = diagnosis.probes, diagnosis.findings
    step = dataclasses.replace(probe.training.steps[0], applied=False)
    training = dataclasses.replace(probe.training, steps=(step, step, probe.training.steps[0]), data="synthetic")
    nowhere = dataclasses.replace(finding, location=None, what_if=False)
    return dataclasses.replace(
        diagnosis,
        findings=(finding, dataclasses.replace(finding, what_if=False), nowhere),
        probes=(dataclasses.replace(probe, training=training), dataclasses.replace(probe, training=dataclasses.replace(
            training, culprit=None, data="real"))),
    )  # fmt: skip


def strings(told: Any) -> list[str]:
    """Every string of some JSON."""
    if isinstance(told, str):
        return [told]
    inner = [*told, *told.values()] if isinstance(told, dict) else told if isinstance(told, list) else []
    return [text for value in inner for text in strings(value)]


def read(form: OutputFormat, report: str) -> list[str]:
    """What a reader of this format gets to see, in pieces."""
    if form in (OutputFormat.sarif, OutputFormat.gitlab):
        return strings(json.loads(report))
    if form in (OutputFormat.svg, OutputFormat.junit):
        root = ElementTree.fromstring(report)
        return [
            text
            for element in root.iter()
            for text in (element.text or "", element.tail or "", *element.attrib.values())
        ]
    if form is OutputFormat.html:
        page = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parse(report)
        return [
            text
            for element in page.iter()
            for text in (element.text or "", element.tail or "", *element.attrib.values())
        ]
    return [report]


HIDDEN = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]")


def hidden(text: str) -> set[str]:
    return set(HIDDEN.findall(text))


@pytest.mark.parametrize("form", OutputFormat)
@pytest.mark.parametrize("text", HOSTILE)
def test_nothing_hidden_stands_in_any_report(form: OutputFormat, text: str) -> None:
    report = report_from_diagnosis(crafted(text), form.value)
    assert SEEN in report
    assert hidden(report) == set()
    if form is not OutputFormat.json:  # data: written as escapes, and read as it was
        assert {character for piece in read(form, report) for character in hidden(piece)} == set()


@pytest.mark.parametrize("form", OutputFormat)
@pytest.mark.parametrize("text", HOSTILE)
def test_no_line_of_data_is_a_command_to_a_ci(form: OutputFormat, text: str) -> None:
    """GitHub's runner takes `::name::` after blanks at the beginning of a line; `##[name]`, and Azure's `##vso[`,
    anywhere in it."""
    report = report_from_diagnosis(crafted(text), form.value)
    lines = report.split("\n")
    commands = [line for line in lines if line.lstrip().startswith("::")]
    if form is OutputFormat.github:
        assert all(re.match(r"::(error|warning|notice) [a-zA-Z]+=[^:]*::", line) for line in lines if line)
    else:
        assert commands == []
    assert not re.search(r"##(?:\w*)\[", report)


@pytest.mark.parametrize("color", [True, False])
@pytest.mark.parametrize("width", [40, 80])
def test_the_terminal_gets_colours_of_ours_alone(color: bool, width: int) -> None:
    shown = report_from_diagnosis(crafted(SEEN + CONTROL + COMMANDS), "terminal", color=color, width=width)
    plain = re.sub(r"\x1b\[[0-9;]*m", "", shown)
    assert hidden(plain) == set()
    assert max(map(len, plain.split("\n"))) <= width
    assert [line for line in plain.split("\n") if line.lstrip().startswith("::")] == []


@pytest.mark.parametrize(
    "command", [["show"], ["check", "--static"], ["check", "--config"], ["check", "--seen\u202e##[x]"]]
)
def test_a_name_in_a_sentence_is_as_harmless(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main([*command, "seen\x1b[2J\n::error::##[debug]x"])
    told = capsys.readouterr().err
    assert end.value.code == 2
    assert SEEN in told or "Missing" in told
    assert hidden(told) == set()
    assert "##[" not in told and not re.search(r"^\s*::", told, re.MULTILINE)


def test_what_holds_nothing_hostile_is_reported_as_it_was() -> None:
    """The escapes are for what needs them."""
    text = "x[::2] and a::b, ## [x], # [link] √ é 数据"
    for form in OutputFormat:
        told = "".join(read(form, report_from_diagnosis(samples.diagnosis(command=text), form.value)))
        if form in (OutputFormat.svg, OutputFormat.terminal, OutputFormat.html, OutputFormat.sarif):
            assert text.replace(" ", "") in re.sub(r"[\s\xa0]", "", told), form


def test_a_name_on_one_line_stays_on_one() -> None:
    concise = report_from_diagnosis(crafted("a\nb"), "concise")
    assert len(concise.splitlines()) == 3


@pytest.mark.parametrize(
    ("path", "uri"),
    [("b\udcff.py", "b%FF.py"), ("é.py", "%C3%A9.py"), ("a\x1b:b.py", "a%1B%3Ab.py"), ("\ud800.py", "%3F.py"),
     ("..x.py", "..x.py")],
)  # fmt: skip
def test_a_file_in_sarif_is_named_by_its_bytes(path: str, uri: str) -> None:
    finding = dataclasses.replace(samples.SHADOWED, location=Location(path, 3))
    (run,) = json.loads(report_from_diagnosis(samples.diagnosis(finding), "sarif"))["runs"]
    assert run["results"][0]["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == uri


@pytest.mark.parametrize("value", [7, None, True, "dense", {"dense": 1}, [7, None], [[]]], ids=str)
def test_evidence_of_any_shape_is_shown_in_every_format(value: object) -> None:
    evidence = dict.fromkeys(("layers", "operands", "gone_since", "told_by"), value)
    finding = dataclasses.replace(samples.SHADOWED, stage="training", evidence=evidence)
    for form in OutputFormat:
        assert report_from_diagnosis(samples.diagnosis(finding), form.value)


def test_what_is_said_beside_a_report_is_as_harmless(capsys: pytest.CaptureFixture[str]) -> None:
    """What broke, and the statistics."""
    put_out(crafted(SEEN + CONTROL + COMMANDS), Output(OutputFormat.concise, statistics=True))
    told = capsys.readouterr()
    for text in told:
        assert SEEN in text
        assert hidden(text) == set()
        assert "##[" not in text and not re.search(r"^\s*::", text, re.MULTILINE)

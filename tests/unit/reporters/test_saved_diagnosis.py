"""A saved diagnosis is shown as it was, by every reporter, where nothing of what it is about is at hand."""

from __future__ import annotations

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
import samples
from generated import diagnoses
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from mpdoctor.cli import main
from mpdoctor.cli.output import Output, OutputFormat, put_out
from mpdoctor.finding import Diagnosis
from mpdoctor.reporters import json as json_reporter
from mpdoctor.reporters.json.saved_diagnosis import NotADiagnosis, diagnosis_from_json
from mpdoctor.reporters.rendering import report_from_diagnosis

EVERY = [*samples.SAMPLES.values(), samples.hostile]


@pytest.mark.parametrize("sample", EVERY)
def test_json_of_what_was_read_is_the_same_json(sample: Any) -> None:
    text = json_reporter.render(sample())
    assert json_reporter.render(diagnosis_from_json(text)) == text


@given(diagnoses())
# no shrinking: it takes minutes, and a diagnosis is small enough
@settings(
    max_examples=40,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
def test_whatever_is_saved_is_shown_as_it_was(diagnosis: Diagnosis) -> None:
    """By every reporter, of any diagnosis."""
    text = json_reporter.render(diagnosis)
    again = diagnosis_from_json(text)
    for form in OutputFormat:
        assert report_from_diagnosis(again, form.value) == report_from_diagnosis(diagnosis, form.value), form


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "it is no JSON"),
        ("no json", "it is no JSON"),
        ("[" * 100_000, "it is no JSON"),
        ("[]", "is no diagnosis by mpdoctor: write one with"),
        ("1", "is no diagnosis by mpdoctor: write one with"),
        ('{"version": "2.1.0", "runs": []}', "is no diagnosis by mpdoctor: write one with"),
        ('{"schema_version": true, "mpdoctor": "1"}', "is no diagnosis by mpdoctor: write one with"),
        ('{"schema_version": 2, "mpdoctor": "9.0"}', "is a diagnosis of schema version 2, by mpdoctor '9.0'; this mp"),
        ('{"schema_version": 1, "mpdoctor": "0.1.0"}', "or a damaged one: 'targets' is missing"),
    ],
)
def test_what_is_no_diagnosis_is_refused_in_a_sentence(text: str, problem: str) -> None:
    with pytest.raises(NotADiagnosis, match=re.escape(problem)) as refused:
        diagnosis_from_json(text)
    assert len(str(refused.value).splitlines()) == 1


def places(told: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The way to every value in some JSON."""
    inner = told.items() if isinstance(told, dict) else enumerate(told) if isinstance(told, list) else ()
    return [at, *(place for key, value in inner for place in places(value, (*at, key)))]


TOLD = json_reporter.render(samples.collapsing())
PLACES = [place for place in places(json.loads(TOLD)) if place]


@given(
    st.sampled_from(PLACES),
    st.sampled_from([None, True, -1, 0.5, float("inf"), 10**400, "x", [], {}, [None], {"x": 1}, [[]], "MISSING"]),
)
@settings(max_examples=150)
def test_a_damaged_diagnosis_is_refused_or_shown(place: tuple[Any, ...], other: Any) -> None:
    """Whatever stands wherever: what is read can be shown, and what can't be read is refused."""
    told = json.loads(TOLD)
    around = told
    for key in place[:-1]:
        around = around[key]
    if other == "MISSING":
        del around[place[-1]]
    else:
        around[place[-1]] = other
    try:
        diagnosis = diagnosis_from_json(json.dumps(told))
    except NotADiagnosis as refused:
        assert str(refused).isprintable()
    else:
        for form in OutputFormat:
            report_from_diagnosis(diagnosis, form.value)


@pytest.mark.parametrize(
    ("place", "value", "problem"),
    [
        (("findings", 0, "code"), "MP\x1b[31m1", "code is 'MP\\\\x1b[31m1'"),
        (("findings", 0, "name"), "a\n::error::", "name is 'a\\\\n::error::'"),
        (("findings", 0, "line"), -1, "a number that is negative"),
        (("findings", 0, "line"), 0, "lines are counted from 1"),
        (("findings", 0, "message"), "x" * 1_000_001, "a text of 1000001 characters"),
        (("findings", 0, "message"), ["x"], "expected str @ $[0].message"),
        (("findings", 0, "column"), 2**63, "too large to count anything"),
        (("findings", 0, "evidence"), {"a": json.loads("[" * 60 + "]" * 60)}, "too many objects within each other"),
        (("findings", 0, "fix"), {"title": "Mend", "safe": True, "edits": []}, "a fix has no edits"),
        (("crashed",), [{"code": "\u202e", "where": "", "error": ""}], "code is '\\\\u202e'"),
        (("skipped",), [{"code": "a\nb", "reason": ""}], "code is 'a\\\\nb'"),
        (("targets", 0, "kind"), "\x1b", "kind is '\\\\x1b'"),
        (("targets", 0, "stages"), {"\x9b": {"status": "done", "reason": ""}}, "stages is '\\\\x9b'"),
        (("targets", 0, "keras", "package"), "pytorch" * 99, "there is no Keras 'pytorchpyt"),
        (("rules",), {"\x1b": json.loads(TOLD)["rules"]["MP904"]}, "code is '\\\\x1b'"),
        (("probes", 0, "ended"), "\x07", "ended is"),
        (("summary", "exit_code"), 7, "there is no exit status 7"),
        (("summary", "suppressed"), -3, "a number that is negative"),
    ],
)
def test_what_mpdoctor_never_writes_is_refused(place: tuple[Any, ...], value: Any, problem: str) -> None:
    told = json.loads(TOLD)
    around = told
    for key in place[:-1]:
        around = around[key]
    around[place[-1]] = value
    with pytest.raises(NotADiagnosis) as refused:
        diagnosis_from_json(json.dumps(told))
    assert problem.replace("\\\\", "\\") in str(refused.value)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 500


def test_fields_of_a_later_version_are_passed_over_and_older_ones_have_defaults() -> None:
    told = json.loads(json_reporter.render(samples.collapsing()))
    told["later"] = told["findings"][0]["later"] = told["models"][0]["layers"][0]["later"] = {"a": 1}
    del told["targets"][0]["other_keras"], told["models"][0]["made_at"], told["probes"][0]["floor"]
    assert diagnosis_from_json(json.dumps(told)) == diagnosis_from_json(TOLD)


# --- mpdoctor show --------------------------------------------------------------------------------------------------
@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A saved diagnosis alone in its directory: what it speaks of is not there."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "saved.json").write_text(TOLD)
    return tmp_path


def ended(*arguments: str) -> int:
    with pytest.raises(SystemExit) as end:
        main(["show", *arguments])
    return int(str(end.value.code))


@pytest.mark.parametrize("form", OutputFormat)
@pytest.mark.parametrize("sample", EVERY)
def test_every_format_shows_what_was_saved(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], sample: Any, form: OutputFormat
) -> None:
    diagnosis = sample()
    (tmp_path / "saved.json").write_text(json_reporter.render(diagnosis))
    capsys.readouterr()
    assert put_out(diagnosis, Output(form)) == diagnosis.exit_code
    at_once = capsys.readouterr()
    assert ended(str(tmp_path / "saved.json"), "--output-format", form.value) == diagnosis.exit_code
    assert capsys.readouterr() == at_once


def test_show_writes_reports_too(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert ended("saved.json", "--report", "again.json", "--output-format", "concise") == 1
    assert (saved / "again.json").read_text() == TOLD
    assert [line.split()[1] for line in capsys.readouterr().out.splitlines()] == ["MP904", "MP201", "MP903"]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        ("nowhere.json", "nowhere.json cannot be read: No such file or directory."),
        (".", ". cannot be read: it is a directory, and no regular file."),
        ("other.json", "other.json is a diagnosis of schema version 2, by mpdoctor '9'; this mpdoctor reads version 1"),
        ("binary.json", "binary.json is no diagnosis by mpdoctor: it is no JSON."),
    ],
)
def test_what_cannot_be_shown_is_told_in_one_line(
    saved: Path, capsys: pytest.CaptureFixture[str], file: str, message: str
) -> None:
    (saved / "other.json").write_text('{"schema_version": 2, "mpdoctor": "9"}')
    (saved / "binary.json").write_bytes(b"\x00\xff\xfe")
    assert ended(file) == 2
    told = capsys.readouterr()
    assert (told.out, len(told.err.splitlines())) == ("", 1)
    assert told.err.startswith(f"mpdoctor: {message}")


def test_show_reads_standard_input(saved: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TOLD.encode())))
    assert ended("-", "--output-format", "json") == 1
    assert capsys.readouterr().out == TOLD

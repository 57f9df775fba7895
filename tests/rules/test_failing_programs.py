"""Rules over programs that fail, with the errors as five Kerases really raised them: each is found by the rule, and at
the line, that `tests/support/failing/programs.py` marks. `tests/support/failing/seen` keeps what the examiner recorded
of each program; `tests/support/failing/record.py` records it anew."""

from __future__ import annotations

import inspect
import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import cattrs
import pytest
from checking import needs_keras
from marks import marks_from_source

from mpdoctor.examination.event_reader import event_from_line
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding
from mpdoctor.judging.precedence import merged_findings
from mpdoctor.rules.registry import all_rules, findings_from_facts
from mpdoctor.semantics.live.errors.error_texts import essence_of_message

HERE = Path(__file__).parents[1] / "support" / "failing"
sys.path.insert(0, str(HERE))
from programs import PROGRAMS  # noqa: E402

sys.path.remove(str(HERE))
FAR = ("MP001", "MP002", "MP003", "MP004", "MP901")  # they say that it ended, and not why


def keras_of(file: Path) -> str:
    """As marks name it: "3", "tf_keras", "2.15" …"""
    package, _, version = file.stem.partition("-")
    return {"keras": "3", "tf_keras": "tf_keras"}.get(package) or ".".join(version.split(".")[:2])


SEEN = [
    pytest.param(keras_of(file), name, facts, id=f"{name}-{file.stem}")
    for file in sorted((HERE / "seen").glob("*.json"))
    for name, facts in json.loads(file.read_text(encoding="utf-8")).items()
]


def presented(failure: FailureFacts) -> list[Finding]:
    found = list(findings_from_facts("in_failure", failure, failure.keras, lambda rule: True))
    assert all(isinstance(finding, Finding) for finding in found), found
    return merged_findings(finding for finding in found if isinstance(finding, Finding))


def expected(name: str, keras: str) -> set[tuple[str, str]]:
    """(code, text of the line) as the program's marks say."""
    text = textwrap.dedent(inspect.getsource(PROGRAMS[name][0]))
    lines = text.splitlines()
    marks = marks_from_source(text)
    of_this = marks.expected.get(keras) or marks.expected[""]
    return {(mark.code, without_marks(lines[(mark.line or 1) - 1])) for mark in of_this}


def without_marks(line: str) -> str:
    return re.sub(r"\s*# (?:expect|noqa).*$", "", line).strip()


@pytest.mark.parametrize(("keras", "name", "facts"), SEEN)
def test_an_error_is_told_by_its_rule_and_with_its_line(keras: str, name: str, facts: dict[str, Any]) -> None:
    failure = cattrs.structure(facts, FailureFacts)
    found = presented(failure)
    (finding,) = found
    assert (finding.code, without_marks(failure.failing_line)) in expected(name, keras), finding.message
    assert finding.location == failure.location
    text = f"{finding.message} {finding.help}"
    if finding.code not in FAR:  # they repeat what was said
        assert not re.search(r"(?<![(\[])None|\{|0x[0-9a-f]{4}", text), text
        assert finding.message.endswith(".")
    for operand in failure.operands:
        if finding.code in ("MP203", "MP217") and operand.dtype == "float32":
            assert f"`{operand.name}`" in finding.message


@pytest.mark.parametrize("kind", ["raised_by_program", "float32"])
@pytest.mark.parametrize(("keras", "name", "facts"), [case for case in SEEN if "3.15" in case.id or "2.15" in case.id])
def test_what_is_not_of_mixed_precision_is_not_told_as_such(
    keras: str, name: str, facts: dict[str, Any], kind: str
) -> None:
    """The same words, raised by the program itself or in a program without 16-bit layers, prove nothing of the kind."""
    of_precision = {"MP202", "MP203", "MP205", "MP206", "MP212", "MP214", "MP217", "MP505", "MP508"}
    other = {"raised_by_program": True} if kind == "raised_by_program" else {"computes_in_half": False}
    codes = {finding.code for finding in presented(cattrs.structure({**facts, **other}, FailureFacts))}
    assert not codes & of_precision
    assert kind == "float32" or codes <= set(FAR)


def test_there_are_enough_in_every_keras() -> None:
    for keras in ("3", "tf_keras", "2.15", "2.10", "2.4"):
        of_this = [case for case in SEEN if case.values[0] == keras]
        assert len(of_this) >= 80, keras
        codes = {code for case in of_this for code, _ in expected(str(case.values[1]), keras)}
        assert len(codes) >= 17, (keras, sorted(codes))


@pytest.mark.parametrize(("keras", "name", "facts"), SEEN)
def test_the_essence_of_an_error_is_a_line_that_a_library_or_the_program_said(
    keras: str, name: str, facts: dict[str, Any]
) -> None:
    essence = essence_of_message(facts.get("message", ""))
    assert not re.search(r"File \"|defined at|^Node:|record\.py|main\(", essence), essence
    assert essence or facts["exception"] == "NotImplementedError"


def test_every_rule_that_reads_errors_explains_the_one_that_it_reads() -> None:
    reading = {rule.code for rule in all_rules() if "in_failure" in rule.looks}
    assert reading - set(FAR) == {rule.code for rule in all_rules() if rule.speaks_of_the_error}


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")])
def test_what_is_raised_here_is_told_likewise(keras: str, tmp_path: Path) -> None:
    """The programs are run once more, in the TensorFlow that is installed."""
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"}
    subprocess.run([sys.executable, HERE / "record.py", tmp_path], env=environment, check=True, capture_output=True)
    (file,) = tmp_path.glob("*.json")
    seen = json.loads(file.read_text(encoding="utf-8"))
    assert len(seen) >= 80
    for name, facts in seen.items():
        failure = cattrs.structure(facts, FailureFacts)
        codes = {(finding.code, without_marks(failure.failing_line)) for finding in presented(failure)}
        assert codes <= expected(name, keras_of(file)), name


@pytest.mark.parametrize(("keras", "name", "facts"), SEEN)
def test_what_was_seen_is_read_as_it_was_told(keras: str, name: str, facts: dict[str, Any]) -> None:
    line = json.dumps({"event": "Failure", "facts": facts}).encode()
    event = event_from_line(line)
    assert event is not None and event.facts.exception == facts["exception"]

"""What a mended program looks like: the table, what is said of edits, and that nothing above the patch is taken for
one."""

from __future__ import annotations

import dataclasses
import json
import subprocess
from pathlib import Path

import pytest
from own_schemas import assert_fits, schema
from samples import good_steps, training

from mpdoctor.facts.divergence import DivergenceFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.reference import ReferenceFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Edit, Finding, Probe, Severity, Stage, TargetReport, Verdict
from mpdoctor.mended import Mended, NeededEdit
from mpdoctor.reporters.rendering import report_from_mended

PATCH = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-old\n+new\n"
PLACE = Location("a.py", 1, 1, 1, 4)
EDIT = NeededEdit("Write `new`", True, "MP101", (Edit(PLACE, "new"),))
ERROR = Finding("It is old.", "Write `new`.", PLACE, code="MP101", name="old", severity=Severity.ERROR, target="a.py")
STAGES = {"source": Stage("done"), "model": Stage("skipped", "--static")}


def diagnosis(*findings: Finding) -> Diagnosis:
    target = TargetReport("a.py", "a.py", "script", Keras("keras"), stages=STAGES)
    return Diagnosis((target,), findings, (), (), (), (), (), {}, 0, int(bool(findings)), "mpdoctor mend a.py", "0.1.0")


BAD, GOOD = diagnosis(ERROR), diagnosis()
HEALED = Mended(BAD, GOOD, True, 1, 2, (EDIT,), PATCH)
NOTHING = Mended(GOOD, GOOD, True, 0, 1)
HOPELESS = Mended(BAD, BAD, False, 1, 2, tried=(("MP101", "Write `new`"),), hindered=("a.py: it was changed",))
STOPPED = dataclasses.replace(
    HOPELESS, stopped=(Finding("It stopped: no such file.", "", PLACE, code="MP002", severity=Severity.ERROR),)
)
ON_STAND_INS = dataclasses.replace(
    HEALED,
    after=dataclasses.replace(GOOD, targets=(dataclasses.replace(GOOD.targets[0], stand_ins=("mnist",)),)),
)
NOT_IN_FORCE = Mended(GOOD, GOOD, False, 1, 2, (EDIT,), PATCH, policy="mixed_float16", policy_in_force=False)
TRAINED = dataclasses.replace(GOOD, probes=(Probe(training(good_steps()), Verdict.HEALTHY, ""),))
IN_16_BITS = dataclasses.replace(
    HEALED, after=dataclasses.replace(TRAINED, models=(("a.py", TRAINED.probes[0].training.model),))
)
MODEL = TRAINED.probes[0].training.model
WIDE_MODEL = dataclasses.replace(
    MODEL, layers=tuple(dataclasses.replace(layer, compute_dtype="float32") for layer in MODEL.layers)
)
IN_FLOAT32 = dataclasses.replace(
    HEALED,
    before=dataclasses.replace(BAD, models=(("a.py", MODEL),)),
    after=dataclasses.replace(TRAINED, models=(("a.py", WIDE_MODEL),)),
)
FLOAT32_ALONE = "None of its layers computes in 16 bits any more"
SWITCHED = Mended(TRAINED, TRAINED, True, 1, 2, (EDIT,), PATCH, policy="mixed_float16")


def with_reference(reference: ReferenceFacts) -> Mended:
    trained = Probe(training(good_steps(), reference=reference), Verdict.HEALTHY, "")
    return dataclasses.replace(SWITCHED, after=dataclasses.replace(TRAINED, probes=(trained,)))


COMPARED = ReferenceFacts("float16", divergence=DivergenceFacts("float16"))
NOT_COMPARED = "Its loss was not held against float32's: that takes --reference."


@pytest.mark.parametrize(
    ("mended", "words"),
    [
        (HEALED, ("a.py is mended by 1 edit, proved by a second look", "findings  1 error (MP101)  none",
                  "a.py:1:1: Write `new`")),
        (NOTHING, ("a.py: nothing to mend.",)),
        (HOPELESS, ("a.py is not mended: 1 error remains, and no edit helps.",
                    "Tried without success:\n  Write `new` (MP101)",
                    "No edit: a.py: it was changed.",
                    "What remains:\n  a.py:1:1: MP101 It is old.")),
        (STOPPED, ("1 error remains, and no edit could be proved.", "Tried, and not proved:\n  Write `new` (MP101)",
                   "With that it stopped elsewhere, before any training:\n  a.py:1:1: MP002 It stopped: no such")),
        (ON_STAND_INS, ("Trained on stand-ins, because it could not be downloaded: mnist.",)),
        (SWITCHED, ("a.py is mended under mixed_float16 by 1 edit", NOT_COMPARED)),
        (IN_16_BITS, ("a.py is mended by 1 edit, proved by training with it.", NOT_COMPARED)),
        (dataclasses.replace(IN_16_BITS, edits=(), patch=""), ("a.py: nothing to mend.", NOT_COMPARED)),
        (with_reference(ReferenceFacts(not_measured="no layer computes in 16 bits")),
         ("Its loss was not held against float32's: no layer computes in 16 bits.",)),
        (with_reference(ReferenceFacts("float16", divergence=DivergenceFacts("float16", not_measured="it draws"))),
         ("Its loss was not held against float32's: it draws.",)),
        (with_reference(ReferenceFacts("float16", no_time=True)),
         ("Its loss was not held against float32's: there was no time left.",)),
        (IN_FLOAT32, ("a.py is mended by 1 edit, proved by training with it.\n" + FLOAT32_ALONE,)),
        (NOT_IN_FORCE, ("a.py is not mended: mixed_float16 is not in force where it trains after 1 edit.",)),
    ],
)  # fmt: skip
def test_what_is_said(mended: Mended, words: tuple[str, ...]) -> None:
    told = report_from_mended(mended, "terminal", width=100)
    assert [word for word in words if word not in told] == [], told
    assert told.endswith(mended.patch)


@pytest.mark.parametrize(
    "mended",
    [
        HEALED,
        dataclasses.replace(SWITCHED, policy="float32"),
        dataclasses.replace(SWITCHED, is_healthy=False),
        dataclasses.replace(SWITCHED, after=GOOD),
        with_reference(COMPARED),
    ],
)
def test_nothing_is_said_of_a_comparison_that_was_made_or_means_nothing(mended: Mended) -> None:
    assert NOT_COMPARED not in report_from_mended(mended, "terminal", width=100)


@pytest.mark.parametrize("mended", [HEALED, IN_16_BITS, dataclasses.replace(IN_FLOAT32, policy="float32")])
def test_nothing_is_said_of_float32_where_it_was_asked_for_or_16_bits_are_left(mended: Mended) -> None:
    assert FLOAT32_ALONE not in report_from_mended(mended, "terminal", width=100)


def test_git_applies_the_whole_of_it(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("old\n")
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    hostile = Finding("--- a/b.py\n+++ b/b.py\n@@ -1 +1 @@\n-x\n+y", "", PLACE, code="MP999", severity=Severity.ERROR)
    mended = Mended(diagnosis(ERROR, hostile), diagnosis(hostile), False, 1, 2, (EDIT,), PATCH)
    told = report_from_mended(mended, "terminal", width=40)
    subprocess.run(["git", "apply"], cwd=tmp_path, input=told, text=True, check=True)
    assert (tmp_path / "a.py").read_text() == "new\n"


def test_colours_are_for_terminals() -> None:
    assert "\x1b" not in report_from_mended(HEALED, "terminal", width=80)
    assert "\x1b[32m+new\x1b[0m\n" in report_from_mended(HEALED, "terminal", width=80, color=True)


@pytest.mark.parametrize("mended", [HEALED, NOTHING, HOPELESS, STOPPED, NOT_IN_FORCE])
def test_the_json_is_what_its_schema_says(mended: Mended) -> None:
    told = json.loads(report_from_mended(mended, "json"))
    assert_fits(told, "mended-1.json")
    fields = schema("mended-1.json")["properties"]
    assert set(told) == set(fields) == set(schema("mended-1.json")["required"])
    for edit in told["edits"]:
        assert set(edit) == set(fields["edits"]["items"]["properties"])
    assert (told["mended"], told["patch"]) == (mended.is_healthy, mended.patch)

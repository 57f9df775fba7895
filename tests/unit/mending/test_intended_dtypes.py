"""An edit that gives float32 to a class's own code alone: the layers inside it go on following the global policy, which
is no defect of the mended program."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import good_steps, training

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.finding import Diagnosis, Edit, Finding, Fix, Probe, Severity, Verdict
from mpdoctor.mending.draft import Draft
from mpdoctor.mending.intended_dtypes import classes_with_intended
from mpdoctor.mending.live_layers import LiveLayers
from mpdoctor.mending.proposals import proposals_from_diagnosis
from mpdoctor.mending.rounds import Contents, Course, MendLoop, Seen
from mpdoctor.program.source_facts import SourceFacts

pytestmark = pytest.mark.fast

PROGRAM = """import tensorflow as tf


class Net(tf.keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = tf.keras.layers.Dense(3)

    def call(self, inputs):
        return self.dense(inputs) + raises_in_float16()


net = Net()
net.fit(images, labels)
"""
TRAINS, STOPS = (Probe(training(good_steps()), Verdict.HEALTHY, ""),), ()
INNER = "Dense(3, dtype=self.dtype_policy)"


def mended(needs: str = 'Net(dtype="float32")', is_known: bool = False) -> tuple[Course, str]:
    """The course of mending, and the program in the end. It trains where this text stands in it. `is_known`: whether
    the program as it was had a layer that follows the policy inside such a class already."""
    Path("a.py").write_text(PROGRAM)

    def seen(contents: Contents) -> Seen:
        text = contents.get(Path("a.py").absolute(), PROGRAM.encode()).decode()
        raising = Finding("", "", Location("a.py", 10, 16), code="MP202", severity=Severity.ERROR, stage="source")
        place = Location("a.py", 7, 22, 7, 46)
        fix = Fix("Give it a dtype", False, (Edit(Location("a.py", 7, 45, 7, 46), ", dtype=self.dtype_policy)"),))
        inner = Finding(
            "", "", place, code="MP208", severity=Severity.WARNING, stage="source", fix=fix, fingerprint="inner",
            evidence={"outer_class": "Net"},
        )  # fmt: skip
        trains, has_inner = needs in text, ("float32" in text or is_known) and INNER not in text
        found = (*(() if trains else (raising,)), *((inner,) if has_inner else ()))
        probes = TRAINS if trains else STOPS
        return Diagnosis((), found, (), probes, (), (), (), {}, 0, int(bool(found)), "", ""), {
            "a.py": SourceFacts("a.py", text)
        }

    draft = Draft()
    course = MendLoop(draft, seen, seen, proposals_from_diagnosis).run()
    (after,) = [file.after.decode() for file in draft.files(course.after.kept)] or [PROGRAM]
    return course, after


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_layers_inside_follow_the_policy_as_they_are_to() -> None:
    course, after = mended()
    assert course.after.is_healthy
    assert after == PROGRAM.replace("Net()", 'Net(dtype="float32")')
    assert classes_with_intended(course.after.diagnosis) == ("Net",)


def test_what_the_program_had_before_is_its_own_defect() -> None:
    course, after = mended(is_known=True)
    assert course.after.is_healthy
    assert INNER in after
    assert classes_with_intended(course.after.diagnosis) == ()


def test_where_the_program_still_stops_the_layers_inside_are_given_it_too() -> None:
    course, after = mended(needs=INNER)
    assert course.after.is_healthy
    assert INNER in after


@pytest.mark.parametrize(("with_parts", "own_code_of"), [((), "Net"), (("net",), "")])
def test_a_trial_in_which_a_class_computed_in_float32_without_its_layers(
    with_parts: tuple[str, ...], own_code_of: str
) -> None:
    place = Location("a.py", 13)
    policy = "mixed_float16", "float16", "float32"
    net = LayerFacts("net", "Net", *policy, made_at=place, own_class=True, class_location=Location("a.py", 4))
    making = LiveLayers({"net": net}, {"a.py": SourceFacts("a.py", PROGRAM)}.get)
    healed = RemedyFacts("float32-layers", "healed", ("net",), (place,), with_parts=with_parts)
    assert [proposal.own_code_of for proposal in making.proposals("MP904", healed)] == [own_code_of]

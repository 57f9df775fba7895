"""Random diagnoses (Hypothesis strategies) for properties that every reporter has."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args

from hypothesis import strategies as st

from mpdoctor.facts.failure import FailureFacts, Frame, MendedFacts, MendedPart
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts, ModelFacts, OptimizerFacts
from mpdoctor.facts.training import CulpritFacts, StepFacts, TensorFacts, TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import (
    AlsoSeen,
    Crashed,
    Diagnosis,
    Excerpt,
    Finding,
    Probe,
    RuleSummary,
    Severity,
    Skipped,
    Stage,
    TargetReport,
    Verdict,
)

WORDS = ("dense/kernel", "a|b", "`x`", "<b>", "&amp;", "\n", "é 数", "\u202e", "[/b]", "%0A", "'\"", "#1 @a", "\x1b[31")
TEXT = st.one_of(st.sampled_from(WORDS), st.text(max_size=8))
NAME = TEXT.filter(bool)
NUMBER = st.floats()
PLACE = st.builds(Location, NAME, st.integers(1, 99), st.integers(0, 9), st.integers(0, 99), st.integers(0, 9),
                  st.integers(0, 3))  # fmt: skip
LINE = st.builds(Location, NAME, st.integers(1, 99))
KERAS = st.builds(Keras, st.sampled_from(["keras", "tf_keras", "tf.keras"]), TEXT, TEXT, TEXT)
STAGE = st.builds(Stage, st.sampled_from(["done", "skipped", "failed"]), TEXT)


def several(strategy: st.SearchStrategy[Any], most: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(strategy, max_size=most).map(tuple)


LAYER = st.builds(
    LayerFacts, TEXT, TEXT, TEXT, TEXT, TEXT,
    output_dtypes=several(TEXT),
    variables=several(st.tuples(TEXT, st.integers(0, 10**9), st.booleans())),
    floating=st.booleans(),
    made_at=st.none() | LINE,
)  # fmt: skip
TENSOR = st.builds(TensorFacts, TEXT, TEXT, TEXT, several(st.integers(0, 9)), NUMBER, NUMBER, NUMBER, NUMBER, NUMBER)
FAILURE = st.builds(
    FailureFacts, st.just("raised"), st.just("training"), TEXT, TEXT, st.none() | LINE,
    several(st.builds(Frame, TEXT, st.integers(1, 9), TEXT, TEXT, st.booleans())),
)  # fmt: skip
MENDED = st.builds(MendedFacts, st.sampled_from(get_args(MendedPart)), TEXT, TEXT, FAILURE)
STEP = st.builds(
    StepFacts, st.none() | NUMBER, st.booleans(), st.none() | NAME, st.none() | NUMBER, several(st.integers(0, 3))
).map(lambda step: dataclasses.replace(step, first_nonfinite=None) if step.applied else step)


@st.composite
def models(draw: st.DrawFn, number: int) -> ModelFacts:
    return ModelFacts(
        id=f"model {number} {draw(TEXT)}",
        name=draw(TEXT),
        class_name=draw(TEXT),
        policy=draw(TEXT),
        keras=draw(KERAS),
        layers=draw(several(LAYER)),
        optimizer=draw(several(st.builds(OptimizerFacts, TEXT, TEXT, st.booleans()))),
        data=draw(several(st.builds(ArrayFacts, TEXT, TEXT, TEXT, TEXT, several(st.none() | st.integers(0, 9)), TEXT))),
        loss=draw(TEXT),
        call=CallFacts("fit", draw(LINE)),
    )


@st.composite
def probes(draw: st.DrawFn, model: ModelFacts) -> Probe:
    training = TrainingFacts(
        model=model,
        data=draw(st.sampled_from(["real", "synthetic", "stand-in"])),
        device=draw(TEXT),
        steps_wanted=draw(st.integers(0, 60)),
        steps=draw(several(STEP, 12)),
        ended=draw(st.sampled_from(["steps", "budget", "failed", "script"])),
        policy=draw(TEXT),
        dynamic=draw(st.sampled_from([None, True, False])),
        initial_scale=draw(st.none() | NUMBER),
        culprit=draw(st.none() | st.builds(CulpritFacts, st.integers(0, 9), TENSOR, several(TENSOR))),
        failure=draw(st.none() | FAILURE),
        name=draw(TEXT),
        replicas=draw(st.integers(1, 3)),
    )
    return Probe(training, draw(st.sampled_from(Verdict)), draw(TEXT), draw(TEXT), draw(several(MENDED)), draw(TEXT))


@st.composite
def diagnoses(draw: st.DrawFn) -> Diagnosis:
    targets = draw(
        st.lists(
            st.builds(
                TargetReport,
                *(TEXT, TEXT, st.just("script"), KERAS, TEXT),
                st.dictionaries(st.sampled_from(["source", "model", "training"]), STAGE),
                *(several(TEXT), several(TEXT)),
            ),
            min_size=1,
            max_size=2,
        )
    )
    trained = [draw(models(number)) for number in range(draw(st.integers(0, 2)))]
    finding = st.builds(
        Finding,
        TEXT,
        TEXT,
        location=st.none() | PLACE,
        model=st.none() | TEXT,
        layer=st.none() | TEXT,
        evidence=st.fixed_dictionaries({}, optional={"layers": st.lists(TEXT, max_size=3), "largest": NUMBER}),
        severity=st.sampled_from(Severity),
        code=st.sampled_from(["MP101", "MP904", "MP201"]),
        name=st.just("some-name"),
        stage=st.sampled_from(["source", "model", "training"]),
        target=st.sampled_from([target.id for target in targets]),
        what_if=st.booleans(),
        excerpt=st.none() | st.builds(Excerpt, st.integers(1, 99), st.lists(TEXT, min_size=1, max_size=4).map(tuple)),
        also_seen=several(st.builds(AlsoSeen, st.just("MP302"), st.just("model"), TEXT, st.none() | NAME, st.none())),
        fingerprint=st.text("0123456789abcdef", max_size=16),
    )
    findings = draw(several(finding))
    return Diagnosis(
        targets=tuple(targets),
        findings=findings,
        models=tuple((draw(st.sampled_from(targets)).id, model) for model in trained),
        probes=tuple(draw(probes(model)) for model in trained),
        rules=tuple(
            RuleSummary(code, "some-name", draw(TEXT), "", draw(TEXT), draw(st.sampled_from(Severity)))
            for code in sorted({finding.code for finding in findings} | {"MP302"})
        ),
        skipped=draw(several(st.builds(Skipped, st.sampled_from(["MP912", "source"]), TEXT))),
        crashed=draw(several(st.builds(Crashed, st.sampled_from(["MP302", "examiner"]), TEXT, TEXT), 1)),
        environment=draw(st.dictionaries(TEXT, TEXT, max_size=3)),
        suppressed=draw(st.integers(0, 9)),
        exit_code=draw(st.integers(0, 3)),
        command=draw(TEXT),
        version=draw(TEXT),
        fail_on=draw(st.sampled_from(Severity)),
    )

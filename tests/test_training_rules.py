"""Rules over a short training, each held to a table of hand-written facts: what it says, and where it is silent."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from samples import good_steps, layer, model, steps_from_finiteness, training

from mpdoctor.facts.location import Location
from mpdoctor.facts.training import CulpritFacts, ScaleDependenceFacts, StepFacts, TensorFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding
from mpdoctor.loss_scale import LossScale, keras2
from mpdoctor.rules.registry import findings_from_facts

KERAS3, KERAS2 = Keras("keras", "3.15.1", "2.21.0"), Keras("tf_keras", "2.21.0", "2.21.0")
APPLIED_AT = Location("train.py", 44)
IN_KERAS2 = {"model": dataclasses.replace(model(), keras=KERAS2), "floor": 1.0}
SILENT = ""


def said(code: str, **facts: Any) -> list[Finding]:
    """What one rule says about a training, by default 50 good steps."""
    given = training(facts.pop("steps", good_steps()), applied_at=APPLIED_AT, **facts)
    found = list(findings_from_facts("in_training", given, given.model.keras, lambda rule: rule.code == code))
    assert all(isinstance(one, Finding) for one in found), found
    return found  # type: ignore[return-value]


def dependence(*exponents: float, scaled: bool | None = False, unscaled: bool | None = None) -> ScaleDependenceFacts:
    pairs = tuple((f"v{number}", exponent) for number, exponent in enumerate(exponents))
    return ScaleDependenceFacts(16.0, 1024.0, pairs, scaled, unscaled)


def depends(*exponents: float, keras: Keras = KERAS3, **calls: bool | None) -> dict[str, Any]:
    changed = {"model": dataclasses.replace(model(kind="loop"), keras=keras)}
    return {**changed, "scale_dependence": dependence(*exponents, **calls)}


def skipped(steps: int, keras: Keras = KERAS3) -> dict[str, Any]:
    """Every step skipped, as this Keras' loss scale takes it."""
    scale = LossScale() if keras is KERAS3 else keras2(2.0**15, 2000)
    more = {} if keras is KERAS3 else IN_KERAS2
    return {"steps": steps_from_finiteness([False] * steps, scale), "weights_changed": False, **more}


GROWN = {
    "steps": tuple(StepFacts(min(2.0 ** (100 + n), math.inf) if n < 28 else math.inf, n < 28) for n in range(50)),
    "growth_interval": 1,
    "initial_scale": 2.0**100,
}
FRAME = TensorFacts("dense", "Dense", "float16", (32, 64), 812.5, 0.01, 0.0, 0.0, 0.0)


def culprit(inputs_finite: bool = True, **overflow: Any) -> dict[str, Any]:
    tensor = TensorFacts("square", "Square", "float16", (32, 64), 60000.0, 0.1, 0.2, 0.0, 0.4, Location("train.py", 9))
    frames = overflow.pop("frames", (FRAME,))
    return {"culprit": CulpritFacts(3, dataclasses.replace(tensor, **overflow), frames, inputs_finite)}


def weights(dtype: str, trainable: bool = True) -> dict[str, Any]:
    """Nothing moved, in a model with one such variable."""
    own = layer("dense", variables=((dtype, 100, trainable),))
    return {"model": model(own), "weights_changed": False}


# (code, id, facts, what the message or the help holds; SILENT: the rule says nothing)
TABLE: list[tuple[str, str, dict[str, Any], tuple[str, ...] | str]] = [
    (
        "MP401",
        "keras3-divided-by-a-scale-it-never-saw",
        depends(-1, -1),
        ("never scaled", "32768 times too small", "scale_loss(loss)"),
    ),
    (
        "MP401",
        "keras2-unscaled-only",
        depends(-1, keras=KERAS2, unscaled=True),
        ("32768 times too small", "get_scaled_loss"),
    ),
    (
        "MP401",
        "keras2-neither",
        depends(0, 0, keras=KERAS2, unscaled=False),
        ("although a LossScaleOptimizer", "6e-08", "get_scaled_loss"),
    ),
    ("MP401", "keras3-right", depends(0, 0, scaled=True), SILENT),
    ("MP401", "keras3-right-and-nothing-called", depends(0, 0), SILENT),
    ("MP401", "keras3-twice-unscaled-but-scaled", depends(-1, scaled=True), SILENT),
    ("MP401", "keras2-scaled-by-hand", depends(1, keras=KERAS2), SILENT),
    ("MP401", "half-an-exponent", depends(-0.5), SILENT),
    ("MP401", "not-compared", {}, SILENT),
    (
        "MP402",
        "keras2-not-unscaled",
        depends(1, 1, keras=KERAS2, scaled=True, unscaled=False),
        ("32768 times too large", "get_unscaled_gradients"),
    ),
    ("MP402", "keras2-unscaled-as-well", depends(1, keras=KERAS2, scaled=True, unscaled=True), SILENT),
    ("MP402", "keras2-never-scaled", depends(1, keras=KERAS2, scaled=False, unscaled=False), SILENT),
    ("MP402", "keras2-right", depends(0, keras=KERAS2, scaled=True, unscaled=True), SILENT),
    ("MP402", "keras3-has-no-such-call", depends(1, scaled=True), SILENT),
    (
        "MP902",
        "keras2-at-its-floor",
        skipped(50, KERAS2),
        ("50 of 50 steps", "from 32768 to its floor of 1", "Nothing is trained"),
    ),
    ("MP902", "keras2-names-the-layer", {**skipped(50, KERAS2), **culprit()}, ("`square` (see MP904)",)),
    ("MP902", "keras2-names-no-layer", skipped(50, KERAS2), ("No layer's output overflows", "tf.float32")),
    ("MP902", "keras2-still-falling", skipped(12, KERAS2), SILENT),
    ("MP902", "keras2-healthy", IN_KERAS2, SILENT),
    ("MP902", "keras3", skipped(50), SILENT),
    ("MP903", "keras3-falls", skipped(50), ("50 of 50 steps", "from 32768 to 5.8e-11", "on its way to 0")),
    ("MP903", "keras3-falls-and-names-the-layer", {**skipped(30), **culprit()}, ("30 of 30", "`square` (see MP904)")),
    (
        "MP903",
        "keras3-grows-to-inf",
        GROWN,
        ("doubled every step until it was inf", "dynamic_growth_steps=2000 instead of 1"),
    ),
    ("MP903", "keras3-still-falling", skipped(12), SILENT),
    ("MP903", "keras3-healthy", {}, SILENT),
    ("MP903", "keras2", skipped(50, KERAS2), SILENT),
    (
        "MP904",
        "with-what-led-up-to-it",
        culprit(),
        ("`square` (Square)", "40% of its values", "step 4", "`dense`, reaches 812", "65504", 'dtype="float32"'),
    ),
    ("MP904", "the-first-layer", culprit(frames=()), ("from finite inputs. float16 ends",)),
    ("MP904", "one-value-of-many", culprit(nonfinite=0.0004), ("some of its values",)),
    ("MP904", "every-value", culprit(nonfinite=1.0), ("100% of its values",)),
    ("MP904", "its-input-was-not-finite", culprit(inputs_finite=False), SILENT),
    ("MP904", "in-float32", culprit(dtype="float32"), SILENT),
    ("MP904", "in-bfloat16", culprit(dtype="bfloat16"), SILENT),
    ("MP904", "nothing-overflowed", {}, SILENT),
    ("MP909", "float16-weights", weights("float16"), ("50 steps were applied", "stored in 16 bits", "mixed_float16")),
    ("MP909", "bfloat16-weights", weights("bfloat16"), ("stored in 16 bits",)),
    (
        "MP909",
        "a-small-scale",
        {**weights("float32"), "initial_scale": 1.0},
        ("loss scale of 1 ", "6e-8", "initial_scale"),
    ),
    ("MP909", "frozen-float16-is-not-why", {**weights("float16", False), "initial_scale": None}, ("learning rate",)),
    ("MP909", "weights-moved", {}, SILENT),
    ("MP909", "not-compared", {"weights_changed": None}, SILENT),
    ("MP909", "nothing-applied", skipped(50), SILENT),
    ("MP909", "too-few-steps", {"steps": good_steps(9), "weights_changed": False}, SILENT),
    (
        "MP912",
        "shrinks",
        depends(-1, -1, 0),
        ("32768 times too small", "scales 16 and 1024", "differ by 64 times", "once"),
    ),
    ("MP912", "grows", depends(1, 1, keras=KERAS2), ("32768 times too large", "64 times", "get_unscaled_gradients")),
    ("MP912", "twice", depends(-2), ("4.1e+03 times",)),
    ("MP912", "just-beyond-half", depends(-0.51), ("differ by",)),
    ("MP912", "half", depends(0.5), SILENT),
    ("MP912", "one-variable-of-three", depends(-1, 0, 0.01), SILENT),
    ("MP912", "no-variable", depends(), SILENT),
    ("MP912", "not-compared", {}, SILENT),
]


@pytest.mark.parametrize(
    ("code", "facts", "words"),
    [(code, facts, words) for code, _, facts, words in TABLE],
    ids=[f"{code}-{name}" for code, name, _, _ in TABLE],
)
def test_a_rule_speaks_or_is_silent(code: str, facts: dict[str, Any], words: tuple[str, ...] | str) -> None:
    found = said(code, **facts)
    if words == SILENT:
        assert found == []
        return
    (finding,) = found
    text = f"{finding.message} {finding.help}"
    assert [word for word in words if word not in text] == [], text
    assert (finding.code, finding.stage, finding.model) == (code, "training", "train.py#1")
    assert finding.location is not None
    assert "None" not in text
    assert "nan" not in text


@pytest.mark.parametrize("code", sorted({row[0] for row in TABLE}))
def test_every_rule_speaks_somewhere_and_is_silent_elsewhere(code: str) -> None:
    words = [row[3] for row in TABLE if row[0] == code]
    assert SILENT in words
    assert any(word != SILENT for word in words)


@pytest.mark.parametrize("code", ["MP401", "MP912"])
def test_a_loop_is_shown_where_its_gradients_arrive(code: str) -> None:
    assert said(code, **depends(-1))[0].location == APPLIED_AT


def test_a_fit_without_a_line_of_its_own_is_shown_at_its_call() -> None:
    given = training(good_steps(), scale_dependence=dependence(-1.0))
    (finding,) = findings_from_facts("in_training", given, KERAS3, lambda rule: rule.code == "MP912")
    assert isinstance(finding, Finding)
    assert finding.location == given.model.call.location


@pytest.mark.parametrize("code", ["MP902", "MP903"])
def test_the_first_variable_and_layer_are_the_evidence(code: str) -> None:
    keras = KERAS2 if code == "MP902" else KERAS3
    (finding,) = said(code, **{**skipped(50, keras), **culprit()})
    assert finding.evidence == {"first_nonfinite_gradient": "dense/kernel", "first_nonfinite_layer": "square"}


def test_what_led_up_to_an_overflow_is_the_evidence() -> None:
    (finding,) = said("MP904", **culprit())
    assert finding.evidence["frames"] == ["dense (Dense) float16, up to 812"]
    assert (finding.evidence["step"], finding.evidence["device"]) == (4, "CPU")
    assert (finding.layer, finding.location) == ("square", Location("train.py", 9))

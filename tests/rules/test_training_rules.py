"""Rules over a short training, each held to a table of hand-written facts: what it says, and where it is silent."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import pytest
from samples import good_steps, layer, model, steps_from_finiteness, training

from mpdoctor.facts.causes.hidden_overflow import HiddenOverflowFacts
from mpdoctor.facts.divergence import DivergenceFacts, TriedLayer
from mpdoctor.facts.layer import SettingsFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ArrayFacts, CallFacts, OptimizerFacts
from mpdoctor.facts.reference import (
    ComparedStep,
    InnerGradientFacts,
    LayerRange,
    ReferenceFacts,
    ScaleRoom,
    VariableFidelity,
)
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.training import (
    CulpritFacts,
    GradientCulpritFacts,
    GrowthFacts,
    NamedOperand,
    OperationFacts,
    ScaleDependenceFacts,
    StandstillFacts,
    StepFacts,
    TensorFacts,
)
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.loss_scale import LossScale, keras2
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.semantics.live.broken_operations import beside_float32
from mpdoctor.semantics.live.not_measured import not_looked_in

pytestmark = pytest.mark.fast

KERAS3, KERAS2 = Keras("keras", "3.15.1", "2.21.0"), Keras("tf_keras", "2.21.0", "2.21.0")
APPLIED_AT = Location("train.py", 44)
IN_KERAS2 = {"model": dataclasses.replace(model(), keras=KERAS2), "floor": 1.0}
SILENT = ""


def said(code: str, **facts: Any) -> list[Finding]:
    """What one rule says about a training, by default 50 good steps."""
    given = training(facts.pop("steps", good_steps()), applied_at=APPLIED_AT, **facts)
    found = list(findings_from_facts("in_training", given, given.model.keras, lambda rule: rule.code == code))
    assert all(isinstance(finding, Finding) for finding in found), found
    return found  # type: ignore[return-value]


def dependence(
    *exponents: float, scaled: bool | None = False, unscaled: bool | None = None, **more: Any
) -> ScaleDependenceFacts:
    pairs = tuple((f"v{number}", exponent) for number, exponent in enumerate(exponents))
    return ScaleDependenceFacts(16.0, 1024.0, pairs, scaled, unscaled, **more)


def depends(*exponents: float, keras: Keras = KERAS3, **calls: Any) -> dict[str, Any]:
    changed = {"model": dataclasses.replace(model(kind="loop"), keras=keras)}
    return {**changed, "scale_dependence": dependence(*exponents, **calls)}


def step_of_library(*exponents: float, keras: Keras = KERAS3, **calls: Any) -> dict[str, Any]:
    """Gradients that reach the optimizer without a line of the user's between it and their fit()."""
    facts = depends(*exponents, keras=keras, **calls)
    return {**facts, "model": dataclasses.replace(facts["model"], call=CallFacts("fit", APPLIED_AT))}


def skipped(steps: int, keras: Keras = KERAS3) -> dict[str, Any]:
    """Every step skipped, as this Keras' loss scale takes it."""
    scale = LossScale() if keras is KERAS3 else keras2(2.0**15, 2000)
    more = {} if keras is KERAS3 else IN_KERAS2
    return {"steps": steps_from_finiteness([False] * steps, scale), "weights_changed": False, **more}


def fallen(steps: int) -> dict[str, Any]:
    """So many of 50 steps skipped, the others applied with what scale was left."""
    return {"steps": steps_from_finiteness([False] * steps + [True] * (50 - steps), LossScale())}


GROWN = {
    "steps": tuple(StepFacts(min(2.0 ** (100 + n), math.inf) if n < 28 else math.inf, n < 28) for n in range(50)),
    "growth_interval": 1,
    "initial_scale": 2.0**100,
}
PURE = {"model": dataclasses.replace(model(layer("dense", policy="float16")), global_policy="float16")}
FRAME = TensorFacts("dense", "Dense", "float16", (32, 64), 812.5, 0.01, 0.0, 0.0, 0.0)


def culprit(inputs_finite: bool = True, **overflow: Any) -> dict[str, Any]:
    tensor = TensorFacts("square", "Square", "float16", (32, 64), 60000.0, 0.1, 0.2, 0.0, 0.4, Location("train.py", 9))
    frames = overflow.pop("frames", (FRAME,))
    return {"culprit": CulpritFacts(3, dataclasses.replace(tensor, **overflow), frames, inputs_finite)}


def operation(name: str, largest: float = 332.5, in_float32: float | None = 110556.0, **more: Any) -> OperationFacts:
    """In float16, and beyond it, by default."""
    facts = OperationFacts(name, "layer", "float16", "inf", largest, 0.1, location=Location("train.py", 6))
    return dataclasses.replace(facts, in_float32=in_float32, **more)


def broken(name: str, **more: Any) -> dict[str, Any]:
    """A layer whose output this operation broke."""
    facts = culprit()["culprit"]
    return {"culprit": dataclasses.replace(facts, operation=operation(name, **more))}


def in_first_step(name: str, **more: Any) -> CulpritFacts:
    return dataclasses.replace(broken(name, **more)["culprit"], step=0)


def hidden(name: str, is_healed: bool = True) -> dict[str, Any]:
    """An overflow for which no step was skipped."""
    layers, lines = ("square", "head"), (Location("train.py", 12), None)
    facts = HiddenOverflowFacts("square", "Square", operation(name), 0.42, layers, lines, is_healed)
    return {"hidden_overflow": facts}


def inner(flushed: int, apart: float = 0.2) -> dict[str, Any]:
    """The gradient of a gradient penalty."""
    return {"inner_gradients": (InnerGradientFacts(Location("train.py", 31), 512, flushed, apart),)}


LAYERS_RAISE = RemedyFacts("float32-layers", "not-tried", ("head",), (None,), reason="the step raises: TypeError.")
LOSS_FAILED = RemedyFacts("float32-loss", "failed", reason="the step is not finite either")


LABELS = "SparseSoftmaxCrossEntropyWithLogits"


HALF_LABELS = ArrayFacts("labels", "", "tf.data.Dataset", "float16", (None, 1))


def in_loss(name: str, loss: float = math.inf, **more: Any) -> dict[str, Any]:
    steps = tuple(StepFacts(32768.0, False, "dense/kernel", loss) for _ in range(50))
    return {"steps": steps, "loss_culprit": operation(name, where="loss", **more)}


def on_the_way_back(
    name: str = "Cast", where: str = "layer", without: bool | None = True, **more: Any
) -> dict[str, Any]:
    """Every third step skipped, because of a gradient."""
    steps = tuple(StepFacts(4.0, n % 3 > 0, None if n % 3 else "dense/kernel", 2.3) for n in range(50))
    found = GradientCulpritFacts(
        48, "dense/bias", "" if where in ("loss", "loop") else "head", "Dense", where, 4.0, (FRAME,), without
    )
    broke = operation(name, where="gradient", **more)
    return {"steps": steps, "gradient_culprit": dataclasses.replace(found, operation=broke)}


def in_halves(scale: float) -> dict[str, Any]:
    """A gradient that breaks in what the loss computes in float16, in a loop that no trial can repeat."""
    facts = on_the_way_back("RealDiv", where="loss", without=None)
    return {**facts, "gradient_culprit": dataclasses.replace(facts["gradient_culprit"], scale=scale)}


def gradient_applied() -> dict[str, Any]:
    """Without a loss scale the gradient of step 2 is inf, and the loss from step 3 on."""
    steps = tuple(StepFacts(None, True, "dense/bias" if n else None, 1.0 if n < 2 else math.inf) for n in range(9))
    found = dataclasses.replace(on_the_way_back()["gradient_culprit"], step=1, scale=None, without_scale=None)
    return {"steps": steps, "gradient_culprit": found, "initial_scale": None, "dynamic": None}


def function_on_the_way_back() -> dict[str, Any]:
    facts = on_the_way_back(without=False)
    return {**facts, "gradient_culprit": dataclasses.replace(facts["gradient_culprit"], is_function=True)}


def infinite_loss() -> dict[str, Any]:
    return {"steps": in_loss("Sum")["steps"]}


def function_that_overflows() -> dict[str, Any]:
    return {"culprit": dataclasses.replace(broken("Mul")["culprit"], is_function=True)}


def every_third_step_skipped() -> tuple[StepFacts, ...]:
    """As with dynamic_growth_steps=2: two good steps, the scale is doubled, a skip, and it is halved again."""
    return tuple(StepFacts(65536.0 if n % 3 == 2 else 32768.0, n % 3 != 2) for n in range(50))


def every_second_skip_at_a_doubled_scale() -> tuple[StepFacts, ...]:
    """Of the skipped steps one after the other is at a scale that has just been doubled, and at the scale before."""
    return tuple(StepFacts(65536.0 if n % 5 == 2 else 32768.0, n % 5 not in (2, 4)) for n in range(50))


def with_optimizer(epsilon: float | None, dtype: str = "float16", **more: Any) -> dict[str, Any]:
    own = layer("dense", variables=((dtype, 100, True),))
    chain = (OptimizerFacts("Adam", "keras", epsilon=epsilon, made_at=Location("train.py", 3)),)
    return {"model": dataclasses.replace(model(own), optimizer=chain), **more}


def from_scale(initial: float, lost: int, steps: int = 50) -> dict[str, Any]:
    """The first steps skipped, from this initial scale on."""
    scale = LossScale(initial)
    return {"steps": steps_from_finiteness([n >= lost for n in range(steps)], scale), "initial_scale": initial}


def at_zero(first: tuple[StepFacts, ...] = (StepFacts(0.0, True, None, 1.7),), **facts: Any) -> dict[str, Any]:
    """A loss scale of 0: the first finite step writes NaN into the weights, and the others are skipped."""
    steps = (*first, *(StepFacts(0.0, False, "dense/kernel", math.inf) for _ in range(109)))
    grown = GrowthFacts(start=0.5, rises=((len(first), math.nan, math.nan),))
    return {"steps": steps, "weights_finite": False, "growth": grown, **facts}


def _without_steps(facts: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in facts.items() if name != "steps"}


NO_LOSS = tuple(StepFacts(32768.0, True, None, 2.3 if n < 3 else math.nan) for n in range(50))
SIGMOID = SettingsFacts(activation="sigmoid")
FLOAT32_HEAD = model(layer("dense"), layer("out", policy="float32", is_output=True))
HALF_SOFTMAX = layer("out", settings=SettingsFacts(activation="softmax"), is_output=True)
TWICE = {"scaled": True, "loss": 1.0}
IN_FLOAT32 = {"in_float32": 2.0}  # what the kernel of this CPU alone lost


def weights(dtype: str, trainable: bool = True) -> dict[str, Any]:
    """Nothing moved, in a model with one such variable."""
    own = layer("dense", variables=((dtype, 100, trainable),))
    return {"model": model(own), "weights_changed": False}


GROWTH = GrowthFacts(0.4, ((3, 515.0, 5.0), (10, 5.39e10, 5.1e4)), 0.35)
STORY = (
    "The training diverges: the weights grew from step to step, the largest from 0.4 to 51,000 at step 11, and the loss"
)


def diverging(culprits: dict[str, Any], **growth: Any) -> dict[str, Any]:
    """At step 34, after this growth of the weights."""
    at = {name: dataclasses.replace(found, step=33) for name, found in culprits.items() if name.endswith("culprit")}
    return {**culprits, **at, "growth": dataclasses.replace(GROWTH, **growth)}


def stands_still(rate: float | None = None, gradient: float | None = None, **more: Any) -> dict[str, Any]:
    """Nothing moved, and this was measured."""
    return {"standstill": StandstillFacts(rate, gradient=gradient, **more), "weights_changed": False}


MOVES = {"update": 7.1e-4, "variable": "dense/kernel", "survives_rounding": True}


def of_adam(beta_2: float, class_name: str = "Adam") -> dict[str, Any]:
    """A model with bfloat16 weights under this optimizer."""
    pure = dataclasses.replace(model(layer("dense", policy="bfloat16")), global_policy="bfloat16")
    return {"model": dataclasses.replace(pure, optimizer=(OptimizerFacts(class_name, "keras", beta_2=beta_2),))}


def breaks_at(step: int) -> dict[str, Any]:
    """The update of this step, counted from 1, breaks the weights, and with them every loss from then on."""
    broken = tuple(StepFacts(None, True, loss=math.inf) for _ in range(50 - step))
    return {"steps": (*good_steps(step), *broken), "growth": GrowthFacts(0.3, ((step, math.inf, math.inf),), 0.001)}


def replicas(*nonfinite: int, applied: bool = True, keras: Keras = KERAS3) -> dict[str, Any]:
    """Two replicas; in step 3 these had gradients that were not finite."""
    steps = list(good_steps())
    steps[2] = dataclasses.replace(
        steps[2], applied=applied, first_nonfinite="dense/kernel", nonfinite_replicas=nonfinite, loss=math.inf
    )
    changed = {} if keras is KERAS3 else {"model": dataclasses.replace(model(), keras=KERAS2), "floor": 1.0}
    return {"steps": tuple(steps), "replicas": 2, **changed}


FIXED: dict[str, Any] = {
    "steps": (*good_steps(4), StepFacts(1e6, True, "dense/kernel", 2.3)),
    "dynamic": False,
    "initial_scale": 1e6,
    "gradient_culprit": on_the_way_back()["gradient_culprit"],
}


EXPERIMENTAL = dataclasses.replace(
    model(),
    optimizer=(OptimizerFacts("LossScaleOptimizerV1", "keras", is_wrapper=True), OptimizerFacts("Adam", "keras")),
)


def flushed(*shares: float, norm: float = 0.5, dtype: str = "float16", room: Any = None, **more: Any) -> dict[str, Any]:
    """A variable that loses this share of its gradient, on a batch each.

    `loss`: the last ones in 16 bits and in float32, where the training was run once more. `directions`: the cosine of
    the whole gradient on each batch."""
    directions = more.pop("directions", [0.4] * len(shares))
    scale, cosine, loss = more.pop("scale", 4.0), more.pop("cosine", 0.1), more.pop("loss", None)
    layers = (LayerRange("first", "float16", 1.0, 0.1, 0.0, 0.0, apart=more.pop("apart", 1e-3)),)
    steps = tuple(
        ComparedStep(
            "late",
            n,
            scale,
            directions[n],
            (VariableFidelity("first/kernel", 64, share, 0.0, cosine, 0.5, norm),),
            layers,
            "second",
        )
        for n, share in enumerate(shares)
    )
    divergence = parted(loss[0], None, loss[1])["reference"].divergence if loss else None
    reference = ReferenceFacts(dtype, steps, room or ScaleRoom(2.0**9, 2.0**19, 12), divergence=divergence)
    return {"reference": reference, "steps": tuple(StepFacts(scale, True) for _ in range(50)), **more}


WITH_DIGITS = ScaleRoom(2.0**9, 2.0**19, 12, cosine=0.9998)


def parted(half: float, rounded: float | None, single: float = 0.01, **more: Any) -> dict[str, Any]:
    """Losses of 30 steps that fall to these numbers from `begins`; `rounded` None: not trained, as
    `half` was near `single`."""
    dtype, reason = more.pop("dtype", "float16"), more.pop("not_measured", "")
    layers, throughout, begins = more.pop("layers", ()), more.pop("throughout", None), more.pop("begins", 1.0)

    def falling(end: float) -> tuple[float, ...]:
        return tuple(end + (begins - end) * 0.25**step for step in range(30))

    ends = falling(half), falling(single), () if rounded is None else falling(rounded)
    last = () if throughout is None else falling(throughout)
    divergence = DivergenceFacts(dtype, tuple(range(30)), *ends, layers, 1.0, reason, last)
    reference = ReferenceFacts(dtype, divergence=divergence)
    return {"reference": reference, "steps": tuple(StepFacts(2.0**15, True) for _ in range(50)), **more}


# (code, id, facts, what the message or the help holds; SILENT: the rule says nothing)
TABLE: list[tuple[str, str, dict[str, Any], tuple[str, ...] | str]] = [
    ("MP413", "zeros", inner(96), ("96 zeros among the 512 numbers", "Scale its target inside the inner tape")),
    ("MP413", "not-finite", inner(0, math.inf), ("is inf or NaN, and not so in float32",)),
    ("MP413", "a-few-zeros", inner(3), SILENT),
    ("MP413", "far-from-float32", inner(0, 0.3), SILENT),
    ("MP413", "none", {}, SILENT),
    (
        "MP315",
        "the-second-replica-alone",
        {**replicas(1), "weights_finite": False},
        ("step 3", "on replica 1 were inf or NaN", "replica 0 were not", "now hold inf or NaN", "mixed_bfloat16"),
    ),
    ("MP315", "two-of-three", replicas(1, 2), ("on replica 1 and 2",)),
    ("MP315", "the-first-replica", replicas(0, 1, applied=False), SILENT),
    ("MP315", "skipped", replicas(1, applied=False), SILENT),
    ("MP315", "a-fixed-scale", {**replicas(1), "dynamic": False}, SILENT),
    ("MP315", "all-finite", {"replicas": 2}, SILENT),
    ("MP907", "what-escaped-the-replica-check", replicas(1), SILENT),
    ("MP907", "what-the-first-replica-had-too", replicas(0, 1, applied=False), ("The loss is inf at step 3",)),
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
        ("although a LossScaleOptimizer", "3e-08", "get_scaled_loss"),
    ),
    (
        "MP401",
        "keras2-neither-in-a-librarys-step",
        step_of_library(0, 0, keras=KERAS2, unscaled=False),
        (
            "`Sequential.train_step`, which takes them, is not your code",
            "mixed_bfloat16",
            "self.optimizer.get_scaled_loss",
        ),
    ),
    (
        "MP401",
        "keras3-in-a-librarys-step",
        step_of_library(-1, -1),
        (
            "is not your code",
            "Or override `train_step` in a class of your own",
            "`scaled_loss = self.optimizer.scale_loss(loss)`",
        ),
    ),
    (
        "MP401",
        "keras2-scaled-and-unscaled-by-another",
        depends(0, 0, keras=KERAS2, scaled=True, unscaled=True, loss=0.0, scaled_by_another=True),
        SILENT,
    ),
    (
        "MP401",
        "keras3-scaled-by-another",
        depends(-1, scaled=True, loss=0.0, scaled_by_another=True),
        SILENT,
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
    ("MP902", "keras2-names-the-layer", {**skipped(50, KERAS2), **culprit()}, ("`square`: fix it there (see MP904)",)),
    ("MP902", "keras2-names-no-layer", skipped(50, KERAS2), ("No layer's output overflows", "tf.float32")),
    (
        "MP902",
        "keras2-predicts-in-float32",
        {**skipped(50, KERAS2), "model": dataclasses.replace(FLOAT32_HEAD, keras=KERAS2)},
        ("the predictions are float32 already: look in the loss for a logarithm",),
    ),
    ("MP902", "keras2-still-falling", skipped(12, KERAS2), SILENT),
    ("MP902", "keras2-healthy", IN_KERAS2, SILENT),
    ("MP902", "keras3", skipped(50), SILENT),
    ("MP903", "keras3-falls", skipped(50), ("50 of 50 steps", "from 32768 to 5.82e-11", "no floor")),
    (
        "MP903",
        "keras3-falls-and-names-the-layer",
        {**skipped(30), **culprit()},
        ("30 of 30", "`square`: fix it there (see MP904)"),
    ),
    (
        "MP903",
        "keras3-grows-to-inf",
        GROWN,
        ("doubled every step until it was inf", "dynamic_growth_steps=2000 instead of 1"),
    ),
    ("MP903", "keras3-still-falling", skipped(12), SILENT),
    (
        "MP903",
        "keras3-starts-at-zero",
        at_zero(initial_scale=0.0),
        ("is 0 from the first step on", "Give `initial_scale` a positive number"),
    ),
    (
        "MP903",
        "keras3-falls-to-zero",
        at_zero((*skipped(170)["steps"], StepFacts(0.0, True, None, 1.7))),
        ("from 32768 to 0", "step 171 was finite at a scale of 0, and wrote NaN into the weights"),
    ),
    (
        "MP907",
        "at-a-scale-of-zero",
        at_zero(initial_scale=0.0),
        ("The loss scale was 0 at step 1: ", "divided by 0", "a positive number"),
    ),
    ("MP903", "keras3-fell-and-goes-on", fallen(37), ("37 of 50", "to 2.38e-07", "every gradient below 0.12 is 0")),
    ("MP903", "keras3-healthy", {}, SILENT),
    ("MP903", "keras2", skipped(50, KERAS2), SILENT),
    (
        "MP904",
        "with-what-led-up-to-it",
        culprit(),
        ("`square` (Square)", "40% of its values", "step 4", "`dense`, reaches 812", "65504", 'dtype="float32"'),
    ),
    ("MP904", "the-first-layer", culprit(frames=()), ("from finite inputs. The largest float16 number is",)),
    (
        "MP904",
        "a-loss-that-the-layer-adds",
        {"culprit": dataclasses.replace(culprit(nonfinite=0.0)["culprit"], operation=operation("Sum"))},
        ("In layer `square` (Square) a result is not finite, at step 4", "The layer's output itself is finite"),
    ),
    ("MP904", "one-value-of-many", culprit(nonfinite=0.0004), ("some of its values",)),
    ("MP904", "every-value", culprit(nonfinite=1.0), ("100% of its values",)),
    ("MP904", "its-input-was-not-finite", culprit(inputs_finite=False), SILENT),
    ("MP904", "in-float32", culprit(dtype="float32"), SILENT),
    ("MP904", "in-bfloat16", culprit(dtype="bfloat16"), SILENT),
    ("MP904", "nothing-overflowed", {}, SILENT),
    (
        "MP909",
        "float16-weights",
        {**PURE, **stands_still(0.01, 0.5, update=6.3e-6, half_digit=4.9e-4, variable="dense/kernel", dtype="float16")},
        ("50 steps were applied", "6.3e-06, is that of `dense/kernel`, which is float16", "0.00049", '"mixed_float16"'),
    ),
    (
        "MP909",
        "a-bfloat16-layer",
        {
            "model": model(layer("dense", policy="bfloat16"), layer("dense_1")),
            **stands_still(0.01, 0.5, factor=1.0, update=6.3e-6, variable="dense/kernel", dtype="bfloat16"),
        },
        ("is rounded away", 'Give `dense` `dtype="mixed_bfloat16"`'),
    ),
    (
        "MP909",
        "a-float16-weight-of-a-mixed-layer",
        {
            "model": model(layer("dense"), layer("dense/scale")),
            **stands_still(0.01, 0.5, factor=1.0, update=6.3e-6, variable="dense/scale/gain", dtype="float16"),
        },
        ("Make `dense/scale/gain` in float32", "leave the `dtype` out"),
    ),
    (
        "MP909",
        "float32-weights",
        stands_still(1e-12, 0.5, factor=1.0, update=5e-12, half_digit=3e-8, variable="dense/kernel", dtype="float32"),
        ("float32, where half of the last digit is 3e-08", "Raise the learning rate: 1e-12 is too small"),
    ),
    (
        "MP909",
        "flushed-at-a-scale-of-1",
        {**stands_still(0.01, 0.0, factor=256.0), "steps": tuple(StepFacts(1.0, True) for _ in range(50))},
        ("At the loss scale of 1 every gradient is 0, and at 256 some are not", "the default of 32768"),
    ),
    (
        "MP909",
        "flushed-at-the-default",
        stands_still(0.01, 0.0, factor=65536.0),
        ("At the loss scale of 32768 every gradient is 0", "initial_scale=2.14748e+09"),
    ),
    (
        "MP909",
        "flushed-without-a-scale",
        {**stands_still(0.01, 0.0, factor=256.0), "steps": tuple(StepFacts(None, True) for _ in range(50))},
        ("Without a loss scale every gradient is 0", "`LossScaleOptimizer(optimizer)`"),
    ),
    ("MP909", "a-rate-of-0", stands_still(0.0, 0.5), ("The learning rate is 0 after 50 steps", "Give the optimizer")),
    (
        "MP909",
        "a-schedule-of-0",
        stands_still(0.0, schedule="Warmup"),
        ("that `Warmup` returns is still 0 after 50 steps", "An integer division"),
    ),
    (
        "MP909",
        "a-schedule-in-float16",
        stands_still(0.0, schedule="Warmup", rate_dtype="float16"),
        ("is still 0 after 50 steps. It is float16", "`tf.cast(step, tf.float32)` in `Warmup`"),
    ),
    (
        "MP909",
        "a-loss-that-is-constant",
        stands_still(0.01, 0.0, most=4.3e9, reaches_output=False),
        (
            "Every gradient is 0, even with the loss multiplied by 4.3e+09",
            "already 0 where the loss passes it to the model",
        ),
    ),
    (
        "MP909",
        "a-loss-of-0",
        {
            **stands_still(0.01, 0.0, most=4.3e9, reaches_output=False),
            "steps": tuple(StepFacts(32768.0, True, loss=0.0) for _ in range(50)),
        },
        ("The loss is 0 at every step, and so is every gradient", "Train on data that the model does not fit yet"),
    ),
    (
        "MP909",
        "a-loss-divided-by-infinity",
        stands_still(
            0.01, 0.0, most=4.3e9, reaches_output=False, overflow=operation("Sum", 2.0, 131072.0, where="loss")
        ),
        (
            "In the loss summing numbers up to 2 gives 131,072 (line 6): inf in float16",
            "compute it in float32, `tf.cast(x, tf.float32)` before anything",
        ),
    ),
    (
        "MP909",
        "a-layer-divided-by-infinity",
        stands_still(0.01, 0.0, most=4.3e9, layer="norm", overflow=operation("Square", 2.0, 131072.0)),
        ("In a layer squaring numbers up to 2 gives 131,072 (line 6): inf in float16", "(Not tried.)"),
    ),
    (
        "MP909",
        "dead-relus",
        stands_still(0.01, 0.0, most=4.3e9, layer="hidden", layer_class="Dense", puts_out_zeros=True),
        ("reaches the output of layer `hidden` (Dense), which is 0 for the whole batch", "ReLU"),
    ),
    (
        "MP909",
        "a-gradient-that-is-stopped",
        stands_still(0.01, 0.0, most=4.3e9, layer="hidden", layer_class="Dense"),
        ("reaches the output of layer `hidden` (Dense), and ends there", "tf.stop_gradient"),
    ),
    (
        "MP909",
        "an-optimizer-that-does-nothing",
        stands_still(0.01, 32768.0, factor=1.0),
        ("The gradients reach 1 and the learning rate is 0.01, but the optimizer changes no weight",),
    ),
    (
        "MP909",
        "a-beta-2-that-is-1-in-bfloat16",
        {**of_adam(0.999), **stands_still(0.001, 0.5, dtype="bfloat16", **MOVES)},
        (
            "In float64 Adam would change `dense/kernel` by up to 0.00071. It computes in the weight's dtype, "
            "bfloat16, in which its beta_2 of 0.999 is 1",
            'set_global_policy("mixed_bfloat16")',
        ),
    ),
    (
        "MP909",
        "a-beta-2-below-1-in-bfloat16",
        {**of_adam(0.99), **stands_still(0.001, 0.5, dtype="bfloat16", **MOVES)},
        ("The gradients reach 1.53e-05 and the learning rate is 0.001, but the optimizer changes no weight",),
    ),
    (
        "MP907",
        "a-beta-2-that-is-1-in-bfloat16",
        {**of_adam(0.999, "Nadam"), **breaks_at(1)},
        ("The weights are bfloat16, and Nadam makes such weights NaN: its beta_2 of 0.999 is 1", "mixed_bfloat16"),
    ),
    ("MP909", "nothing-measured", weights("float16"), ("not one trainable variable changed.", "learning rate")),
    ("MP909", "weights-moved", {}, SILENT),
    ("MP909", "not-compared", {"weights_changed": None}, SILENT),
    ("MP909", "nothing-applied", skipped(50), SILENT),
    ("MP909", "too-few-steps", {"steps": good_steps(9), "weights_changed": False}, SILENT),
    (
        "MP912",
        "shrinks",
        depends(-1, -1, 0),
        ("32768 times too small", "scales 16 and 1024", "differ by a factor of 64", "once"),
    ),
    (
        "MP912",
        "scaled-in-two-lines",
        depends(1, scaled=True, loss=2.0, scaled_before_at=Location("train.py", 9), scaled_at=Location("train.py", 14)),
        ("scaled twice, in line 9 and again in line 14: scale it once",),
    ),
    (
        "MP912",
        "scaled-in-two-files",
        depends(1, scaled=True, loss=2.0, scaled_before_at=Location("loss.py", 9), scaled_at=Location("train.py", 14)),
        ("in loss.py, line 9, and again in train.py, line 14",),
    ),
    (
        "MP912",
        "scaled-by-another",
        depends(-1, scaled=True, loss=0.0, scaled_by_another=True),
        ("scaled by another optimizer", "the ratio of the two loss scales", "`optimizer.scale_loss(loss)`"),
    ),
    (
        "MP912",
        "applied-with-the-scale-of-another",
        {**depends(1, scaled=True, loss=1.0, scaled_by_another=True), "initial_scale": None},
        ("Adam applies gradients of a loss that another optimizer scaled", "at the loss scale 1024", "of its own"),
    ),
    (
        "MP912",
        "divided-by-a-number-that-stands-for-the-scale-of-another",
        {
            **depends(1, scaled=True, loss=1.0, scaled_by_another=True, divided_on_the_way=True),
            "initial_scale": None,
        },
        SILENT,
    ),
    (
        "MP912",
        "applied-past-its-wrapper",
        depends(1, scaled=True, loss=1.0, scaled_by_another=True, scaled_by_its_wrapper=True),
        ("that the LossScaleOptimizer around it scaled", "Apply the gradients with the LossScaleOptimizer"),
    ),
    (
        "MP912",
        "grows",
        depends(1, 1, keras=KERAS2),
        ("32768 times too large", "a factor of 64", "get_unscaled_gradients"),
    ),
    (
        "MP912",
        "divided-by-a-scale-of-one-moment",
        {
            **depends(1, 1, keras=KERAS2, **TWICE, on_the_way="changed", divided_by=32767.9),
            "steps": tuple(StepFacts(scale, True) for scale in (32768.0, 512.0)),
        },
        ("by 32768 at every loss scale: at 512, the scale of step 2,", "64 times too small", "in force"),
    ),
    (
        "MP912",
        "divided-by-a-scale-that-never-changed",
        depends(1, keras=KERAS2, **TWICE, on_the_way="changed", divided_by=32768.0),
        ("at 16384 every applied gradient is 2 times too small",),
    ),
    ("MP912", "divided-by-the-replicas", depends(1, keras=KERAS2, divided_by=2.0), ("32768 times too large",)),
    ("MP402", "divided-by-a-scale", depends(1, keras=KERAS2, **TWICE, divided_by=32768.0), SILENT),
    ("MP402", "divided-by-the-replicas", depends(1, keras=KERAS2, **TWICE, divided_by=2.0), ("without unscaling",)),
    (
        "MP403",
        "keras3-by-a-scale-of-one-moment",
        depends(0, **TWICE, on_the_way="changed", divided_by=32768.0),
        ("by 32768, a loss scale", "32768 times too small", "Delete the division"),
    ),
    ("MP403", "keras2-by-a-scale-of-one-moment", depends(0, keras=KERAS2, **TWICE, divided_by=32768.0), SILENT),
    ("MP403", "keras3-by-the-micro-batches", depends(0, **TWICE, on_the_way="changed", divided_by=4.0), SILENT),
    ("MP403", "keras3-not-scaled", depends(0, loss=0.0, divided_by=32768.0), SILENT),
    ("MP401", "times-a-scale-of-one-moment", depends(-1, loss=0.0, multiplied_by=(32768.0,)), SILENT),
    ("MP401", "times-another-number", depends(-1, loss=0.0, multiplied_by=(8.0,)), ("never scaled",)),
    ("MP401", "times-and-divided", depends(0, keras=KERAS2, loss=0.0, multiplied_by=(96.0,), divided_by=96.0), SILENT),
    ("MP402", "times-and-divided", depends(0, keras=KERAS2, loss=0.0, multiplied_by=(96.0,), divided_by=96.0), SILENT),
    (
        "MP402",
        "times-a-scale-and-not-divided",
        depends(0, keras=KERAS2, loss=0.0, multiplied_by=(32768.0,)),
        ("multiplies the loss by 32768", "32768 times too large", "get_scaled_loss", "get_unscaled_gradients"),
    ),
    (
        "MP912",
        "times-a-scale-of-one-moment",
        {
            **depends(-1, loss=0.0, multiplied_by=(4.0, 32768.0)),
            "steps": tuple(StepFacts(scale, True) for scale in (32768.0, 65536.0)),
        },
        ("multiplies the loss by 32768 at every loss scale: at 65536, the scale of step 2,", "2 times too small"),
    ),
    (
        "MP912",
        "times-a-scale-that-never-changed",
        depends(-1, loss=0.0, multiplied_by=(32768.0,)),
        ("at 16384 every applied gradient is 2 times too large", "optimizer.scale_loss(loss)"),
    ),
    (
        "MP912",
        "times-a-fixed-scale",
        {**depends(-1, keras=KERAS2, loss=0.0, multiplied_by=(32768.0,)), "dynamic": False},
        SILENT,
    ),
    ("MP912", "twice", depends(-2), ("applied gradients shrink", "1.0737e+09 times too small", "a factor of 4.1e+03")),
    ("MP912", "a-part", depends(-0.51), ("A part of the applied gradients shrinks", "16 and 1024 differ, and")),
    ("MP912", "a-part-too-large", depends(0.6), ("A part of the applied gradients grows", "16 and 1024 differ, and")),
    ("MP912", "half", depends(0.5), SILENT),
    ("MP912", "one-variable-of-three", depends(-1, 0, 0.01), SILENT),
    ("MP912", "no-variable", depends(), SILENT),
    ("MP912", "not-compared", {}, SILENT),
    ("MP401", "one-of-two-models", depends(-1, scaled=True, loss=0.0), ("never scaled", "32768 times")),
    ("MP401", "scaled-by-hand", depends(-1, loss=1.0), SILENT),
    (
        "MP401",
        "keras2-neither-in-bfloat16",
        {
            **depends(0, keras=KERAS2, unscaled=False),
            "model": dataclasses.replace(model(layer("dense", policy="mixed_bfloat16")), keras=KERAS2),
        },
        SILENT,
    ),
    (
        "MP403",
        "keras3-by-hand",
        depends(-1, **TWICE, on_the_way="divided"),
        ("by the training code and again by the optimizer", "32768 times too small", "Delete the division"),
    ),
    (
        "MP403",
        "keras2-called-twice",
        depends(-1, keras=KERAS2, unscaled=True, **TWICE, unscaled_calls=2),
        ("2 times in one step", "get_unscaled_gradients"),
    ),
    (
        "MP403",
        "keras2-by-hand-as-well",
        depends(-1, keras=KERAS2, unscaled=True, **TWICE, unscaled_calls=1, on_the_way="divided"),
        ("again by `get_unscaled_gradients`",),
    ),
    ("MP403", "keras2-by-hand-alone-is-right", depends(0, keras=KERAS2, **TWICE, on_the_way="divided"), SILENT),
    ("MP403", "never-scaled", depends(-1, loss=0.0, on_the_way="divided"), SILENT),
    ("MP403", "two-wrappers", depends(-1, **TWICE, wrappers=2), SILENT),
    ("MP403", "clipped", depends(-1, **TWICE, on_the_way="changed"), SILENT),
    (
        "MP405",
        "keras3",
        depends(-0.9, -1, -1, **TWICE, on_the_way="changed"),
        ("still multiplied by the loss scale", "a factor of 64", "global_clipnorm"),
    ),
    (
        "MP405",
        "keras2",
        depends(-1, keras=KERAS2, **TWICE, unscaled_calls=1, on_the_way="changed"),
        ("Clip after `get_unscaled_gradients`",),
    ),
    ("MP405", "clipped-after-unscaling", depends(0, keras=KERAS2, **TWICE, on_the_way="changed"), SILENT),
    ("MP405", "divided", depends(-1, **TWICE, on_the_way="divided"), SILENT),
    ("MP405", "averaged-over-micro-batches", depends(0.01, **TWICE, on_the_way="changed"), SILENT),
    (
        "MP408",
        "was-inf",
        depends(0, loss_dtype="float16", loss_too_large=3.1, scaled_at=Location("train.py", 26)),
        ("float16", "it was 3.1, times 1024", "32768", "tf.cast(predictions, tf.float32)"),
    ),
    (
        "MP408",
        "not-yet",
        depends(0, keras=KERAS2, loss_dtype="float16", scaled_at=Location("train.py", 26)),
        ("multiplied by the loss scale of 32768 it is inf from 2.0 on, and the scale can never grow past 32768",),
    ),
    (
        "MP408",
        "never-in-keras-3",
        depends(0, loss_dtype="float16", scaled_at=Location("train.py", 26)),
        ("This loss is float16: the scale can never grow past 32768",),
    ),
    ("MP408", "scaled-by-keras", depends(0, loss_dtype="float16"), SILENT),
    ("MP408", "float32", depends(0, loss_dtype="float32", scaled_at=Location("train.py", 26)), SILENT),
    ("MP306", "two-wrappers", depends(-1, **TWICE, wrappers=2), ("2 LossScaleOptimizers", "32768 times too small")),
    ("MP306", "one", depends(-1, **TWICE), SILENT),
    ("MP306", "two-that-do-no-harm", depends(0, **TWICE, wrappers=2), SILENT),
    (
        "MP503",
        "a-sum-in-a-layer",
        broken("Sum", largest=300.0, in_float32=1228800.0),
        ("summing numbers up to 300 gives 1,228,800", "65504"),
    ),
    ("MP503", "exp-in-the-loss", in_loss("Exp", largest=12.0, in_float32=162754.0), ("exp() of numbers up to 12",)),
    ("MP503", "a-matrix-product", broken("MatMul"), SILENT),
    (
        "MP503",
        "a-mean-of-too-many",
        in_loss("Mean", averaged=262144, **IN_FLOAT32),
        ("a mean over 262,144 float16 values is inf", "From 65520 values on", "gradient is 0 at every loss scale"),
    ),
    ("MP503", "a-mean-that-a-cpu-loses", broken("Mean", averaged=65519, **IN_FLOAT32), SILENT),
    ("MP503", "on-this-device-alone", broken("Mean", **IN_FLOAT32), SILENT),
    ("MP503", "on-the-way-back", on_the_way_back("Sum"), SILENT),
    (
        "MP511",
        "in-a-layer",
        broken("Softmax", in_float32=None, masked=True, result="nan"),
        ("layer `square`", "(line 6)", "every value is -inf", "step 4", "-1e4"),
    ),
    ("MP511", "infinite-logits", broken("Softmax", in_float32=None, result="nan"), SILENT),
    ("MP511", "a-mask-times-zero", broken("Mul", in_float32=None, masked=True, result="nan"), SILENT),
    (
        "MP601",
        "a-timestamp",
        broken("Cast", largest=1.6e9, in_float32=1.6e9, from_data=True),
        ("1.6e+09", "step 4", "`square` (Square) casts it to float16", "65504", 'dtype="float32"'),
    ),
    ("MP601", "what-a-layer-made", broken("Cast", largest=1e6, in_float32=1e6), SILENT),
    ("MP601", "within-range", broken("Cast", largest=1e4, in_float32=1e4, from_data=True), SILENT),
    (
        "MP313",
        "zero",
        with_optimizer(1e-8, steps=NO_LOSS),
        ("Adam keeps its state in float16", "1e-08 is 0 in float16", "step 4", "mixed_float16"),
    ),
    ("MP313", "too-small-to-divide-by", with_optimizer(1e-7, weights_finite=False), ("too small to divide by",)),
    ("MP313", "nothing-broke", with_optimizer(1e-7), SILENT),
    ("MP313", "large-enough", with_optimizer(1e-4, steps=NO_LOSS), SILENT),
    ("MP313", "float32-weights", with_optimizer(1e-8, "float32", steps=NO_LOSS), SILENT),
    ("MP313", "no-epsilon", with_optimizer(None, steps=NO_LOSS), SILENT),
    ("MP313", "a-gradient-broke-first", with_optimizer(1e-8, **in_loss("Log")), SILENT),
    (
        "MP904",
        "names-the-operation",
        broken("Square"),
        ("squaring numbers up to 332 gives 110,556", "65504", 'give `square` dtype="float32". Or '),
    ),
    (
        "MP904",
        "in-the-code-of-a-whole-model",
        {**broken("Square"), "model": dataclasses.replace(model(layer("dense")), name="square")},
        (
            "Compute in float32 in this line, `tf.cast(x, tf.float32)`",
            "the layers inside `square` have their own dtypes",
        ),
    ),
    (
        "MP904",
        "in-the-code-of-a-layer-with-layers",
        {**broken("Square"), "model": model(layer("square", own_class=True), layer("square/dense"), layer("head"))},
        ("Compute in float32 in this line", "does not reach them. Or normalise"),
    ),
    (
        "MP904",
        "of-a-library-s-layer-with-layers",
        {**broken("Square"), "model": model(layer("square"), layer("square/dense", policy="float32"))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "a-division-in-a-whole-model",
        {**broken("RealDiv", in_float32=None, holds_zero=True), "model": dataclasses.replace(model(), name="square")},
        ("Divide with `tf.math.divide_no_nan`", "or compute what is 0 here in float32 from where it begins, `tf.cast("),
    ),
    (
        "MP905",
        "on-the-way-back-through-a-whole-model",
        {**on_the_way_back(in_float32=1e6), "model": dataclasses.replace(model(), name="head")},
        ("sample weights, the loss's factor",),
    ),
    (
        "MP904",
        "float32-layers-follow",
        {**broken("MatMul"), "model": model(layer("square"), layer("head", policy="float32"))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "its-activation-brings-the-values-back",
        {**broken("MatMul"), "model": model(layer("square", settings=SIGMOID), layer("next"))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "the-next-layer-would-cast-them-again",
        {**broken("MatMul"), "model": model(layer("square"), layer("norm", "LayerNormalization"), layer("last"))},
        ('give all of `square` and `norm` dtype="float32"',),
    ),
    (
        "MP904",
        "a-normalization-that-casts-nothing",
        {**broken("MatMul"), "model": model(layer("square"), layer("norm", "LayerNormalization", autocast=False))},
        ('Let this layer compute in float32: give `square` dtype="float32".',),
    ),
    (
        "MP904",
        "nothing-brings-them-back",
        {**broken("MatMul"), "model": model(layer("square"), *(layer(f"next_{n}") for n in range(6)))},
        ("Make its values smaller", "all 7 layers from `square` to `next_5`"),
    ),
    (
        "MP907",
        "a-log-of-a-half-softmax",
        {**in_loss("Log", dtype="float32", in_float32=None, holds_zero=True), "model": model(HALF_SOFTMAX)},
        ('Give `out` dtype="float32"', "its float16 softmax returns 0"),
    ),
    (
        "MP907",
        "a-log-of-something-else",
        {**in_loss("Log", dtype="float32", in_float32=None, holds_zero=True), "model": model(layer("out"))},
        ("Add an epsilon such as 1e-7",),
    ),
    (
        "MP904",
        "a-shared-layer",
        {"culprit": dataclasses.replace(culprit(call=2)["culprit"], calls=3)},
        ("in call 2 of 3 in the step",),
    ),
    (
        "MP904",
        "a-root-of-nothing",
        broken("RealDiv", in_float32=math.inf, holds_zero=True),
        ("a division by 0 is inf", "divide_no_nan"),
    ),
    (
        "MP904",
        "beyond-float32-as-well",
        broken("Exp", largest=286.0, in_float32=math.inf),
        ("exp() of numbers up to 286 gives inf", "tf.clip_by_value"),
    ),
    (
        "MP904",
        "a-constant",
        broken("Mul", in_float32=None, given="constant", masked=True, result="nan"),
        ("-1e9, is -inf in float16", "tf.where()"),
    ),
    (
        "MP904",
        "a-constant-with-a-name",
        broken("Mul", in_float32=None, given="constant", constant=NamedOperand("self.factor", 1e5)),
        ("`self.factor` is 100,000, and inf in float16", "number that float16 holds, up to 65504"),
    ),
    (
        "MP904",
        "a-constant-in-the-text",
        broken("AddV2", in_float32=None, given="constant", masked=True, constant=NamedOperand("-1e9", -1e9)),
        ("-1e9 is -inf in float16", "tf.where()"),
    ),
    (
        "MP904",
        "hidden",
        hidden("Mul"),
        (
            "numbers up to 332 gives 110,556",
            "No step is skipped",
            "42% of its size",
            '(line 12) and `head` dtype="float32": then',
        ),
    ),
    ("MP904", "hidden-and-followed-by-another", hidden("Mul", is_healed=False), ("are not enough (tried", "Not tried")),
    ("MP904", "hidden-in-a-sum", hidden("Sum"), SILENT),
    ("MP503", "hidden", hidden("Square"), ("squaring numbers up to 332", "No step is skipped", "42% of its size")),
    ("MP503", "hidden-elsewhere", hidden("Mul"), SILENT),
    ("MP904", "a-wave", hidden("Sin"), SILENT),
    ("MP503", "a-wave", hidden("Cos"), SILENT),
    (
        "MP512",
        "a-wave",
        hidden("Sin"),
        ("sin() is taken of float16 angles up to 332", "lie 0.25 apart", 'dtype="float32": then no angle loses'),
    ),
    ("MP512", "a-wave-behind-it", hidden("Cos", is_healed=False), ("cos()", 'dtype="float32". A cast')),
    ("MP512", "hidden-overflow", hidden("Square"), SILENT),
    ("MP904", "its-input-was-too-large", broken("Cast", largest=1e6, in_float32=1e6, from_data=True), SILENT),
    ("MP904", "weights-that-were-broken", broken("ReadVariableOp", in_float32=None), SILENT),
    ("MP904", "an-operation-in-float32", broken("Log", dtype="float32"), SILENT),
    ("MP904", "on-this-device-alone", broken("Mean", **IN_FLOAT32), SILENT),
    (
        "MP905",
        "a-gradient-too-large-without-a-scale",
        on_the_way_back(largest=6.7e8, in_float32=6.7e8),
        (
            "16 of the 49 steps",
            "the gradient of `dense/bias`, step 49 at the loss scale 4, and it does so without any loss scale too",
            "in layer `head` (Dense): numbers up to 6.7e+08 are cast to float16",
            "before it reaches 812",
            "class weights",
        ),
    ),
    (
        "MP905",
        "a-gradient-too-large-with-it",
        on_the_way_back("MatMul", without=False),
        ("multiplying matrices", "global_clipnorm"),
    ),
    (
        "MP905",
        "a-root-at-zero",
        on_the_way_back("SqrtGrad", holds_zero=True, in_float32=math.inf),
        ("the gradient of sqrt() at 0 is infinite", "tf.sqrt(x + 1e-4)"),
    ),
    (
        "MP905",
        "of-a-power-at-0",
        on_the_way_back("Pow", in_float32=None, holds_zero=True),
        ("the gradient of a power at 0 is infinite", "in float32 too", "tf.pow(x + 1e-4"),
    ),
    ("MP905", "in-a-function", function_on_the_way_back(), ("It breaks in `head` (Dense)", "a smaller learning rate")),
    ("MP904", "a-function", function_that_overflows(), ("The output of `square` (Square)", "Use a smaller constant")),
    ("MP907", "in-a-function", {**function_that_overflows(), **infinite_loss()}, ("It starts in `square`: ",)),
    (
        "MP907",
        "in-a-layer-in-bfloat16",
        {**broken("Square", dtype="bfloat16", in_float32=None), **infinite_loss()},
        ("It starts in layer `square`: squaring numbers", 'Give `square` dtype="float32". (Not tried.)'),
    ),
    (
        "MP907",
        "a-weight-of-a-file",
        {
            "culprit": in_first_step("ReadVariableOp"),
            "model": dataclasses.replace(model(), call=CallFacts("none", Location("model.py", 3))),
            **infinite_loss(),
        },
        ("a weight is already inf or NaN", "A file with such a weight was saved after its training had failed"),
    ),
    (
        "MP907",
        "labels",
        in_loss("Sub", given="labels"),
        (": the labels hold inf or NaN.", "assert_all_finite(labels, 'labels')"),
    ),
    (
        "MP907",
        "labels-in-float16",
        {**in_loss("Sub", given="labels"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))},
        ("labels hold inf or NaN, and they are float16, whose largest number is 65504.", "Leave the labels in float32"),
    ),
    (
        "MP907",
        "features-in-float16",
        {
            **in_loss("Identity", given="data"),
            "model": dataclasses.replace(model(), data=(dataclasses.replace(HALF_LABELS, role="features"),)),
        },
        ("holds inf or NaN, and its features are float16, whose largest number is 65504.", "Scale the features before"),
    ),
    (
        "MP907",
        "features-beside-labels-in-float16",
        {**in_loss("Identity", given="data"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))},
        ("the batch itself holds inf or NaN.", "assert_all_finite(data"),
    ),
    (
        "MP907",
        "inf-beside-labels-in-float16",
        {**in_loss("Square"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))},
        ("although no layer's output overflows", "Compute it in float32"),
    ),
    ("MP905", "in-the-loss", on_the_way_back(where="loss"), ("between the loss and the model's output",)),
    ("MP905", "in-the-loop", on_the_way_back("RealDiv", where="loop"), ("where the training code handles",)),
    (
        "MP905",
        "some-batches-hold-nan",
        {
            **in_loss("Cast", given="data"),
            "steps": tuple(
                StepFacts(
                    1024.0, number % 9 > 0, None if number % 9 else "dense/kernel", 0.5 if number % 9 else math.nan
                )
                for number in range(50)
            ),
        },
        ("6 of 50 steps were skipped, and in each of them the loss itself is inf or NaN: the batch itself holds inf",),
    ),
    ("MP905", "nothing-known", {"steps": on_the_way_back()["steps"]}, ("16 of the 49 steps", "`dense/kernel`")),
    (
        "MP905",
        "below-1-with-finite-losses",
        {"steps": tuple(dataclasses.replace(step, loss=2.3) for step in fallen(21)["steps"])},
        ("had fallen to 0.0156: gradients leave float16's range even without scaling. At that scale",),
    ),
    (
        "MP905",
        "below-1-at-rest",
        fallen(21),
        (
            "21 of 50 steps were skipped until the loss scale had fallen to 0.0156: in each of them the loss itself is",
            "inf or NaN, whatever the scale. At that scale every gradient below 1.9e-06 is 0",
            "Inf or NaN came first in the gradient of `dense/kernel`",
            "standardise inputs and targets",
        ),
    ),
    (
        "MP905",
        "below-1-at-rest-and-explained",
        {"steps": fallen(21)["steps"], "gradient_culprit": on_the_way_back()["gradient_culprit"]},
        ("is 0. Inf or NaN came first in the gradient of `dense/bias`", "Give layer `head`"),
    ),
    (
        "MP905",
        "below-1-and-all-of-the-script",
        {**fallen(24), "script_steps": 24},
        ("24 of 50 steps were skipped, including all 24 of the script itself until the loss scale",),
    ),
    ("MP905", "below-1-from-the-start", {"steps": tuple(StepFacts(0.5, True) for _ in range(50))}, SILENT),
    (
        "MP905",
        "at-the-floor",
        {**IN_KERAS2, "steps": steps_from_finiteness([False] * 18 + [True] * 32, keras2(2.0**15, 2000))},
        ("18 of 50 steps were skipped, 3 of them at the loss scale's floor of 1", "every gradient below 3e-08 is 0"),
    ),
    (
        "MP905",
        "a-growth-interval-of-2",
        {"steps": every_third_step_skipped(), "growth_interval": 2},
        (
            "16 of 50 steps were skipped after the loss scale had settled: the scale doubles after 2 finite steps in",
            "16 of these steps were skipped right after it doubled",
            "`dynamic_growth_steps=2000`, the default, instead of 2",
        ),
    ),
    (
        "MP905",
        "a-short-growth-interval-that-is-not-why",
        {**on_the_way_back(), "growth_interval": 2},
        ("came first in the gradient of `dense/bias`",),
    ),
    (
        "MP905",
        "a-short-growth-interval-for-half-of-them",
        {"steps": every_second_skip_at_a_doubled_scale(), "growth_interval": 2},
        ("20 of the 50 steps since the first applied one were skipped.", "Look for values far beyond the others"),
    ),
    (
        "MP905",
        "in-a-loss-in-halves",
        in_halves(0.5),
        ("Line 6 computes in float16 here, and no loss scale is small enough", 'last layers `dtype="float32"`'),
    ),
    ("MP905", "in-a-loss-in-halves-at-some-scale", in_halves(4.0), ("Look for values far beyond the others",)),
    ("MP905", "diverging", diverging(on_the_way_back()), (STORY, "Lower the learning rate: 0.35 is too high")),
    (
        "MP905",
        "diverging-below-1",
        {**diverging({}), "steps": tuple(dataclasses.replace(s, loss=2.3) for s in fallen(21)["steps"])},
        (STORY, "try a tenth of it, 0.035"),
    ),
    ("MP905", "one-leap", diverging(on_the_way_back(), rises=((3, 515.0, 3.0),)), ("came first in the gradient",)),
    (
        "MP905",
        "one-leap-and-then-losses",
        diverging(on_the_way_back(), rises=((4, 5e3, 4e2), (9, 5e4, 4e2))),
        ("came first in the gradient",),
    ),
    (
        "MP905",
        "weights-that-hardly-grew",
        diverging(on_the_way_back(), start=100.0, rises=((3, 5e3, 201.0), (9, 5e4, 405.0))),
        ("came first in the gradient",),
    ),
    ("MP905", "gradients-left-scaled", diverging(on_the_way_back(), scaled_gradients=True), ("came first in",)),
    (
        "MP905",
        "grown-only-afterwards",
        diverging(on_the_way_back(), rises=((40, 5e3, 40.0), (45, 5e4, 400.0))),
        ("came first in the gradient",),
    ),
    ("MP904", "diverging", diverging(culprit()), (STORY, "Lower the learning rate: 0.35 is too high")),
    ("MP904", "diverging-by-an-unknown-rate", diverging(culprit(), learning_rate=None), ("Lower the learning rate.",)),
    ("MP905", "healthy", {}, SILENT),
    (
        "MP907",
        "log-of-nothing",
        in_loss("Log", loss=-math.inf, holds_zero=True, in_float32=math.inf, result="-inf"),
        ("The loss is -inf at step 1 and at 49 later steps", "log() of 0 is -inf", "1e-4 (one below 3e-8 is 0)"),
    ),
    (
        "MP907",
        "a-square",
        in_loss("SquaredDifference", largest=1000.0, in_float32=1e6),
        ("squaring a difference of numbers up to 1,000 gives 1,000,000", "tf.cast(x, tf.float32)"),
    ),
    (
        "MP907",
        "bad-data",
        in_loss("", loss=math.inf, given="data", in_float32=None),
        ("the batch itself holds inf or NaN", "assert_all_finite"),
    ),
    (
        "MP907",
        "a-label-beyond-the-classes",
        in_loss(LABELS, dtype="float32", result="nan", in_float32=None, largest=5.0),
        ("a label names no class of the model's output", "raises on a CPU", "from 0 to one less", "units"),
    ),
    (
        "MP907",
        "in-a-layer",
        {**broken("Square"), "steps": in_loss("Log")["steps"]},
        ("It starts in layer `square`", "see MP904"),
    ),
    (
        "MP907",
        "broken-weights",
        {**broken("ReadVariableOp", in_float32=None), "steps": in_loss("Log")["steps"]},
        ("before the step begins", "the earlier steps"),
    ),
    (
        "MP907",
        "broken-weights-in-the-first-step",
        {"culprit": in_first_step("ReadVariableOp", in_float32=None), "steps": in_loss("Log")["steps"]},
        ("in the very first step", "what the step itself assigns to weights"),
    ),
    (
        "MP907",
        "an-update-that-breaks-the-weights",
        {
            "steps": tuple(
                StepFacts(32768.0, n < 2, None if n < 2 else "k", 1.0 if n < 2 else math.inf) for n in range(9)
            ),
            "growth": GrowthFacts(0.3, ((2, math.inf, math.inf),), 0.001),
        },
        ("The update of step 2 made weights inf or NaN", "Adam computes that", "See what Adam divides by"),
    ),
    (
        "MP907",
        "a-gradient-that-breaks-the-weights",
        {
            "steps": tuple(StepFacts(None, True, "k" if n > 0 else None, 1.0 if n < 2 else math.inf) for n in range(9)),
            "growth": GrowthFacts(0.3, ((2, math.inf, math.inf),), 0.001),
        },
        ("The loss is inf at step 3 and at 6 later steps, although",),
    ),
    (
        "MP907",
        "a-gradient-that-nothing-checked",
        gradient_applied(),
        (
            "because no LossScaleOptimizer skipped the step before it",
            "first in the gradient of `dense/bias`, step 2",
            "apply the gradients with a LossScaleOptimizer",
            "Clipping does not help",
        ),
    ),
    ("MP907", "on-this-device-alone", in_loss("Mean", **IN_FLOAT32), SILENT),
    (
        "MP907",
        "not-followed",
        {
            "steps": in_loss("Log")["steps"],
            "not_looked": (("first number not finite", "the failing step cannot be repeated eagerly: ValueError: no"),),
        },
        ("Check the batch of the failing step", "output: the failing step cannot be repeated eagerly: ValueError: no."),
    ),
    (
        "MP907",
        "weights-that-a-fixed-scale-broke",
        {**FIXED, "steps": (*FIXED["steps"], StepFacts(1e6, True, "dense/kernel", math.inf))},
        ("The loss is inf at step 6, because the gradients of step 5 are inf or NaN, and were applied",),
    ),
    (
        "MP907",
        "before-a-fixed-scale-broke-weights",
        {**FIXED, "steps": (StepFacts(1e6, True, "dense/kernel", math.inf), *FIXED["steps"])},
        ("The loss is inf at step 1, although no layer's output overflows.",),
    ),
    (
        "MP907",
        "of-predictions-in-float32",
        {**infinite_loss(), "model": FLOAT32_HEAD},
        ("although no layer's output overflows.", "the predictions are float32 already: look in the loss for"),
    ),
    ("MP907", "of-predictions-in-float16", infinite_loss(), ("`tf.cast(predictions, tf.float32)` before anything",)),
    (
        "MP907",
        "where-no-layer-was-called",
        {
            **infinite_loss(),
            "not_looked": (("first number not finite", "the call that applies the gradients calls no layer"),),
        },
        ("The loss is inf at step 1 and at 49 later steps.", "each layer's output: the call that applies"),
    ),
    (
        "MP907",
        "where-nothing-computes-in-16-bits",
        {**infinite_loss(), "model": model(layer("dense", policy="float32")), "policy": "float32"},
        ("The loss is inf at step 1", "precision is not the cause: lower the learning rate"),
    ),
    ("MP907", "finite", {}, SILENT),
    (
        "MP910",
        "from-above",
        from_scale(2.0**56, 41),
        ("starts at 7.20576e+16", "first 41 steps were skipped", "had fallen to 32768", "That saves these 41 steps"),
    ),
    (
        "MP910",
        "above-the-default",
        from_scale(2.0**60, 44),
        ("first 44 steps were skipped", "had fallen to 65536", "That saves these 44 steps"),
    ),
    ("MP910", "above-the-default", from_scale(2.0**33, 15), ("had fallen to 262144", "That saves these 15 steps")),
    ("MP910", "not-there-yet", from_scale(2.0**90, 50), ("all 50 steps were skipped", "Leave `initial_scale` out")),
    (
        "MP910",
        "below-the-default",
        from_scale(2.0**15, 11),
        ("first 11 steps", "initial_scale=16)"),
    ),
    ("MP910", "down-to-1", from_scale(2.0**15, 15), ("until it had fallen to 1.", "initial_scale=1)")),
    ("MP910", "below-1", from_scale(2.0**15, 16), SILENT),  # MP905
    (
        "MP910",
        "all-of-a-short-script",
        {**from_scale(2.0**40, 25), "script_steps": 24},
        ("first 25 steps were skipped", "The script itself runs 24 steps, so it trains nothing"),
    ),
    (
        "MP910",
        "all-of-a-loop-that-ended",
        {**from_scale(2.0**90, 24, 24), "script_steps": 24, "ended": "script"},
        ("all 24 steps were skipped", "The script itself runs 24 steps, so it trains nothing"),
    ),
    (
        "MP910",
        "all-but-one-of-a-short-script",
        {**from_scale(2.0**40, 23), "script_steps": 24},
        ("first 23 steps were skipped", "Of the 24 steps of the script itself 1 is applied."),
    ),
    ("MP910", "a-script-of-a-few-steps", {**from_scale(2.0**20, 8), "script_steps": 8}, SILENT),
    ("MP910", "as-many-as-usual", from_scale(2.0**15, 9), SILENT),
    ("MP910", "on-its-way-to-nothing", skipped(50), SILENT),
    ("MP910", "no-scale", {"dynamic": None, "initial_scale": None}, SILENT),
    (
        "MP911",
        "a-fixed-scale",
        FIXED,
        ("1e+06 is too large", "step 5", "`dense/bias`", "layer `head`", "dynamic loss scale"),
    ),
    *(
        ("MP911", f"a-smaller-scale-{tried.tried}", {**FIXED, "remedies": (tried,)}, words)
        for tried, words in (
            (
                RemedyFacts("smaller-scale", "healed", batches=2, scale=8192.0),
                (
                    "a smaller fixed one: with 8192, and with four times as much, this batch and one other are finite "
                    "(tri",
                ),
            ),
            (
                RemedyFacts("smaller-scale", "not-tried", reason="a step of an eager loop cannot be repeated"),
                ("a smaller fixed one. (Not tried: a step of an eager loop cannot be repeated.)",),
            ),
            (
                RemedyFacts("smaller-scale", "failed", reason="at a loss scale of 4 the step is not finite either"),
                ("(Tried: at a loss scale of 4 the step is not finite either.)",),
            ),
        )
    ),
    (
        "MP904",
        "a-loss-tried-and-layers-that-raise",
        {**broken("Exp"), "remedies": (LAYERS_RAISE, LOSS_FAILED)},
        (
            "A loss in float32 does not help (tried): the step is not finite either. Layers in float32 could not be "
            "tried: the step raises: TypeError.",
        ),
    ),
    (
        "MP904",
        "a-loss-and-layers-tried",
        {**broken("Exp"), "remedies": (dataclasses.replace(LAYERS_RAISE, tried="failed"), LOSS_FAILED)},
        ("`head` in float32 does not help (tried)", "A loss in float32 does not help either (tried)"),
    ),
    ("MP911", "a-dynamic-one", skipped(50), SILENT),
    ("MP902", "names-the-gradient", {**skipped(50, KERAS2), **_without_steps(on_the_way_back())}, ("`dense/bias`",)),
    ("MP903", "names-the-loss", {**skipped(50), **_without_steps(in_loss("Exp"))}, ("In the loss, exp() of",)),
    (
        "MP906",
        "dynamic",
        flushed(1.0, 0.0, 0.5, dynamic=True),
        ("100% of `first/kernel`", "of `second`", "leave out `initial", "from 2^9 to 2^17"),
    ),
    ("MP906", "fixed", flushed(1.0, 1.0, dynamic=False), ("the loss scale 2^2", "`initial_scale=2.0**13`")),
    ("MP906", "factor", flushed(1.0, uses_loss_scale_factor=True, dynamic=False), ("`loss_scale_factor=2.0**13`",)),
    ("MP906", "experimental", flushed(1.0, dynamic=False, model=EXPERIMENTAL), ("`loss_scale=2.0**13`",)),
    ("MP906", "experimental-default", flushed(1.0, model=EXPERIMENTAL), ('`loss_scale="dynamic"`, which starts at',)),
    (
        "MP906",
        "a-loss-that-is-never-scaled",
        flushed(1.0, scale_dependence=dependence(0.0, loss=0.0)),
        ("Without a loss scale", "Multiply the loss by the loss scale of the optimizer"),
    ),
    (
        "MP906",
        "a-loss-that-is-scaled",
        flushed(1.0, scale_dependence=dependence(0.0, loss=1.0)),
        ("At the loss scale 2^2", "from 2^9 to 2^17"),
    ),
    ("MP906", "no-scale", flushed(1.0, scale=None), ("Without a loss scale", "LossScaleOptimizer(optimizer)")),
    (
        "MP906",
        "no-room",
        flushed(1.0, room=ScaleRoom(2.0**9, 2.0**10, 12, ("head/kernel",), ())),
        ("No loss scale fits", "`head/kernel` overflows"),
    ),
    ("MP906", "nobody-asked", {}, SILENT),
    ("MP906", "less-than-5-percent", flushed(0.04, 0.04), SILENT),
    ("MP906", "on-one-batch", flushed(1.0, 0.0, 0.0), SILENT),
    (
        "MP906",
        "digits-that-get-lost",
        flushed(0.0, 0.0, 0.01, directions=[0.7, 0.8123, 0.99], room=WITH_DIGITS),
        ("At the loss scale 2^2", "lose digits", "is 0.70. At 2^13 it is 0.9998 (3", "leave out `initial_scale`"),
    ),
    ("MP906", "digits-on-one-batch", flushed(0.0, 0.0, directions=[0.7, 0.99], room=WITH_DIGITS), SILENT),
    ("MP906", "digits-no-scale-keeps", flushed(0.0, 0.0, room=dataclasses.replace(WITH_DIGITS, cosine=0.8)), SILENT),
    ("MP906", "digits-nobody-tried", flushed(0.0, 0.0, room=dataclasses.replace(WITH_DIGITS, cosine=None)), SILENT),
    ("MP906", "digits-above-the-middle", flushed(0.0, 0.0, room=WITH_DIGITS, scale=2.0**14), SILENT),
    ("MP906", "without-a-part", flushed(1.0, 1.0, norm=1e-5), SILENT),
    ("MP906", "one-unit-and-the-loss-is-not-known", flushed(0.06, 0.06, cosine=1.0), ("6% of `first/kernel`",)),
    (
        "MP906",
        "one-unit-and-another-loss",
        flushed(0.06, 0.06, cosine=1.0, loss=(0.3, 0.01)),
        ("6% of `first/kernel`",),
    ),
    ("MP906", "one-unit-and-the-same-loss", flushed(0.06, 0.06, cosine=1.0, loss=(0.0101, 0.01)), SILENT),
    ("MP906", "all-of-it-and-the-same-loss", flushed(1.0, 1.0, cosine=None, loss=(0.0101, 0.01)), ("100% of",)),
    ("MP906", "bfloat16", flushed(1.0, 1.0, dtype="bfloat16"), SILENT),
    ("MP906", "never-scaled", flushed(1.0, 1.0, scale_dependence=dependence(-1.0)), SILENT),
    (
        "MP908",
        "with-its-layer",
        parted(0.3, 0.011, layers=(TriedLayer("cancel", (0.02,) * 30, True),)),
        ("the last 10 of 30 steps", "0.3 in float16 and 0.01 in float32", 'Give `cancel` `dtype="float32"`'),
    ),
    (
        "MP908",
        "no-layer-alone",
        parted(0.3, 0.011, layers=(TriedLayer("a", (0.3,) * 30, False), TriedLayer("b", (0.3,) * 30, False))),
        ("with all layers in float32", "`a` and `b`, each alone, in float32 did not prevent it"),
    ),
    (
        "MP908",
        "all-of-its-class",
        parted(
            *(0.3, 0.011),
            layers=(
                TriedLayer("a", (0.2,) * 30, False),
                TriedLayer("head", (0.3,) * 30, False),
                TriedLayer("a", (0.02,) * 30, True, ("b", "c")),
            ),
        ),
        ("Give `a`, `b` and `c` `dtype=", "the mean is 0.02; with only `a` it is 0.2."),
    ),
    (
        "MP908",
        "not-all-of-its-class-either",
        parted(
            *(0.3, 0.011),
            layers=(TriedLayer("a", (0.3,) * 30, False), TriedLayer("a", (0.3,) * 30, False, ("b",))),
        ),
        ("`a` alone in float32 did not prevent it, nor did `a` and `b` together.",),
    ),
    (
        "MP908",
        "most-of-it-goes-with-a-layer",
        parted(
            *(0.3, 0.011),
            layers=(TriedLayer("a", (0.06,) * 30, False), TriedLayer("b", (math.nan,) * 30, False)),
        ),
        ("did not prevent it. With `a` in float32 the mean is 0.06, which is nearer to float32's.",),
    ),
    ("MP908", "bfloat16", parted(0.3, 0.011, dtype="bfloat16"), ("in bfloat16", "with all layers in float32")),
    ("MP908", "less-than-a-tenth-of-the-change", parted(0.1, 0.011), SILENT),
    ("MP908", "rounding-does-as-much", parted(0.3, 0.07), SILENT),
    ("MP908", "without-the-control", parted(0.3, None), SILENT),
    (
        "MP908",
        "a-part-of-the-loss-that-began-high",
        parted(1.7, 1.001, single=1.0, begins=1e5, throughout=1.01),
        ("its mean is 1.7 in float16 and 1 in float32", "hand on rounded as well, it is 1.01"),
    ),
    ("MP908", "what-rounding-throughout-does", parted(1.7, 1.001, single=1.0, begins=1e5, throughout=1.2), SILENT),
    ("MP908", "a-small-part-of-the-loss", parted(1.015, 1.0, single=1.0, begins=1e5, throughout=1.0), SILENT),
    ("MP908", "a-loss-below-0", parted(-1.7, -1.0, single=-1.0, begins=1e5, throughout=-1.0), SILENT),
    ("MP908", "near-0-as-roundings-are", parted(3e-6, 1e-6, single=1e-6, throughout=2.5e-6), SILENT),
    ("MP908", "roundings-of-the-loss", parted(1.005, 1.0, single=1.0), SILENT),
    ("MP908", "not-finite", parted(math.inf, 0.011), SILENT),
    ("MP908", "a-stuck-training", {**parted(0.3, 0.011), "steps": skipped(50)["steps"]}, SILENT),
    ("MP908", "nobody-asked", {}, SILENT),
    ("MP906", "an-output-is-wrong-before", flushed(1.0, 1.0, apart=0.3, room=ScaleRoom(2.0**9, 2.0**10, 12)), SILENT),
    ("MP906", "and-a-scale-keeps-them", flushed(1.0, 1.0, apart=0.3), ("leave out `initial",)),
    ("MP906", "not-measured", {"reference": ReferenceFacts(not_measured="an eager loop")}, SILENT),
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
    assert "nan" not in text.replace("_no_nan", "")


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
    assert finding.evidence == {
        "first_nonfinite_gradient": "dense/kernel",
        "first_nonfinite_layer": "square",
        "told_by": "MP904",
    }


def test_what_led_up_to_an_overflow_is_the_evidence() -> None:
    (finding,) = said("MP904", **culprit())
    assert finding.evidence["frames"] == ["dense (Dense) float16, up to 812"]
    assert (finding.evidence["step"], finding.evidence["device"]) == (4, "CPU")
    assert (finding.layer, finding.location) == ("square", Location("train.py", 9))


@pytest.mark.parametrize(
    ("name", "more", "words"),
    [
        ("Log", {"holds_zero": True}, "an epsilon such as 1e-7"),
        ("RealDiv", {"holds_zero": True}, "an epsilon such as 1e-7"),
        ("SqrtGrad", {"holds_zero": True}, "an epsilon such as 1e-7"),
        ("Log", {"result": "nan"}, "tf.maximum(x, 1e-7)"),
        ("Sqrt", {"result": "nan"}, "tf.maximum(x, 1e-7)"),
        ("Exp", {}, "input smaller"),
        ("Square", {}, "input smaller"),
    ],
)
def test_float32_is_no_remedy_for_what_breaks_in_float32(name: str, more: dict[str, Any], words: str) -> None:
    (finding,) = said("MP907", **in_loss(name, dtype="float32", **more))
    assert words in finding.help
    assert "tf.float32" not in finding.help
    assert "float16" not in finding.help


@pytest.mark.parametrize(
    ("code", "facts", "line"),
    [
        ("MP904", broken("Square"), 6),  # of the operation
        ("MP904", broken("Square", location=None), 9),  # of the layer: what broke is no line of the user's
        ("MP905", on_the_way_back(), 6),
        ("MP905", on_the_way_back(location=None), 12),  # of the training call
        ("MP907", in_loss("Log"), 6),
        ("MP907", in_loss("Log", location=None), 12),
    ],
)
def test_which_line_is_shown(code: str, facts: dict[str, Any], line: int) -> None:
    call = CallFacts("fit", Location("train.py", 12))
    (finding,) = said(code, **{**facts, "model": dataclasses.replace(model(), call=call)})
    assert finding.location is not None and finding.location.line == line
    assert [(seen.line, seen.text) for seen in finding.also_seen] == (
        [(9, "Layer `square` is made here.")] if (code, line) == ("MP904", 6) else []
    )


@pytest.mark.parametrize(
    ("own", "severity"), [(24, Severity.WARNING), (26, Severity.WARNING), (40, Severity.INFO), (None, Severity.INFO)]
)
def test_a_script_that_trains_next_to_nothing_is_warned(own: int | None, severity: Severity) -> None:
    (found,) = said("MP910", **from_scale(2.0**40, 25), script_steps=own)
    assert found.severity is severity


@pytest.mark.parametrize(
    ("applied", "weight", "loss", "diverges"),
    [
        (False, 24.5, 232_118.0, True),
        (True, 24.5, 232_118.0, False),  # perhaps that batch alone is far beyond the others, and has moved them
        (False, 2.4, 232_118.0, False),
        (False, 24.5, 60.0, False),
    ],
)
def test_a_single_leap_to_a_skipped_step_is_the_rates(
    applied: bool, weight: float, loss: float, diverges: bool
) -> None:
    steps = tuple(StepFacts(32768.0, applied or n != 2, None, 10.9 if n < 2 else loss) for n in range(20))
    seen = training(steps, growth=GrowthFacts(0.54, ((2, loss, weight),), 5.0))
    assert seen.diverges == diverges


@pytest.mark.parametrize(
    ("scale", "dtype", "compared", "told"),
    [
        (1.0, "float16", False, ["MP906"]),
        (128.0, "float16", False, ["MP906"]),
        (256.0, "float16", False, []),
        (1.0, "bfloat16", False, []),
        (1.0, "float16", True, []),
        (None, "float16", False, []),
        (0.0, "float16", False, []),  # nothing is below it: MP310, MP903
    ],
)
def test_a_low_loss_scale_is_not_called_looked_at(
    scale: float | None, dtype: str, compared: bool, told: list[str]
) -> None:
    steps = tuple(StepFacts(scale, True, None, 1.0) for _ in range(9))
    trained = {
        "model": model(layer("dense", policy=f"mixed_{dtype}")),
        "reference": ReferenceFacts(dtype) if compared else None,
    }
    assert [code for code, _ in not_looked_in(training(steps, **trained))] == told


@pytest.mark.parametrize(
    ("facts", "ran_away"),
    [
        (diverging(culprit()), True),
        (diverging(culprit(), scaled_gradients=True), True),
        (diverging(culprit(), rises=((3, 515.0, 3.0),)), False),
        (culprit(), False),
    ],
    ids=["diverging", "gradients-left-scaled", "one-leap", "no-growth"],
)
def test_weights_that_ran_away_are_marked_as_such(facts: dict[str, Any], ran_away: bool) -> None:
    for code in ("MP904", "MP907"):
        (found,) = said(code, **{**facts, "steps": infinite_loss()["steps"]})
        assert found.evidence.get("weights_ran_away", False) is ran_away


NO_SCALE = {"steps": tuple(StepFacts(None, True) for _ in range(50))}
ROUNDED = {"update": 6.3e-6, "variable": "dense/kernel"}


@pytest.mark.parametrize(
    ("facts", "rule"),
    [
        ({**stands_still(0.01, 0.0, factor=256.0), **NO_SCALE}, "MP106"),
        (stands_still(0.01, 0.0, factor=65536.0), None),
        ({**stands_still(0.01, 0.0, most=4.3e9), **NO_SCALE}, None),
        ({**stands_still(0.0, 0.0, factor=256.0), **NO_SCALE}, None),
        ({**PURE, **stands_still(0.01, 0.5, dtype="float16", **ROUNDED)}, "MP107"),
        ({"model": model(layer("dense")), **stands_still(0.01, 0.5, dtype="float16", **ROUNDED)}, "MP204"),
        (stands_still(0.01, 0.5, dtype="float32", **ROUNDED), None),
        ({**of_adam(0.999), **stands_still(0.01, 0.5, dtype="bfloat16", **MOVES)}, "MP107"),
        ({**of_adam(0.99), **stands_still(0.01, 0.5, dtype="bfloat16", **MOVES)}, None),
    ],
    ids=[
        "not-scaled",
        "scaled",
        "no-underflow",
        "no-rate",
        "pure-policy",
        "half-weight",
        "float32-weight",
        "rounded-beta-2",
        "beta-2-below-1",
    ],
)
def test_weights_that_stand_still_are_told_by_their_cause(facts: dict[str, Any], rule: str | None) -> None:
    (found,) = said("MP909", **facts)
    assert found.evidence.get("told_by") == rule


@pytest.mark.parametrize("more", [{"masked": True}, {"given": "data"}, {"result": "inf"}])
def test_only_finite_logits_show_that_a_label_is_wrong(more: dict[str, Any]) -> None:
    (finding,) = said("MP907", **in_loss(LABELS, **{"dtype": "float32", "result": "nan", "in_float32": None, **more}))
    assert "label names no class" not in finding.message


@pytest.mark.parametrize(("where", "ends"), [("loss", "where fit() is given them)"), ("layer", "before they are cast")])
def test_in_a_loss_the_numbers_that_are_cast_are_labels_or_weights(where: Any, ends: str) -> None:
    beside = beside_float32(operation("Cast", where=where))
    assert beside is not None
    assert beside.endswith(ends)


def test_labels_that_a_cast_to_float16_made_infinite_are_told_by_the_cast() -> None:
    facts = {**in_loss("Sub", given="labels"), "model": dataclasses.replace(model(), data=(HALF_LABELS,))}
    (found,) = said("MP907", **facts)
    assert found.evidence["told_by"] == "MP603"
    (found,) = said("MP907", **in_loss("Sub", given="labels"))
    assert "told_by" not in found.evidence

"""Trainings as facts, each with something wrong, and what one rule says of one."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

from samples import good_steps, layer, model, steps_from_finiteness, training

from mpdoctor.facts.causes.hidden_overflow import HiddenOverflowFacts
from mpdoctor.facts.divergence import DivergenceFacts
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
    OperationFacts,
    ScaleDependenceFacts,
    StandstillFacts,
    StepFacts,
    TensorFacts,
)
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


def without_steps(facts: dict[str, Any]) -> dict[str, Any]:
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

"""What optimizers do to 16-bit weights whose dtype rounds their beta_2 to 1."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import rounds_to_one
from mpdoctor.facts.model import ModelFacts
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, known

USUAL_BETA_2 = 0.999  # of each of them, in every Keras
# They compute in the weights' dtype. Adam's step has the root of 1 - beta_2 ** step as a factor, which is then 0, and
# Nadam divides by 1 - beta_2 ** step. Measured with bfloat16 weights in TensorFlow 2.4, 2.10 and 2.15, in tf_keras
# 2.21 and Keras 3.15; AdamW from 2.10 on, Lamb in Keras 3.15.
_STANDS_STILL, _BREAKS = "never changes such weights", "makes such weights NaN"
EFFECTS = {"Adam": _STANDS_STILL, "AdamW": _STANDS_STILL, "Lamb": _STANDS_STILL, "Nadam": _BREAKS}
_BY_NAME = {name.lower(): name for name in EFFECTS}


def effect_in_model(model: ModelFacts, dtype: str) -> str:
    """What the innermost optimizer of a live model does to weights of this 16-bit dtype, as a sentence about "such
    weights"; "" where the dtype does not round its `beta_2` to 1, or its class is none of these."""
    innermost = model.optimizer[-1] if model.optimizer else None
    if innermost is None or innermost.own_class or innermost.beta_2 is None:
        return ""
    return _effect(innermost.class_name, innermost.beta_2, dtype)


def effect_in_program(facts: SourceFacts, dtype: str) -> str:
    """What the optimizer of a program does to weights of this 16-bit dtype, as a sentence about "such weights", of the
    first optimizer that does anything to them; "" where none is known to."""
    effects = (_effect(name, beta_2, dtype) for name, beta_2 in _optimizers(facts))
    return next(filter(None, effects), "")


def _effect(optimizer: str, beta_2: float, dtype: str) -> str:
    effect = EFFECTS.get(optimizer, "") if rounds_to_one(beta_2, dtype) else ""
    return effect and f"{optimizer} {effect}: its beta_2 of {beta_2:g} is 1 in {dtype}."


def _optimizers(facts: SourceFacts) -> Iterator[tuple[str, float]]:
    """The class and the `beta_2` of each optimizer of these classes, where that is known."""
    for call in facts.calls_of(*(f"keras.optimizers.{name}" for name in EFFECTS)):
        beta_2 = _beta_2(call)
        if beta_2 is not None and isinstance(call.callee, Api):
            yield public_name(call.callee.name).rpartition(".")[2], beta_2
    for call in facts.method_calls("compile"):
        named = known(call.argument(0, "optimizer"))
        if isinstance(named, str) and named.lower() in _BY_NAME:
            yield _BY_NAME[named.lower()], USUAL_BETA_2


def _beta_2(optimizer: Call) -> float | None:
    """The `beta_2` that it is made with; None where that is not known, or may be given by position."""
    if optimizer.open or len(optimizer.args) > 1:
        return None
    given = optimizer.keyword("beta_2")
    beta_2 = USUAL_BETA_2 if given is None else known(given)
    return beta_2 if isinstance(beta_2, float) else None

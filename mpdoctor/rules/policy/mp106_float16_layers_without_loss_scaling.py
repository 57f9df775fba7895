"""Layers compute in float16, the model is trained, and nothing scales the loss.

## Why it matters
A gradient below 3e-08 is 0 in float16; loss scaling preserves it. compile() adds loss scaling only if the
*model's own* policy is mixed_float16. In Keras 3.15, tf_keras 2.21 and TensorFlow 2.15 the optimizer stayed a
plain Adam where the policy was set back to float32 before `Model(…)`, and where only the layers were given
`dtype="mixed_float16"`. A custom loop has loss scaling only if you write it. Nothing raises; the training is
worse.

## Flagged
```python
import keras

inputs = keras.Input((4,))
x = keras.layers.Dense(8, dtype="mixed_float16")(inputs)
model = keras.Model(inputs, keras.layers.Dense(1)(x))
model.compile(optimizer="adam", loss="mse")
```

## Fixed
```python
import keras

inputs = keras.Input((4,))
x = keras.layers.Dense(8, dtype="mixed_float16")(inputs)
model = keras.Model(inputs, keras.layers.Dense(1)(x))
model.compile(optimizer=keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam()), loss="mse")
```

## Versions
All. In Keras 3 an optimizer with a `loss_scale_factor` scales the loss itself, and
`compile(auto_scale_loss=False)` adds no wrapper even under mixed_float16. bfloat16 needs no scaling.

## Where users met it
keras-team/keras-cv#734, keras-team/keras-hub#326, keras-team/keras-core#571 ("scaling the loss up by 1k
brought it in line").
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Value, known, options, walk
from mpdoctor.semantics.source.edits.expressions import argument_at, put_around, unsafe_fix, without_keyword
from mpdoctor.semantics.source.edits.loops.scaled_losses import loss_scaled, wrapped_where_made
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.layers.float16_layers import (
    applied_in_float16,
    is_assumed_float16,
    is_float16,
    is_float16_in_name,
    may_be_float16,
)
from mpdoctor.semantics.source.layers.model_layers import layer_name, layers_of, trainings
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_left_bare
from mpdoctor.semantics.source.optimizers.functional_gradients import STATELESS_APPLY, stateless_steps
from mpdoctor.semantics.source.optimizers.gradients import (
    accumulated_gradients,
    applied_gradients,
    is_taken_in_the_other_arm,
    is_wrapped_on_a_path,
    sources,
    target,
    unscaled_on_the_way,
)
from mpdoctor.semantics.source.optimizers.hand_made_scales import scales_in_its_step
from mpdoctor.semantics.source.optimizers.loss_scale_signs import may_be_scaled, may_be_scaled_in, scales_nothing
from mpdoctor.semantics.source.optimizers.wrappers import compiles_of, policies_of_model
from mpdoctor.semantics.source.programs.models import is_model
from mpdoctor.semantics.wording import listed, receiver_text

SEVERITY = Severity.WARNING
EXPLAINS = {"MP906": "model", "MP908": "model"}
FIXES = ("unsafe",)
CONFIRMED_LIVE = True
SHOWS_IN_FORCED_LOOPS = True
LOST = "gradients below 3e-08 become 0"
WRAP_IT = (
    "Wrap the optimizer yourself: `compile(optimizer=LossScaleOptimizer(…), …)`. Or set the global policy to "
    "mixed_float16 and leave it set until the model is made."
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for compile_call, half, reason in _compiled_bare(facts):
        yield _not_wrapped(facts, compile_call, half, reason)
    for call, half in _minimized_unscaled(facts):
        yield _in_a_loop(facts, call, half, unsafe_fix("Wrap the optimizer", wrapped_where_made(facts, call)))
    reported: set[Location] = set()
    for call, gradient, half in _unscaled(facts, applied_gradients(facts), reported):
        reported.add(call.location)
        if any(isinstance(part, Call) and scales_nothing(facts, part) for part in walk(target(gradient))):
            yield _scaled_by_bare(facts, call, half)
        else:
            edits = wrapped_where_made(facts, call), loss_scaled(facts, call, gradient, unscales=False)
            yield _in_a_loop(facts, call, half, unsafe_fix("Wrap the optimizer and scale the loss", *edits))
    for call, half in _stateless_unscaled(facts):
        yield _in_a_loop(facts, call, half, None)
    accumulated = {call.location: (call, half) for call, _, half in _unscaled(facts, accumulated_gradients(facts))}
    for call, half in accumulated.values():
        yield _in_a_loop(facts, call, half, None)


def _compiled_bare(facts: SourceFacts) -> Iterator[tuple[Call, list[str], str]]:
    """Calls of compile() that leave the optimizer bare, with the layers that compute in float16 and the reason."""
    for call, model in trainings(facts):
        if _is_given_bare_optimizer(facts, call, model) and not scales_in_its_step(facts, model):
            half = _names(layer for layer in layers_of(facts, model) if _is_float16_in(facts, layer, call))
            reason = _why_not_wrapped(facts, call, model)
            if half and reason:
                yield call, half, reason


def _is_float16_in(facts: SourceFacts, layer: Call, compile_call: Call) -> bool:
    """Whether a layer computes in float16, or on some path, where compile() is to scale the loss on none."""
    if is_float16(facts, layer):
        return not is_float16_in_name(facts, layer)
    return _drops_scaling(compile_call) and may_be_float16(facts, layer, compile_call)


def _drops_scaling(compile_call: Call) -> bool:
    return known(compile_call.keyword("auto_scale_loss")) is False


def _unscaled(
    facts: SourceFacts, applied: Iterable[tuple[Call, Call]], reported: Container[Location] = ()
) -> Iterator[tuple[Call, Call, list[str]]]:
    """Those of these (apply call, tape.gradient call) by which a bare optimizer applies gradients of an unscaled loss,
    with the layers that compute in float16 on the way to it. Places in `reported` are left out: a step that is followed
    on each path to it is many calls."""
    for apply, gradient in applied:
        if apply.location in reported:
            continue
        loss = target(gradient)
        if apply.receiver is None or not is_left_bare(facts, apply.receiver) or may_be_scaled_in(facts, loss):
            continue
        if unscaled_on_the_way(apply, gradient) or is_taken_in_the_other_arm(apply, gradient):
            continue
        if is_wrapped_on_a_path(facts, apply):
            continue  # MP401
        half = _names(applied_in_float16(facts, loss, apply, sources(gradient)))
        if half:
            yield apply, gradient, half


def _stateless_unscaled(facts: SourceFacts) -> Iterator[tuple[Call, list[str]]]:
    """Like `_unscaled`, for gradients that JAX took."""
    for apply, losses in stateless_steps(facts):
        if is_left_bare(facts, apply.receiver) and not any(may_be_scaled_in(facts, loss) for loss in losses):
            half = _names(layer for loss in losses for layer in applied_in_float16(facts, loss, apply))
            if half:
                yield apply, half


def _minimized_unscaled(facts: SourceFacts) -> Iterator[tuple[Call, list[str]]]:
    """Calls of minimize() of a bare optimizer, in Keras 2, with the layers that compute in float16 whose weights it is
    given."""
    for call in facts.method_calls("minimize"):
        if _minimizes_unscaled(facts, call):
            models = [
                value for value in walk(call.argument(1, "var_list")) if isinstance(value, Call) and is_model(value)
            ]
            layers = [layer for model in models for layer in layers_of(facts, model)]
            half = _names(layer for layer in layers if is_float16(facts, layer) or is_assumed_float16(facts, layer))
            if half:
                yield call, half


def _minimizes_unscaled(facts: SourceFacts, call: Call) -> bool:
    if facts.keras.is_keras3 or call.receiver is None or call.context.guarded:
        return False
    return is_left_bare(facts, call.receiver) and not _scales(facts, call)


def _is_given_bare_optimizer(facts: SourceFacts, call: Call, model: Call) -> bool:
    """Whether a call is the model's compile() and its optimizer is certainly no LossScaleOptimizer."""
    if call.method != "compile" or call.context.guarded or not (call.args or call.keywords):
        return False
    return call in compiles_of(facts, model) and is_left_bare(facts, call.argument(0, "optimizer"), call.open)


def _names(layers: Iterable[Call]) -> list[str]:
    return list(dict.fromkeys(str(layer_name(layer)) for layer in layers))


def _fix(facts: SourceFacts, compile_call: Call) -> Fix | None:
    """The edit that wraps the optimizer which compile() is given, or drops `auto_scale_loss=False`."""
    if _drops_scaling(compile_call):
        drop = without_keyword(facts, compile_call.location, "auto_scale_loss")
        return unsafe_fix("Drop `auto_scale_loss=False`", drop)
    place = argument_at(facts, compile_call.location, 0, "optimizer")
    wrapper = keras_name(facts, "mixed_precision.LossScaleOptimizer")
    if place is None or wrapper is None:
        return None
    is_name = isinstance(known(compile_call.argument(0, "optimizer")), str)
    get = f"{keras_name(facts, 'optimizers.get')}(" if is_name else ""
    around = put_around(facts, place, f"{wrapper}({get}", "))" if is_name else ")")
    return unsafe_fix("Wrap the optimizer", around)


def _not_wrapped(facts: SourceFacts, compile_call: Call, half: list[str], reason: str) -> Finding:
    return Finding(
        f"{listed(half)} {'computes' if len(half) == 1 else 'compute'} in float16, and compile() makes no "
        f"LossScaleOptimizer: {reason}. Unscaled, {LOST}.",
        "Drop `auto_scale_loss=False`, or scale the loss yourself." if _drops_scaling(compile_call) else WRAP_IT,
        compile_call.location,
        fix=_fix(facts, compile_call),
    )


def _in_a_loop(facts: SourceFacts, apply: Call, half: list[str], fix: Fix | None) -> Finding:
    name = receiver_text(facts, apply)
    if apply.method == "minimize":
        then = f"`{name}.minimize(…)` scales and unscales by itself."
    elif apply.method == STATELESS_APPLY:
        then = f"`{name}.scale_loss(loss)` in the function that JAX differentiates."
    elif facts.keras.is_keras3 and not _is_legacy(apply.receiver):
        then = f"`{name}.scale_loss(loss)` inside the tape."
    else:
        then = f"`{name}.get_scaled_loss(loss)` inside the tape, `{name}.get_unscaled_gradients(…)` after it."
    return Finding(
        f"The gradients that `{name}` applies come through layers that compute in float16 ({listed(half)}), and "
        f"nothing scales the loss: {LOST}.",
        f"`{name} = LossScaleOptimizer({name})` where it is made; then {then}",
        apply.location,
        fix=None if facts.keras.is_keras3 and _is_legacy(apply.receiver) else fix,
    )


def _scaled_by_bare(facts: SourceFacts, apply: Call, half: list[str]) -> Finding:
    name = receiver_text(facts, apply)
    return Finding(
        f"The gradients that `{name}` applies come through layers that compute in float16 ({listed(half)}), and "
        f"`scale_loss` of an optimizer that is no LossScaleOptimizer gives the loss back as it is: {LOST}.",
        f"`{name} = LossScaleOptimizer({name})` where it is made.",
        apply.location,
        fix=unsafe_fix("Wrap the optimizer", wrapped_where_made(facts, apply)),
    )


def _is_legacy(optimizer: Value | None) -> bool:
    """Whether it may be an optimizer of `keras.optimizers.legacy`, which no Keras 3 can make."""
    made = (option.callee for option in options(optimizer) if isinstance(option, Call))
    return any(isinstance(callee, Api) and ".legacy." in callee.name for callee in made)


def _scales(facts: SourceFacts, minimize: Call) -> bool:
    """Whether the loss that is minimized, or the function that gives it, may be scaled by hand."""
    loss = minimize.argument(0, "loss")
    functions = [
        option.of for option in options(loss) if isinstance(option, Defined) and isinstance(option.of, FunctionFacts)
    ]
    return may_be_scaled(loss) or any(may_be_scaled(r.value) for f in functions for r in facts.returns_of(f))


def _why_not_wrapped(facts: SourceFacts, compile_call: Call, model: Call) -> str:
    """Why compile() leaves the optimizer bare, "" where it may not."""
    policies = policies_of_model(facts, model)
    if UNSURE in policies or not policies or compile_call.open:
        return ""
    if facts.keras.is_keras3 and _drops_scaling(compile_call):
        return "`auto_scale_loss=False`"
    if "mixed_float16" in policies:
        return ""
    return f"the model's own policy is {', '.join(sorted(str(policy or 'float32') for policy in policies))}"


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.may_train or model.call.kind == "loop" or _may_scale(model):
        return  # a loop may scale by hand
    half = [layer for layer in model.layers if _trains_in_float16(layer)]
    if half:
        optimizer = model.optimizer[0].class_name
        compute = f"{listed([layer.path for layer in half])} {'computes' if len(half) == 1 else 'compute'} in float16"
        why, help = _unwrapped(model, optimizer)
        yield Finding(
            f"{compute}, and {why}. Unscaled, {LOST}.",
            help,
            model.call.location,
            layer=half[0].path,
            evidence={"model_policy": model.policy, "optimizer": optimizer},
        )


def _unwrapped(model: ModelFacts, optimizer: str) -> tuple[str, str]:
    """Why no LossScaleOptimizer is around the optimizer, as an English clause, and the change to make."""
    if model.policy == "mixed_float16":  # a train_step that applies with an optimizer of its own, auto_scale_loss=False
        return (
            f"no LossScaleOptimizer is around the {optimizer} that applies their gradients",
            f"Wrap it where it is made: `LossScaleOptimizer({optimizer}(…))`. A `train_step` of your own has to scale "
            "the loss too, inside the tape.",
        )
    return (
        f"the optimizer is a bare {optimizer}: the model's own policy is {model.policy}, so compile() did not wrap it",
        WRAP_IT,
    )


def _trains_in_float16(layer: LayerFacts) -> bool:
    return layer.policy == "mixed_float16" and layer.floating and layer.has_trainable_weights


def _may_scale(model: ModelFacts) -> bool:
    """Whether the model's optimizer scales the loss, or none is known."""
    factors = [link.loss_scale_factor for link in model.optimizer]
    return not factors or model.wrapper is not None or any(factor not in (None, "None") for factor in factors)

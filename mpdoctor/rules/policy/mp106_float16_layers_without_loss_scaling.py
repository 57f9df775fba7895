"""Layers compute in float16, the model is trained, and nothing scales the loss.

## Why it matters
A gradient below 3e-08 is 0 in float16; loss scaling preserves it. compile() adds loss scaling only if the
*model's own* policy is mixed_float16. In Keras 3.15, tf_keras 2.21 and TensorFlow 2.15 the optimizer stayed a
plain Adam where the policy was set back to float32 before `Model(…)`, and where only the layers were given
`dtype="mixed_float16"`. A custom loop has loss scaling only if you write it, also one that changes the weights
without an optimizer, `weight.assign_sub(rate * gradient)`: of a loss of about 1e-6 every gradient of the float16
layer was 0, and with the loss times 1024 none was (TensorFlow 2.10 and 2.15, Keras 3.15). Nothing raises; the
training is worse.

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
All. In Keras 2 a bare optimizer has no `get_scaled_loss` and no `get_unscaled_gradients`, and a loop that calls them
raises. In Keras 3 an optimizer with a `loss_scale_factor` scales the loss itself, and
`compile(auto_scale_loss=False)` adds no wrapper even under mixed_float16. bfloat16 needs no scaling.

## Where users met it
keras-team/keras-cv#734, keras-team/keras-hub#326, keras-team/keras-core#571 ("scaling the loss up by 1k
brought it in line").
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, known, options, walk
from mpdoctor.semantics.source.edits.expressions import put_around, unsafe_fix, without_keyword
from mpdoctor.semantics.source.edits.loops.scaled_losses import loss_scaled, wrapped_where_made
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.layers.model_layers import layers_of
from mpdoctor.semantics.source.loops.float16_layers import is_float16, is_float16_in_name, may_be_float16
from mpdoctor.semantics.source.loops.functional_gradients import STATELESS_APPLY
from mpdoctor.semantics.source.loops.gradients import applied_gradients, target
from mpdoctor.semantics.source.loops.hand_made_scales import scales_in_its_step
from mpdoctor.semantics.source.loops.loss_scale_signs import scales_nothing
from mpdoctor.semantics.source.loops.resized_gradients import accumulated_gradients
from mpdoctor.semantics.source.loops.unscaled_gradients import (
    minimized_unscaled,
    names_of_layers,
    stateless_unscaled,
    unscaled_gradients,
    unscaled_updates,
)
from mpdoctor.semantics.source.optimizers.bare_optimizers import asked_as_wrapper, is_left_bare
from mpdoctor.semantics.source.optimizers.wrappers import compiles_of, policies_of_model
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.source.trainings.trained_models import trainings
from mpdoctor.semantics.wording import listed, place_of, receiver_text

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
    for call in asked_as_wrapper(facts):
        yield _asked_as_wrapper(facts, call)
    for call, half in minimized_unscaled(facts):
        yield _in_a_loop(facts, call, half, unsafe_fix("Wrap the optimizer", wrapped_where_made(facts, call)))
    reported: set[Location] = set()
    for call, gradient, half in unscaled_gradients(facts, applied_gradients(facts), reported):
        reported.add(call.location)
        if any(isinstance(part, Call) and scales_nothing(facts, part) for part in walk(target(gradient))):
            yield _scaled_by_bare(facts, call, half)
        else:
            edits = wrapped_where_made(facts, call), loss_scaled(facts, call, gradient, unscales=False)
            yield _in_a_loop(facts, call, half, unsafe_fix("Wrap the optimizer and scale the loss", *edits))
    updates: dict[Location, Finding] = {}  # what is added may be taken away again further down
    for update, gradient, half in unscaled_updates(facts):
        updates.setdefault(gradient.location, _without_optimizer(update, half))
    yield from updates.values()
    for call, half in stateless_unscaled(facts):
        yield _in_a_loop(facts, call, half, None)
    accumulated = {
        call.location: (call, half) for call, _, half in unscaled_gradients(facts, accumulated_gradients(facts))
    }
    for call, half in accumulated.values():
        yield _in_a_loop(facts, call, half, None)


def _compiled_bare(facts: SourceFacts) -> Iterator[tuple[Call, list[str], str]]:
    """Calls of compile() that leave the optimizer bare, with the layers that compute in float16 and the reason."""
    for call, model in trainings(facts):
        if _is_given_bare_optimizer(facts, call, model) and not scales_in_its_step(facts, model):
            half = names_of_layers(layer for layer in layers_of(facts, model) if _is_float16_in(facts, layer, call))
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


def _is_given_bare_optimizer(facts: SourceFacts, call: Call, model: Call) -> bool:
    """Whether a call is the model's compile() and its optimizer is certainly no LossScaleOptimizer."""
    if call.method != "compile" or call.context.guarded or not (call.args or call.keywords):
        return False
    return call in compiles_of(facts, model) and is_left_bare(facts, call.argument(0, "optimizer"), call.open)


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


def _asked_as_wrapper(facts: SourceFacts, call: Call) -> Finding:
    name = receiver_text(facts, call)
    made = [option for option in options(call.receiver) if isinstance(option, Call)]
    place = f" ({place_of(facts, made[0].location, call.location)})" if len(made) == 1 else ""
    return Finding(
        f"`{name}` is no LossScaleOptimizer, and nothing else has `{call.method}`: this line raises. compile() wraps "
        "an optimizer for fit(); for a loop of its own, a program wraps it by hand.",
        f"Wrap it where it is made{place}: `{_wrapper(facts)}(…)`.",
        call.location,
        severity=Severity.ERROR,
        fix=unsafe_fix("Wrap the optimizer", wrapped_where_made(facts, call)),
    )


def _wrapper(facts: SourceFacts) -> str:
    """The wrapper's name as the file can write it."""
    return keras_name(facts, "mixed_precision.LossScaleOptimizer") or "LossScaleOptimizer"


def _in_a_loop(facts: SourceFacts, apply: Call, half: list[str], fix: Fix | None) -> Finding:
    name = receiver_text(facts, apply)
    if apply.method == "minimize":
        then = f"`{name}.minimize(…)` scales and unscales by itself."
    elif apply.method == STATELESS_APPLY:
        then = f"`{name}.scale_loss(loss)` in the function that JAX differentiates."
    elif facts.keras.is_keras3 and not _is_legacy(apply.receiver):
        then = f"`scaled_loss = {name}.scale_loss(loss)` inside the tape, and differentiate `scaled_loss`."
    else:
        then = (
            f"`scaled_loss = {name}.get_scaled_loss(loss)` inside the tape, differentiate `scaled_loss`, and apply "
            f"`{name}.get_unscaled_gradients(…)` of its gradients."
        )
    return Finding(
        f"The gradients that `{name}` applies come through layers that compute in float16 ({listed(half)}), and "
        f"nothing scales the loss: {LOST}.",
        f"`{name} = {_wrapper(facts)}({name})` where it is made; then {then}",
        apply.location,
        fix=None if facts.keras.is_keras3 and _is_legacy(apply.receiver) else fix,
    )


def _without_optimizer(update: Call, half: list[str]) -> Finding:
    """The finding for a line on which the program changes weights itself."""
    return Finding(
        "The gradients with which this line changes the weights come through layers that compute in float16 "
        f"({listed(half)}), and nothing scales the loss: {LOST}.",
        "Let the tape differentiate the loss times 1024, and divide the gradients by 1024 before they are used. Or "
        "leave the update to an optimizer in a LossScaleOptimizer, which adapts the scale.",
        update.location,
    )


def _scaled_by_bare(facts: SourceFacts, apply: Call, half: list[str]) -> Finding:
    name = receiver_text(facts, apply)
    return Finding(
        f"The gradients that `{name}` applies come through layers that compute in float16 ({listed(half)}), and "
        f"`scale_loss` of an optimizer that is no LossScaleOptimizer gives the loss back as it is: {LOST}.",
        f"`{name} = {_wrapper(facts)}({name})` where it is made.",
        apply.location,
        fix=unsafe_fix("Wrap the optimizer", wrapped_where_made(facts, apply)),
    )


def _is_legacy(optimizer: Value | None) -> bool:
    """Whether it may be an optimizer of `keras.optimizers.legacy`, which no Keras 3 can make."""
    made = (option.callee for option in options(optimizer) if isinstance(option, Call))
    return any(isinstance(callee, Api) and ".legacy." in callee.name for callee in made)


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

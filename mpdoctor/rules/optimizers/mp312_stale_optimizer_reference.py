"""compile() wrapped the optimizer in a LossScaleOptimizer, but the training loop uses the bare one.

## Why it matters
Under mixed_float16 `model.optimizer` is a new object. The variable that was passed to compile() still holds the
bare optimizer, which neither scales the loss nor checks the gradients: in float16 those below 3e-08 become
zero, and an inf is written into the weights. Where `model.optimizer` scales the loss and the bare optimizer
applies the gradients, every applied gradient is 32768 times too large: a weight moved by 5765 where it should
have moved by 0.176 (the same in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.optimizers.SGD(0.1)
model.compile(optimizer, "mse")

for x, y in []:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Fixed
```python
# keras: 3
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.optimizers.SGD(0.1), "mse")

for x, y in []:
    with tf.GradientTape() as tape:
        loss = model.optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    model.optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Versions
All. `get_scaled_loss` of the bare optimizer raises AttributeError in Keras 2.

## Where users met it
keras-team/keras-io#524.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING, SCALING
from mpdoctor.program.events import Call, Event
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts, Instance
from mpdoctor.program.values import Attribute, Value, options
from mpdoctor.semantics.source.edits.expressions import callee_replaced, replaced, safe_fix, unsafe_fix
from mpdoctor.semantics.source.edits.loops.scaled_losses import loss_scaled
from mpdoctor.semantics.source.loops.gradients import (
    UNSCALING,
    applied_gradients,
    calls_on_the_way,
    is_wrapped_by_own_compile,
    target,
)
from mpdoctor.semantics.source.loops.resized_gradients import unscaled_on_the_way
from mpdoctor.semantics.source.loops.scaling import scaling_calls
from mpdoctor.semantics.source.optimizers.wrappers import model_behind_own_compile, starting_scale_in_words, wrappings
from mpdoctor.semantics.source.programs.attribute_access import reads, receivers
from mpdoctor.semantics.source.programs.branches import exclude_each_other, is_absent
from mpdoctor.semantics.wording import name_of_optimizer, receiver_text

SEVERITY = Severity.ERROR
FIXES = ("safe", "unsafe")
EXPLAINS = {"MP106": "model", "MP903": "line", "MP905": "line", "MP907": "line", "MP911": "line", "MP912": "line"}
INSIDE = "inner_optimizer"
LOOKING_FOR_OVERFLOWS = (
    *(f"tensorflow.math.{name}" for name in ("is_finite", "is_inf", "is_nan")),
    *("tensorflow.debugging.check_numerics", "numpy.isfinite", "numpy.isnan", "numpy.isinf"),
)
UNPROTECTED = "no loss scale protects these gradients, and in float16 those below 3e-08 become zero"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for wrapping, inside in wrappings(facts):
        if len(inside) != 1 or not isinstance(inside[0], Call):
            continue
        yield from _applied_bare(facts, wrapping, inside[0])
        if wrapping.method == "compile" and not facts.keras.is_keras3:
            yield from _scaled_bare(facts, wrapping, inside[0])


def _applied_bare(facts: SourceFacts, wrapping: Call, inner: Call) -> Iterator[Finding]:
    """Calls in which the bare optimizer applies gradients that its wrapper should apply."""
    by_compile = wrapping.method == "compile"
    for apply in facts.method_calls(*APPLYING, "minimize"):
        if not _is_inside(facts, apply.receiver, wrapping, inner):
            continue
        if not all(_is_inside(facts, receiver, wrapping, inner) for receiver in receivers(facts, apply)):
            continue
        if is_absent(wrapping, apply.context) or (by_compile and is_wrapped_by_own_compile(facts, inner, apply)):
            continue
        scalings = _scaling_calls(facts, apply)
        scaled = any(_is_of_wrapper(call, wrapping) for call in scalings)
        if scaled and _is_unscaled_by_hand(facts, apply):
            continue
        if (by_compile or scaled) and _comes_later(apply, wrapping):
            wrapper = _name_of_wrapper(facts, wrapping, apply, scalings) if by_compile else ""
            start = f"`{receiver_text(facts, apply)}` is the bare {name_of_optimizer(inner)}, but "
            yield Finding(
                start + _around(wrapper) + _what_follows(apply, wrapping, scaled),
                _help(facts, apply, wrapper, scaled),
                apply.location,
                fix=_fix(facts, wrapper, wrapping, apply, scalings) if by_compile else None,
            )


def _is_inside(facts: SourceFacts, optimizer: Value | None, wrapping: Call, inner: Call) -> bool:
    """Whether it is the optimizer inside: by its own name, or in Keras 2 as `wrapper.inner_optimizer` in a program that
    looks for no overflow itself. (MP402 looks at what applies scaled gradients in Keras 3.)"""
    if optimizer is inner:
        return True
    if not isinstance(optimizer, Attribute) or optimizer.name != INSIDE or options(optimizer.of) != (wrapping,):
        return False
    return not facts.keras.is_keras3 and not any(True for _ in facts.calls_of(*LOOKING_FOR_OVERFLOWS))


def _name_of_wrapper(facts: SourceFacts, wrapping: Call, apply: Call, scalings: list[Call]) -> str:
    """What the program may call it where it applies the gradients: the step itself says so where it scales by it."""
    by_wrapper = (scaling for scaling in scalings if _is_of_wrapper(scaling, wrapping))
    named = next((receiver_text(facts, scaling) for scaling in by_wrapper), "")
    of_compile = _model_compiled(facts, wrapping) + ".optimizer"
    return named or (of_compile if _can_be_named(of_compile, wrapping, apply) else "model.optimizer")


def _model_compiled(facts: SourceFacts, compiled: Call) -> str:
    """What compile() is called of, as the program may write it: `self` for `super().compile(…)`."""
    written = receiver_text(facts, compiled)
    return "self" if written.startswith("super(") else written


def _fix(facts: SourceFacts, wrapper: str, wrapping: Call, apply: Call, scalings: list[Call]) -> Fix | None:
    """The edits that name the wrapper in the whole step, where the step scales its loss: by the wrapper, or in Keras 3
    by the optimizer in it, which multiplies by 1."""
    if not scalings:
        return _fix_of_unscaled(facts, wrapper, wrapping, apply)
    bare = [call for call in scalings if not _is_of_wrapper(call, wrapping)]
    calls = [apply, *bare]
    is_scaled = facts.keras.is_keras3 or not bare
    if not is_scaled or not all(_can_be_named(wrapper, wrapping, call) for call in calls):
        return None
    edits = (callee_replaced(facts, call.location, f"{wrapper}.{call.method}") for call in calls)
    return unsafe_fix(f"Write `{wrapper}`", *edits)


def _fix_of_unscaled(facts: SourceFacts, wrapper: str, wrapping: Call, apply: Call) -> Fix | None:
    """The edits of a step that scales nothing: the wrapper applies the gradients, and scales their loss."""
    gradients = [gradient for applied, gradient in applied_gradients(facts) if applied is apply]
    if apply.method not in APPLYING or len(gradients) != 1 or not _can_be_named(wrapper, wrapping, apply):
        return None
    by_wrapper = callee_replaced(facts, apply.location, f"{wrapper}.{apply.method}")
    scaled = loss_scaled(facts, apply, gradients[0], unscales=False, wrapper=wrapper)
    return unsafe_fix(f"Write `{wrapper}` and scale the loss", by_wrapper, scaled)


def _can_be_named(wrapper: str, wrapping: Call, call: Call) -> bool:
    """Whether what compile() is called of has the same name at this call, in the same file."""
    around = [None, *_functions_around(call)]
    if wrapper.startswith("self."):
        owner = wrapping.context.owner
        return owner is not None and any(function is not None and function.owner is owner for function in around)
    return wrapping.context.function in around and wrapping.location.path == call.location.path


def _functions_around(call: Call) -> Iterator[FunctionFacts]:
    function = call.context.function
    while function is not None:
        yield function
        function = function.enclosing


def _scaled_bare(facts: SourceFacts, compiled: Call, inner: Call) -> Iterator[Finding]:
    """Calls that ask the bare optimizer to scale or unscale, which in Keras 2 only the wrapper can do."""
    wrapper = _model_compiled(facts, compiled) + ".optimizer"
    for read in reads(facts, (*SCALING, UNSCALING)):
        if is_wrapped_by_own_compile(facts, inner, read):
            continue
        if _uses(read.of, inner) and _comes_later(read, compiled):
            yield Finding(
                f"{name_of_optimizer(inner)} has no `{read.name}`: this line raises AttributeError. compile() wrapped "
                f"it in a LossScaleOptimizer, which is `{wrapper}`.",
                f"Write `{wrapper}.{read.name}`.",
                read.location,
                fix=safe_fix(f"Write `{wrapper}`", replaced(facts, read.location, f"{wrapper}.{read.name}")),
            )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if model.wrapped_by_compile and model.optimizer:
        yield Finding(
            f"The loop applies its gradients with the bare {model.optimizer[0].class_name}, but compile() wrapped it "
            f"in a LossScaleOptimizer, the `optimizer` of `{model.name}`. That one has no part in these steps: it "
            "divides no gradient by its loss scale, and skips no step.",
            "Use `model.optimizer` for the whole step.",
            model.call.location,
        )


def _uses(value: Value | None, inner: Call) -> bool:
    return bool(options(value)) and all(option is inner for option in options(value))


def _comes_later(event: Event, wrapping: Call) -> bool:
    """Whether an event certainly comes after the optimizer was wrapped. A function runs some time after its
    definition."""
    if event.context.guarded or exclude_each_other(event.context, wrapping.context):
        return False
    return event.context.run != wrapping.context.run or event.order > wrapping.order


def _scaling_calls(facts: SourceFacts, apply: Call) -> list[Call]:
    """The calls that scaled the losses of the gradients that this call applies."""
    gradients = [gradient for applied, gradient in applied_gradients(facts) if applied is apply]
    return list(dict.fromkeys(call for gradient in gradients for call in scaling_calls(target(gradient))))


def _is_unscaled_by_hand(facts: SourceFacts, apply: Call) -> bool:
    """Whether it is `gradient / optimizer.dynamic_scale`, in Keras 3, whose wrapper has no method for it."""
    gradients = [gradient for applied, gradient in applied_gradients(facts) if applied is apply]
    return facts.keras.is_keras3 and any(unscaled_on_the_way(facts, apply, gradient) for gradient in gradients)


def _is_of_wrapper(scaling: Call, wrapping: Call) -> bool:
    models, behind = options(wrapping.receiver), model_behind_own_compile(wrapping)
    return any(
        option is wrapping or (isinstance(option, Attribute) and (option.of in models or _is_one(option.of, behind)))
        for option in options(scaling.receiver)
    )


def _is_one(model: Value, instance: Instance | None) -> bool:
    """Whether a value is a model of the class whose own `compile()` calls that of Keras."""
    own = class_of(model)
    return instance is not None and own is not None and any(cls is instance.of for cls in own.lineage())


def _around(wrapper: str) -> str:
    if wrapper:
        return f"compile() wrapped it in a LossScaleOptimizer, `{wrapper}`: "
    return "the LossScaleOptimizer around it scaled the loss: "


def _what_follows(apply: Call, wrapping: Call, scaled: bool) -> str:
    if not scaled:
        return f"{UNPROTECTED}."
    if calls_on_the_way(apply, UNSCALING):
        return "inf and NaN are applied, too, in steps that the wrapper would skip, and the loss scale never changes."
    scale = "32768" if wrapping.method == "compile" else starting_scale_in_words(wrapping)
    return f"nothing unscales these gradients, and every applied gradient is {scale} times too large at first."


def _help(facts: SourceFacts, apply: Call, wrapper: str, scaled: bool) -> str:
    of = f"`{wrapper}`" if wrapper else "the LossScaleOptimizer"
    if not scaled:
        return f"Use {of} for the whole step."
    if facts.keras.is_keras3 or calls_on_the_way(apply, UNSCALING):
        return f"Apply with {of}."
    return f"Unscale and apply with {of}: `gradients = {wrapper or 'optimizer'}.{UNSCALING}(gradients)` first."

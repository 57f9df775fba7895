"""compile() put a LossScaleOptimizer around the optimizer, and the training loop goes on with the bare one.

## Why it matters
Under mixed_float16 `model.optimizer` is a new object; the variable that was given to compile() still holds
the bare optimizer, which neither scales the loss nor checks the gradients: in float16 those below 3e-08 are
flushed to zero, and an inf is written into the weights. Where the loss is scaled by `model.optimizer` and
applied by the bare one, every applied gradient is 32768 times too large: a weight moved by 5765 where it should have
moved by 0.176 (the same in Keras 3.15, tf_keras 2.21 and TensorFlow 2.10).

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
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Event
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.edits.expressions import callee_replaced, replaced, safe_fix, unsafe_fix
from mpdoctor.semantics.source.optimizers.attribute_access import reads, receivers
from mpdoctor.semantics.source.optimizers.gradients import applied_gradients, target
from mpdoctor.semantics.source.optimizers.scaling import SCALING, UNSCALING, scaling_calls
from mpdoctor.semantics.source.optimizers.wrappers import starting_scale, wrappings
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.wording import name_of_optimizer, receiver_text

SEVERITY = Severity.ERROR
FIXES = ("safe", "unsafe")
EXPLAINS = {"MP106": "model"}
UNPROTECTED = "no loss scale protects these gradients, and in float16 those below 3e-08 are flushed to zero"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for wrapping, inside in wrappings(facts):
        if len(inside) != 1 or not isinstance(inside[0], Call):
            continue
        yield from _applied_bare(facts, wrapping, inside[0])
        if wrapping.method == "compile" and not facts.keras.is_keras3:
            yield from _scaled_bare(facts, wrapping, inside[0])


def _applied_bare(facts: SourceFacts, wrapping: Call, inner: Call) -> Iterator[Finding]:
    """Where the optimizer inside applies gradients for which the wrapper is there."""
    by_compile = wrapping.method == "compile"
    wrapper = receiver_text(facts, wrapping) + ".optimizer" if by_compile else "the LossScaleOptimizer"
    for apply in facts.method_calls(*APPLYING, "minimize"):
        if apply.receiver is not inner or any(receiver is not inner for receiver in receivers(facts, apply)):
            continue
        scaled = _is_scaled_by_wrapper(facts, apply, wrapping)
        if (by_compile or scaled) and _comes_later(apply, wrapping):
            yield Finding(
                _message(facts, apply, inner, wrapper, "32768" if by_compile else starting_scale(wrapping), scaled),
                f"Use `{wrapper}` for the whole step." if by_compile else "Apply with the LossScaleOptimizer.",
                apply.location,
                fix=unsafe_fix(
                    f"Write `{wrapper}`", callee_replaced(facts, apply.location, f"{wrapper}.{apply.method}")
                )
                if by_compile and scaled
                else None,
            )


def _scaled_bare(facts: SourceFacts, compiled: Call, inner: Call) -> Iterator[Finding]:
    """Where the optimizer inside is asked to scale or unscale, as in Keras 2 only the wrapper does."""
    wrapper = receiver_text(facts, compiled) + ".optimizer"
    for read in reads(facts, (*SCALING, UNSCALING)):
        if _uses(read.of, inner) and _comes_later(read, compiled):
            yield Finding(
                f"{name_of_optimizer(inner)} has no `{read.name}`: this line raises AttributeError. compile() put "
                f"a LossScaleOptimizer around it, which is `{wrapper}`.",
                f"Write `{wrapper}.{read.name}`.",
                read.location,
                fix=safe_fix(f"Write `{wrapper}`", replaced(facts, read.location, f"{wrapper}.{read.name}")),
            )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if model.wrapped_by_compile and model.optimizer:
        yield Finding(
            f"The loop applies its gradients with the bare {model.optimizer[0].class_name}; compile() put a "
            f"LossScaleOptimizer around it, which is `{model.name}`'s `optimizer`: {UNPROTECTED}.",
            "Use `model.optimizer` for the whole step.",
            model.call.location,
        )


def _uses(value: Value | None, inner: Call) -> bool:
    return bool(options(value)) and all(option is inner for option in options(value))


def _comes_later(event: Event, wrapping: Call) -> bool:
    """Whether an event is certain to meet the wrapped optimizer. A function is called some time after it is defined."""
    if event.context.guarded or exclude_each_other(event.context, wrapping.context):
        return False
    return event.context.run != wrapping.context.run or event.order > wrapping.order


def _is_scaled_by_wrapper(facts: SourceFacts, apply: Call, wrapping: Call) -> bool:
    """Whether the gradients that it applies come from a loss that the wrapper scaled."""
    for applied, gradient in applied_gradients(facts):
        for scaling in scaling_calls(target(gradient)) if applied is apply else ():
            of = options(scaling.receiver)
            models = options(wrapping.receiver)
            if any(option is wrapping or getattr(option, "of", None) in models for option in of):
                return True
    return False


def _message(facts: SourceFacts, apply: Call, inner: Call, wrapper: str, scale: str, scaled: bool) -> str:
    of = receiver_text(facts, apply)
    start = f"`{of}` is the bare {name_of_optimizer(inner)}; "
    if wrapper.endswith(".optimizer"):
        start += f"compile() put a LossScaleOptimizer around it, which is `{wrapper}`: "
    else:
        start += "the loss was scaled by the LossScaleOptimizer around it: "
    if scaled and facts.keras.is_keras3:
        return (
            f"{start}nothing unscales these gradients, and every applied gradient is {scale} times too large at first."
        )
    return f"{start}{UNPROTECTED}."

"""Steps were applied, but no trainable variable changed.

## Why it matters

The training runs, the loss is printed, and the model learns nothing. In 16 bits that happens when every
gradient becomes 0 (numbers below 3e-8 are 0 in float16, so small gradients need a loss scale), or when the
weights themselves are float16 and each update is smaller than half their last digit (measured: SGD at 1e-4 on
float16 weights, 20 epochs, a change of exactly 0). Adam, AdamW and Lamb change no bfloat16 weight at all: a beta_2
of 0.999 is 1 in bfloat16, and the step that is corrected by 1 - beta_2 is 0 (measured in TensorFlow 2.4, 2.10 and 2.15,
tf_keras 2.21 and Keras 3.15). In any precision it happens with a learning rate of 0, and
where no gradient gets through: ReLUs that are 0 for every input, or a loss that does not depend on the model's
output. To tell these apart, the last step is repeated with the loss multiplied by a large number, and with the
update computed in float64.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("float16")  # not mixed: the weights are float16, too
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
model.compile(tf.keras.optimizers.SGD(1e-5), "mse")
model.fit(np.random.rand(64, 4), np.random.rand(64, 1), epochs=20)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, use_bias=False, dtype="float32")])
model.compile(tf.keras.optimizers.SGD(1e-5), "mse")
model.fit(np.random.rand(64, 4), np.random.rand(64, 1), epochs=20)
```

## Versions

All.

## Where users met it

keras-team/keras#9582, keras-team/keras#11860, tensorflow/tensorflow#38457.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE, HALF, rounds_to_one
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import OperationFacts, StandstillFacts, TrainingFacts
from mpdoctor.facts.written_numbers import magnitude_text
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.semantics.live.broken_operations import broke, is_overflow, remedy_from_operation
from mpdoctor.semantics.live.training_texts import line_of
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED
from mpdoctor.semantics.live.verdict import verdict_from_training

SEVERITY = Severity.ERROR
LOOK = "Check the learning rate, layers set to trainable=False, and whether the loss depends on the weights."

LOSS_OF_ZERO = (
    " The loss is 0 at every step, and so is every gradient: the model fits these data already, or the loss is 0 "
    "whatever the model puts out.",
    "Train on data that the model does not fit yet: labels of 0 it may fit untrained. Where the loss ought not to be "
    "0, look in it for a factor of 0, a mask that leaves nothing, and float16 numbers below 3e-8, which are 0.",
)


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if verdict_from_training(training)[0] is not Verdict.NO_UPDATE:
        return
    applied = sum(step.applied for step in training.steps)
    seen = training.standstill or StandstillFacts()
    why, remedy = _cause(training, seen)
    told_by = _rule_of_cause(training, seen)
    yield Finding(
        f"{applied} steps were applied and not one trainable variable changed.{why}",
        remedy,
        training.model.call.location,
        model=training.model.id,
        layer=seen.layer or None,
        evidence={
            **({"told_by": told_by} if told_by else {}),
            **({"scale_too_small": True} if _is_scale_too_small(training, seen) else {}),
        },
    )


def _rule_of_cause(training: TrainingFacts, seen: StandstillFacts) -> str:
    """The code of the rule that reports this cause where it stands in the program, "" where there is none: gradients
    that nothing scales, weights in 16 bits."""
    if seen.learning_rate == 0:
        return ""
    if seen.gradient == 0:
        return "MP106" if seen.factor is not None and training.steps[-1].loss_scale is None else ""
    if seen.update is None or seen.dtype not in HALF:
        return ""
    if seen.survives_rounding and _rounded_beta_2(training, seen) is None:
        return ""
    return "MP107" if _is_pure(training.model, seen) else "MP204"


def _cause(training: TrainingFacts, seen: StandstillFacts) -> tuple[str, str]:
    """The sentence about what was measured, and the remedy."""
    if seen.learning_rate == 0:
        return _no_rate(training, seen)
    if seen.gradient == 0:
        return _no_gradient(training, seen) if seen.factor is None else _flushed(training, seen)
    if seen.update is not None and not seen.survives_rounding:
        return _rounded_away(training.model, seen)
    if _rounded_beta_2(training, seen) is not None:
        return _made_in_16_bits(training, seen)
    if seen.gradient is not None and seen.learning_rate is not None:
        return (
            f" The gradients reach {magnitude_text(_unscaled(training, seen.gradient))} and the learning rate is "
            f"{seen.learning_rate:.3g}, but the optimizer changes no weight.",
            "Check the optimizer: its own update, and any code that sets the weights back after a step.",
        )
    return "", LOOK


def _no_rate(training: TrainingFacts, seen: StandstillFacts) -> tuple[str, str]:
    after = f" after {len(training.steps)} steps"
    if seen.rate_dtype == "float16":
        return (
            f" The learning rate that `{seen.schedule}` returns is still 0{after}. It is float16, in which numbers "
            "below 3e-8 are 0 and those from 65520 on are inf.",
            f"Compute it in float32: `tf.cast(step, tf.float32)` in `{seen.schedule}`, and no cast to float16 of what "
            "it is multiplied or divided by.",
        )
    if seen.schedule:
        return (
            f" The learning rate that `{seen.schedule}` returns is still 0{after}.",
            f"Print the learning rates that `{seen.schedule}` returns for the first steps. An integer division, "
            "`step // warmup`, is 0 until the end of the warm-up.",
        )
    return (
        f" The learning rate is 0{after}.",
        "Give the optimizer a learning rate, or remove the code that sets it to 0.",
    )


def _no_gradient(training: TrainingFacts, seen: StandstillFacts) -> tuple[str, str]:
    measured = f" Every gradient is 0, even with the loss multiplied by {seen.most:.2g}, so this is no underflow."
    if seen.overflow is not None and is_overflow(seen.overflow):
        return _divided_by_infinity(training, seen.overflow, measured)
    if seen.reaches_output is False:
        if all(step.loss == 0 for step in training.steps):
            return LOSS_OF_ZERO
        return (
            f"{measured} It is already 0 where the loss passes it to the model.",
            "Check the loss: it passes no gradient back to the predictions. Rounding, argmax, a comparison, a factor "
            "of 0 and a mean of 65520 or more float16 numbers pass none.",
        )
    if seen.layer and seen.puts_out_zeros:
        return (
            f"{measured} A gradient reaches the output of layer `{seen.layer}` ({seen.layer_class}), which is 0 for "
            "the whole batch, and ends there.",
            f"Check the input of `{seen.layer}`: an activation such as ReLU that is 0 everywhere passes no gradient "
            "back. Other initial weights, a smaller learning rate, or `leaky_relu` keep it from being 0.",
        )
    if seen.layer:
        return (
            f"{measured} A gradient reaches the output of layer `{seen.layer}` ({seen.layer_class}), and ends there.",
            f"Check the code of `{seen.layer}`: tf.stop_gradient, rounding, argmax and a saturated activation pass no "
            "gradient back.",
        )
    return measured, LOOK


def _divided_by_infinity(training: TrainingFacts, overflow: OperationFacts, measured: str) -> tuple[str, str]:
    where = "In the loss" if overflow.where == "loss" else "In a layer"
    line = line_of(overflow, training.model.call.location)
    return (
        f"{measured} {where} {broke(overflow)}{line}: inf in float16. A division by inf passes no gradient back.",
        f"{remedy_from_operation(overflow)} {NOT_TRIED}",
    )


def _flushed(training: TrainingFacts, seen: StandstillFacts) -> tuple[str, str]:
    scale = training.steps[-1].loss_scale
    lifting = (scale or 1.0) * (seen.factor or 1.0)
    at = "Without a loss scale" if scale is None else f"At the loss scale of {scale:g}"
    measured = f" {at} every gradient is 0, and at {lifting:g} some are not: gradients below 3e-8 become 0 in float16."
    if scale is None:
        return (
            measured,
            "Scale the loss: `LossScaleOptimizer(optimizer)`, which mixed_float16's compile() does by itself.",
        )
    if _is_scale_too_small(training, seen):
        return measured, "Leave the scale out: the default of 32768 lifts these gradients into float16's range."
    return (
        measured,
        f"Raise the scale, initial_scale={lifting:g}, or make the loss itself larger: a mean instead of a tiny factor.",
    )


def _is_scale_too_small(training: TrainingFacts, seen: StandstillFacts) -> bool:
    """Whether the default loss scale lifts gradients into float16's range that are 0 at the training's own."""
    scale = training.steps[-1].loss_scale
    is_flushed = seen.learning_rate != 0 and seen.gradient == 0 and seen.factor is not None
    return is_flushed and scale is not None and scale < DEFAULT_SCALE and scale * (seen.factor or 1.0) <= DEFAULT_SCALE


def _rounded_away(model: ModelFacts, seen: StandstillFacts) -> tuple[str, str]:
    digit = "" if seen.half_digit is None else f", where half of the last digit is {seen.half_digit:.2g}"
    measured = f" The largest update, {seen.update:.2g}, is that of `{seen.variable}`, which is {seen.dtype}{digit}:"
    measured += " the update is rounded away."
    if seen.dtype in HALF:
        return measured, _in_float32(model, seen)
    rate = "" if seen.learning_rate is None else f": {seen.learning_rate:.3g} is too small for these weights"
    return measured, f"Raise the learning rate{rate}."


def _rounded_beta_2(training: TrainingFacts, seen: StandstillFacts) -> float | None:
    """The `beta_2` of the innermost optimizer, where it is below 1 and rounds to 1 in the weights' 16 bits."""
    beta_2 = training.model.optimizer[-1].beta_2 if training.model.optimizer else None
    rounds = beta_2 is not None and seen.dtype in HALF and rounds_to_one(beta_2, seen.dtype)
    return beta_2 if rounds else None


def _made_in_16_bits(training: TrainingFacts, seen: StandstillFacts) -> tuple[str, str]:
    name, beta_2 = training.model.optimizer[-1].class_name, _rounded_beta_2(training, seen)
    return (
        f" In float64 {name} would change `{seen.variable}` by up to {seen.update:.2g}. It computes in the weight's "
        f"dtype, {seen.dtype}, in which its beta_2 of {beta_2:g} is 1: its step is 0.",
        _in_float32(training.model, seen),
    )


def _in_float32(model: ModelFacts, seen: StandstillFacts) -> str:
    """How the 16-bit variable comes to be float32: by the global policy, by its layer's, or where it is made."""
    if model.global_policy == seen.dtype:
        return f'Keep float32 weights: set_global_policy("mixed_{seen.dtype}") instead of "{seen.dtype}".'
    layer = _layer_of_variable(model, seen)
    if layer is not None and layer.policy == seen.dtype:
        return f'Give `{layer.path}` `dtype="mixed_{seen.dtype}"`, which keeps float32 weights.'
    return f"Make `{seen.variable}` in float32: leave the `dtype` out where it is made. Keras casts it in `call()`."


def _is_pure(model: ModelFacts, seen: StandstillFacts) -> bool:
    """Whether a policy keeps the variable in 16 bits."""
    layer = _layer_of_variable(model, seen)
    return seen.dtype in (model.global_policy, layer.policy if layer is not None else "")


def _layer_of_variable(model: ModelFacts, seen: StandstillFacts) -> LayerFacts | None:
    holding = [layer for layer in model.layers if seen.variable.startswith(f"{layer.path}/")]
    return max(holding, key=lambda layer: len(layer.path), default=None)


def _unscaled(training: TrainingFacts, gradient: float) -> float:
    return gradient / (training.steps[-1].loss_scale or 1.0)

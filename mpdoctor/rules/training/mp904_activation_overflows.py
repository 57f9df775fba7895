"""A layer's output is inf or NaN although everything that went into it was finite.

## Why it matters

float16 ends at 65504. A sum, a square, an exponential or a large weight takes a value beyond it, the layer puts out
inf, the loss becomes inf or NaN, and every step with such a batch is skipped (with loss scaling) or writes NaN into
the weights (without). Loss scaling cannot help: it acts on gradients, and this happens on the way forward.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Energy(tf.keras.layers.Layer):
    def call(self, x):
        return tf.reduce_sum(tf.square(x), -1, keepdims=True)  # 300 squared is beyond 65504


model = tf.keras.Sequential([tf.keras.Input((4,)), Energy(), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(300 * np.ones((64, 4)), np.ones((64, 1)), epochs=20)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Energy(tf.keras.layers.Layer):
    def call(self, x):
        return tf.reduce_sum(tf.square(x), -1, keepdims=True)


model = tf.keras.Sequential(
    [tf.keras.Input((4,)), Energy(dtype="float32"), tf.keras.layers.Dense(1, dtype="float32")]
)
model.compile("adam", "mse")
model.fit(300 * np.ones((64, 4)), np.ones((64, 1)), epochs=20)
```

## Versions

All.

## Where users met it

tarun-bisht/fast-style-transfer#3, tensorflow/tensorflow#47156, keras-team/keras#22586.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.training import CulpritFacts, OperationFacts, TensorFacts, TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.training.operations import (
    SUMS,
    broke,
    is_of_input,
    is_of_weights,
    is_overflow,
    number,
    remedy_from_operation,
)
from mpdoctor.rules.training.words import FLOAT16_LIMIT, in_words, line_of

SEVERITY = Severity.ERROR


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    culprit = training.culprit
    if culprit is None or not culprit.inputs_finite or training.broken_by_device or _is_told_otherwise(culprit):
        return
    overflow, operation = culprit.overflow, culprit.operation
    before = culprit.frames[-1] if culprit.frames else None
    which = f", in call {overflow.call} of {culprit.calls} in the step," if culprit.calls > 1 else ""
    why = f"; {broke(operation)}{line_of(operation)}" if operation else ""
    when = training.moment(culprit.step, "at")
    yield Finding(
        f"The output of layer `{overflow.layer}` ({overflow.layer_class}){which} is not finite: {_how_much(overflow)}, "
        f"{when}, from finite inputs{_leading_up(before)}. float16 ends at {FLOAT16_LIMIT}{why}.",
        _remedy(overflow, operation),
        overflow.location,
        model=training.model.id,
        layer=overflow.layer,
        evidence={
            "device": training.device,
            "step": culprit.step + 1,
            "share_not_finite": round(overflow.nonfinite, 4),
            "frames": [in_words(frame) for frame in culprit.frames],
            **({"operation": operation.name} if operation else {}),
        },
    )


def _is_told_otherwise(culprit: CulpritFacts) -> bool:
    """It is no float16, the input was too large from the start (MP601), or a weight was broken by an earlier step."""
    operation = culprit.operation
    if operation is None:
        return culprit.overflow.dtype != "float16"
    return operation.dtype != "float16" or is_of_input(operation) or is_of_weights(operation)


def _remedy(overflow: TensorFacts, operation: OperationFacts | None) -> str:
    if operation is not None and (operation.name in SUMS or not is_overflow(operation)):
        return remedy_from_operation(operation, overflow.layer)
    return (
        f'Let this layer compute in float32: give `{overflow.layer}` dtype="float32". Or keep its values smaller: '
        "normalise its input, use smaller initial weights or a smaller constant."
    )


def _how_much(overflow: TensorFacts) -> str:
    share = f"{overflow.nonfinite:.0%} of its values are" if overflow.nonfinite >= 0.005 else "some of its values are"
    return f"{share} inf or NaN"


def _leading_up(before: TensorFacts | None) -> str:
    return f" (the layer before it, `{before.layer}`, reaches {number(before.largest)})" if before else ""

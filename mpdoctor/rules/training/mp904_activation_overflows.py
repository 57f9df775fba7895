"""A layer's output is inf or NaN although all of its inputs were finite.

## Why it matters

The largest float16 number is 65504. A sum, a square, an exponential or a large weight produces a larger value,
the layer returns inf, and the loss becomes inf or NaN. Every step with such a batch is skipped (with loss
scaling) or writes NaN into the weights (without). Loss scaling cannot help: it acts on gradients, and this
happens in the forward pass.

One float32 layer is enough where its values come back below 65504 inside it, or where only float32 layers
follow: a 16-bit layer after it casts the values to float16, and to inf, again. Which layers need float32 is
tried on the failing batch, where its step can be repeated: the finding names the fewest layers that were found
to prevent the overflow, or says that none do.

An overflow need not skip a step: `x * rsqrt(mean(x²))`, the norm of many transformers, is 0 where x² is inf.
Where a result overflows in a step whose gradients are finite, the layer is run again in float32 on the same
input, and the finding says how far its outputs differ. An overflow that changes nothing, as in `exp(-x²)`, is
not reported.

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

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import CulpritFacts, OperationFacts, TensorFacts, TrainingFacts
from mpdoctor.facts.written_numbers import capitalized, magnitude_text
from mpdoctor.finding import AlsoSeen, Finding, Severity
from mpdoctor.knowledge.layer_kinds import NORMALIZATION
from mpdoctor.semantics.live.broken_operations import (
    ADDING,
    SUMS,
    broke,
    is_at_zero,
    is_of_input,
    is_of_weights,
    is_overflow,
)
from mpdoctor.semantics.live.hidden_overflows import finding_of_hidden_overflow
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.training_remedies import holds_own_layers, remedy_after_trials, remedy_of_growth
from mpdoctor.semantics.live.training_texts import (
    evidence_of_growth,
    evidence_of_operands,
    in_words,
    named_culprit,
    story_of_growth,
)
from mpdoctor.semantics.live.tried_remedies import after_trials
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.ERROR
EXPLAINS = {"MP503": "training", "MP907": "model"}
NEVER_RAISES = True
TELLS_OF_DIVERGENCE = 1
BESIDE_FUNCTION = "use a smaller constant, or normalise its input, so that the result stays below 65504"
REMEDY_OF_FUNCTION = f"{capitalized(BESIDE_FUNCTION)}."
MOST_NAMED = 4
# The outputs of these are small, however large the values inside them are.
BOUNDING = ("sigmoid", "hard_sigmoid", "tanh", "softmax", "softsign")
BOUNDED = NORMALIZATION | {"Softmax", "LSTM", "GRU", "SimpleRNN"}


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    hidden = training.hidden_overflow
    if hidden is not None and hidden.operation.name not in SUMS and not hidden.is_wave:  # those are MP503, MP512
        yield finding_of_hidden_overflow(training)
    culprit = training.culprit
    if (
        culprit is None
        or not culprit.inputs_finite
        or training.broken_by_device
        or _is_reported_by_another_rule(culprit)
    ):
        return
    overflow, operation = culprit.overflow, culprit.operation
    place = (operation.location if operation else None) or overflow.location
    growth = f" {story_of_growth(training)}" if training.diverges else ""
    yield Finding(
        _what_broke(culprit, training.moment(culprit.step, "at")) + growth,
        _remedy(training, culprit),
        place,
        model=training.model.id,
        layer=overflow.layer,
        evidence={
            "device": training.device,
            "step": culprit.step + 1,
            "share_not_finite": round(overflow.nonfinite, 4),
            "frames": [in_words(frame) for frame in culprit.frames],
            **({"operation": operation.name} if operation else {}),
            **({"at_zero": True} if is_at_zero(operation) else {}),
            **evidence_of_operands(operation),
            **evidence_of_growth(training),
        },
        also_seen=_made(overflow) if place is not overflow.location else (),
        remedies=remedies_to_report(training),
    )


def _what_broke(culprit: CulpritFacts, when: str) -> str:
    overflow = culprit.overflow
    before = culprit.frames[-1] if culprit.frames else None
    which = f", in call {overflow.call} of {culprit.calls} in the step," if culprit.calls > 1 else ""
    why = f"; {broke(culprit.operation)}" if culprit.operation else ""
    if culprit.operation and not overflow.nonfinite:
        return (
            f"In {named_culprit(culprit)} ({overflow.layer_class}){which} a result is not finite, {when}, from finite "
            f"inputs{_leading_up(before)}. The largest float16 number is {FLOAT16_LIMIT}{why}. The layer's output "
            "itself is finite: the result affects its gradient, or is used elsewhere, for example in a loss that the "
            "layer adds."
        )
    return (
        f"The output of {named_culprit(culprit)} ({overflow.layer_class}){which} is not finite: {_how_much(overflow)}, "
        f"{when}, from finite inputs{_leading_up(before)}. The largest float16 number is {FLOAT16_LIMIT}{why}."
    )


def _made(overflow: TensorFacts) -> tuple[AlsoSeen, ...]:
    """The line that makes the layer, where its dtype can be given; the finding itself shows the operation's line."""
    made = overflow.location
    if made is None:
        return ()
    return (AlsoSeen("MP904", "training", f"Layer `{overflow.layer}` is made here.", made.path, made.line),)


def _is_reported_by_another_rule(culprit: CulpritFacts) -> bool:
    """Whether another rule reports it: not float16, an input too large from the start (MP601), or a weight that an
    earlier step broke."""
    operation = culprit.operation
    if operation is None:
        return culprit.overflow.dtype != "float16"
    return operation.dtype != "float16" or is_of_input(operation) or is_of_weights(operation)


def _remedy(training: TrainingFacts, culprit: CulpritFacts) -> str:
    if training.diverges:
        return remedy_of_growth(training)
    if culprit.is_function:
        return after_trials(training, REMEDY_OF_FUNCTION, BESIDE_FUNCTION)
    overflow, operation = culprit.overflow, culprit.operation
    if operation is not None and not is_overflow(operation):
        return remedy_after_trials(training, operation, overflow.layer)
    smaller = "normalise its input, or use smaller initial weights or a smaller constant"
    if operation is not None and operation.name in ADDING:
        smaller = "average instead of summing"
    if holds_own_layers(training, overflow.layer):
        return after_trials(training, _cast_in(overflow.layer, operation, smaller), smaller)
    return after_trials(training, _not_tried(until_small_again(training.model, overflow.layer), smaller), smaller)


def _cast_in(path: str, operation: OperationFacts | None, smaller: str) -> str:
    """The remedy for a model or layer whose own code overflows and that holds layers of the user's."""
    where = "in this line" if operation is not None and operation.location is not None else f"in `{path}`'s own code"
    return (
        f"Compute in float32 {where}, `tf.cast(x, tf.float32)`, until the values are small again: the layers inside "
        f"`{path}` have their own dtypes, so a dtype on `{path}` does not reach them. Or {smaller}."
    )


def _not_tried(layers: tuple[str, ...], smaller: str) -> str:
    """The advice from the model's structure, where nothing could be tried."""
    if len(layers) == 1:
        return f'Let this layer compute in float32: give `{layers[0]}` dtype="float32". Or {smaller}.'
    if len(layers) > MOST_NAMED:
        return (
            f"Make its values smaller: {smaller}. To use float32 instead, all {len(layers)} layers from `{layers[0]}` "
            f"to `{layers[-1]}` would need it, because each passes its values to the next."
        )
    names = listed([f"`{layer}`" for layer in layers], MOST_NAMED)
    return (
        f'Keep the values in float32 until they are small again: give all of {names} dtype="float32", because a '
        f"16-bit layer casts its input to float16. Or {smaller}."
    )


def until_small_again(model: ModelFacts, path: str) -> tuple[str, ...]:
    """Paths of the layers that must compute in float32 where one layer's values leave float16's range: that layer and
    those after it, up to one that makes the values small again (a normalization, a sigmoid) or to the last before a
    float32 layer. Keras 3's LayerNormalization does not cast its input (its `autocast` is False)."""
    leaves = [leaf for leaf in model.layers if leaf.follows_policy and not leaf.is_model]
    first = next((number for number, leaf in enumerate(leaves) if leaf.path == path), None)
    if first is None:
        return (path,)
    paths = [path]
    for before, layer in zip(leaves[first:], leaves[first + 1 :], strict=False):
        if _brings_values_back(before) or before.is_output or _takes_float32(layer):
            break
        paths.append(layer.path)
    return tuple(paths)


def _takes_float32(layer: LayerFacts) -> bool:
    return not layer.computes_in_half or (_brings_values_back(layer) and not layer.autocast)


def _brings_values_back(layer: LayerFacts) -> bool:
    return layer.class_name in BOUNDED or layer.settings.activation in BOUNDING


def _how_much(overflow: TensorFacts) -> str:
    share = f"{overflow.nonfinite:.0%} of its values are" if overflow.nonfinite >= 0.005 else "some of its values are"
    return f"{share} inf or NaN"


def _leading_up(before: TensorFacts | None) -> str:
    return f" (the layer before it, `{before.layer}`, reaches {magnitude_text(before.largest)})" if before else ""

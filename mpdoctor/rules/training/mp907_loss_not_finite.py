"""The loss itself is inf or NaN.

## Why it matters

No loss scale can help: the gradients of such a loss are NaN. With loss scaling the step is skipped; without it
NaN is written into the weights, and the training is ruined. In 16 bits the usual causes are a loss that squares
or sums float16 values (float16 ends at 65504), an epsilon that is 0 in float16 under a logarithm or a division,
and data that contains NaN.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


def squared(y, p):
    p = tf.cast(p, tf.float16)
    return tf.reduce_mean(tf.square(tf.cast(y, p.dtype) - p))  # 1000 squared is beyond 65504


model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", squared)
model.fit(np.random.rand(64, 4), 1000 + np.random.rand(64, 1), epochs=20)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


def squared(y, p):
    p = tf.cast(p, tf.float32)
    return tf.reduce_mean(tf.square(tf.cast(y, p.dtype) - p))


model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", squared)
model.fit(np.random.rand(64, 4), 1000 + np.random.rand(64, 1), epochs=20)
```

## Versions

All.

## Where users met it

tensorflow/tensorflow#45568, keras-team/keras#16552, keras-team/keras#9582.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.training import OperationFacts, TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.broken_operations import GIVEN, broke, is_at_zero
from mpdoctor.semantics.live.causes import rule_of_foreign_scale
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.steps_taken import (
    gradient_was_applied,
    starts_at_zero,
    step_applied_unchecked,
    step_divided_by_zero,
)
from mpdoctor.semantics.live.training_remedies import IN_A_FLOAT32_LOSS, POSITIVE_START, remedy_from_culprit
from mpdoctor.semantics.live.training_texts import (
    evidence_of_growth,
    line_of,
    named_culprit,
    optimizer_of,
    story_of_growth,
    why_from_culprit,
    why_not_followed,
)
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED

SEVERITY = Severity.ERROR
EXPLAINS = {"MP503": "training"}
TELLS_OF_DIVERGENCE = 4


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    bad = [i for i, s in enumerate(training.steps) if s.loss is not None and not math.isfinite(s.loss)]
    if not bad or training.broken_by_device or training.escaped_steps:  # MP315 reports escaped steps
        return
    yield Finding(
        f"The loss is {training.steps[bad[0]].loss} at step {bad[0] + 1}"
        + (f" and at {len(bad) - 1} later step{'s' if len(bad) > 2 else ''}" if len(bad) > 1 else "")
        + _why(training, bad[0]),
        _remedy(training),
        (training.loss_culprit.location if training.loss_culprit else None) or training.model.call.location,
        model=training.model.id,
        evidence={
            "steps": [i + 1 for i in bad],
            **_operation(training.broken_operation),
            **({"at_zero": True} if is_at_zero(training.broken_operation) else {}),
            **evidence_of_growth(training),
            **({"told_by": told_by} if (told_by := _rule_of_cause(training)) else {}),
        },
        remedies=remedies_to_report(training),
    )


def _rule_of_cause(training: TrainingFacts) -> str:
    """The code of the rule that reports the cause where it stands in the program, "" where there is none."""
    if rule := rule_of_foreign_scale(training):
        return rule
    if any(_rounding_that_breaks(training)):
        return "MP107"
    return "MP603" if _given_in_float16(training) and training.breaking_update is None else ""


def _rounding_that_breaks(training: TrainingFacts) -> tuple[str, str]:
    """The dtype of 16-bit weights that the update of a step broke because it rounds the optimizer's `beta_2` to 1, and
    the sentence about that; two "" where no update did."""
    if training.breaking_update is None:
        return "", ""
    from mpdoctor.semantics.rounded_beta_2 import effect_in_model

    pure = dict.fromkeys(layer.policy for layer in training.model.layers if layer.policy in HALF)
    effects = ((dtype, effect_in_model(training.model, dtype)) for dtype in pure)
    return next((each for each in effects if each[1]), ("", ""))


def _why(training: TrainingFacts, first: int) -> str:
    """How the loss came to be inf or NaN: the end of a sentence, with its full stop. `first`: the number of the first
    step whose loss is not finite, from 0."""
    operation, culprit = training.broken_operation, training.culprit
    divided = step_divided_by_zero(training)
    if divided is not None and divided <= first:
        return f". The loss scale was 0 at step {divided}: its gradients were divided by 0, and made the weights NaN."
    if training.breaking_update is not None:
        dtype, effect = _rounding_that_breaks(training)
        in_16_bits = f". The weights are {dtype}, and {effect}" if dtype else ""
        return (
            f". The update of step {training.breaking_update} made weights inf or NaN, although they and every "
            f"gradient until then were finite{in_16_bits or f': {optimizer_of(training)} computes that.'}"
        )
    if training.diverges:
        return f". {story_of_growth(training)}"
    if broken := step_applied_unchecked(training, before=first):
        return f", because the gradients of step {broken} are inf or NaN, and were applied to the weights."
    if culprit is not None and operation is not None:
        line = line_of(operation, training.model.call.location)
        return f". It starts in {named_culprit(culprit)}: {broke(operation)}{line}."
    if culprit is None and gradient_was_applied(training, before=first):
        return f", because no LossScaleOptimizer skipped the step before it.{why_from_culprit(training)}"
    if training.loss_culprit is not None and training.loss_culprit.given in GIVEN:
        half = _given_in_float16(training)
        they_are = "they are" if half == "labels" else "its features are"
        in_float16 = f", and {they_are} float16, whose largest number is 65504" if half else ""
        return f": {broke(training.loss_culprit)}{in_float16}."
    if training.loss_culprit is not None:
        return f", although no layer's output overflows: {broke(training.loss_culprit)}."
    looked = culprit is None and not why_not_followed(training)
    return ", although no layer's output overflows." if looked else "."


def _given_in_float16(training: TrainingFacts) -> str:
    """What holds the inf or NaN that the loss is made of, "features" or "labels", where the model got it in float16; ""
    for whatever else."""
    culprit = training.loss_culprit if training.broken_operation is training.loss_culprit else None
    role = {"labels": "labels", "data": "features"}.get(culprit.given, "") if culprit is not None else ""
    return role if any((array.role, array.dtype) == (role, "float16") for array in training.model.data) else ""


def _remedy(training: TrainingFacts) -> str:
    if starts_at_zero(training):
        return POSITIVE_START
    dtype, _ = _rounding_that_breaks(training)
    if dtype:
        return f'Keep the weights in float32: the policy "mixed_{dtype}" instead of "{dtype}". {NOT_TRIED}'
    if training.breaking_update is not None:
        return (
            f"See what {optimizer_of(training)} divides by: variables of its own in 16 bits, in which its epsilon is "
            f"0, or no epsilon. Keep its variables in float32. {NOT_TRIED}"
        )
    if _given_in_float16(training) == "features":
        return (
            "Scale the features before they are cast, by hand or by Keras for the first layer: in float16 each number "
            "beyond 65504 becomes inf. If they are not finite before that, find where: "
            "`tf.debugging.assert_all_finite(features, 'features')`."
        )
    if _given_in_float16(training) == "labels":
        return (
            "Leave the labels in float32: each number beyond 65504 becomes inf in a cast to float16. If they are not "
            "finite before that, find where: `tf.debugging.assert_all_finite(labels, 'labels')`."
        )
    if training.broken_operation is not None or training.diverges or why_not_followed(training):
        return remedy_from_culprit(training)
    if training.model.layers and not training.model.computes_in_half and "16" not in training.policy:
        return (
            "No layer computes in 16 bits, so precision is not the cause: lower the learning rate, standardise "
            f"features and targets, and look for NaN and for values far beyond the others in the data. {NOT_TRIED}"
        )
    if training.model.predicts_in_float32:
        return IN_A_FLOAT32_LOSS
    return (
        "Compute the loss in float32, with `tf.cast(predictions, tf.float32)` before anything is squared, summed or "
        f"divided, and look for NaN in the data. {NOT_TRIED}"
    )


def _operation(operation: OperationFacts | None) -> dict[str, str]:
    return {"operation": operation.name} if operation is not None and operation.name else {}

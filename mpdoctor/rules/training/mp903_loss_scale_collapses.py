"""The loss scale falls to 0, because every step is skipped, or grows to inf.

## Why it matters

Keras 3 halves the loss scale after every step with an inf or NaN gradient and has no floor. A network that
overflows takes the scale from 32768 to 2.9e-11 in 50 steps and to 0 in 170; the next finite step then divides
by 0 and writes inf or NaN into the weights. Where only some gradients are infinite at every scale (a root at
0), the fall may end at a scale so small that the other gradients become 0: training goes on with whatever is
left of them. There is no upper limit either: with a small `dynamic_growth_steps` the scale doubles to inf, and
every step from then on is skipped. Keras prints nothing in either case.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
large = tf.keras.initializers.Constant(200.0)
model = tf.keras.Sequential(
    [
        tf.keras.Input((4,)),
        tf.keras.layers.Dense(8, kernel_initializer=large),
        tf.keras.layers.Dense(8, kernel_initializer=large),  # 200 · 200 · 8 · 4 is beyond 65504
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=20)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential(
    [
        tf.keras.Input((4,)),
        tf.keras.layers.Dense(8),
        tf.keras.layers.Dense(8),
        tf.keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile("sgd", "mse")
model.fit(np.ones((64, 4)), np.ones((64, 1)), epochs=20)
```

## Versions

Keras 3. Keras 2 stops at 1: see MP902.

## Where users met it

keras-team/keras#16100, tensorflow/tensorflow#38357.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.steps_taken import starts_at_zero, step_divided_by_zero
from mpdoctor.semantics.live.training_remedies import POSITIVE_START, remedy_from_culprit
from mpdoctor.semantics.live.training_texts import (
    culprit_evidence,
    evidence_of_growth,
    flushed_below,
    line_of_gradient,
    why_from_culprit,
)
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED
from mpdoctor.semantics.live.verdict import verdict_from_training

SEVERITY = Severity.ERROR
KERAS = ("3",)
EXPLAINS = {"MP905": "model", "MP909": "model"}
TELLS_OF_DIVERGENCE = 3


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if verdict_from_training(training)[0] is not Verdict.COLLAPSING:
        return
    scales = [step.loss_scale for step in training.steps if step.loss_scale is not None]
    upwards = any(math.isinf(scale) for scale in scales)
    yield Finding(
        _up(training) if upwards else _down(training, scales[-1]),
        f"Let the scale grow more slowly: dynamic_growth_steps=2000 instead of {training.growth_interval}. {NOT_TRIED}"
        if upwards
        else (POSITIVE_START if starts_at_zero(training) else remedy_from_culprit(training)),
        training.model.call.location if upwards else _place(training),
        model=training.model.id,
        evidence=evidence_of_growth(training) if upwards else culprit_evidence(training),
        remedies=remedies_to_report(training),
    )


def _place(training: TrainingFacts) -> Location | None:
    """The line where a gradient broke of a loss that is finite; else that of the training call."""
    is_of_gradient = training.culprit is None and training.loss_culprit is None and not training.diverges
    return line_of_gradient(training) if is_of_gradient else training.model.call.location


def _why(training: TrainingFacts) -> str:
    return why_from_culprit(training, _place(training))


def _down(training: TrainingFacts, last: float) -> str:
    skipped = sum(not step.applied for step in training.steps)
    if starts_at_zero(training):
        return (
            "The loss scale is 0 from the first step on, and stays there: the first step with finite gradients divides "
            "them by 0, and writes NaN into the weights."
        )
    fell = (
        f"{skipped} of {len(training.steps)} steps were skipped and the loss scale fell from "
        f"{training.initial_scale:g} to {last:.3g}"
    )
    if training.steps[-1].applied and last > 0:
        return f"{fell}. At that scale every gradient below {flushed_below(last)} is 0.{_why(training)}"
    divided = step_divided_by_zero(training)
    at_zero = (
        "at a scale of 0 the next finite step would write NaN into the weights"
        if divided is None
        else f"step {divided} was finite at a scale of 0, and wrote NaN into the weights"
    )
    return f"{fell}, for which Keras 3 has no floor. Nothing is trained; {at_zero}.{_why(training)}"


def _up(training: TrainingFacts) -> str:
    interval = "step" if training.growth_interval == 1 else f"{training.growth_interval} steps"
    return f"The loss scale doubled every {interval} until it was inf; from then on every step is skipped."

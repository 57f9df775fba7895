"""The loss scale starts far above where it settles, and every step until then is lost.

## Why it matters

A dynamic loss scale is halved after each step with an inf gradient, and such a step is skipped. From 2^56 it
takes forty steps until one is applied. Keras' own initial scale of 32768 loses 2 to 15 steps with most models.
This costs only those steps, unless a script is short, or warm-up and schedules count them. A script of which at most
one in ten steps is applied has trained next to nothing; that is a warning.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(640, 4).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.01), initial_scale=2.0**50)
model.compile(optimizer, "mse")
model.fit(x, x[:, :1], epochs=5)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.rand(640, 4).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1, dtype="float32")])
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD(0.01))
model.compile(optimizer, "mse")
model.fit(x, x[:, :1], epochs=5)
```

## Versions

All.

## Where users met it

tensorflow/addons#2351.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.semantics.live.steps_taken import (
    first_applied,
    loses_its_own_steps,
    loses_most_of_its_own_steps,
    own_steps_applied,
)
from mpdoctor.semantics.live.verdict import verdict_from_training

SEVERITY = Severity.INFO
MANY = 10  # lost steps; fewer are usual


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    initial = training.initial_scale
    last = training.steps[-1].loss_scale if training.steps else None
    if initial is None or last is None or not _goes_by_its_start(training, initial):
        return
    applied = first_applied(training)
    lost = len(training.steps) if applied is None else applied
    settled = None if applied is None else training.steps[applied].loss_scale
    if lost < MANY or not _is_far_off(settled, last):
        return
    yield Finding(
        f"The loss scale starts at {initial:g}, and {_course(lost, settled, last)}.{_left_to_the_script(training)}",
        _remedy(lost, settled),
        _place(training),
        model=training.model.id,
        evidence={
            "lost_steps": lost,
            "initial_scale": initial,
            "settled_at": settled,
            "script_steps": training.script_steps,
        },
        severity=Severity.WARNING if _left_to_the_script(training) else None,
    )


def _left_to_the_script(training: TrainingFacts) -> str:
    """A sentence to add, where the script itself ends before it has trained much; else ""."""
    if loses_its_own_steps(training):
        return f" The script itself runs {training.script_steps} steps, so it trains nothing."
    if loses_most_of_its_own_steps(training):
        applied = own_steps_applied(training)
        verb = "is" if applied == 1 else "are"
        return f" Of the {training.script_steps} steps of the script itself {applied} {verb} applied."
    return ""


def _goes_by_its_start(training: TrainingFacts, initial: float) -> bool:
    """Whether the loss scale changes, and not because of another defect."""
    if not training.dynamic or not math.isfinite(initial) or training.broken_by_device:
        return False
    return verdict_from_training(training)[0] in (Verdict.HEALTHY, Verdict.SETTLING, Verdict.INCONCLUSIVE)


def _is_far_off(settled: float | None, last: float) -> bool:
    """Whether the scale is lost on its start alone. `settled` is the scale of the first applied step, None where all
    were skipped; `last` is that of the last step."""
    return last > DEFAULT_SCALE if settled is None else settled >= 1


def _place(training: TrainingFacts) -> Location | None:
    """The line that made the wrapper, where the program did so itself."""
    made = [link.made_at for link in training.model.optimizer if link.is_wrapper]
    return (made[0] if made else None) or training.model.call.location


def _course(lost: int, settled: float | None, last: float) -> str:
    if settled is None:
        return f"all {lost} steps were skipped: it is still falling, at {last:g}"
    return f"the first {lost} steps were skipped until it had fallen to {settled:g}"


def _remedy(lost: int, settled: float | None) -> str:
    if settled is None or settled >= DEFAULT_SCALE:
        saved = "" if settled is None else f" That saves these {lost} steps."
        return f"Leave `initial_scale` out: the default is 32768.{saved}"
    return f"`LossScaleOptimizer(optimizer, initial_scale={settled:g})` starts there."

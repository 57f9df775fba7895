"""Steps are still skipped after the loss scale has settled, or it only settles below 1.

## Why it matters

A dynamic loss scale is too high now and then by design: the first steps are skipped, and later one step per
growth interval (2000). If more are skipped, some batches have gradients far larger than the others. The
training loses each of those batches, and each halves the scale for all the others, whose small gradients then
become float16's subnormal numbers.

A scale that settles below 1 does not enlarge gradients but shrinks them: the gradients themselves are beyond
65504, and the small ones among them become smaller still. At 2^-6 every gradient below 1.9e-6 is 0; in float16
without any scaling the limit is 3e-8. A growth interval of a few steps also skips steps by design: with
`dynamic_growth_steps=2` every third step is skipped.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
generator = np.random.default_rng(0)
x = generator.normal(size=(640, 8)).astype("float32")
y = generator.normal(size=(640, 1)).astype("float32")
y[::64] = 1e10  # a few targets in another unit
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile(tf.keras.optimizers.Adam(1e-6), "mse")
model.fit(x, y, batch_size=32, epochs=5)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
generator = np.random.default_rng(0)
x = generator.normal(size=(640, 8)).astype("float32")
y = generator.normal(size=(640, 1)).astype("float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(16, "tanh"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile(tf.keras.optimizers.Adam(1e-6), "mse")
model.fit(x, y, batch_size=32, epochs=5)
```

## Versions

All.

## Where users met it

keras-team/keras#16100.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity, Verdict
from mpdoctor.semantics.live.broken_operations import GIVEN
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.steps_taken import first_applied, loses_its_own_steps, lost_losses, skips_beyond_float16
from mpdoctor.semantics.live.training_remedies import remedy_from_culprit
from mpdoctor.semantics.live.training_texts import (
    culprit_evidence,
    evidence_of_growth,
    flushed_below,
    line_of_gradient,
    story_of_gradient,
    story_of_growth,
    why_from_culprit,
)
from mpdoctor.semantics.live.tried_remedies import NOT_TRIED
from mpdoctor.semantics.live.verdict import verdict_from_training
from mpdoctor.semantics.live.verdict_meanings import SHORTEST_INTERVAL

SEVERITY = Severity.WARNING
TELLS_OF_DIVERGENCE = 5
DEFAULT_INTERVAL = 2000


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    if verdict_from_training(training)[0] is not Verdict.OVERFLOWING:
        return
    beyond, grown = skips_beyond_float16(training), _skips_by_growth(training)
    if beyond:
        cause = _rest_of_scale(training, len(beyond)) + _first_to_break(training, beyond)
        remedy = _remedy_below_one(training)
    elif grown:
        cause, remedy = _growth(training, len(grown)), _remedy_of_growth(training)
    else:
        skips = _skips_without_reason(training)
        cause = _goes_on(training, skips) + _what_broke(training, skips)
        remedy = _remedy(training)
    culprit = training.gradient_culprit
    yield Finding(
        cause,
        remedy,
        training.model.call.location if grown else line_of_gradient(training),
        model=training.model.id,
        layer=culprit.layer if culprit and culprit.layer and not grown else None,
        evidence=_evidence(training, by_growth=bool(grown) and not beyond),
        remedies=remedies_to_report(training),
    )


def _evidence(training: TrainingFacts, by_growth: bool) -> dict[str, Any]:
    why = evidence_of_growth(training) if by_growth else culprit_evidence(training)
    skips = [number for number, step in enumerate(training.steps, 1) if not step.applied]
    last = training.steps[-1].loss_scale
    return {**why, "skipped_steps": skips, "scale": last, "script_steps": training.script_steps}


# --- after the scale had settled --------------------------------------------------------------------------------
def _skips_without_reason(training: TrainingFacts) -> list[int]:
    """Numbers, from 0 on, of the skipped steps after the first applied one, and of earlier ones with a loss that was
    not finite."""
    first = first_applied(training) or 0
    late = {number for number, step in enumerate(training.steps) if not step.applied and number > first}
    return sorted(late | set(lost_losses(training)))


def _goes_on(training: TrainingFacts, skips: list[int]) -> str:
    first = first_applied(training) or 0
    if skips and skips[0] < first:
        is_lost_before = set(skips) <= set(lost_losses(training))
        why = "in each of them the loss itself is inf or NaN" if is_lost_before else "no loss scale fits them"
        return f"{len(skips)} of {len(training.steps)} steps were skipped, and {why}"
    return f"{len(skips)} of the {len(training.steps) - first} steps since the first applied one were skipped"


def _what_broke(training: TrainingFacts, skips: list[int]) -> str:
    """The end of the sentence: how the gradient overflowed, where that is known."""
    if training.diverges:
        return f". {story_of_growth(training)}"
    if training.gradient_culprit is not None:
        return f": {story_of_gradient(training.gradient_culprit, line_of_gradient(training))}"
    loss = training.loss_culprit
    if loss is not None and loss.given in GIVEN and training.broken_operation is loss:
        return f": {GIVEN[loss.given]}."
    variable = training.steps[skips[-1]].first_nonfinite
    return f"; inf or NaN came first in the gradient of `{variable}`." if variable else "."


def _remedy(training: TrainingFacts) -> str:
    if training.broken_operation is not None or training.diverges:
        return remedy_from_culprit(training)
    skips = _skips_without_reason(training)
    variable = training.steps[skips[-1]].first_nonfinite if skips else None
    layer = f', or compute the layer of `{variable}` in float32 (dtype="float32")' if variable else ""
    return (
        f"Look for values far beyond the others in the batches of these steps, and clip or standardise them{layer}. "
        f"{NOT_TRIED}"
    )


# --- a scale below 1 --------------------------------------------------------------------------------------------
def _rest_of_scale(training: TrainingFacts, beyond: int) -> str:
    skips = [number for number, step in enumerate(training.steps) if not step.applied]
    last = training.steps[-1].loss_scale or 0.0
    own = f", including all {training.script_steps} of the script itself" if loses_its_own_steps(training) else ""
    if training.floor is not None:
        until = f", {beyond} of them at the loss scale's floor of {training.floor:g}"
    else:
        until = f" until the loss scale had fallen to {last:.3g}"
    is_lost_before = set(skips) <= set(lost_losses(training))
    why = (
        "in each of them the loss itself is inf or NaN, whatever the scale"
        if is_lost_before
        else "gradients leave float16's range even without scaling"
    )
    return (
        f"{len(skips)} of {len(training.steps)} steps were skipped{own}{until}: {why}. At that scale every gradient "
        f"below {flushed_below(last)} is 0."
    )


def _first_to_break(training: TrainingFacts, skips: list[int]) -> str:
    why = why_from_culprit(training, line_of_gradient(training))
    variable = training.steps[skips[-1]].first_nonfinite
    return why or (f" Inf or NaN came first in the gradient of `{variable}`." if variable else "")


def _remedy_below_one(training: TrainingFacts) -> str:
    if training.gradient_culprit or training.broken_operation is not None or training.diverges:
        return remedy_from_culprit(training)
    return (
        "Make the gradients smaller: standardise inputs and targets, and average in the loss instead of summing. "
        f"{NOT_TRIED}"
    )


# --- a growth interval of a few steps ---------------------------------------------------------------------------
def _skips_by_growth(training: TrainingFacts) -> list[int]:
    """Numbers, from 0 on, of skipped steps whose scale had grown since the previous skip; [] where those are not most
    of the skips, or the growth interval is not too short."""
    interval, first = training.growth_interval, first_applied(training) or 0
    if interval is None or interval >= SHORTEST_INTERVAL:
        return []
    skips, grown, low = 0, [], None
    for number, step in enumerate(training.steps[first:], first):
        if step.applied:
            low = step.loss_scale if low is None else low
            continue
        skips += 1
        if low is not None and step.loss_scale is not None and step.loss_scale > low:
            grown.append(number)
        low = None
    return grown if 2 * len(grown) > skips else []


def _growth(training: TrainingFacts, grown: int) -> str:
    since = len(training.steps) - (first_applied(training) or 0)
    skipped = sum(not step.applied for step in training.steps[first_applied(training) or 0 :])
    return (
        f"{skipped} of {since} steps were skipped after the loss scale had settled: the scale doubles after "
        f"{_good_steps(training.growth_interval)}, and {grown} of these steps were skipped right after it doubled."
    )


def _good_steps(interval: int | None) -> str:
    return "every finite step" if interval == 1 else f"{interval} finite steps in a row"


def _remedy_of_growth(training: TrainingFacts) -> str:
    return (
        f"Let the scale grow more slowly: `dynamic_growth_steps={DEFAULT_INTERVAL}`, the default, instead of "
        f"{training.growth_interval}. {NOT_TRIED}"
    )

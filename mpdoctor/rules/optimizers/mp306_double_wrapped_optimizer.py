"""A LossScaleOptimizer wraps another LossScaleOptimizer.

## Why it matters
Keras 3 accepts this silently and unscales twice: with SGD every update came out 32768 times too small (0.170
became 5.2e-06 in Keras 3.15), so the loss stands still and no error is shown. Keras 2 raises `TypeError:
LossScaleOptimizer cannot wrap another LossScaleOptimizer` (TensorFlow 2.4: AttributeError).

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
optimizer = keras.mixed_precision.LossScaleOptimizer(optimizer)
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))
```

## Versions
All. compile() never wraps twice: it leaves an optimizer alone that is already a LossScaleOptimizer.

## Where users met it
tensorflow/tensorflow#48862.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.optimizers.conditional_wrappers import wrapped_in_the_round_before, wrapped_on_condition
from mpdoctor.semantics.source.optimizers.wrappers import (
    inner_argument,
    starting_scale_in_words,
    wrapped,
    wrapper_calls,
)

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
EXPLAINS = {"MP912": "model"}
CONFIRMED_LIVE = True
DEFAULT = "32768"
HELP = "Wrap once: remove one of the two LossScaleOptimizers."
HELP_IN_A_LOOP = "Wrap the optimizer once, before the loop."
HELP_ON_CONDITION = "On one path this optimizer is already wrapped: wrap it in only one of the two places."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in wrapper_calls(facts):
        inner = inner_argument(call)
        if inner is None or call.context.guarded or _does_nothing(facts, call):
            continue
        if wrapped(facts, inner, call):
            fix = safe_fix("Wrap once", passed_on(facts, call.location, 0, "inner_optimizer", "optimizer"))
            yield Finding(_message(facts.keras, starting_scale_in_words(inner)), HELP, call.location, fix=fix)
        elif wrapped_on_condition(facts, inner, call):
            yield Finding(_message(facts.keras, DEFAULT), HELP_ON_CONDITION, call.location)
        elif wrapped_in_the_round_before(inner, call):
            yield Finding(_message_in_a_loop(facts.keras), HELP_IN_A_LOOP, call.location)


def _does_nothing(facts: SourceFacts, outer: Call) -> bool:
    """Whether Keras 3 makes a wrapper that the program drops at once; Keras 2 raises while it is made."""
    return facts.keras.is_keras3 and outer.dropped


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    said = failure.said_by_library
    # TensorFlow 2.4 stumbles over the wrapper's own attribute instead
    in_constructor = failure.inside == "loss scaling" and "no attribute '_hyper'" in said
    if "LossScaleOptimizer cannot wrap another LossScaleOptimizer" in said or in_constructor:
        yield Finding(
            "A LossScaleOptimizer is put into another one, which Keras 2 refuses.",
            "Wrap once: under a mixed_float16 policy compile() wraps an optimizer that is not wrapped yet.",
            failure.location,
        )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    for outer, inner in zip(model.optimizer, model.optimizer[1:], strict=False):
        if outer.is_wrapper and inner.is_wrapper:
            scale = f"{inner.initial_scale:g}" if isinstance(inner.initial_scale, (int, float)) else DEFAULT
            yield Finding(_message(model.keras, scale), HELP, outer.made_at, evidence={"inside": inner.class_name})
            return


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if seen is None or seen.wrappers < 2 or not seen.shrinks:
        return
    wrappers = [link for link in training.model.optimizer if link.is_wrapper]
    yield Finding(
        f"{seen.wrappers} LossScaleOptimizers wrap each other, and each divides the gradients by its loss "
        f"scale: every applied gradient is {training.initial_scale:g} times too small at first.",
        HELP,
        (wrappers[0].made_at if wrappers else None) or training.applied_at or training.model.call.location,
        model=training.model.id,
        evidence={"exponent": round(seen.median, 3), "wrappers": seen.wrappers},
    )


def _message(keras: Keras, scale: str) -> str:
    """The message; `scale` is the initial loss scale of the inner wrapper."""
    if keras.is_keras3:
        return (
            "A LossScaleOptimizer wraps another one: gradients are unscaled twice, so every applied gradient "
            f"is {scale} times too small at first, and no error shows it."
        )
    return "A LossScaleOptimizer wraps another one; this line raises an exception."


def _message_in_a_loop(keras: Keras) -> str:
    if keras.is_keras3:
        return (
            "Each round of the loop puts a LossScaleOptimizer around that of the round before: gradients are unscaled "
            "once more each time, and no error shows it."
        )
    return "From the loop's second round on a LossScaleOptimizer wraps another one; this line raises an exception."

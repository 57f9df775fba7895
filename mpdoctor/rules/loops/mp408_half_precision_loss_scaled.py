"""A float16 loss is multiplied by the loss scale, and the product leaves float16's range.

## Why it matters
The largest float16 number is 65504, so at the usual loss scale of 32768 a loss of 2.0 or more becomes inf (in
Keras 2 at every step; in Keras 3 until the optimizer is built, after which the product is float32). The
gradients start from the scale itself in float16: at 65536 all of them are inf, so the scale never grows past
32768, and a larger `initial_scale` skips steps until it has fallen to that. Logs show inf, and the loss has
only three digits anyway. Cast the predictions or the loss to float32 before anything is summed.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def loss_of(x):
    return optimizer.scale_loss(tf.reduce_mean(tf.square(model(x))))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def loss_of(x):
    return optimizer.scale_loss(tf.reduce_mean(tf.square(model(x))))
```

## Versions
All. bfloat16 has float32's range and is not affected. An optimizer of Keras 3 with a `loss_scale_factor` multiplies in
the dtype of the loss, built or not (3.15).

## Where users met it
tensorflow/tensorflow#33484, keras-team/keras#16552; danijar/dreamerv2 asserts that the loss is float32.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from mpdoctor.facts.location import Location
from mpdoctor.facts.remedies import FAILS_IN_FLOAT32
from mpdoctor.facts.training import OperationFacts, TrainingFacts
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.finding import AlsoSeen, Finding, Severity
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.live.broken_operations import broke, is_at_zero
from mpdoctor.semantics.source.edits.float32.losses import losses_in_float32, way_to_float32
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_other_dtype
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.loops.gradients import applied_gradients, factor_of, target
from mpdoctor.semantics.source.loops.hand_made_scales import scaled_by_hand
from mpdoctor.semantics.source.loops.scaling import scales, scales_by_factor, wrapper_of_scale
from mpdoctor.semantics.source.optimizers.wrappers import is_fixed, starting_scale, starting_scale_in_words
from mpdoctor.semantics.source.programs.running_functions import is_in_test_without_training
from mpdoctor.semantics.source.trainings.half_losses import parts_in_half
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
EXPLAINS = {"MP907": "line", "MP912": "model"}
CONFIRMED_LIVE = True
LARGEST_SCALE = 32768  # the largest power of two that float16 holds
_CANNOT_GROW = f"scale can never grow past {LARGEST_SCALE} because its gradients start from the scale in float16"
INFINITE = 65520.0  # the first number that is inf when it is rounded to float16


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    calls = facts.method_calls(*SCALING) if facts.shows_mixed_precision else ()
    for call in calls:
        if not scales(facts, call) and _factor(facts, call) is None:
            continue
        if asks_for_other_dtype(call.context) or not _is_float16(facts, call):
            continue
        if not is_in_test_without_training(facts, call.context):
            yield _finding(facts, call)
    yield from _multiplied_by_hand(facts) if facts.shows_mixed_precision else ()


def _multiplied_by_hand(facts: SourceFacts) -> Iterator[Finding]:
    """`loss * tf.cast(optimizer.dynamic_scale, loss.dtype)`, where the tape differentiates the product. A number of
    the program's own that float16 holds does no harm: the gradients start from it."""
    said = set[Location]()
    for _, gradient in applied_gradients(facts):
        for product in options(target(gradient)):
            loss, scale = scaled_by_hand(product) or (None, None)
            wrapper = None if scale is None else wrapper_of_scale(scale)
            if wrapper is None or product.location in said or asks_for_other_dtype(gradient.context):
                continue
            if precision_of(facts).half(product, gradient.context) == "float16":
                said.add(product.location)
                yield _finding_of_product(facts, product, loss, wrapper, gradient.context)


def _finding_of_product(
    facts: SourceFacts, product: Value, loss: Value | None, wrapper: Value, context: Context
) -> Finding:
    text = text_at(facts, loss.location) if loss is not None else ""
    text = text if text.isidentifier() else "loss"
    return Finding(
        f"This product of the loss and its scale is float16: it is inf {_from(starting_scale(wrapper))}, and the "
        f"{_CANNOT_GROW}.",
        f"Compute `{text}` in float32 from the predictions on, without a cast to 16 bits, and multiply by the scale as "
        "it is.",
        product.location,
        fix=losses_in_float32(facts, [product]),
        also_seen=_where_it_is_computed(facts, loss, product.location, context),
    )


def _where_it_is_computed(
    facts: SourceFacts, loss: Value | None, scaled_at: Location, context: Context
) -> tuple[AlsoSeen, ...]:
    """The other lines that compute the loss in 16 bits: it breaks there, if a training shows that it does."""
    places = (part.location for part, _ in parts_in_half(precision_of(facts), loss, context))
    lines = dict.fromkeys((place.path, place.line) for place in places)
    lines.pop((scaled_at.path, scaled_at.line), None)
    return tuple(AlsoSeen("MP408", "source", "The loss is computed here.", path, line) for path, line in lines)


def _is_float16(facts: SourceFacts, call: Call) -> bool:
    return precision_of(facts).half(call.argument(0, "loss"), call.context) == "float16"


def _finding(facts: SourceFacts, call: Call) -> Finding:
    given = call.argument(0, "loss")
    text = text_at(facts, given.location) if given is not None else ""
    text = text if text.isidentifier() else "loss"
    scale = starting_scale(call.receiver)
    infinite = f"multiplied by the loss scale of {starting_scale_in_words(call.receiver)} it is inf {_from(scale)}"
    factor = _factor(facts, call)
    if factor is not None:
        consequence = f"multiplied by the `loss_scale_factor` of {factor:.15g} it is inf {_from(factor)}"
    elif facts.keras.is_keras3:  # in a built optimizer the scale is a variable, and the product float32
        consequence = f"the {_CANNOT_GROW}, and until the optimizer is built it is scaled to inf {_from(scale)}"
    else:
        consequence = infinite if is_fixed(call.receiver) else f"{infinite}, and the {_CANNOT_GROW}"
    way = way_to_float32(facts, given) if given is not None else "cast the predictions"
    return Finding(
        f"This loss is float16: {consequence}.",
        f"Compute it in float32: {way}. A cast in this call, `{call.method}(tf.cast({text}, tf.float32))`, saves only "
        "the product: the loss itself stays float16.",
        call.location,
        fix=losses_in_float32(facts, [given]) if given is not None else None,
        also_seen=_where_it_is_computed(facts, given, call.location, call.context),
    )


def _factor(facts: SourceFacts, call: Call) -> float | None:
    """The `loss_scale_factor` by which an optimizer of Keras 3 multiplies the loss, in the dtype of the loss."""
    return factor_of(call.receiver) if scales_by_factor(facts, call) else None


def _from(scale: float | None) -> str:
    """For which losses it is inf, multiplied by this scale in float16."""
    if scale is None:
        return "as soon as the product passes 65504"
    if scale >= INFINITE:
        return "whatever the loss is, because the scale is"
    return f"from {INFINITE / scale:.3g} on" if scale != LARGEST_SCALE else "from 2.0 on"


def in_light_of(finding: Finding, training: TrainingFacts) -> Finding:
    """The finding, told by what broke the loss itself, where a training showed that on one of its lines."""
    broken, places = training.loss_culprit, {(seen.path, seen.line) for seen in finding.also_seen}
    losses = enumerate((step.loss for step in training.steps), 1)
    first = next(((step, loss) for step, loss in losses if loss is not None and not math.isfinite(loss)), None)
    if broken is None or first is None or broken.location is None:
        return finding
    if (broken.location.path, broken.location.line) not in places:
        return finding
    step, loss = first
    message = f"This loss is float16, and it is {loss} at step {step}: {broke(broken)}."
    return replace(finding, message=message, help=finding.help + _beside_float32(training, broken))


def _beside_float32(training: TrainingFacts, broken: OperationFacts) -> str:
    """A sentence to add to the advice where a trial showed that float32 alone does not heal the loss, else ""."""
    if all(remedy.reason != FAILS_IN_FLOAT32 for remedy in training.remedies):
        return ""
    remedy = "make its numbers smaller as well"
    if is_at_zero(broken):
        remedy = "keep it from 0 as well, with an epsilon that float16 holds, 1e-4"
        if broken.name == "Log":
            remedy += ", or `log_softmax` in the place of the logarithm of a softmax"
    return f" {capitalized(FAILS_IN_FLOAT32)} (tried): {remedy}."


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    seen = training.scale_dependence
    if seen is None or seen.loss_dtype != "float16" or seen.scaled_at is None:
        return
    large = seen.loss_too_large
    scale = training.initial_scale or LARGEST_SCALE
    now = f" (it was {large:.3g}, times {seen.high:g})" if large is not None else f" {_from(scale)}"
    is_wide = training.model.keras.is_keras3 and large is None  # the product of a built wrapper is float32 there
    infinite = "" if is_wide else f"multiplied by the loss scale of {scale:g} it is inf{now}, and "
    yield Finding(
        f"This loss is float16: {infinite}the {_CANNOT_GROW}.",
        "Compute it in float32: cast the predictions, `tf.cast(predictions, tf.float32)`, before computing the loss.",
        seen.scaled_at,
        model=training.model.id,
        evidence={"loss_dtype": seen.loss_dtype},
    )

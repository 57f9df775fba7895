"""The scaled loss is returned, logged or printed as if it were the loss.

## Why it matters
A loss of 0.25 is shown as 8192, and jumps by factors of two with the loss scale. Curves jump, callbacks that
watch `loss` (EarlyStopping, ReduceLROnPlateau, ModelCheckpoint) react to the scale, and two runs cannot be
compared. The training itself is right. Keep the unscaled loss for reporting.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(model, x, y):
    with tf.GradientTape() as tape:
        loss = optimizer.scale_loss(tf.reduce_mean((model(x) - y) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return {"loss": loss}
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")
optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.SGD(0.1))


def step(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
        scaled_loss = optimizer.scale_loss(loss)
    gradients = tape.gradient(scaled_loss, model.trainable_variables)
    optimizer.apply(gradients, model.trainable_variables)
    return {"loss": loss}
```

## Versions
All.

## Where users met it
keras-team/keras-core#571, keras-team/keras-core#851, fastai/fastai#3048.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Return
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Collection, Item, Value, known, options, walk
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.loops.scaled_losses import named_apart
from mpdoctor.semantics.source.edits.statements import statement_at
from mpdoctor.semantics.source.loops.gradients import (
    factor_of,
    gradient_calls,
    is_gradient_call,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.scaled_losses import converted, gradients_of_loss, scaling_of, summands
from mpdoctor.semantics.source.loops.scaling import divided_by_scale, multiplies_loss
from mpdoctor.semantics.source.optimizers.wrappers import is_fixed, starting_scale
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.programs.given_back import given_back
from mpdoctor.semantics.source.programs.shown_values import logs, says_scaled, values_shown
from mpdoctor.semantics.wording import place_of, receiver_text

SEVERITY = Severity.WARNING
NEVER_RAISES = True
FIXES = ("unsafe",)
NORMS = ("global_norm", "norm")
MOST_CONVERSIONS = 3


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    scaled = [call for call in facts.method_calls(*SCALING) if multiplies_loss(facts, call)]
    if not scaled:
        return
    gradients = gradient_calls(facts)
    returns = _losses_returned(facts, scaled, gradients)
    logs = [(log, loss) for logged, log in _logged(facts) if (loss := _loss_logged(logged, log, scaled, gradients))]
    for returned, loss in returns.items():
        if not _is_reported_already(returned.context, returns):
            yield _finding(facts, "is returned", loss, returned.location)
    for log, loss in logs:
        if not _is_reported_already(log.context, returns):
            yield _finding(facts, _how_logged(facts, loss, log), loss, log.location)


def _losses_returned(facts: SourceFacts, scaled: list[Call], gradients: list[Call]) -> dict[Return, Call]:
    """Each `return` of a loss that is scaled still, with the call that scaled it."""
    return {
        returned: loss
        for loss, returned in _returned(facts, scaled)
        if _leaves_scaled(facts, loss, returned, gradients)
    }


def _loss_logged(logged: Iterable[Value], log: Call, scaled: list[Call], gradients: list[Call]) -> Call | None:
    """The first scaled loss of which the program takes a gradient, of which nobody asks for the scaled one, and that is
    not shown divided by the scale as well, as in `loss / scale if is_mixed else loss`."""
    logged = list(logged)
    shown = {id(part) for value in logged if divided_by_scale(value) for part in until_gradients(value)}
    logged_losses = (
        loss
        for value in logged
        for part in summands(value)
        if (loss := scaling_of(part, scaled)) and not _asks_its_caller(loss, log)
    )
    losses = (loss for loss in logged_losses if not exclude_each_other(loss.context, log.context))
    return next((loss for loss in losses if id(loss) not in shown and gradients_of_loss(loss, gradients)), None)


def _returned(facts: SourceFacts, scaled: list[Call]) -> Iterator[tuple[Call, Return]]:
    """Each scaled loss that a function returns, unless its caller knows that it is scaled: one beside its gradients, or
    beside the unscaled loss. Gradients from which the loss itself was computed, as in a penalty, and their norm do not
    count, nor do unscaled ones where the program has no caller."""
    losses_made = {*scaled, *(loss for call in scaled for loss in options(call.argument(0)))}
    for returned in facts.returns:
        values = list(values_shown(returned.value))
        losses = _losses_alone(returned, values, scaled)
        if not losses:
            continue
        gradients = until_gradients(returned.value, lambda part: part in losses_made or _is_norm(part))
        if not any(is_gradient_call(part) for part in gradients) or _is_by_itself(facts, returned, scaled):
            yield from ((loss, returned) for loss in losses)


def _losses_alone(returned: Return, values: list[Value], scaled: list[Call]) -> list[Call]:
    """The scaled losses among the values returned, without those that stand beside their unscaled selves."""
    shown = (part for value in values for part in summands(value))
    scalings = (loss for part in shown if (loss := scaling_of(part, scaled)))
    losses = [loss for loss in scalings if not exclude_each_other(loss.context, returned.context)]
    told = [value for value in values if not _is_the_other_arm(value, returned.value, losses)]
    return [loss for loss in losses if not any(_is_unscaled_loss(value, scaled, loss) for value in told)]


def _is_unscaled_loss(value: Value, scaled: list[Call], scaling: Call) -> bool:
    """Whether it is this loss before it is scaled, or a sum of it and of nothing that is scaled."""
    parts, unscaled = list(summands(value)), options(scaling.argument(0))
    return any(part in unscaled for part in parts) and not any(scaling_of(part, scaled) for part in parts)


def _is_the_other_arm(value: Value, returned: Value | None, losses: list[Call]) -> bool:
    """Whether a function returns this value instead of a scaled loss, not beside it: `scaled if is_mixed else loss`."""
    waiting, seen = [returned], set[int]()
    for whole in waiting:
        if id(whole) in seen:  # a list that holds a shorter one twice, again and again
            continue
        seen.add(id(whole))
        arms = options(whole)
        if len(arms) > 1 and any(arm is value for arm in arms):
            return any(arm is loss for arm in arms for loss in losses)
        waiting += [item for arm in arms if isinstance(arm, Collection) for item in arm.items]
    return False


def _is_by_itself(facts: SourceFacts, returned: Return, scaled: list[Call]) -> bool:
    """Whether a loss that is returned with gradients stands there as a loss: its gradients are not scaled, and nobody
    calls the function, so that no caller is seen to know better."""
    gradients = until_gradients(returned.value, lambda part: part in scaled or _is_unscaled_or_norm(part))
    is_scaled = any(is_gradient_call(part) for part in gradients)
    return not is_scaled and not _is_handed_on(facts, returned.context.function)


def _is_handed_on(facts: SourceFacts, function: FunctionFacts | None) -> bool:
    """Whether the program calls a function or gives it to another one, such as `strategy.run`."""
    return id(function) in _handed_on(facts)


@lru_cache(maxsize=1)
def _handed_on(facts: SourceFacts) -> frozenset[int]:
    """The ids of the functions that the program calls or gives to another one."""
    handed = (part for call in facts.calls for part in (call.callee, *call.given))
    return frozenset(id(part.of) for part in handed if isinstance(part, Defined))


def _is_unscaled_or_norm(value: Value) -> bool:
    return unscales(value) or divided_by_scale(value) or _is_norm(value)


def _is_norm(value: Value) -> bool:
    """Whether it is `tf.linalg.global_norm(…)`, or the second result of `tf.clip_by_global_norm(…)`."""
    if isinstance(value, Item):
        return is_call_of(value.of, "tensorflow.clip_by_global_norm") and known(value.index) == 1
    return isinstance(value, Call) and value.method in NORMS


def _logged(facts: SourceFacts) -> Iterator[tuple[list[Value], Call]]:
    """The values that a call prints or logs without naming them scaled."""
    for log in facts.calls:
        if logs(log) and not says_scaled(log):
            wholes = (whole for given in log.given for whole in given_back(facts, given))
            parts = (part for whole in wholes for part in values_shown(whole))
            yield [value for part in parts for value in _seen_through(facts, part)], log


def _seen_through(facts: SourceFacts, value: Value, left: int = MOST_CONVERSIONS) -> Iterator[Value]:
    """What it may be, behind `float(…)`, a cast or `.numpy()`: in `for name, value in logs.items()` any of the logs."""
    for option in given_back(facts, value):
        inside = converted(option) if left else None
        if inside is None:
            yield option
        else:
            yield from _seen_through(facts, inside, left - 1)


def _asks_its_caller(loss: Call, log: Call) -> bool:
    """Whether the loss is scaled under an `if` about an argument, which callers that log nothing may give."""
    function = loss.context.function
    tests = [branch.test for branch in loss.context.branches] if function is not log.context.function else []
    return any(isinstance(part, Parameter) and part.function is function for test in tests for part in walk(test))


def _leaves_scaled(facts: SourceFacts, loss: Call, returned: Return, gradients: list[Call]) -> bool:
    """Whether the function that returns this scaled loss has taken its gradient, and nothing divides the loss later."""
    is_differentiated = any(_is_taken_before(gradient, returned) for gradient in gradients_of_loss(loss, gradients))
    return is_differentiated and not _divided_later(facts, loss)


def _is_taken_before(gradient: Call, returned: Return) -> bool:
    """Whether the function that returns takes the gradient, itself or in a function that it calls: a helper that only
    returns a loss to the tape's code does not."""
    mine, theirs = returned.context, gradient.context
    if mine.function is theirs.function:
        return True
    inside = mine.run == theirs.run and theirs.callers[: len(mine.callers)] == mine.callers
    return inside and len(theirs.callers) > len(mine.callers) and gradient.order < returned.order


def _is_reported_already(context: Context, returns: Iterable[Return]) -> bool:
    """Whether it is in a caller of a function whose `return` is already reported."""
    depth = len(context.callers)
    return any(
        returned.context.run == context.run
        and len(returned.context.callers) > depth
        and returned.context.callers[:depth] == context.callers
        for returned in returns
    )


def _divided_later(facts: SourceFacts, loss: Call | None) -> bool:
    """Whether the program divides this loss by the loss scale, perhaps in a caller; its gradients say nothing of it."""
    divisions = (operation for operation in facts.operations if divided_by_scale(operation))
    places = {part.location for division in divisions for part in until_gradients(division.operands[0])}
    return loss is not None and loss.location in places


def _how_logged(facts: SourceFacts, loss: Call, log: Call) -> str:
    is_far = loss.context.function is not log.context.function
    return f"of {place_of(facts, loss.location, log.location)} is logged" if is_far else "is logged"


def _help(facts: SourceFacts, scaling: Call) -> str:
    written = statement_at(facts, scaling.location)
    scaled, _, call = written.text.partition(" = ") if written is not None else ("", "", "")
    loss = call.rstrip(")").rpartition("(")[2]
    if call.count("(") == 1 and scaled.isidentifier() and loss.isidentifier() and scaled != loss:
        return f"Report `{loss}`, which is not scaled."
    return (
        f"Keep the unscaled loss under its own name: write `scaled_loss = {receiver_text(facts, scaling)}."
        f"{scaling.method}(loss)`, differentiate `scaled_loss`, and report `loss`."
    )


def _finding(facts: SourceFacts, how: str, scaling: Call, location: Location) -> Finding:
    factor = factor_of(scaling.receiver)
    scale = starting_scale(scaling.receiver) if factor is None else factor
    jumps = factor is None and not is_fixed(scaling.receiver)
    shown = "it shows a loss `initial_scale` times too large"
    if scale is not None:
        shown = f"at a loss scale of {scale:.15g} a loss of 0.25 shows as {scale / 4:.15g}"
    return Finding(
        f"The scaled loss {how} as the loss: {shown}"
        f"{', and the number jumps whenever the scale changes' if jumps else ''}.",
        _help(facts, scaling),
        location,
        fix=unsafe_fix(
            "Name the scaled loss apart",
            named_apart(facts, scaling, gradients_of_loss(scaling, gradient_calls(facts))),
        ),
    )

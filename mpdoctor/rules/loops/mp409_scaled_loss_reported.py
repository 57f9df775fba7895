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
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation, Return
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Collection, Earlier, Item, Known, Value, known, options, walk
from mpdoctor.semantics.source.optimizers.gradients import (
    factor_of,
    is_gradient_call,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.optimizers.scaling import PASSING_ON, SCALING, divided_by_scale, multiplies_loss
from mpdoctor.semantics.source.optimizers.wrappers import is_fixed, starting_scale
from mpdoctor.semantics.source.programs.given_back import given_back
from mpdoctor.semantics.source.programs.shown_values import logs, says_scaled, told_in
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.WARNING
NORMS = ("global_norm", "norm")
MOST_TARGETS = 40
MOST_CONVERSIONS = 3
AVERAGING = ("reduce_mean", "mean", "reduce_sum", "sum")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    scaled = [call for call in facts.method_calls(*SCALING) if multiplies_loss(facts, call)]
    if not scaled:
        return
    gradients = [call for call in facts.method_calls("gradient") if is_gradient_call(call)]
    returns = _losses_returned(facts, scaled, gradients)
    logs = [(log, loss) for told, log in _logged(facts) if (loss := _loss_logged(told, log, scaled, gradients))]
    for returned, loss in returns.items():
        if not _is_told_already(returned.context, returns):
            yield _finding("is returned", loss, returned.location)
    for log, loss in logs:
        if not _is_told_already(log.context, returns):
            yield _finding(_how_logged(facts, loss, log), loss, log.location)


def _losses_returned(facts: SourceFacts, scaled: list[Call], gradients: list[Call]) -> dict[Return, Call]:
    """Each `return` of a loss that is scaled still, with the call that scaled it."""
    return {
        returned: loss
        for value, returned in _returned(facts, scaled)
        if (loss := _scaled_loss(value, scaled)) and _leaves_scaled(facts, loss, returned, gradients)
    }


def _loss_logged(told: Iterable[Value], log: Call, scaled: list[Call], gradients: list[Call]) -> Call | None:
    """The first scaled loss of which the program takes a gradient, and of which nobody asks for the scaled one."""
    losses = (loss for value in told if (loss := _scaled_loss(value, scaled)) and not _asks_its_caller(loss, log))
    return next((loss for loss in losses if _gradients_of(loss, gradients)), None)


def _returned(facts: SourceFacts, scaled: list[Call]) -> Iterator[tuple[Value, Return]]:
    """Each value that a function returns. A loss that is returned with its gradients is for a caller that knows that
    both are scaled; gradients from which the loss itself was computed, as in a penalty, and their norm do not count,
    nor do unscaled ones where the program has no caller. So is one that is returned beside the unscaled loss."""
    unscaled = {id(loss) for call in scaled for loss in options(call.argument(0))}
    for returned in facts.returns:
        values = list(told_in(returned.value))
        if any(id(value) in unscaled for value in values):
            continue
        gradients = until_gradients(returned.value, lambda part: part in scaled or _is_norm(part))
        if not any(is_gradient_call(part) for part in gradients) or _is_by_itself(facts, returned, scaled):
            yield from ((value, returned) for value in values)


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
    """The ids of all such functions."""
    handed = (part for call in facts.calls for part in (call.callee, *call.given))
    return frozenset(id(part.of) for part in handed if isinstance(part, Defined))


def _is_unscaled_or_norm(value: Value) -> bool:
    return unscales(value) or divided_by_scale(value) or _is_norm(value)


def _is_norm(value: Value) -> bool:
    """`tf.linalg.global_norm(…)`, or the second result of `tf.clip_by_global_norm(…)`."""
    if isinstance(value, Item):
        return is_call_of(value.of, "tensorflow.clip_by_global_norm") and known(value.index) == 1
    return isinstance(value, Call) and value.method in NORMS


def _logged(facts: SourceFacts) -> Iterator[tuple[list[Value], Call]]:
    """The values that a call prints or logs without naming them scaled."""
    for log in facts.calls:
        if logs(log) and not says_scaled(log):
            wholes = (whole for given in log.given for whole in given_back(facts, given))
            parts = (part for whole in wholes for part in told_in(whole))
            yield [value for part in parts for value in _seen_through(facts, part)], log


def _seen_through(facts: SourceFacts, value: Value, left: int = MOST_CONVERSIONS) -> Iterator[Value]:
    """What it may be, behind `float(…)`, a cast or `.numpy()`: in `for name, value in logs.items()` any of the logs."""
    for option in given_back(facts, value):
        inside = _converted(option) if left else None
        if inside is None:
            yield option
        else:
            yield from _seen_through(facts, inside, left - 1)


def _converted(value: Value, conversions: tuple[str, ...] = PASSING_ON) -> Value | None:
    """What such a call converts."""
    if not isinstance(value, Call) or value.method not in conversions:
        return None
    return value.receiver if not isinstance(value.callee, Api) else value.argument(0)


def _asks_its_caller(loss: Call, log: Call) -> bool:
    """Whether the loss is scaled under an `if` about an argument, which callers that log nothing may give."""
    function = loss.context.function
    tests = [branch.test for branch in loss.context.branches] if function is not log.context.function else []
    return any(isinstance(part, Parameter) and part.function is function for test in tests for part in walk(test))


def _gradients_of(loss: Call | None, gradients: list[Call]) -> list[Call]:
    """The calls that differentiate a scaled loss."""
    return [] if loss is None else [gradient for gradient in gradients if loss in _targets(gradient)]


def _targets(gradient: Call) -> list[Value]:
    """The losses that a tape differentiates: one, or those of a list; and the losses of the examples that are added up
    or averaged to one, `tf.reduce_sum(losses) * (1 / batch)`."""
    losses = options(target(gradient))
    found = [item for loss in losses for item in (loss.items if isinstance(loss, Collection) else (loss,))]
    for value in found:
        inside = _averaged(value) if len(found) < MOST_TARGETS else None
        found += [] if inside is None else [inside]
    return found


def _averaged(value: Value) -> Value | None:
    """What a mean or a sum is taken of, or what is multiplied or divided by something that is no loss scale."""
    if isinstance(value, Call):
        return value.argument(0) if isinstance(value.callee, Api) and value.method in AVERAGING else None
    if not isinstance(value, Operation) or value.operator not in ("*", "/") or divided_by_scale(value):
        return None
    losses = [operand for operand in value.operands if isinstance(operand, Call)]
    return losses[0] if len(losses) == 1 else None


def _leaves_scaled(facts: SourceFacts, loss: Call, returned: Return, gradients: list[Call]) -> bool:
    """Whether the function that returns this scaled loss has taken its gradient, and nothing divides the loss later."""
    is_differentiated = any(_is_taken_before(gradient, returned) for gradient in _gradients_of(loss, gradients))
    return is_differentiated and not _divided_later(facts, loss)


def _is_taken_before(gradient: Call, returned: Return) -> bool:
    """Whether the function that returns takes the gradient, itself or in a function that it calls: a helper that only
    returns a loss to the tape's code does not."""
    mine, theirs = returned.context, gradient.context
    if mine.function is theirs.function:
        return True
    inside = mine.run == theirs.run and theirs.callers[: len(mine.callers)] == mine.callers
    return inside and len(theirs.callers) > len(mine.callers) and gradient.order < returned.order


def _is_told_already(context: Context, returns: Iterable[Return]) -> bool:
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


def _scaled_loss(value: Value, scaled: list[Call], in_list: bool = False) -> Call | None:
    """The call that scaled this loss, seen through casts, `float(…)`, `.numpy()`, running sums and means. For a mean of
    a list, also written `sum(losses) / len(losses)`, the call that scaled its first loss."""
    for _ in range(6):
        if isinstance(value, Operation) and value.operator == "/" and _is_mean(value):
            value = value.operands[0]
        value = _added_up(value) or value
        if not isinstance(value, Call):
            found = [] if in_list else [_scaled_loss(item, scaled, in_list=True) for item in _kept_in(value)]
            return found[0] if found and all(found) else None
        if any(value is call for call in scaled):
            return value
        inside = _converted(value, (*PASSING_ON, *AVERAGING))
        if inside is None:
            return None
        value = inside
    return None


def _is_mean(quotient: Operation) -> bool:
    total, count = quotient.operands
    is_of_running_sum = _added_up(total) is not None and not divided_by_scale(quotient)
    return is_call_of(count, "builtins.len") or is_of_running_sum


def _added_up(value: Value) -> Value | None:
    """What a loop adds to a number, `total += loss`; None where it is something else."""
    choices = [option for option in options(value) if not isinstance(option, (Known, Earlier))]
    if len(choices) != 1 or not isinstance(choices[0], Operation) or choices[0].operator != "+":
        return None
    added = [operand for operand in choices[0].operands if not _is_carried(operand)]
    return added[0] if len(added) == 1 and len(choices[0].operands) == 2 else None


def _is_carried(value: Value) -> bool:
    """Whether it is the sum itself, as the loop's body begins with it."""
    choices = options(value)
    is_sum = all(isinstance(option, (Known, Earlier)) for option in choices)
    return is_sum and any(isinstance(option, Earlier) for option in choices)


def _kept_in(value: Value) -> list[Value]:
    """The values in a list that may have been empty before a loop filled it."""
    lists = [option for option in options(value) if isinstance(option, Collection) and option.kind == "list"]
    return [item for kept in lists for item in kept.items] if len(lists) == len(options(value)) else []


def _how_logged(facts: SourceFacts, loss: Call, log: Call) -> str:
    is_far = loss.context.function is not log.context.function
    return f"of {place_of(facts, loss.location, log.location)} is logged" if is_far else "is logged"


def _finding(how: str, scaling: Call, location: Location) -> Finding:
    factor = factor_of(scaling.receiver)
    scale = float(starting_scale(scaling.receiver)) if factor is None else factor
    jumps = factor is None and not is_fixed(scaling.receiver)
    return Finding(
        f"The scaled loss {how} as the loss: at a loss scale of {scale:.15g} a loss of 0.25 shows as {scale / 4:.15g}"
        f"{', and the number jumps whenever the scale changes' if jumps else ''}.",
        "Keep the unscaled loss under its own name, `scaled_loss = optimizer.…(loss)`, and report `loss`.",
        location,
    )

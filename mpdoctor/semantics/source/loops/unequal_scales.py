"""Gradients that are divided by another number than the one that their loss was multiplied by, where one of the two is
the scale of a LossScaleOptimizer and the other one a number that the program writes out, or another wrapper's."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, is_api, options
from mpdoctor.semantics.source.loops.gradients import (
    applied_gradients,
    given_to,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.loss_scale_signs import scale_by_hand
from mpdoctor.semantics.source.loops.resized_gradients import resizing_parts
from mpdoctor.semantics.source.loops.scaling import (
    divided_by_scale,
    products_with_scale,
    scales,
    scaling_calls,
    wrapper_of_scale,
)
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, starting_scale, wrapped


class Scale(NamedTuple):
    """A number that a loss is multiplied by, or that its gradients are divided by.

    number, wrapper
        The number that the program writes out, or the LossScaleOptimizer whose scale it is.
    place
        The operation or call that multiplies or divides.
    """

    place: Call | Operation
    number: int | None = None
    wrapper: Value | None = None


def unequal_scales(facts: SourceFacts) -> Iterator[tuple[Scale, Scale]]:
    """What multiplies a loss, and what divides its gradients, where these certainly are two different scales."""
    for apply, gradient in applied_gradients(facts):
        multiplied, divided = list(_multiplied_by(facts, gradient)), list(_divided_by(facts, apply, gradient))
        if len(multiplied) == len(divided) == 1 and _are_unequal(facts, multiplied[0], divided[0], apply):
            yield multiplied[0], divided[0]


def _multiplied_by(facts: SourceFacts, gradient: Call) -> Iterator[Scale]:
    for call in scaling_calls(target(gradient)):
        if scales(facts, call):
            yield Scale(call, wrapper=call.receiver)
    for product, owner in products_with_scale(facts, gradient):
        yield Scale(product, wrapper=owner)
    for loss in options(target(gradient)):
        if isinstance(loss, Operation) and loss.operator == "*":
            numbers = [number for factor in loss.operands if (number := scale_by_hand(factor)) is not None]
            yield from (Scale(loss, number=number) for number in numbers)


def _divided_by(facts: SourceFacts, apply: Call, gradient: Call) -> Iterator[Scale]:
    """Everything that divides the gradients, or may: of what is none of these the wrapper and the number are None."""
    for part in until_gradients(given_to(apply)):
        if isinstance(part, Call) and unscales(part):
            yield Scale(part, wrapper=part.receiver)
    for part in resizing_parts(facts, apply, gradient):
        if not isinstance(part, Call | Operation):
            continue
        is_quotient = isinstance(part, Operation) and part.operator == "/" and len(part.operands) == 2
        number = scale_by_hand(part.operands[1]) if is_quotient and isinstance(part, Operation) else None
        yield Scale(part, number, wrapper_of_scale(part) if divided_by_scale(part, ()) else None)
    if facts.keras.is_keras3 and apply.receiver is not None and wrapped(facts, apply.receiver, apply, certain=False):
        yield Scale(apply, wrapper=apply.receiver)


def _are_unequal(facts: SourceFacts, multiplied: Scale, divided: Scale, apply: Call) -> bool:
    if not all(_is_certain(scale.place.context, apply.context) for scale in (multiplied, divided)):
        return False
    owners = [_wrapper(scale.wrapper) for scale in (multiplied, divided)]
    numbers = [scale.number for scale in (multiplied, divided)]
    if owners[0] is not None and owners[1] is not None:
        is_told_by_methods = isinstance(multiplied.place, Call) and isinstance(divided.place, Call)
        return not is_told_by_methods and owners[0].location != owners[1].location
    wrapper, number = owners[0] or owners[1], next((number for number in numbers if number is not None), None)
    return wrapper is not None and number is not None and starting_scale(wrapper) not in (None, float(number))


def _wrapper(value: Value | None) -> Call | None:
    """The one LossScaleOptimizer that a value certainly is."""
    choices = options(value)
    only = choices[0] if len(choices) == 1 else None
    return only if isinstance(only, Call) and is_api(only.callee, WRAPPER) and not only.open else None


def _is_certain(context: Context, applied: Context) -> bool:
    """Whether it happens wherever the gradients are applied."""
    arms = {(branch.statement, branch.taken) for branch in applied.branches}
    return not context.guarded and {(branch.statement, branch.taken) for branch in context.branches} <= arms

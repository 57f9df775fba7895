"""Losses of custom training loops that are computed in 16 bits, and the parts of a loss that are."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import holds
from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Api, Value, known, options
from mpdoctor.semantics.source.layers.precision import Precision
from mpdoctor.semantics.source.loops.hand_made_scales import scaled_by_hand
from mpdoctor.semantics.source.operands.casts import is_cast

REDUCING = ("reduce_mean", "reduce_sum", "mean", "sum", "compute_average_loss")
OF_ONE_NUMBER = ("sqrt", "negative", "abs")
MOST_NESTED = 6


def parts_in_half(precision: Precision, loss: Value | None, context: Context) -> list[tuple[Value, str]]:
    """(part, dtype) of each part of a loss, scaled or not, that is computed in 16 bits: the loss itself where it is."""
    return list(_outermost([*_halves(precision, _unscaled(loss), context)]))


def _outermost(parts: list[tuple[Value, str]]) -> Iterator[tuple[Value, str]]:
    """The parts that are not written inside another part: in a loop that adds up a loss, the sum holds its last
    summand."""
    places = [part.location for part, _ in parts]
    for part, half in parts:
        around = (place for place in places if place != part.location)
        if not any(holds(place, part.location) for place in around):
            yield part, half


def _halves(precision: Precision, loss: Value | None, context: Context, depth: int = 0) -> Iterator[tuple[Value, str]]:
    """The loss if it is 16-bit, and its dtype; for a sum, or a scalar that was cast afterwards, the parts that are."""
    for option in options(loss):
        parts = parts_of(option)
        is_number = _is_loss if isinstance(option, Call) and is_cast(option) else _is_one_number
        numbers = [part for part in parts if is_number(part)] if depth < MOST_NESTED else []
        halves = [half for number in numbers for half in _halves(precision, number, context, depth + 1)]
        whole = precision.half(option, context)
        if whole is not None and (not halves or len(numbers) < len(parts)):
            halves = [(option, whole)]
        yield from halves


def parts_of(loss: Value) -> tuple[Value | None, ...]:
    """The parts of a loss: its summands, the argument of its cast, what a weight multiplies, what was cast before its
    mean."""
    if isinstance(loss, Operation):
        return loss.operands if loss.operator == "+" else _weighted(loss)
    if not isinstance(loss, Call):
        return ()
    if is_cast(loss):
        return (loss.argument(0),)
    given = loss.argument(0) if loss.method in REDUCING else None
    return (given,) if isinstance(given, Call) and is_cast(given) else ()


def _weighted(product: Operation) -> tuple[Value | None, ...]:
    return tuple(filter(_is_cast_number, product.operands)) if product.operator == "*" else ()


def _is_one_number(value: Value | None, depth: int = 0) -> bool:
    """Whether it is certainly a mean or a sum, perhaps cast, added to another one, or weighted by a constant."""
    choices = options(value) if depth < MOST_NESTED else ()
    return bool(choices) and all(
        (isinstance(choice, Call) and _is_call_for_one_number(choice, depth))
        or (isinstance(choice, Operation) and _is_made_of_numbers(choice, depth))
        for choice in choices
    )


def _is_call_for_one_number(call: Call, depth: int) -> bool:
    is_of_one = call.method in OF_ONE_NUMBER and isinstance(call.callee, Api)
    return call.method in REDUCING or is_cast(call) or (is_of_one and _is_one_number(call.argument(0), depth + 1))


def _is_made_of_numbers(operation: Operation, depth: int) -> bool:
    if operation.operator == "+" or (operation.operator == "*" and any(map(_is_cast_number, operation.operands))):
        return True
    weighted = [operand for operand in operation.operands if not isinstance(known(operand), (int, float))]
    return operation.operator in ("*", "/", "-") and len(weighted) == 1 and _is_one_number(weighted[0], depth + 1)


def _is_cast_number(value: Value | None) -> bool:
    """Whether it is a mean or a sum that was cast: a part of the loss that a weight may multiply."""
    return isinstance(value, Call) and is_cast(value) and _is_one_number(value.argument(0))


def _is_loss(value: Value | None) -> bool:
    """Whether it is certainly a single number, or the result of one of Keras' losses."""
    choices = options(value)
    return _is_one_number(value) or (
        bool(choices) and all(isinstance(choice, Call) and _is_loss_of_keras(choice) for choice in choices)
    )


def _is_loss_of_keras(call: Call) -> bool:
    """Whether it is `keras.losses.mean_squared_error(y, p)` or `MeanSquaredError()(y, p)`."""
    made_by = call.callee.callee if isinstance(call.callee, Call) else None
    if isinstance(made_by, Api):
        return kind_of_class(made_by.name) == "loss"
    return isinstance(call.callee, Api) and public_name(call.callee.name).startswith("keras.losses.")


def _unscaled(loss: Value | None) -> Value | None:
    """The loss behind `optimizer.scale_loss(loss)` and `loss * optimizer.dynamic_scale`."""
    choices = options(loss)
    choice = choices[0] if len(choices) == 1 else None
    by_hand = None if choice is None else scaled_by_hand(choice)
    if by_hand is not None:
        return by_hand[0]
    return choice.argument(0, "loss") if isinstance(choice, Call) and choice.method in SCALING else loss

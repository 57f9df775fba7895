"""Sums that cannot be 0: of exponentials of which one at least is no small number, and of a softmax's probabilities,
all of them or the largest ones, by which a mixture of experts divides the weights of those that it chose."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Attribute, Item, Value, known, options
from mpdoctor.semantics.source.function_names import function_named, function_or_activation_named
from mpdoctor.semantics.source.operands.value_parts import first_argument, opened

_ADDING_UP = ("reduce_sum", "reduce_mean", "sum", "mean")
_BETWEEN_MINUS_ONE_AND_ONE = ("tanh", "sigmoid", "softmax", "sin", "cos", "softsign")
_SAME_NUMBERS = ("cast", "identity", "stop_gradient")
_TAKING = ("take_along_axis", "gather")
_CHOOSING_LARGEST = ("top_k", "argmax")
_DEEPEST = 8


def stays_away_from_zero(value: Value) -> bool:
    """Whether it is a sum or mean of exponentials of which one at least is no small number: of what lies between -1 and
    1, or of what its own largest along that axis was taken from, as a softmax by hand does. Or a sum of the largest
    probabilities of a softmax, of which one at least is 1 divided by their number."""
    for option in options(value):
        if _adds_up_probabilities(option):
            continue
        is_sum = isinstance(option, Call) and function_named(option) in _ADDING_UP
        along = option.argument(1, "axis") if isinstance(option, Call) and is_sum else None
        inside = list(opened(first_argument(option) if is_sum else option))
        if not inside or not all(_is_exponential_of_note(part, is_sum, along) for part in inside):
            return False
    return bool(options(value))


def _is_exponential_of_note(value: Value, is_summed: bool, along: Value | None) -> bool:
    if function_named(value) != "exp":
        return False
    exponents = list(opened(first_argument(value)))
    return bool(exponents) and all(
        function_named(exponent) in _BETWEEN_MINUS_ONE_AND_ONE or (is_summed and _is_below_its_largest(exponent, along))
        for exponent in exponents
    )


def _is_below_its_largest(value: Value, along: Value | None) -> bool:
    """Whether it is `x - tf.reduce_max(x, axis)`, with the axis that is added up along; None adds all up."""
    if not isinstance(value, Operation) or value.operator != "-" or len(value.operands) != 2:
        return False
    numbers, largest = (list(opened(operand)) for operand in value.operands)
    taken = largest[0] if len(numbers) == len(largest) == 1 else None
    if not isinstance(taken, Call) or function_named(taken) not in ("reduce_max", "max", "amax"):
        return False
    axis = known(taken.argument(1, "axis"))
    is_same_axis = along is None or (isinstance(axis, int) and known(along) == axis)
    return is_same_axis and any(option is numbers[0] for option in opened(first_argument(taken)))


def _adds_up_probabilities(value: Value) -> bool:
    """Whether it is a sum or mean over the last axis, or over all, of a softmax over that axis, or of its largest."""
    if not isinstance(value, Call) or function_named(value) not in _ADDING_UP or not _is_over_last(value):
        return False
    added = list(_uncast(first_argument(value)))
    return bool(added) and all(_is_softmax(part) or _are_largest_of_softmax(part) for part in added)


def _are_largest_of_softmax(value: Value) -> bool:
    """Whether these are the largest numbers of a softmax: of `top_k`, or taken at its places."""
    if isinstance(value, Item) and value.index is not None and known(value.index) == 0:
        return _are_best_of_softmax(value.of)
    if isinstance(value, Attribute):
        return value.name == "values" and _are_best_of_softmax(value.of)
    if not isinstance(value, Call) or function_named(value) not in _TAKING:
        return False
    places = list(_uncast(value.argument(1, "indices")))
    holders = [place.of if isinstance(place, Item | Attribute) else place for place in places]
    return _is_made_of_softmax(first_argument(value)) and bool(holders) and all(map(_are_best_of_softmax, holders))


def _are_best_of_softmax(value: Value) -> bool:
    """Whether it is what `top_k` of a softmax gives, or the place of the largest number."""
    chosen = [option for option in options(value) if function_named(option) in _CHOOSING_LARGEST]
    given = [option.argument(0, "x") or option.argument(0, "input") for option in chosen if isinstance(option, Call)]
    return bool(given) and len(given) == len(options(value)) and all(map(_is_made_of_softmax, given))


def _is_made_of_softmax(value: Value | None) -> bool:
    choices = list(_uncast(value))
    return bool(choices) and all(map(_is_softmax, choices))


def _is_softmax(value: Value) -> bool:
    is_softmax = isinstance(value, Call) and function_or_activation_named(value) == "softmax"
    return is_softmax and isinstance(value, Call) and _is_over_last(value)


def _is_over_last(call: Call) -> bool:
    axis = call.argument(1, "axis")
    return axis is None or known(axis) in (-1, None)


def _uncast(value: Value | None, depth: int = 0) -> Iterator[Value]:
    """The values that a value may be, with casts taken off."""
    for option in options(value):
        if depth < _DEEPEST and function_named(option) in _SAME_NUMBERS:
            yield from _uncast(first_argument(option), depth + 1)
        else:
            yield option

"""Gradients whose size may change between the tape that takes them and the optimizer that applies them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from itertools import islice

from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, Parameter
from mpdoctor.program.values import Api, Attribute, Earlier, Known, Unknown, Value, is_api, known, options, walk
from mpdoctor.semantics.source.loops.gradients import (
    KEEPING_NUMBERS,
    TRANSPARENT_ROOTS,
    UNSCALING,
    given_to,
    is_gradient_call,
    until_gradients,
)
from mpdoctor.semantics.source.loops.scaling import divided_by_scale, is_reciprocal, is_scale, wrapper_of_scale
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import may_not_run

VARIABLE = "tensorflow.Variable"
# Methods that hand gradients on at their own size.
TRANSPARENT_METHODS = frozenset(
    (
        "all_reduce",
        "reduce",
        "merge_call",
        UNSCALING,
        "read_value",
        "assign_add",
        "assign_sub",
        "append",
        "items",
        "values",
    )
)
MULTIPLYING = frozenset(
    (
        *("multiply", "divide", "scalar_mul", "truediv", "true_divide", "realdiv", "div", "div_no_nan"),
        *("divide_no_nan", "multiply_no_nan", "floordiv", "floor_divide", "pow", "power", "ldexp"),
    )
)
_SMALL, _MOST_PARTS = 64, 40


def accumulated_gradients(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """Like `applied_gradients`, for gradients that a tape gives, that are summed in variables as they are, and applied
    elsewhere."""
    added = [
        (call, options(call.receiver))
        for call in facts.method_calls("assign_add")
        if not may_not_run(facts, call.context)
    ]
    for apply in facts.method_calls(*APPLYING) if added else ():
        given = [] if may_not_run(facts, apply.context) else list(until_gradients(given_to(apply)))
        variables = {
            id(variable) for variable in given if isinstance(variable, Call) and is_api(variable.callee, VARIABLE)
        }
        for call, receivers in added:
            if receivers and all(id(receiver) in variables for receiver in receivers):
                parts = list(until_gradients(call.argument(0)))
                gradients = [
                    gradient for gradient in parts if is_gradient_call(gradient) and isinstance(gradient, Call)
                ]
                if not any(map(_resizes, parts)):
                    yield from ((apply, gradient) for gradient in gradients)


def unscaled_on_the_way(facts: SourceFacts, apply: Call, gradient: Call) -> bool:
    """Whether something between the tape and the apply call may change the size of the gradients."""
    given = given_to(apply)
    parts = [] if given is None else _between(facts, given, gradient)
    return given is None or any(map(_resizes, parts)) or _divided_by(parts) >= _SMALL


def resizing_parts(facts: SourceFacts, apply: Call, gradient: Call) -> list[Value]:
    """Everything between the tape and the apply call that may change the size of the gradients."""
    given = given_to(apply)
    return [] if given is None else list(filter(_resizes, _between(facts, given, gradient)))


def divided_by_its_scale(facts: SourceFacts, apply: Call, gradient: Call) -> bool:
    """Whether the gradients are divided by the loss scale of the optimizer that applies them, and nothing else changes
    their size: `[g / optimizer.loss_scale for g in gradients]`."""
    optimizer, resizing = apply.receiver, resizing_parts(facts, apply, gradient)
    owners = [wrapper_of_scale(part) for part in resizing]
    return any(divided_by_scale(part, ()) for part in resizing) and all(
        owner is not None
        and optimizer is not None
        and same_object(owner, optimizer)
        and (divided_by_scale(part, ()) or is_reciprocal(part, ()) or is_scale(part, ()))
        for part, owner in zip(resizing, owners, strict=True)
    )


def _between(facts: SourceFacts, given: Value, gradient: Call) -> list[Value]:
    """What the gradients pass through, and what is put in their place."""
    put_back = (part for written in _written_into(facts, gradient) for part in until_gradients(written))
    return [part for part in (*_on_the_way(given, gradient), *put_back) if part is not gradient]


def _written_into(facts: SourceFacts, gradient: Call) -> Iterator[Value]:
    """What the program puts into the list that a tape gives, in a gradient's place: `gradients[i] = g / scale`."""
    for write in facts.writes:
        if write.index is not None and any(option is gradient for option in options(write.of)):
            yield write.value


def _divided_by(parts: Iterable[Value]) -> float:
    """The product of the numbers that the program writes out and divides by."""
    divisors = (part.operands[1] for part in parts if isinstance(part, Operation) and part.operator in ("/", "//"))
    numbers = (known(divisor) for divisor in divisors)
    return math.prod(abs(number) for number in numbers if isinstance(number, int | float))


def _on_the_way(given: Value, gradient: Call) -> list[Value]:
    """What the gradient passes through, and the functions that get hold of it, but not the other numbers that a call
    on the way is given, as the limit of a clip; everything where the gradient is none of the parts."""
    parts = list(until_gradients(given))
    inside, before = {id(gradient)}, 0
    while len(inside) > before:  # a part may be met before another one that it holds
        before = len(inside)
        inside.update(id(part) for part in reversed(parts) if any(id(inner) in inside for inner in part.parts))
    beside = (inner for part in parts if id(part) in inside for inner in part.parts)
    inside.update(id(inner) for inner in beside if isinstance(inner, Defined))
    return [part for part in parts if id(part) in inside] if before > 1 else parts


def _is_count(value: Value) -> bool:
    """Whether it is made of small numbers that the program writes out, as a number of batches is: no loss scale."""
    parts = list(islice(walk(value), _MOST_PARTS))
    return len(parts) < _MOST_PARTS and any(isinstance(part, Known) for part in parts) and all(map(_may_count, parts))


def _may_count(part: Value) -> bool:
    if isinstance(part, Known):
        number = part.value
        return not isinstance(number, int | float) or number == 0 or 1 / _SMALL < abs(number) < _SMALL
    if isinstance(part, Earlier):  # in a loop, `count += 1`
        return all(isinstance(end, Operation) and _may_count(end) for end in part.ends)
    if isinstance(part, Operation):
        return part.operator in ("+", "-")
    return isinstance(part, Api) or (isinstance(part, Call) and is_api(part.callee, *KEEPING_NUMBERS))


def _resizes(value: Value) -> bool:
    if isinstance(value, Operation):
        return value.operator in ("*", "/", "//", "**", "@") and not any(map(_is_count, value.operands))
    if isinstance(value, Defined):
        return True  # a function of the user's that gets hold of the gradients
    if isinstance(value, Attribute):
        return "scale" in value.name and value.name not in TRANSPARENT_METHODS
    if not isinstance(value, Call) or is_gradient_call(value):
        return False
    if isinstance(value.callee, Api):
        last = value.callee.name.rpartition(".")[2]
        return value.callee.root not in TRANSPARENT_ROOTS or last in MULTIPLYING
    if isinstance(value.callee, Attribute):
        return value.callee.name not in TRANSPARENT_METHODS
    return isinstance(value.callee, (Unknown, Parameter))

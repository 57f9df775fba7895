"""Weights that a program changes without an optimizer: `weight.assign_sub(rate * gradient)`."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Collection, Item, Value, known, options, walk
from mpdoctor.semantics.source.layers.layer_variables import ASSIGNING
from mpdoctor.semantics.source.loops.gradients import is_gradient_call, lists_weights, sources, until_gradients
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import may_not_run


def updates_by_hand(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """(the assigning call, the tape.gradient call) for each weight that is changed by a gradient of its own."""
    for update in facts.method_calls(*ASSIGNING):
        if update.receiver is None or may_not_run(facts, update.context):
            continue
        for gradient in dict.fromkeys(until_gradients(update.argument(0))):
            if isinstance(gradient, Call) and is_gradient_call(gradient) and _is_of_source(update.receiver, gradient):
                yield update, gradient


def rate_by_hand(update: Call, gradient: Call) -> float | None:
    """The number by which `weight.assign_sub(rate * gradient)` or `weight.assign(weight - rate * gradient)` multiplies
    the gradient as the tape gave it; None for an update of any other form."""
    step = update.argument(0)
    if update.method == "assign":
        is_difference = isinstance(step, Operation) and step.operator == "-" and len(step.operands) == 2
        step = step.operands[1] if is_difference and isinstance(step, Operation) else None
    if update.method not in ("assign", "assign_sub") or not isinstance(step, Operation) or step.operator != "*":
        return None
    numbers = [known(operand) for operand in step.operands]
    rates = [number for number in numbers if isinstance(number, (int, float))]
    is_plain = any(_element_of(option) is gradient for operand in step.operands for option in options(operand))
    return float(rates[0]) if is_plain and len(rates) == 1 and len(step.operands) == 2 else None


def _is_of_source(variable: Value, gradient: Call) -> bool:
    """Whether a variable is one by which a tape differentiates: given alone, in a list, or in a model's list of
    weights."""
    by = sources(gradient)
    lists = (_element_of(option) for option in options(variable))
    holders = {holder for weights in lists if lists_weights(weights) for holder in options(weights.of)}
    if any(holder in holders for part in walk(by) if lists_weights(part) for holder in options(part.of)):
        return True
    single = [option for given in options(by) for item in _items(given) for option in options(item)]
    return any(same_object(option, other) for option in options(variable) for other in single)


def _element_of(value: Value) -> Value:
    """The list of which a value is an element, else the value itself."""
    while isinstance(value, Item):
        value = value.of
    return value


def _items(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Collection) else (value,)

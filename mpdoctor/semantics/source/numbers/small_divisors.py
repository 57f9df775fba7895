"""Divisions by a number so small that float16 has no reciprocal of it, or so large that it is inf there. A graph
multiplies by the reciprocal of a small one, which is inf: TensorFlow's optimizer of graphs rewrites `x / 1e-6` (2.4,
2.10, 2.15, 2.21; not in an eager call). By a large one everything becomes 0, in an eager call too (2.4, 2.15, 2.21)."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import NO_RECIPROCAL
from mpdoctor.facts.training import UNCOUNTABLE
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.function_names import functions_called
from mpdoctor.semantics.source.layers.later_inputs import lambda_layers
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.operands.numbers_first import is_compiled, runs_eagerly
from mpdoctor.semantics.source.programs.running_functions import functions_around

DIVIDING = ("divide", "truediv", "true_divide", "divide_no_nan")
LARGEST_UNIT = 1e12  # what is divided by more is next to 0 in float32 as well
Division = tuple["Operation | Call", Value, float]


def divided_by_small(facts: SourceFacts) -> Iterator[Division]:
    """(the division, what is divided, by which number) in code that a graph is made of: of layers, of models, and below
    `tf.function`."""
    small = [division for division in _divisions(facts) if abs(division[2]) < NO_RECIPROCAL]
    if not small or runs_eagerly(facts):
        return
    for event, value, divisor in small:
        if not is_of_ones(value) and _is_in_a_graph(facts, event.context):
            yield event, value, divisor


def divided_by_large(facts: SourceFacts) -> Iterator[Division]:
    """(the division, what is divided, by which number) of divisions by a number that is inf in float16."""
    return (division for division in _divisions(facts) if UNCOUNTABLE <= abs(division[2]) <= LARGEST_UNIT)


@lru_cache(maxsize=1)
def _divisions(facts: SourceFacts) -> tuple[Division, ...]:
    """The divisions by a number that is not 0; of several that it may be the one nearest to 1."""
    divisions: list[tuple[Operation | Call, tuple[Value, ...]]] = [
        (event, event.operands) for event in facts.operations if event.operator == "/"
    ]
    divisions += [(call, call.arguments(slice(2))) for call, name in functions_called(facts) if name in DIVIDING]
    return tuple(
        (event, operands[0], min(numbers, key=lambda number: max(abs(number), 1 / abs(number))))
        for event, operands in divisions
        if len(operands) == 2 and (numbers := numbers_from_value(operands[1])) and 0 not in numbers
    )


def is_of_ones(value: Value) -> bool:
    """Whether it is a tensor of ones, or of minus ones. Divided by a small number, or multiplied by a large one, it
    makes the constant of a mask, which is meant to be that large."""
    if isinstance(value, Operation) and len(value.operands) == 1:
        return is_of_ones(value.operands[0])
    return isinstance(value, Call) and value.method in ("ones", "ones_like")


def _is_in_a_graph(facts: SourceFacts, context: Context) -> bool:
    around = [function for function in (context.function, *functions_around(facts, context)) if function is not None]
    in_lambda_layers = {of for of, _ in lambda_layers(facts)}
    return any(
        is_compiled(each) or (each.owner is not None and each.owner.is_layer) or id(each) in in_lambda_layers
        for each in around
    )

"""Divisions by a number so small that float16 has no reciprocal of it. A graph multiplies by the reciprocal, which is
inf there: TensorFlow's optimizer of graphs rewrites `x / 1e-6` (2.4, 2.10, 2.15, 2.21; not in an eager call)."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import NO_RECIPROCAL
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.layers.numbers_first import is_compiled, runs_eagerly
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.programs.running_functions import functions_around


def divided_by_small(facts: SourceFacts) -> Iterator[tuple[Operation, Value, float]]:
    """(the division, what is divided, by which number) in code that a graph is made of: of layers, of models, and below
    `tf.function`."""
    small = [(operation, _divisor(operation)) for operation in facts.operations if operation.operator == "/"]
    divisions = [(operation, divisor) for operation, divisor in small if divisor is not None]
    if not divisions or runs_eagerly(facts):
        return
    for operation, divisor in divisions:
        if not is_of_ones(operation.operands[0]) and _is_in_a_graph(facts, operation.context):
            yield operation, operation.operands[0], divisor


def _divisor(division: Operation) -> float | None:
    """The number that it divides by; None where it is not known, or large enough."""
    numbers = numbers_from_value(division.operands[1]) if len(division.operands) == 2 else ()
    return numbers[0] if numbers and all(0 < abs(number) < NO_RECIPROCAL for number in numbers) else None


def is_of_ones(value: Value) -> bool:
    """Whether it is a tensor of ones, or of minus ones: divided by a small number, or multiplied by a large one, it is
    to be as large as a mask."""
    if isinstance(value, Operation) and len(value.operands) == 1:
        return is_of_ones(value.operands[0])
    return isinstance(value, Call) and value.method in ("ones", "ones_like")


def _is_in_a_graph(facts: SourceFacts, context: Context) -> bool:
    around = [function for function in (context.function, *functions_around(facts, context)) if function is not None]
    return any(is_compiled(each) or (each.owner is not None and each.owner.is_layer) for each in around)

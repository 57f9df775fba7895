"""Where a float32 tensor that the program makes is combined with a 16-bit one."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Either, Item, Known, Value, walk
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.layer_variables import is_raw_variable_of_layer
from mpdoctor.semantics.source.layers.weight_values import (
    is_of_layer_in_dtype_of_weights,
    is_of_weights_without_autocast,
)
from mpdoctor.semantics.source.operands.mixed_operands import is_half, may_raise, mixed_operands, origin
from mpdoctor.semantics.source.operands.parameters_left_out import taken_instead


def float32_meetings(facts: SourceFacts) -> Iterator[tuple[Call | Operation, tuple[Value, ...], Value, str]]:
    """(event, operands, float32 tensor, parameter) for each event that combines a float32 tensor with a 16-bit one.
    `parameter`: the name of the parameter that the tensor replaces where it is not given, else ""."""
    for event, met in mixed_operands(facts):
        instead = [taken_instead(facts, operand) for operand in met]
        operands = tuple(
            taken[1] if taken else made_in_an_arm(operand) for taken, operand in zip(instead, met, strict=True)
        )
        wide = _first_wide(facts, operands, event.context)
        if wide is None or not may_raise(facts, (event, operands)) or asks_for_dtype(event.context):
            continue
        if any(is_half(facts, operand, event.context) for operand in operands) or _is_any_by_name(
            facts, event, operands
        ):
            yield event, operands, wide, next((taken[0] for taken in instead if taken and taken[1] is wide), "")


def _is_any_by_name(facts: SourceFacts, event: Call | Operation, operands: tuple[Value, ...]) -> bool:
    """Whether one of them is an input that a layer gets in a dictionary, and is 16-bit where it meets float32."""
    if not any(isinstance(part, Item) for operand in operands for part in walk(operand)):
        return False
    from mpdoctor.semantics.source.operands.inputs_by_name import is_half_beside_float32  # few meetings come here

    return any(is_half_beside_float32(facts, operand, event.context) for operand in operands)


def made_in_an_arm(operand: Value) -> Value:
    """The tensor that an operand is in one arm of an `if`, where it is a plain number in the others, which meets any
    dtype: `noise = tf.random.normal(…) if noisy else 0.0`. Any other operand as it is, and that of an `if` about
    dtypes."""
    made = [choice for choice in operand.options if not _is_plain_number(choice)] if isinstance(operand, Either) else []
    is_one = len(made) == 1 and isinstance(made[0], Call | Operation) and not asks_for_dtype(made[0].context)
    return made[0] if is_one else operand


def _is_plain_number(value: Value) -> bool:
    return isinstance(value, Known) and isinstance(value.value, int | float)


def _first_wide(facts: SourceFacts, operands: tuple[Value, ...], context: Context) -> Value | None:
    """The first of these tensors that was made in float32; None where one is a raw variable of the layer, which MP203
    reports."""
    wide = [operand for operand in operands if is_wide(facts, operand, context)]
    return wide[0] if wide and not any(is_raw_variable_of_layer(facts, origin(operand)) for operand in wide) else None


def is_wide(facts: SourceFacts, operand: Value, context: Context) -> bool:
    """Whether it is a float32 tensor, and no array, which takes the dtype of what it meets."""
    is_float32 = facts.dtype_at(operand, context) == "float32" and not is_array(operand)
    if is_float32 or is_of_weights_without_autocast(facts, operand, context):
        return True
    return is_of_layer_in_dtype_of_weights(facts, operand, context)

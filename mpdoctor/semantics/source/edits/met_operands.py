"""Edits where a float32 and a 16-bit tensor are combined: one is cast to the dtype of the other, there or where it is
made."""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.finding import Edit, Fix
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Item, Value
from mpdoctor.semantics.source.edits.casts import cast
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.made.tensors import is_said_at, made_in
from mpdoctor.semantics.source.edits.uses import meets_float32_elsewhere
from mpdoctor.semantics.source.layers.layer_variables import RAW
from mpdoctor.semantics.source.operands.float32_meetings import is_wide
from mpdoctor.semantics.source.operands.mixed_operands import is_half
from mpdoctor.semantics.source.operands.operand_words import Pair, pairs_that_meet
from mpdoctor.semantics.source.texts.syntax_trees import location_of

IsHalf = Callable[[Value], bool]


def cast_where_it_meets(facts: SourceFacts, wide: Value, pairs: list[Pair], dtype: str) -> list[Edit] | None:
    """`tf.cast(self.table, x.dtype)`, wherever the table was made. None where it is not one operand for certain, or is
    what the line gives a new value to."""
    written = [node for value, node in pairs if value is wide]
    if len(written) != 1 or isinstance(getattr(written[0], "ctx", None), ast.Store):
        return None
    return cast(facts, location_of(facts, written[0]), dtype)


def dtype_written(pairs: list[Pair], is_half: IsHalf) -> str | None:
    """`q.dtype`: of the first name on the line that is a 16-bit tensor by itself, or from which one of the operands is
    computed in its dtype."""
    names = (_name_of_half(value, node, is_half) for value, node in pairs)
    return next((f"{name}.dtype" for name in names if name), None)


def dtype_of_expression(pairs: list[Pair], is_half: IsHalf) -> str | None:
    """`sum(inputs).dtype`: of the first 16-bit operand, as it is written. For advice, and for no edit, which would
    compute the operand twice."""
    nodes = (node for value, node in pairs if is_half(value))
    written = ((ast.unparse(node), isinstance(node, ast.Call | ast.Name | ast.Subscript)) for node in nodes)
    return next((f"{text}.dtype" if is_closed else f"({text}).dtype" for text, is_closed in written), None)


def dtype_of_input(facts: SourceFacts, event: Call | Operation, operands: tuple[Value, ...]) -> str:
    """An expression for the input's dtype on this line: of the parameter that meets the tensor, else of the layer (its
    inputs may be a list or a dict), else of a name on the line; "" where there is none."""
    context = event.context
    names = [
        operand.name for operand in operands if isinstance(operand, Parameter) and operand.function is context.function
    ]
    if names:
        return f"{names[0]}.dtype"
    method = context.function
    while method is not None and method.owner is None:
        method = method.enclosing
    if method is not None and method.self_name:
        return f"{method.self_name}.compute_dtype"
    named = dtype_written(pairs_that_meet(facts, event), lambda value: is_half(facts, value, context))
    return named or ""


def fix_by_dtype_of_input(
    facts: SourceFacts, event: Call | Operation, operands: tuple[Value, ...], dtype: str
) -> Fix | None:
    """The edits that give every float32 tensor there the input's dtype: where the tensor is made, else where it is
    combined."""
    function, name = event.context.function, dtype.partition(".")[0]
    if function is None or (name not in function.parameters and dtype.endswith(".compute_dtype")):
        return None
    wide = [operand for operand in operands if is_wide(facts, operand, event.context)]
    pairs = pairs_that_meet(facts, event)
    casts = [
        _cast_where_it_is_made(facts, event, operand, dtype) or cast_where_it_meets(facts, operand, pairs, dtype)
        for operand in wide
    ]
    return safe_fix(f"Cast to `{dtype}`", *casts)


def _cast_where_it_is_made(
    facts: SourceFacts, event: Call | Operation, wide: Value, dtype: str
) -> Edit | list[Edit] | None:
    """The edit that casts it where it is made, on the same path through the same function, if the dtype has a name
    there, and if no other line needs it as it is."""
    if not isinstance(wide, Call | Operation) or wide.context.function is not event.context.function:
        return None
    if isinstance(wide, Call) and (is_call_of(wide, *RAW) or not isinstance(wide.callee, Api)):
        return None
    if not is_said_at(facts, wide.location, event, dtype) or meets_float32_elsewhere(facts, wide, event):
        return None
    return made_in(facts, wide, event, dtype) or cast(facts, wide.location, dtype)


def _name_of_half(value: Value, node: ast.expr, is_half: IsHalf) -> str:
    if not is_half(value):
        return ""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Subscript) and isinstance(value, Item):
        return _name_of_half(value.of, node.value, is_half)
    if isinstance(node, ast.Call) and isinstance(value, Call) and node.args and value.args:
        return _name_of_half(value.args[0], node.args[0], is_half)
    if isinstance(node, ast.BinOp) and isinstance(value, Operation) and len(value.operands) == 2:
        sides = zip(value.operands, (node.left, node.right), strict=True)
        return next((name for name in (_name_of_half(*side, is_half) for side in sides) if name), "")
    return ""

"""How a tensor that an operation takes is written, or where it was made."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Collection, Value, options
from mpdoctor.semantics.source.operands.mixed_operands import is_half, origin
from mpdoctor.semantics.source.texts.syntax_trees import location_of, nodes_at
from mpdoctor.semantics.wording import expression_at, place_of, quoted, text_at

Pair = tuple[Value, ast.expr]  # what meets, and how it is written there

LOOKUPS = ("gather", "embedding_lookup")


def float32_side(facts: SourceFacts, event: Call | Operation, wide: Value) -> str:
    """The float32 tensor in words: as it is written, else by the line that makes it, else by the function."""
    quote = quoted(facts, wide.location, event.location) if expression_text(facts, wide) else ""
    written = quote or _as_it_meets(facts, event, wide)
    if written:
        return written
    if (wide.location.path, wide.location.line) != (event.location.path, event.location.line):
        return f"The tensor made in {place_of(facts, wide.location, event.location)}"
    return f"`{wide.method}(…)`" if isinstance(wide, Call) and wide.method else "A tensor made here"


def expression_text(facts: SourceFacts, wide: Value) -> str:
    """How it is written where it was made; "" for what is no expression, `noise /= keep`, or not at hand."""
    return text_at(facts, wide.location) if expression_at(facts, wide.location) is not None else ""


def kind_of_half(facts: SourceFacts, event: Call | Operation, operands: tuple[Value, ...]) -> str:
    """ "weight" if all that is 16-bit there are weights of the layer, "input" if one is what it is called with, or
    "tensor"."""
    halves = [origin(operand) for operand in operands if is_half(facts, operand, event.context)]
    if not halves:
        return "input"  # by its name: what nothing but a meeting with float32 shows to be 16-bit
    if all(is_weight(_looked_up_in(half)) for half in halves):
        return "weight"
    return "input" if any(isinstance(option, Parameter) for half in halves for option in options(half)) else "tensor"


def _looked_up_in(value: Value) -> Value:
    """The table of which these are rows: `self.table` of `tf.gather(self.table, ids)`; else the value itself."""
    is_lookup = isinstance(value, Call) and isinstance(value.callee, Api) and value.method in LOOKUPS
    table = value.argument(0, "params") if is_lookup and isinstance(value, Call) else None
    return value if table is None else origin(table)


def _as_it_meets(facts: SourceFacts, event: Call | Operation, wide: Value) -> str:
    """How a tensor is written where it is combined, and where it was made if that is another line; "" without a text
    of one line."""
    written = next((node for value, node in with_elements(pairs_that_meet(facts, event)) if value is wide), None)
    text = text_at(facts, location_of(facts, written)) if written is not None else ""
    is_elsewhere = (wide.location.path, wide.location.line) != (event.location.path, event.location.line)
    made = f" (made in {place_of(facts, wide.location, event.location)})" if is_elsewhere and text else ""
    return f"`{text}`{made}" if text else ""


def pairs_that_meet(facts: SourceFacts, event: Call | Operation) -> list[Pair]:
    """The operands of an operator, or the arguments of a call that stand by position; [] where the line is not to be
    read that way."""
    node = _node_at(facts, event)
    if isinstance(event, Call):
        written = node.args if isinstance(node, ast.Call) else []
        given = event.args
        return [] if event.open or len(written) != len(given) else list(zip(given, written, strict=True))
    if isinstance(node, ast.BinOp):
        return list(zip(event.operands, (node.left, node.right), strict=False))
    if isinstance(node, ast.AugAssign):
        return list(zip(event.operands, (node.target, node.value), strict=False))
    return []


def with_elements(pairs: list[Pair]) -> Iterator[Pair]:
    """The pairs, and those of the elements of a list: `tf.concat([x, zeros], axis=-1)`."""
    for value, node in pairs:
        yield value, node
        if isinstance(value, Collection) and isinstance(node, ast.List | ast.Tuple):
            same = len(value.items) == len(node.elts) and not value.open
            yield from zip(value.items, node.elts, strict=True) if same else ()


def _node_at(facts: SourceFacts, event: Call | Operation) -> ast.AST | None:
    kinds = ast.Call if isinstance(event, Call) else (ast.BinOp, ast.AugAssign)
    return next((node for node in nodes_at(facts, event.location) if isinstance(node, kinds)), None)

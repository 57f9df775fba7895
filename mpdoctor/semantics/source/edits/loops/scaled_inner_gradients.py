"""Scales an inner gradient, as in a gradient penalty, by 1024 on its way through 16-bit layers."""

from __future__ import annotations

import ast
from functools import lru_cache

from mpdoctor.finding import Edit
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import put_around, put_behind
from mpdoctor.semantics.source.edits.names import tensorflow
from mpdoctor.semantics.source.texts.syntax_trees import location_of, nodes_at, tree_of

# A critic whose gradients have a norm of 1 stays far below 65504 with it, and 3e-11 is no zero yet. What began
# with `output_gradients` came out as with a target 1024 times as large (Keras 3.15, tf_keras 2.21, TensorFlow 2.10).
SCALE = "1024.0"


def scaled_inner_gradient(facts: SourceFacts, inner: Call) -> list[Edit | list[Edit] | None]:
    """`tf.cast(tape.gradient(score, x, output_gradients=1024.0 * tf.ones_like(score)), tf.float32) / 1024.0`, where the
    target has a name and a single source is given, bare or as a list of which the first is taken."""
    tf, around = tensorflow(facts), _call_and_what_holds_it(facts, inner)
    if tf is None or not around:
        return [None]
    call, *holders = around
    gradient = _with_single_source(call, holders[0]) if isinstance(call, ast.Call) else None
    if gradient is None or not isinstance(call, ast.Call) or not isinstance(call.args[0], ast.Name):
        return [None]
    holder = holders[1] if gradient is holders[0] else holders[0]
    before, behind = ("(", ")") if _is_operand_in(holder) else ("", "")
    begins_with = f", output_gradients={SCALE} * {tf}.ones_like({call.args[0].id})"
    return [
        put_behind(facts, location_of(facts, call.args[1]), begins_with),
        put_around(facts, location_of(facts, gradient), f"{before}{tf}.cast(", f", {tf}.float32) / {SCALE}{behind}"),
    ]


def _with_single_source(call: ast.Call, holder: ast.AST) -> ast.expr | None:
    """`tape.gradient(score, x)`, and `tape.gradient(score, [x])[0]`; None of anything else."""
    if len(call.args) != 2 or call.keywords:
        return None
    source = call.args[1]
    if isinstance(source, ast.Name | ast.Attribute):
        return call
    is_list_of_one = isinstance(source, ast.List) and len(source.elts) == 1
    is_first = isinstance(holder, ast.Subscript) and isinstance(holder.slice, ast.Constant) and holder.slice.value == 0
    return holder if is_list_of_one and is_first and isinstance(holder, ast.Subscript) else None


def _is_operand_in(holder: ast.AST) -> bool:
    return isinstance(holder, ast.expr) and not isinstance(holder, ast.Call | ast.Tuple | ast.List)


def _call_and_what_holds_it(facts: SourceFacts, inner: Call) -> list[ast.AST]:
    """The call, and from the inside out what it stands in; [] where it is not found."""
    calls = (node for node in nodes_at(facts, inner.location) if isinstance(node, ast.Call))
    holder: ast.AST | None = next(calls, None)
    around = []
    while holder is not None:
        around.append(holder)
        holder = _holders(facts).get(holder)
    return around


@lru_cache(maxsize=1)
def _holders(facts: SourceFacts) -> dict[ast.AST, ast.AST]:
    """What each node of the file stands in."""
    tree = tree_of(facts)
    nodes = ast.walk(tree) if tree is not None else ()
    return {node: holder for holder in nodes for node in ast.iter_child_nodes(holder)}

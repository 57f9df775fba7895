"""Edits against defects seen in the running program, where its source leaves a doubt, at the line that was running."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator, Mapping

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import CLIPPING
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.casts import cast, cast_around
from mpdoctor.semantics.source.edits.expressions import dtype_named_instead, put_around, put_behind, with_keyword
from mpdoctor.semantics.source.edits.loops.clipped import without_clipping
from mpdoctor.semantics.source.edits.names import keras_ops, tensorflow
from mpdoctor.semantics.source.edits.statements import passed_on
from mpdoctor.semantics.source.loops.clipping import ARGUMENT
from mpdoctor.semantics.source.loops.gradients import UNSCALING
from mpdoctor.semantics.source.texts.syntax_trees import called, location_of, tree_of

WRAPPER, INNER = "LossScaleOptimizer", ("inner_optimizer", "optimizer")
# TensorFlow's operation: what a program calls, and what keeps its argument from 0.
KEPT_FROM_ZERO = {"SqrtGrad": ("sqrt", "1e-4"), "Log": ("log", "1e-7")}
KEPT_ABOVE_ZERO = {"Sqrt": "sqrt", "Rsqrt": "rsqrt", "Log": "log"}
CASTING = ("cast",)
ARITHMETIC = (ast.Call, ast.Name, ast.Attribute, ast.Subscript, ast.Constant)
SAFE_BESIDE_PLUS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.MatMult)

Edits = tuple[Edit, ...]


def clipped_inside(facts: SourceFacts, applied_at: Location, made_at: Location, made: str) -> tuple[str, Edits] | None:
    """(a title, the edits): the limit of the one call that clips in the function that applies gradients, given to the
    optimizer inside, which clips what is unscaled. `made`: its class."""
    function = _function_around(facts, applied_at.line)
    clips = [call for call in _calls(function) if called(call) in ARGUMENT]
    inner = [call for call in _calls(tree_of(facts)) if called(call) == made and _stands_on(call, made_at.line)]
    if len(clips) != 1 or len(inner) != 1 or len(clips[0].args) != 2:
        return None
    limit, (optimizer,) = clips[0].args[1], inner
    if not isinstance(limit, ast.Constant) or any(keyword.arg in CLIPPING for keyword in optimizer.keywords):
        return None
    edits = (
        with_keyword(facts, location_of(facts, optimizer), ARGUMENT[called(clips[0])], ast.unparse(limit)),
        without_clipping(facts, location_of(facts, clips[0])),
    )
    return _together("Let the optimizer inside clip", *edits)


def unscaled_once(facts: SourceFacts, applied_at: Location) -> tuple[str, Edits] | None:
    """(a title, the edits): without the second of the two calls that unscale in the function that applies gradients."""
    function = _function_around(facts, applied_at.line)
    unscaling = sorted((call for call in _calls(function) if called(call) == UNSCALING), key=lambda call: call.lineno)
    if len(unscaling) != 2 or len({ast.unparse(call.func) for call in unscaling}) != 1:
        return None
    edits = passed_on(facts, location_of(facts, unscaling[1]), 0, "grads")
    return _together("Unscale once", *(edits if isinstance(edits, list) else [edits]))


def wrapped_once(facts: SourceFacts, made_at: Location) -> tuple[str, Edits] | None:
    """(a title, the edits): without the one wrapper that this line makes, around what is wrapped already."""
    calls = [call for call in _calls(tree_of(facts)) if called(call) == WRAPPER and call.lineno == made_at.line]
    edits = passed_on(facts, location_of(facts, calls[0]), 0, *INNER) if len(calls) == 1 else None
    return _together("Wrap once", *(edits if isinstance(edits, list) else [edits]))


def kept_from_zero(facts: SourceFacts, broke_at: Location, operation: str) -> tuple[str, Edits] | None:
    """(a title, the edits): a small number added to what the one root or logarithm on this line is of."""
    name, least = KEPT_FROM_ZERO.get(operation, ("", ""))
    given = _given_to_the_one(facts, name, broke_at.line)
    if given is None:
        return None
    place = location_of(facts, given)
    if _needs_brackets(given):
        edits = put_around(facts, place, "(", f") + {least}") or []
        return _together(f"Add {least} inside {name}()", *edits)
    return _together(f"Add {least} inside {name}()", put_behind(facts, place, f" + {least}"))


def kept_above_zero(facts: SourceFacts, broke_at: Location, operation: str) -> tuple[str, Edits] | None:
    """(a title, the edits): `tf.maximum(x, 1e-7)` for the x of the one root or logarithm on this line."""
    name, library = KEPT_ABOVE_ZERO.get(operation, ""), tensorflow(facts) or keras_ops(facts)
    given = _given_to_the_one(facts, name, broke_at.line)
    if given is None or library is None:
        return None
    edits = put_around(facts, location_of(facts, given), f"{library}.maximum(", ", 1e-7)") or []
    return _together(f"Keep the argument of {name}() above 0", *edits)


def _given_to_the_one(facts: SourceFacts, name: str, line: int) -> ast.expr | None:
    """The argument of the only call of this name on a line; None where there are others."""
    calls = [call for call in _calls(tree_of(facts)) if called(call) == name and _stands_on(call, line)]
    if len(calls) != 1 or len(calls[0].args) != 1 or isinstance(calls[0].args[0], ast.Starred):
        return None
    return calls[0].args[0]


def written_in_float32(facts: SourceFacts, broke_at: Location) -> tuple[str, Edits] | None:
    """(a title, the edits): float32 in each cast to a 16-bit dtype by its name in the function around this line. None
    where there is none."""
    function = _function_around(facts, broke_at.line)
    casts = [call for call in _calls(function) if called(call) in CASTING and not isinstance(function, ast.Module)]
    given = [value for call in casts for value in (*call.args[1:], *(k.value for k in call.keywords))]
    edits: dict[Edit, None] = {}
    for value in given:
        dtype = next((half for half in HALF if ast.unparse(value).strip("'\"").rpartition(".")[2] == half), "")
        edit = dtype_named_instead(facts, location_of(facts, value), dtype, "float32") if dtype else None
        if edit is not None:
            edits[edit] = None
    return _together("Cast to float32 instead", *edits)


def cast_where_they_met(facts: SourceFacts, raised_at: Location, dtypes: Mapping[str, str]) -> tuple[str, Edits] | None:
    """(a title, the edits): what the line names in 16 bits cast to float32, by the dtypes that its names had."""
    half = [name for name, dtype in dtypes.items() if dtype in HALF]
    nodes = [
        node for node in ast.walk(tree_of(facts) or ast.Module([], [])) if isinstance(node, ast.Name | ast.Attribute)
    ]
    edits: list[Edit] = []
    for name in half:
        read = [node for node in nodes if node.lineno == raised_at.line and isinstance(node.ctx, ast.Load)]
        places = [location_of(facts, node) for node in read if ast.unparse(node) == name]
        around = cast(facts, places[0]) if len(places) == 1 else None
        if not places:
            around = _cast_before_adding(facts, raised_at, name)
        if around is None:
            return None
        edits += around
    return _together(f"Cast {' and '.join(f'`{name}`' for name in half)} to float32", *edits)


def _cast_before_adding(facts: SourceFacts, raised_at: Location, name: str) -> list[Edit] | None:
    """`loss = tf.cast(loss, tf.float32) + penalty` in the place of `loss += penalty`."""
    statements = [
        node
        for node in ast.walk(tree_of(facts) or ast.Module([], []))
        if isinstance(node, ast.AugAssign) and node.lineno == raised_at.line and ast.unparse(node.target) == name
    ]
    around = cast_around(facts)
    if len(statements) != 1 or around is None or not isinstance(statements[0].op, ast.Add | ast.Sub):
        return None
    sign = "+" if isinstance(statements[0].op, ast.Add) else "-"
    target, value = (location_of(facts, node) for node in (statements[0].target, statements[0].value))
    if target.line != value.line:
        return None
    place = dataclasses.replace(target, end_line=value.line, end_column=value.column)
    before = f"{name} = {around[0]}{name}{around[1]} {sign} "
    if not _is_looser_than_a_product(statements[0].value):
        return [Edit(place, before)]
    behind = put_behind(facts, value, ")")
    return [Edit(place, f"{before}("), behind] if behind is not None else None


def _is_looser_than_a_product(value: ast.expr) -> bool:
    tight = isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult | ast.Div | ast.MatMult | ast.Pow)
    return not tight and not isinstance(value, ARITHMETIC)


def _together(title: str, *edits: Edit | None) -> tuple[str, Edits] | None:
    made = tuple(edit for edit in edits if edit is not None)
    return (title, made) if made and len(made) == len(edits) else None


def _calls(tree: ast.AST | None) -> Iterator[ast.Call]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.Call)) if tree is not None else iter(())


def _stands_on(call: ast.Call, line: int) -> bool:
    return call.lineno <= line <= (call.end_lineno or call.lineno)


def _function_around(facts: SourceFacts, line: int) -> ast.AST | None:
    """The innermost function around a line; the tree of the whole file where the line is in none."""
    tree = tree_of(facts)
    around = [
        node
        for node in ast.walk(tree or ast.Module([], []))
        if isinstance(node, ast.FunctionDef) and node.lineno <= line <= (node.end_lineno or node.lineno)
    ]
    return max(around, key=lambda node: node.lineno, default=tree)


def _needs_brackets(given: ast.expr) -> bool:
    if isinstance(given, ast.BinOp):
        return not isinstance(given.op, SAFE_BESIDE_PLUS)
    return not isinstance(given, ARITHMETIC)

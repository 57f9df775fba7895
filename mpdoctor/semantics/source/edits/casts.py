"""Edits that cast an expression, an argument, or each tensor of a list."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit
from mpdoctor.program.events import Return
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import argument_replaced, put_around
from mpdoctor.semantics.source.edits.names import DTYPES, keras_ops, tensorflow
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of
from mpdoctor.semantics.source.texts.written import argument_at, expression_written

NAMES_OF_FIRST = ("x", "input", "input_tensor", "tensor", "value", "loss")  # what functions call their first argument


def cast(facts: SourceFacts, location: Location, dtype: str = "float32") -> list[Edit] | None:
    """An expression cast to a dtype, `tf.cast(…, tf.float32)`; `dtype` may be an expression such as `x.dtype`. None for
    what is written as a statement, `noise /= 2.0`."""
    around = cast_around(facts, dtype)
    if around is None or expression_written(facts, location) is None:
        return None
    return put_around(facts, location, *around)


def each_cast(facts: SourceFacts, location: Location, dtype: str) -> list[Edit] | None:
    """A list of tensors with each of them cast: `[tf.cast(state, …) for state in states]`; of one that is written out
    `[tf.cast(h, …), tf.cast(c, …)]`."""
    around = cast_around(facts, dtype)
    written = _list_at(facts, location)
    if written is not None and around is not None:
        edits = [put_around(facts, location_of(facts, element), *around) for element in written.elts]
        return [edit for each in edits for edit in each or ()] if all(edits) else None
    before, behind = around if around is not None else ("", "")
    return put_around(facts, location, f"[{before}state{behind} for state in ", "]") if around is not None else None


def _list_at(facts: SourceFacts, location: Location) -> ast.List | None:
    tree = tree_of(facts)
    lists = [node for node in ast.walk(tree) if isinstance(node, ast.List)] if tree is not None else []
    listed = next((node for node in lists if location_of(facts, node) == location), None)
    return listed if listed is not None and not any(isinstance(part, ast.Starred) for part in listed.elts) else None


def second_returned_cast(facts: SourceFacts, returned: Return, dtype: str) -> list[Edit] | None:
    """Each tensor of the list in `return output, [h, c]` cast; None where it is not written so in this file."""
    tree = tree_of(facts) if returned.location.path == facts.path else None
    nodes = (node for node in ast.walk(tree or ast.Module([], [])) if isinstance(node, ast.Return))
    values = [node.value for node in nodes if node.lineno == returned.location.line]
    written = values[0] if len(values) == 1 else None
    listed = written.elts[1] if isinstance(written, ast.Tuple) and len(written.elts) == 2 else None
    tensors = listed.elts if isinstance(listed, (ast.List, ast.Tuple)) else []
    edits = [cast(facts, location_of(facts, tensor), dtype) for tensor in tensors]
    return [edit for each in edits for edit in each or ()] if edits and all(edits) else None


def cast_argument(facts: SourceFacts, call: Location, position: int = 0) -> list[Edit] | None:
    """Like `cast` to float32, for an argument of a call."""
    given = argument_at(facts, call, position, *(NAMES_OF_FIRST if position == 0 else ()))
    return cast(facts, given, "float32") if given is not None else None


def cast_to_float32_instead(facts: SourceFacts, casts: Iterable[Location]) -> list[Edit] | None:
    """float32 in the place of the dtype that each of these casts names."""
    around = cast_around(facts)
    return cast_to_dtype_instead(facts, casts, around[1].removeprefix(", ").removesuffix(")")) if around else None


def cast_to_dtype_instead(facts: SourceFacts, casts: Iterable[Location], dtype: str) -> list[Edit] | None:
    """Another dtype, as an expression, in the place of the one that each of these casts names; None where one names
    none that can be replaced."""
    edits = [argument_replaced(facts, cast, "dtype", 1, dtype) for cast in casts]
    found = [edit for edit in edits if edit is not None]
    return found if len(found) == len(edits) else None


def cast_around(facts: SourceFacts, dtype: str = "float32") -> tuple[str, str] | None:
    """The texts before and behind what is cast. None where the program names nothing that casts."""
    is_name = dtype in DTYPES
    tf = tensorflow(facts)
    if tf is not None:
        return f"{tf}.cast(", f", {tf}.{dtype})" if is_name else f", {dtype})"
    ops = keras_ops(facts)
    if ops is None:
        return None
    return f"{ops}.cast(", f', "{dtype}")' if is_name else f", {dtype})"

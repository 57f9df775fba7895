"""Edits that make a tensor in the right dtype, instead of casting it afterwards."""

from __future__ import annotations

import ast

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.location import Location, holds
from mpdoctor.finding import Edit
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import MADE_IN_16_BITS
from mpdoctor.program.dtypes.library_results import default_of
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Item, Value, known
from mpdoctor.semantics.source.edits.expressions import argument_replaced, with_keyword
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.texts.syntax_trees import location_of, tree_of
from mpdoctor.semantics.source.texts.written import callee_text

# Of a whole number up to 65504 the root in float16 is within 0.0011 of float32's, and that in bfloat16 within 0.0078;
# up to 1024 that in float16 is float32's, rounded (TensorFlow 2.10, 2.15 and 2.21; in 2.4 the square root).
ROOTS = ("sqrt", "rsqrt")


def made_in(facts: SourceFacts, tensor: Value, event: Call | Operation, dtype: str) -> Edit | None:
    """`tf.one_hot(ids, 8, dtype=x.dtype)`, `tf.sqrt(tf.cast(self.dim, x.dtype))`, where that brings the numbers that a
    cast brings, or others drawn alike. None where it is not made by one call that takes a dtype.

    `event`: where it meets another tensor."""
    if not isinstance(tensor, Call) or not isinstance(tensor.callee, Api):
        return None
    if not is_said_at(facts, tensor.location, event, dtype):
        return None
    if is_cast(tensor):
        return argument_replaced(facts, tensor.location, "dtype", 1, dtype)
    name = public_name(tensor.callee.name)
    function = name.rpartition(".")[2]
    if function in ROOTS:
        return _cast_under_root(facts, tensor, event, dtype)
    if function not in MADE_IN_16_BITS or (default := default_of(name)) is None:
        return None
    if callee_text(facts, tensor.location).rpartition(".")[2] != function:  # of a table of functions not each takes it
        return None
    given = argument_replaced(facts, tensor.location, "dtype", default[0], dtype)
    return given or with_keyword(facts, tensor.location, "dtype", dtype)


def is_said_at(facts: SourceFacts, place: Location, event: Call | Operation, dtype: str) -> bool:
    """Whether what `x.dtype` is asked of is known at this place of the event's function: it stands in the event, or `x`
    is a parameter, or is bound above."""
    function, name = event.context.function, dtype.partition(".")[0]
    if function is None or holds(event.location, place) or name in function.parameters:
        return function is not None
    definition = _definition(facts, function)
    above = [] if definition is None else [line for line in definition.body if (line.end_lineno or 0) < place.line]
    return any(_is_stored(node, name) for statement in above for node in ast.walk(statement))


def _cast_under_root(facts: SourceFacts, root: Call, event: Call | Operation, dtype: str) -> Edit | None:
    """The cast of a dimension, which nothing but this root is computed of."""
    dimension = root.argument(0)
    if not isinstance(dimension, Call) or not is_cast(dimension) or not _is_dimension(dimension.argument(0)):
        return None
    if dimension.context.function is not event.context.function:
        return None
    if not holds(root.location, dimension.location) and not _is_read_once(facts, dimension):
        return None
    return made_in(facts, dimension, event, dtype)


def _is_dimension(value: Value | None) -> bool:
    """Whether it is a number that float16 holds, a setting that the layer is made with, or the last length of a
    shape."""
    number = known(value)
    if isinstance(number, (int, float)):
        return 1 <= number <= FLOAT16_LIMIT
    if isinstance(value, Item):
        of_shape = isinstance(value.of, Attribute) and value.of.name == "shape"
        return known(value.index) == -1 and (of_shape or is_call_of(value.of, "tensorflow.shape", "keras.ops.shape"))
    is_setting = isinstance(value, Parameter) and value.function is not None and value.function.name == "__init__"
    return is_setting or is_number(value)


def _is_read_once(facts: SourceFacts, tensor: Call) -> bool:
    """Whether it has a name of its own in its function, which is read once."""
    function = tensor.context.function
    definition = _definition(facts, function) if function is not None else None
    if definition is None:
        return False
    nodes = list(ast.walk(definition))
    names = [
        node.targets[0].id
        for node in nodes
        if isinstance(node, ast.Assign) and len(node.targets) == 1 and isinstance(node.targets[0], ast.Name)
        if location_of(facts, node.value) == tensor.location
    ]
    of_name = [node for node in nodes if isinstance(node, ast.Name) and [node.id] == names]
    return len(of_name) == 2 and any(isinstance(node.ctx, ast.Load) for node in of_name)


def _definition(facts: SourceFacts, function: FunctionFacts) -> ast.FunctionDef | None:
    nodes = ast.walk(tree_of(facts) or ast.Module([], []))
    of_line = (node for node in nodes if isinstance(node, ast.FunctionDef) and node.lineno == function.location.line)
    return next((node for node in of_line if node.name == function.name), None)


def _is_stored(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name and isinstance(node.ctx, ast.Store)

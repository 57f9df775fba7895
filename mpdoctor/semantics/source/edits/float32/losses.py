"""The edits that compute a loss in float32: casts around its 16-bit predictions, and instead of casts to 16 bits."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.finding import Edit, Fix
from mpdoctor.knowledge.half_dtypes import HALF
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Attribute, Item, Value
from mpdoctor.semantics.source.edits.expressions import argument_at, argument_replaced, put_around, unsafe_fix
from mpdoctor.semantics.source.edits.made.layers import location_of, tree_of
from mpdoctor.semantics.source.edits.names import cast, cast_around
from mpdoctor.semantics.source.edits.statements import line_before
from mpdoctor.semantics.source.layers.casts import is_cast
from mpdoctor.semantics.source.numbers.precision import Precision, precision_of
from mpdoctor.semantics.source.programs.models import is_model

LOSSES_OF_LAYERS = "losses"  # of a model or of a layer


def loss_in_float32(facts: SourceFacts, loss: Value) -> Fix | None:
    """The edits that compute every part of the loss in float32: the predictions, cast after the model or in the loss
    function, the sum of `model.losses`, and any cast to 16 bits."""
    precision, around = precision_of(facts), cast_around(facts)
    if around is None:
        return None
    edits: list[Edit | list[Edit] | None] = []
    waiting, seen = [loss], {id(loss)}
    for part in waiting:
        if is_model(part):
            continue  # a part of the model itself
        if _cannot_be_cast(precision, part):
            return None
        if isinstance(part, Call) and _sums_losses_of_layers(part):
            edits.append(_cast_each(facts, part, around))
        elif isinstance(part, Call) and precision.of_model(part.callee) in HALF:
            edits.append(cast(facts, part.location))
        else:
            edits += _edits_in_part(facts, part, around)
            waiting += [inner for inner in part.parts if id(inner) not in seen]
            seen.update(map(id, part.parts))
    found = [edit for edit in edits if edit != []]
    return unsafe_fix("Compute the loss in float32", *found) if found else None


def _edits_in_part(facts: SourceFacts, part: Value, around: tuple[str, str]) -> Iterator[Edit | list[Edit] | None]:
    """The edits of one part of the loss itself, and not of what it is computed from."""
    if isinstance(part, Parameter) and _is_half_prediction(precision_of(facts), part):
        yield _cast_at_start(facts, part, around)
    if isinstance(part, Call) and is_cast(part) and _names_half(facts, part):
        wide = around[1].removeprefix(", ").removesuffix(")")
        yield argument_replaced(facts, part.location, "dtype", 1, wide)


def _cannot_be_cast(precision: Precision, part: Value) -> bool:
    if isinstance(part, Call) and is_cast(part) and _is_compute_dtype(part.argument(1, "dtype")):
        return True  # the numbers that it is added to may be of that dtype as well
    if isinstance(part, Attribute):
        return part.name == LOSSES_OF_LAYERS  # in a list with others, or one after the other
    # one of several outputs: a cast around the call would stack them
    return isinstance(part, Item) and isinstance(part.of, Call) and precision.of_model(part.of.callee) in HALF


def _is_compute_dtype(given: Value | None) -> bool:
    """Whether it is an attribute such as `policy.compute_dtype` or `model.compute_dtype`."""
    return isinstance(given, Attribute) and given.name == "compute_dtype"


def _cast_each(facts: SourceFacts, sum_of_losses: Call, around: tuple[str, str]) -> list[Edit] | None:
    summed = argument_at(facts, sum_of_losses.location, 0)
    each = f"[{'part'.join(around)} for part in "
    return put_around(facts, summed, each, "]") if summed is not None else None


def _sums_losses_of_layers(call: Call) -> bool:
    """Whether it is `sum(model.losses)`: activity regularizers return numbers in the layer's own dtype."""
    summed = call.argument(0)
    return isinstance(summed, Attribute) and summed.name == LOSSES_OF_LAYERS and call.argument(1) is None


def _names_half(facts: SourceFacts, call: Call) -> bool:
    """Whether a cast names a 16-bit dtype itself, rather than the dtype of another tensor, which may change."""
    given = call.argument(1, "dtype")
    return not isinstance(given, Attribute) and dtype_named(given, facts.keras) in HALF


def _is_half_prediction(precision: Precision, value: Parameter) -> bool:
    return value.function is not None and precision.half(value, Context(function=value.function)) is not None


def _cast_at_start(facts: SourceFacts, value: Parameter, around: tuple[str, str]) -> Edit | None:
    """The edit in the function that has the prediction as a parameter."""
    assert value.function is not None
    name, place = value.name, value.function.location
    for node in ast.walk(tree_of(facts) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and node.name == value.function.name and node.lineno == place.line:
            first = next((line for line in node.body if not _is_text(line)), node.body[0])
            return line_before(facts, location_of(facts, first), f"{name} = {name.join(around)}")
    return None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)

"""Arguments that a function does not take in 16 bits, whatever the dtype of the others."""

from __future__ import annotations

from typing import NamedTuple

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.missing_kernels import BOOLEANS_ON_A_CPU, FLOAT32_ARGUMENTS
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Item, Value, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, runs_in_layer
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.wording import text_at

RESHAPING = (
    "expand_dims",
    "reshape",
    "squeeze",
    "transpose",
    "tile",
    "repeat",
    "gather",
    "slice",
    "stop_gradient",
    "identity",
    "broadcast_to",
    "boolean_mask",
)


class RefusedArgument(NamedTuple):
    """A 16-bit argument of a call in a layer.

    name
        The parameter's.
    text
        How it is written; the parameter's name without a text.
    place
        None where it is not written in the call.
    dtype_to_give
        "float32", or "bool" where only a CPU refuses it.
    """

    name: str
    text: str
    place: Location | None
    dtype: str
    dtype_to_give: str


def refused_argument(facts: SourceFacts, call: Call, function: str) -> RefusedArgument | None:
    """The argument of this call that is refused; None if it is given none, or runs in no layer. `function`: the public
    name of what is called."""
    position, name = FLOAT32_ARGUMENTS.get(function) or BOOLEANS_ON_A_CPU.get(function) or (0, "")
    given = call.argument(position, name) if name else None
    if given is None or not runs_in_layer(facts, call.context) or asks_for_dtype(call.context):
        return None
    if function == "tensorflow.where" and (len(call.args) > 1 or call.keywords or call.open):
        return None
    found = half_dtypes(facts, given, call.context)
    on_cpu = function in BOOLEANS_ON_A_CPU
    if on_cpu and not _is_computed(given):
        return None  # an input of the layer may be of booleans or of whole numbers, which nothing casts
    refused = [dtype for dtype in found if dtype == "float16" or not on_cpu]
    if not refused:
        return None
    place = argument_at(facts, call.location, position, name)
    text = ("" if place is None else text_at(facts, place)) or name
    return RefusedArgument(name, text, place, refused[0], "bool" if on_cpu else "float32")


def _is_computed(given: Value) -> bool:
    """Whether it is more than an input, or a part of one, in whatever shape."""
    for option in options(given):
        while isinstance(option, Item) or (isinstance(option, Call) and option.method in RESHAPING and option.args):
            option = option.of if isinstance(option, Item) else option.args[0]
        if not isinstance(option, (Call, Operation)):
            return False
    return True

"""Which values are whole numbers: those that a program uses where TensorFlow takes nothing else, as indices and numbers
of repeats, and products of sizes.

Keras casts what a layer is given where it is a floating-point tensor, and nobody sees of a parameter of `call()`
whether it is one. What stands in such a place is none.
"""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Item, Value, options
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.layers.casts import is_cast

# The argument that has to be integers. keras.ops casts what it is given, and takes floats there.
PLACES = {
    "repeat": (1, "repeats"),
    "gather": (1, "indices"),
    "gather_nd": (1, "indices"),
    "one_hot": (0, "indices"),
    "embedding_lookup": (1, "ids"),
    "scatter_nd": (0, "indices"),
    "tensor_scatter_nd_update": (1, "indices"),
    "unsorted_segment_sum": (1, "segment_ids"),
    "segment_sum": (1, "segment_ids"),
    "shape": (1, "out_type"),
    "size": (1, "out_type"),
}


def is_whole(facts: SourceFacts, value: Value) -> bool:
    used = _used_as_whole_numbers(facts)
    return any(id(option) in used for option in options(value))


def is_product_of_sizes(value: Value) -> bool:
    """Whether it is, cast or not, the product of several sizes of a tensor, or the number of its elements: for pictures
    more than the 65504 that float16 holds."""
    return any(_is_product_of_sizes(option) for option in options(value))


def _is_product_of_sizes(value: Value) -> bool:
    if isinstance(value, Operation):
        return value.operator == "*" and sum(map(_is_size, value.operands)) > 1
    if not isinstance(value, Call):
        return False
    inner = value.argument(0) if is_cast(value) else None
    return function_named(value) == "size" or (inner is not None and is_product_of_sizes(inner))


def _is_size(value: Value) -> bool:
    """Whether it is `tf.shape(x)[1]`, `x.shape[1]`, or one of these cast, or a product of them."""
    return any(_is_one_size(option) for option in options(value))


def _is_one_size(value: Value) -> bool:
    if isinstance(value, Item):
        shapes = options(value.of)
        return any(function_named(of) == "shape" or (isinstance(of, Attribute) and of.name == "shape") for of in shapes)
    inner = value.argument(0) if isinstance(value, Call) and is_cast(value) else None
    return _is_size(inner) if inner is not None else _is_product_of_sizes(value)


@lru_cache(maxsize=1)
def _used_as_whole_numbers(facts: SourceFacts) -> frozenset[int]:
    """The ids of the values that stand in such a place: asked for one program after the other."""
    given = (_given_as_whole_numbers(call, name) for call, name in functions_called(facts) if name in PLACES)
    return frozenset(id(option) for value in given for option in options(value))


def _given_as_whole_numbers(call: Call, name: str) -> Value | None:
    if not _is_of_tensorflow(call):
        return None
    given = call.argument(*PLACES[name])
    return given.of if isinstance(given, Attribute) and given.name == "dtype" else given  # `out_type=ids.dtype`


def _is_of_tensorflow(call: Call) -> bool:
    name = call.callee.name if isinstance(call.callee, Api) else ""
    return name.startswith("tensorflow.") and not name.startswith("tensorflow.keras.")

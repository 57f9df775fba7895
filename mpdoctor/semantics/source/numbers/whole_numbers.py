"""Which values are whole numbers: those that a program uses where TensorFlow takes nothing else, as indices and numbers
of repeats, and products of sizes.

Keras casts what a layer is given where it is a floating-point tensor, and nobody sees of a parameter of `call()`
whether it is one. What stands in such a place is none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Item, Value, options
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.operands.casts import is_cast

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
# Those of keras.ops, which takes floats there, included.
_LOOKUPS = PLACES | {"take": (1, "indices"), "take_along_axis": (1, "indices")}
# What gives the numbers that it is given, as far as these are concerned: a part of them, another shape or dtype.
_HANDING_ON = ("expand_dims", "reshape", "cast", "squeeze", "tile", "broadcast_to", "convert_to_tensor")
_JOINING = ("stack", "concat", "concatenate")
_COUNTING = ("range", "arange")
_COMPARING = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")
_COMPARISONS = ("<", "<=", ">", ">=", "==", "!=")
MOST_PARTS = 50  # of a product of sizes, which somebody has written
_Sizes = dict[tuple[Callable[..., bool], int], bool]  # the answers, by question and id of the value


def is_whole(facts: SourceFacts, value: Value) -> bool:
    used = _used_as_whole_numbers(facts)
    return any(id(option) in used for option in options(value))


def is_counted(facts: SourceFacts, value: Value) -> bool:
    """Whether a program means whole numbers by a value, though TensorFlow would take others there: ids that it looks up
    in an Embedding, lengths that it compares with numbers of `range`."""
    if is_whole(facts, value):
        return True
    counted = _looked_up_or_compared(facts)
    return any(id(option) in counted for option in options(value))


def is_product_of_sizes(value: Value) -> bool:
    """Whether it is, cast or not, the product of several sizes of a tensor, or the number of its elements: for pictures
    more than the 65504 that float16 holds."""
    return any(_is_product_of_sizes(option, {}) for option in options(value))


def _is_product_of_sizes(value: Value, sizes: _Sizes) -> bool:
    if isinstance(value, Operation):
        return value.operator == "*" and sum(_is_size(operand, sizes) for operand in value.operands) > 1
    if not isinstance(value, Call):
        return False
    inner = value.argument(0) if is_cast(value) else None
    return function_named(value) == "size" or _is_any(inner, sizes, _is_product_of_sizes)


def _is_size(value: Value, sizes: _Sizes) -> bool:
    """Whether it is `tf.shape(x)[1]`, `x.shape[1]`, or one of these cast, or a product of them."""
    return _is_any(value, sizes, _is_one_size)


def _is_any(value: Value | None, sizes: _Sizes, question: Callable[[Value, _Sizes], bool]) -> bool:
    """Whether the question is answered with yes for the value, or for one of several that it may be; no for more than
    MOST_PARTS. Each part is asked once: forty lines of `n = n * n` have 2^40 factors."""
    for option in options(value):
        asked = question, id(option)
        if asked not in sizes and len(sizes) < MOST_PARTS:
            sizes[asked] = False  # while it is being looked at
            sizes[asked] = question(option, sizes)
        if sizes.get(asked):
            return True
    return False


def _is_one_size(value: Value, sizes: _Sizes) -> bool:
    if isinstance(value, Item):
        shapes = options(value.of)
        return any(function_named(of) == "shape" or (isinstance(of, Attribute) and of.name == "shape") for of in shapes)
    inner = value.argument(0) if isinstance(value, Call) and is_cast(value) else None
    return _is_size(inner, sizes) if inner is not None else _is_product_of_sizes(value, sizes)


@lru_cache(maxsize=1)
def _used_as_whole_numbers(facts: SourceFacts) -> frozenset[int]:
    """The ids of the values that stand in such a place: asked for one program after the other."""
    given = (_given_as_whole_numbers(call, name) for call, name in functions_called(facts) if name in PLACES)
    return frozenset(id(option) for value in given for option in options(value))


@lru_cache(maxsize=1)
def _looked_up_or_compared(facts: SourceFacts) -> frozenset[int]:
    """The ids of the values that are looked up, or compared with numbers of `range`."""
    looked_up = (
        call.argument(0, "inputs") for call in facts.object_calls if is_call_of(call.callee, "keras.layers.Embedding")
    )
    indices = (call.argument(*_LOOKUPS[name]) for call, name in functions_called(facts) if name in _LOOKUPS)
    used = {id(inner) for value in (*looked_up, *indices) if value is not None for inner in _handed_on(value)}
    for sides in _comparisons(facts):
        numbers = [list(_handed_on(side)) for side in sides]
        if any(function_named(value) in _COUNTING for side in numbers for value in side):
            used |= {id(value) for side in numbers for value in side}
    return frozenset(used)


def _comparisons(facts: SourceFacts) -> Iterator[tuple[Value, ...]]:
    """The two sides of each comparison, by an operator or a function."""
    for operation in facts.operations:
        if operation.operator in _COMPARISONS:
            yield operation.operands
    for call, name in functions_called(facts):
        if name in _COMPARING:
            yield call.args[:2]


def _handed_on(value: Value) -> Iterator[Value]:
    """A value, and what it is a part, another shape or dtype, or a row of others of."""
    waiting, seen = list(options(value)), set[int]()
    for part in waiting:  # which grows
        if id(part) in seen:
            continue
        seen.add(id(part))
        yield part
        if isinstance(part, Item):
            waiting += options(part.of)
        elif isinstance(part, Call) and function_named(part) in _HANDING_ON:
            waiting += options(part.argument(0))
        elif isinstance(part, Call) and function_named(part) in _JOINING:
            joined = part.argument(0)
            waiting += [inner for item in getattr(joined, "items", ()) for inner in options(item)]


def _given_as_whole_numbers(call: Call, name: str) -> Value | None:
    if not _is_of_tensorflow(call):
        return None
    given = call.argument(*PLACES[name])
    return given.of if isinstance(given, Attribute) and given.name == "dtype" else given  # `out_type=ids.dtype`


def _is_of_tensorflow(call: Call) -> bool:
    name = call.callee.name if isinstance(call.callee, Api) else ""
    return name.startswith("tensorflow.") and not name.startswith("tensorflow.keras.")

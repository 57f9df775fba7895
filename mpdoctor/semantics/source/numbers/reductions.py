"""Sums, norms, squares and exponentials that leave float16's range for ordinary values."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Attribute, Collection, Item, Known, Value, known, options
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.signs import is_bounded
from mpdoctor.semantics.source.numbers.value_bounds import bound_of
from mpdoctor.semantics.source.programs.losses_and_metrics import WITH_LOGITS, is_loss_function, is_loss_object

PRODUCTS = ("einsum", "matmul", "dot")
SUM, NORM, SQUARE, EXPONENTIAL, GRAM = "sum", "norm", "square", "exponential", "gram"
SUMS = ("reduce_sum", "sum")
SUMS_OF_SEGMENTS = ("segment_sum", "unsorted_segment_sum")  # over the edges of each node of a graph
NORMS = ("norm", "reduce_euclidean_norm")
REDUCING = (*SUMS, *NORMS, "reduce_mean", "mean", "reduce_max", "max", "reduce_min", "min", "reduce_logsumexp", "std")
ONE_BY_ONE = (
    *("square", "sqrt", "abs", "multiply", "divide", "log", "cast"),
    *("reshape", "expand_dims", "squeeze", "transpose", "permute_dimensions"),
    *("stop_gradient", "identity", "stack", "convert_to_tensor"),
    *("relu", "softplus", "exp", "sigmoid", "tanh", "clip_by_value", "clip", "pow", "negative"),
)
MEETING = {"maximum": slice(2), "minimum": slice(2), "where": slice(1, 3)}  # one by one as well; where numbers stand
# What these give are some of the numbers that they are given first, or all of several tensors.
PICKING = ("boolean_mask", "gather", "gather_nd", "top_k", "sort", "concat", "concatenate", "list", "tuple")
FEW = (4, 5, 6, 7)  # axes that no batch of pictures has
DEEPEST = 6  # of computations number by number
LARGEST_EXPONENT = 11.0  # exp(11.1) is infinite in float16
SQUARED = 256  # from this factor on, the square of a value of size 1 is infinite


class Reduction(NamedTuple):
    """`value` is what the event sums up, squares or takes the exponential of."""

    event: Operation | Call
    kind: str
    value: Value


def reductions(facts: SourceFacts) -> Iterator[Reduction]:
    for call, name in functions_called(facts):
        value = _first(call)
        if value is not None:
            yield from _reductions_of_call(call, name, value)
    for call in facts.calls_of("tensorflow.image.total_variation"):
        value = _first(call)
        if value is not None:
            yield Reduction(call, SUM, value)
    for operation in facts.operations:
        if operation.operator == "/":
            yield from _sigmoid(operation)
        elif operation.operator == "**":
            base, exponent = operation.operands[:2]
            if known(exponent) == 2 and _has_large_factor(base):
                yield Reduction(operation, SQUARE, base)


def _reductions_of_call(call: Call, name: str, value: Value) -> Iterator[Reduction]:
    if name in SUMS:
        yield from _reductions_of_sum(call, value)
    elif name in SUMS_OF_SEGMENTS or name == "cumsum":
        yield from _unbounded(call, value)
    elif name == "l2_loss" or (name in NORMS and _is_wide(call) and not _fits(value, squared=True)):
        yield Reduction(call, NORM, value)
    elif name == "square" and _has_large_factor(value):
        yield Reduction(call, SQUARE, value)
    elif name in ("log", "log1p"):
        yield from _softplus(call, name, value)
    elif name in PRODUCTS:
        yield from _reductions_of_product(call, name, value)


def _reductions_of_product(call: Call, name: str, value: Value) -> Iterator[Reduction]:
    from mpdoctor.semantics.source.numbers.gram_matrices import einsum_gram, is_gram_matrix  # many multiply nothing

    if name != "einsum":
        if is_gram_matrix(call):
            yield Reduction(call, GRAM, value)
    elif (gram := einsum_gram(call)) is not None:
        yield Reduction(call, GRAM, gram)
    elif (summed := _summed(call)) is not None and not _fits(summed, squared=False):
        yield Reduction(call, SUM, summed)


def _reductions_of_sum(call: Call, value: Value) -> Iterator[Reduction]:
    if any(function_named(option) == "exp" for option in options(value)):
        yield from _unbounded(call, value)
    elif _is_wide(call) and not _fits(value, squared=False) and not _is_reduced(value):
        yield Reduction(call, NORM if _is_square(value) else SUM, value)


def _first(call: Call) -> Value | None:
    return call.argument(0, "x") or call.keyword("input_tensor") or call.keyword("tensor")


def _fits(value: Value, squared: bool) -> bool:
    """Whether what is added up, here or in a norm, is known to be few and small numbers."""
    bound = bound_of(value)
    return bound is not None and bound.numbers * bound.largest ** (2 if squared else 1) <= FLOAT16_LIMIT


def _is_wide(call: Call) -> bool:
    """Whether it goes over everything, over a row that was flattened, or over at least two axes that may be those of a
    picture: two of which one is behind axis 3 are heads, levels and points of attention, which are few."""
    axis = call.argument(2 if function_named(call) == "norm" else 1, "axis")
    if axis is None or known(axis) is None:
        return not call.open
    if known(axis) in (1, -1):
        return _is_flat(_first(call))
    if not isinstance(axis, Collection) or len(axis.items) < 2:
        return False
    return len(axis.items) > 2 or not any(known(item) in FEW for item in axis.items)


def _is_flat(value: Value | None) -> bool:
    """Whether it has a row for each example, in which all axes of the example are one: reshape(x, (batch, -1))."""
    reshaped = list(_reshaped(value))
    return bool(reshaped) and all(map(_is_row_for_each_example, reshaped))


def _is_row_for_each_example(shape: Value | None) -> bool:
    """Whether the shape is `(tf.shape(x)[0], -1)`; a product in the first place makes rows of the positions, and leaves
    the channels."""
    if not isinstance(shape, Collection) or len(shape.items) != 2 or known(shape.items[1]) != -1:
        return False
    return all(isinstance(option, Item) and known(option.index) == 0 for option in options(shape.items[0]))


def _reshaped(value: Value | None, depth: int = 0) -> Iterator[Value | None]:
    """The shapes that the parts of a value are given, which was computed from them number by number."""
    for option in options(value) if depth < DEEPEST else ():
        if function_named(option) == "reshape" and isinstance(option, Call):
            yield option.argument(1, "shape") or option.keyword("newshape")
        elif not isinstance(option, Known):
            parts = _in_its_shape(option)
            yield from (shape for part in parts for shape in _reshaped(part, depth + 1)) if parts else (None,)


def _is_reduced(value: Value) -> bool:
    """Whether a value was reduced before, or holds the losses of single examples, so that it is few numbers."""
    waiting = [*options(value)]
    seen = {id(part) for part in waiting}
    for current in waiting:
        if _one_is_reduced(current):
            return True
        for part in _in_its_shape(current) or _picked_from(current):
            new = [inner for inner in options(part) if id(inner) not in seen]
            seen.update(map(id, new))
            waiting += new
    return False


def _one_is_reduced(value: Value) -> bool:
    if not isinstance(value, Call):
        return False
    if is_loss_function(value.callee) or is_loss_object(value.callee) or value.method in WITH_LOGITS:
        return True
    if function_named(value) in ("gather", "gather_nd") and value.keyword("batch_dims") is not None:
        return True  # of each example some numbers, mostly one
    return function_named(value) in REDUCING


def _in_its_shape(value: Value) -> tuple[Value, ...]:
    """The values that this one is computed from element by element, in the same shape or another."""
    if isinstance(value, Operation):
        tensors = tuple(operand for operand in value.operands if not isinstance(operand, Known))
        kept = tuple(tensor for tensor in tensors if not _is_spread(tensor)) if value.operator == "-" else ()
        return kept or tensors
    if isinstance(value, Collection):
        return value.items
    if not isinstance(value, Call) or function_named(value) not in (*ONE_BY_ONE, *MEETING):
        return ()
    met = value.arguments(MEETING.get(function_named(value), slice(1)))
    return tuple(part for part in met if not isinstance(part, Known)) or met


def _picked_from(value: Value) -> tuple[Value, ...]:
    """What a value holds some of the numbers of: `tf.nn.top_k(losses, k=8).values`, `tf.boolean_mask(losses, mask)`."""
    if isinstance(value, Item):
        return (value.of,) if function_named(value.of) in PICKING else ()
    if isinstance(value, Attribute):
        return (value.of,) if value.name in ("values", "indices") and function_named(value.of) in PICKING else ()
    return value.arguments(slice(1)) if function_named(value) in PICKING and isinstance(value, Call) else ()


def _is_spread(value: Value) -> bool:
    """Whether it is `tf.reduce_mean(x, axis, keepdims=True)` in `x - …`: what it meets keeps its shape."""
    return isinstance(value, Call) and function_named(value) in REDUCING and known(value.keyword("keepdims")) is True


def _is_square(value: Value) -> bool:
    if isinstance(value, Operation):
        if value.operator == "**":
            return bool(known(value.operands[1]) == 2)
        return value.operator == "*" and len(value.operands) == 2 and value.operands[0] is value.operands[1]
    return function_named(value) in ("square", "squared_difference")


def _has_large_factor(value: Value) -> bool:
    """Whether it is `x * 300.0`, whatever x is."""
    if not isinstance(value, Operation) or value.operator != "*":
        return False
    numbers = [max(map(abs, numbers_from_value(operand)), default=0) for operand in value.operands]
    return max(numbers) >= SQUARED and 0 in numbers


def _unbounded(event: Operation | Call, value: Value) -> Iterator[Reduction]:
    """A softmax by hand: the sum of exponentials of values that nothing bounds."""
    for option in options(value):
        inner = _first(option) if isinstance(option, Call) and function_named(option) == "exp" else None
        if inner is not None and not is_bounded(inner) and not _is_small(inner):
            yield Reduction(event, EXPONENTIAL, inner)


def _is_small(exponent: Value) -> bool:
    from mpdoctor.semantics.source.numbers.value_ranges import range_of  # few exponentials come here

    return range_of(exponent)[1] <= LARGEST_EXPONENT


def _softplus(call: Call, name: str, value: Value) -> Iterator[Reduction]:
    """log(1 + exp(x)) and log1p(exp(x))."""
    if name == "log1p":
        yield from _unbounded(call, value)
    for operand in _beside_one(value):
        yield from _unbounded(call, operand)


def _beside_one(value: Value) -> Iterator[Value]:
    """The operands of `1 + x`."""
    sums = (option for option in options(value) if isinstance(option, Operation) and option.operator == "+")
    yield from (part for each in sums if any(known(o) == 1 for o in each.operands) for part in each.operands)


def _sigmoid(operation: Operation) -> Iterator[Reduction]:
    """exp(x) / (1 + exp(x)), which is NaN where exp is infinite."""
    if any(function_named(o) == "exp" for part in _beside_one(operation.operands[1]) for o in options(part)):
        yield from _unbounded(operation, operation.operands[0])


def _summed(call: Call) -> Value | None:
    """x in einsum("bhwc->bc", x), where at least two axes are added up."""
    equation, factors = known(call.argument(0)), call.arguments(slice(1, None))
    if not isinstance(equation, str) or len(factors) != 1:
        return None
    given, arrow, result = equation.replace(" ", "").partition("->")
    letters = set(given) - set(".")
    return factors[0] if arrow and len(letters - set(result)) >= 2 else None

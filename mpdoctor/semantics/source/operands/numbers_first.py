"""Calls of TensorFlow's functions that take Python numbers before a 16-bit tensor: a graph makes them float32."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.array_dtypes import dtype_of_array, is_array
from mpdoctor.program.dtypes.python_numbers import kind_of_number, leaves
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.program.values import Api, Collection, Value, is_api, known, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.operands.mixed_operands import is_half, may_raise

# Positions of the operand that decides, and of the tensor that meets it: a graph converts the former first, without
# asking the other one. Eagerly most of them take the tensor's dtype. `divide` and `scalar_mul` do so in a graph as well
# (TensorFlow 2.4, 2.10, 2.15 and 2.21).
_Places = tuple[tuple[int, int], ...]
FIRST: dict[str, _Places] = {
    f"tensorflow.{name}": places
    for places, names in (
        (
            ((0, 1),),
            "maximum minimum add subtract multiply pow xlogy xdivy squared_difference floordiv floormod mod truediv "
            "multiply_no_nan atan2 equal not_equal greater greater_equal less less_equal",
        ),
        (((1, 2),), "where"),
        (((0, 1),), "matmul linspace"),
        (((0, 1), (1, 0)), "tensordot matvec"),
    )
    for name in names.split()
}
FIRST |= {
    f"keras.backend.{name}": ((0, 1),)
    for name in ["pow", "maximum", "minimum", "equal", "not_equal", "greater", "greater_equal", "less", "less_equal"]
}
# These convert each operand by itself, eagerly as well (TensorFlow 2.4, 2.15 and 2.21).
ALWAYS = frozenset(("matmul", "tensordot", "matvec", "linspace"))
COMMUTING = ("maximum", "minimum", "add", "multiply", "equal", "not_equal", "squared_difference")
EAGERLY = (
    "tensorflow.config.run_functions_eagerly",
    "tensorflow.config.experimental_run_functions_eagerly",
)
GRAPHS = ("keras.Input", "keras.Sequential", "tensorflow.function")
FITTING = ("fit", "fit_generator", "train_on_batch")


class NumberFirst(NamedTuple):
    """A call with a float, a list of floats or a float32 array before a tensor, and the position of that. In a graph it
    raises if the tensor is 16-bit."""

    call: Call
    number: Value
    tensor: Value
    place: int


@lru_cache(maxsize=1)
def numbers_before_tensors(facts: SourceFacts) -> tuple[NumberFirst, ...]:
    """The calls with a float before a tensor of any dtype; none where the program runs no graphs. Cached for one
    program after the other: three rules ask."""
    met = [number for call in facts.library_calls for number in _numbers_first(call)]
    if met and runs_eagerly(facts):
        return tuple(number for number in met if number.call.method in ALWAYS)
    return tuple(met)


def _numbers_first(call: Call) -> Iterator[NumberFirst]:
    """Where a call of one of these functions is given a Python float, a list of them, or a float32 array for an operand
    that decides. An array of float64 raises beside a float32 tensor as well."""
    if not isinstance(call.callee, Api) or call.open:
        return
    for place, other in FIRST.get(public_name(call.callee.name), ()):
        number, tensor = call.argument(place), call.argument(other)
        given = options(number)
        if number is None or tensor is None or not given:
            continue
        if all(_is_of_floats(option) or _is_float32_array(option) for option in given):
            yield NumberFirst(call, number, tensor, place)


def numbers_before_half(facts: SourceFacts) -> Iterator[NumberFirst]:
    """The calls in a layer's `call()` whose tensor is 16-bit."""
    for met in numbers_before_tensors(facts):
        context = met.call.context
        raises = not asks_for_dtype(context) and may_raise(facts, (met.call, (met.tensor,)))
        if raises and is_half(facts, met.tensor, context):
            yield met


def _is_of_floats(value: Value) -> bool:
    numbers = leaves(value) if isinstance(value, Collection) else (value,)
    return bool(numbers) and all(kind_of_number(number) == "float" for number in numbers)


def _is_float32_array(value: Value) -> bool:
    return is_array(value) and dtype_of_array(value, dtype_named) == "float32"


def runs_eagerly(facts: SourceFacts) -> bool:
    """Whether the program runs its layers without a graph, or may do so: in a loop of its own that nothing compiles."""
    if any(True for _ in facts.calls_of(*EAGERLY)):
        return True
    if any(known(call.keyword("run_eagerly")) for call in facts.method_calls("compile")):
        return True
    has_loop = any(True for _ in facts.calls_of("tensorflow.GradientTape"))
    return has_loop and not _builds_graphs(facts)


def _builds_graphs(facts: SourceFacts) -> bool:
    """Whether it shows a graph: a functional model, a fit() or a function that TensorFlow compiles."""
    shown = (*facts.calls_of(*GRAPHS), *facts.method_calls(*FITTING))
    functions = {id(call.context.function): call.context.function for call in facts.calls}.values()
    return bool(shown) or any(is_compiled(function) for function in functions if function is not None)


def is_compiled(function: FunctionFacts) -> bool:
    """Whether `tf.function` decorates it."""
    made_by = (decorator.callee if isinstance(decorator, Call) else decorator for decorator in function.decorators)
    return any(is_api(decorator, "tensorflow.function") for decorator in made_by)

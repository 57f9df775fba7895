"""Calls of TensorFlow's functions that take a Python number before a 16-bit tensor: a graph makes it float32."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.python_numbers import kind_of_number
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, is_api, known, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.mixed_operands import is_half, may_raise

# Position of the operand that decides: a graph converts it first, without asking the other one. Eagerly most of them
# take the tensor's dtype. `divide` and `scalar_mul` do so in a graph as well (TensorFlow 2.4, 2.10, 2.15 and 2.21).
FIRST = {
    f"tensorflow.{name}": place
    for place, names in (
        (
            0,
            "maximum minimum add subtract multiply pow xlogy xdivy squared_difference floordiv floormod mod truediv "
            "multiply_no_nan atan2 equal not_equal greater greater_equal less less_equal",
        ),
        (1, "where"),
    )
    for name in names.split()
} | {"keras.backend.maximum": 0, "keras.backend.minimum": 0}
COMMUTING = ("maximum", "minimum", "add", "multiply", "equal", "not_equal", "squared_difference")
EAGERLY = (
    "tensorflow.config.run_functions_eagerly",
    "tensorflow.config.experimental_run_functions_eagerly",
)
GRAPHS = ("keras.Input", "keras.Sequential", "tensorflow.function")
FITTING = ("fit", "fit_generator", "train_on_batch")


def numbers_before_half(facts: SourceFacts) -> Iterator[tuple[Call, Value, Value]]:
    """(call, number, tensor) of each that raises in a graph: a float stands first, and a 16-bit tensor behind it."""
    calls = [call for call in facts.library_calls if _takes_float_first(call)]
    if not calls or _runs_eagerly(facts):
        return
    for call in calls:
        place = _place(call)
        number, tensor = call.argument(place), call.argument(place + 1)
        if number is None or tensor is None or call.open or asks_for_dtype(call.context):
            continue
        if may_raise(facts, (call, (tensor,))) and is_half(facts, tensor, call.context):
            yield call, number, tensor


def _place(call: Call) -> int:
    return FIRST[public_name(call.callee.name)] if isinstance(call.callee, Api) else 0


def _takes_float_first(call: Call) -> bool:
    """Whether it is one of these functions, and is given a Python float for the operand that decides."""
    if not isinstance(call.callee, Api) or public_name(call.callee.name) not in FIRST:
        return False
    given = options(call.argument(_place(call)))
    return bool(given) and all(kind_of_number(option) == "float" for option in given)


def _runs_eagerly(facts: SourceFacts) -> bool:
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
    decorators = (decorator for function in functions if function is not None for decorator in function.decorators)
    compiled = (decorator.callee if isinstance(decorator, Call) else decorator for decorator in decorators)
    return bool(shown) or any(is_api(decorator, "tensorflow.function") for decorator in compiled)

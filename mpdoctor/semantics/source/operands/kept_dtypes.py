"""Whether functions of the user's certainly return the dtype of what they are given."""

from __future__ import annotations

from collections.abc import Sequence

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.array_functions import BY_VALUE, FLOAT64, JOINING_PARTS, LIKE
from mpdoctor.knowledge.dtypes.array_functions import KEEPING as KEEPING_ARRAYS
from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.library_results import tensors_met
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, options, walk
from mpdoctor.semantics.source.layers.call_dtypes import runs_in_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes

LONGEST = 40


def keeps_dtype(facts: SourceFacts, function: Value | None, arrays: bool) -> bool:
    """Whether a function certainly returns the dtype of its input. `arrays`: of numpy too; what `tf.py_function` is
    given back as an array is cast to the dtype declared, without a word."""
    if isinstance(function, Api):
        place, _, name = function.name.rpartition(".")
        return arrays and place == "numpy" and name in KEEPING_ARRAYS
    if not isinstance(function, Defined) or not isinstance(function.of, FunctionFacts):
        return False
    returned = [option for event in facts.returns_of(function.of) for option in options(event.value)]
    return bool(returned) and all(is_passed_on(value, function.of, arrays, 0) for value in returned)


def half_dtype_given_back(
    facts: SourceFacts, function: Value | None, given: Sequence[Value | None], context: Context, arrays: bool
) -> str | None:
    """The 16-bit dtype of what a function of Python gives back for tensors that are given where an event stands, as the
    layer there computes in it, or a loss is given it; None where that is not certain. `arrays` as in `keeps_dtype`."""
    if not keeps_dtype(facts, function, arrays):
        return None
    tensors = given
    if isinstance(function, Defined) and isinstance(function.of, FunctionFacts):
        defined = function.of
        returned = [option for event in facts.returns_of(defined) for option in options(event.value)]
        behind = [part for value in returned for part in walk(value) if isinstance(part, Parameter)]
        places = {part.index - defined.first_given for part in behind if part.function is defined}
        is_each_known = len(given) == len(defined.parameters) - defined.first_given > 1
        tensors = [given[place] for place in sorted(places) if place >= 0] if is_each_known else given
    dtypes = {_half_dtype(facts, tensor, context) for tensor in tensors}
    return dtypes.pop() if len(dtypes) == 1 else None


def _half_dtype(facts: SourceFacts, tensor: Value | None, context: Context) -> str | None:
    if tensor is None:
        return None
    of_layer = half_dtypes(facts, tensor, context) if runs_in_layer(facts, context) else ()
    return next(iter(of_layer), None) or precision_of(facts).half(tensor, context)


@asked_once
def is_passed_on(value: Value, function: FunctionFacts, arrays: bool, depth: int) -> bool:
    """Whether a value certainly has the dtype of the input of this function that it is computed in; `arrays` as in
    `keeps_dtype`."""
    if depth > LONGEST:
        return False
    if isinstance(value, Parameter):
        return value.function is function
    parts = _parts_with_its_dtype(value, arrays)
    return bool(parts) and all(is_passed_on(part, function, arrays, depth + 1) for part in parts)


def _parts_with_its_dtype(value: Value, arrays: bool) -> tuple[Value, ...]:
    """The values that decide a value's dtype; () where that is not certain."""
    if isinstance(value, Item):
        return (value.of,)
    if isinstance(value, Operation):
        return tuple(operand for operand in value.operands if not isinstance(operand, Known))
    if isinstance(value, Collection):
        return value.items
    return _parts_of_call(value) if isinstance(value, Call) and (arrays or not _makes_array(value)) else ()


def _parts_of_call(call: Call) -> tuple[Value, ...]:
    given = _dtype_given(call)
    if given is not None:
        return (given.of,) if isinstance(given, Attribute) and given.name == "dtype" else ()
    if isinstance(call.callee, Attribute):  # a method of an array
        return (call.callee.of,) if call.callee.name in KEEPING_ARRAYS else ()
    return _arguments_with_its_dtype(call)


def _makes_array(call: Call) -> bool:
    return isinstance(call.callee, Api) and call.callee.root == "numpy"


def _dtype_given(call: Call) -> Value | None:
    """The dtype that a call is given for its result: in `.astype(x.dtype)`, `np.zeros(n, x.dtype)`, `tf.cast(…)`."""
    if isinstance(call.callee, Attribute):
        return call.argument(0, "dtype") if call.callee.name == "astype" else call.keyword("dtype")
    place, _, name = public_name(call.callee.name).rpartition(".") if isinstance(call.callee, Api) else ("", "", "")
    position = None
    if place == "numpy":
        position = {**FLOAT64, **LIKE}.get(name, BY_VALUE.get(name, (None,))[0])
    elif is_cast(call):
        position = 1
    return call.keyword("dtype") if position is None else call.argument(position, "dtype")


def _arguments_with_its_dtype(call: Call) -> tuple[Value, ...]:
    if not isinstance(call.callee, Api):
        return ()
    met = tensors_met(call)
    if met:
        return tuple(tensor for tensor in met if not isinstance(tensor, Known))
    place, _, name = public_name(call.callee.name).rpartition(".")
    keeping = (*KEEPING_ARRAYS, *JOINING_PARTS, *LIKE) if place == "numpy" else KEEPING
    return call.arguments(slice(1)) if name in keeping else ()

"""A tensor, a TensorArray or the result of a Python function is declared float32 but gets the layer's 16-bit values.

## Why it matters
TensorFlow refuses values that differ from the declared dtype: `TensorArray dtype is float32 but Op is trying to
write dtype float16`, and in a graph `0-th value returned by … is half, but expects float` (Keras 3.15, tf_keras
2.21, TensorFlow 2.15 and 2.10). `tf.random.normal(shape, mean=x)` draws in float32 unless it is told a dtype, and
raises for a float16 mean; `tf.convert_to_tensor(x, tf.float32)` does not cast (TensorFlow 2.4, 2.15 and 2.21), a
`tf.function` with an `input_signature` of float32 lets in nothing else (2.4 to 2.21), and a `tf.py_function` of
`Tout=tf.float32` raises for a tensor of float16 that its function gives back, in a loss too, and eagerly (2.4 to
2.21). A TensorArray of float16 refuses a float32 tensor, such as a float32 layer's output, as well (2.4 to 2.21).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Loop(keras.layers.Layer):
    def call(self, inputs):
        steps = tf.TensorArray(tf.float32, size=4)
        for i in tf.range(4):
            steps = steps.write(i, inputs * 0.5)
        return steps.stack()
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Loop(keras.layers.Layer):
    def call(self, inputs):
        steps = tf.TensorArray(inputs.dtype, size=4)
        for i in tf.range(4):
            steps = steps.write(i, inputs * 0.5)
        return steps.stack()
```

## Versions
All. Not reported: a numpy array that the function of `tf.py_function` gives back; TensorFlow casts it to the
declared dtype.

## Where users met it
tensorflow/tensorflow#34006.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.finding import AlsoSeen, Finding, Fix, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Collection, Item, Value, walk
from mpdoctor.semantics.live.errors.dtype_errors import array_of_another_dtype
from mpdoctor.semantics.live.errors.error_texts import evidence_of, place_of_failure
from mpdoctor.semantics.live.refusing_layers import refuses_half
from mpdoctor.semantics.source.edits.expressions import argument_replaced, safe_fix
from mpdoctor.semantics.source.edits.given_dtypes import edit_of_draw
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, computes_in_half, runs_in_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.layers.tensor_arrays import writes_into_arrays
from mpdoctor.semantics.source.operands.declared_dtypes import DeclaredFloat32, declared_in_float32, dtypes_let_in
from mpdoctor.semantics.source.operands.float32_meetings import is_wide
from mpdoctor.semantics.source.operands.kept_dtypes import half_dtype_given_back, is_passed_on
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes
from mpdoctor.semantics.source.programs.running_functions import surrounding
from mpdoctor.semantics.source.texts.written import callee_text
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
CONFIRMED_LIVE = True  # a gradient raises at the line that asks for it
EXPLAINS = {"MP202": "line"}
ONLY_IN_HALF = True
MAP = "tensorflow.map_fn"
CALLING = {
    "tensorflow.numpy_function": "Tout",
    "tensorflow.py_function": "Tout",
    "tensorflow.map_fn": "fn_output_signature",
}
RAISING_EAGERLY = ("write", "scatter")
HELP = "Declare the dtype of the values, `{}`, or cast the values to float32 first."
HELP_FOR_FLOAT32 = (
    "Declare the dtype of the values, `tf.float32`, or cast them first: `tf.cast(…, self.compute_dtype)`."
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    yield from _arrays(facts)
    for declared in declared_in_float32(facts):
        yield _of_declared(facts, declared)
    for call in facts.calls_of(*CALLING):
        if not asks_for_dtype(call.context):
            yield from _function(facts, call)
    yield from _signatures(facts)


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    half = array_of_another_dtype(failure)
    if half is not None and not refuses_half(failure):  # MP219
        place = place_of_failure(failure)
        yield Finding(
            f"{f'In {place} a' if place else 'A'} TensorArray of float32 is given a {half} tensor.",
            "Make it in the dtype of the values: `tf.TensorArray(self.compute_dtype, …)`, or `values.dtype` where they "
            "are at hand.",
            failure.location,
            layer=failure.layer,
            evidence=evidence_of(failure),
        )


def _arrays(facts: SourceFacts) -> Iterator[Finding]:
    for write, array, value in writes_into_arrays(facts):
        declared_as = dtype_named(array.argument(0, "dtype"), facts.keras)
        dtype = next(iter(half_dtypes(facts, value, write.context)), None)
        place = write.location
        where = f" ({place_of(facts, place, array.location)})" if place.line != array.location.line else ""
        raises = f"{where}: that raises{'' if write.method in RAISING_EAGERLY else ' in a graph'}."
        if _is_declared_in_half(facts, array, declared_as) and is_wide(facts, value, write.context):
            given, fix, help_text = "A float32", None, HELP_FOR_FLOAT32
            named = declared_as if declared_as in HALF else "the layer's 16 bits"
            message = f"This TensorArray is declared in {named}, but a float32 tensor is written into it{raises}"
        elif declared_as == "float32" and dtype is not None:
            declared = _dtype_of_values(array, value)
            given, fix = "A 16-bit", _fix(facts, array, "dtype", 0, declared)
            help_text = HELP.format(declared or "values.dtype")
            message = f"This TensorArray is float32, but {dtype} values of the layer are written into it{raises}"
        else:
            continue
        seen = AlsoSeen("MP214", "source", f"{given} value is written here.", place.path, place.line)
        yield Finding(message, help_text, array.location, fix=fix, also_seen=(seen,))


def _is_declared_in_half(facts: SourceFacts, array: Call, dtype: str | None) -> bool:
    if dtype != AUTOCAST:
        return dtype in HALF
    named = array.argument(0, "dtype")
    return named is not None and computes_in_half(facts, named, array.context)


def _of_declared(facts: SourceFacts, declared: DeclaredFloat32) -> Finding:
    """The finding for a function that is told float32, or gives it, and does not cast the 16-bit tensor it is given."""
    at, dtype = declared.call.location, declared.dtype
    function = f"`{callee_text(facts, at) or declared.call.method}` gives float32 and casts nothing, and"
    if declared.converts:
        given = f"`{declared.text}`" if declared.text else "what it is given"
        message = f"{function} {given} is {dtype} here: this line raises."
        return Finding(message, f"Cast it: `tf.cast({declared.text or '…'}, tf.float32)`.", at)
    draw = f"Draw in its dtype: `dtype={declared.dtype_to_give}`"
    message = f"{function} its `{declared.name}` is {dtype} here: this line raises."
    return Finding(message, f"{draw}.", at, fix=safe_fix(draw, edit_of_draw(facts, declared)))


def _signatures(facts: SourceFacts) -> Iterator[Finding]:
    """The findings for float16 tensors that a function with a signature of float32 is given: TensorFlow casts none."""
    decorated: dict[int, tuple[str | None, ...]] = {}
    for function in facts.functions:
        for let_in in (dtypes_let_in(decorator, facts.keras) for decorator in function.decorators):
            if function.owner is not None and function.owner.is_layer and function.name == "call":
                yield from _of_signature_of_call(facts, function, let_in)
            elif "float32" in let_in:
                decorated[id(function)] = let_in
    for call in facts.calls:
        made = call.callee  # `tf.function(function, …)`, or the function itself
        called = made.argument(0) if isinstance(made, Call) else made
        if not isinstance(called, Defined) or not isinstance(called.of, FunctionFacts):
            continue
        let_in = decorated.get(id(called.of), ()) if called is made else dtypes_let_in(made, facts.keras)
        if "float32" in let_in and not asks_for_dtype(call.context) and not call.context.guarded:
            yield from _given_to_signature(facts, call, called.of, let_in)


def _given_to_signature(
    facts: SourceFacts, call: Call, function: FunctionFacts, let_in: tuple[str | None, ...]
) -> Iterator[Finding]:
    names = function.parameters[function.first_given :]
    for position, (name, dtype) in enumerate(zip(names, let_in, strict=False)):
        given = call.argument(position, name) if dtype == "float32" else None
        half = _half_dtype_given(facts, given, call) if given is not None else None
        if half is not None:
            yield Finding(
                f"The `input_signature` of `{function.name}` lets in float32 as `{name}`, and this is {half}: "
                "TensorFlow casts nothing, and this line raises.",
                f"Declare `tf.{half}` there, or cast the value: `tf.cast(…, tf.float32)`.",
                call.location,
            )


def _half_dtype_given(facts: SourceFacts, given: Value, call: Call) -> str | None:
    if is_array(given) or any(isinstance(part, Call) and part.method == "astype" for part in walk(given)):
        return None  # TensorFlow converts what NumPy holds
    of_models = precision_of(facts).half(given, call.context)
    return of_models if of_models is not None else next(iter(half_dtypes(facts, given, call.context)), None)


def _of_signature_of_call(facts: SourceFacts, call: FunctionFacts, let_in: tuple[str | None, ...]) -> Iterator[Finding]:
    """The finding for a layer's `call()`, whose first input Keras casts before."""
    events: tuple[Call | Operation, ...] = (*facts.calls, *facts.operations)
    inputs = (
        (part, event.context)
        for event in events
        if any(outer is call for outer in surrounding(facts, event.context.function))
        for part in walk(event)
        if isinstance(part, Parameter) and part.function is call and part.index == call.first_given
    )
    given = next(inputs, None) if let_in[:1] == ("float32",) else None
    half = next(iter(half_dtypes(facts, *given)), None) if given is not None else None
    if half is not None:
        yield Finding(
            f"The `input_signature` lets in float32, and Keras casts the layer's input to {half} before: calling the "
            "layer raises.",
            f"Declare `tf.{half}`, or leave out the `input_signature`.",
            call.location,
        )


def _function(facts: SourceFacts, call: Call) -> Iterator[Finding]:
    assert isinstance(call.callee, Api)
    maps, arrays = call.callee.is_(MAP), call.callee.is_("tensorflow.numpy_function")
    declared = _items(_declared(call))
    if len(declared) != 1 or dtype_named(declared[0], facts.keras) != "float32":
        return
    if arrays and not runs_in_layer(facts, call.context):
        return  # outside of a graph it declares nothing
    given, function = _items(call.argument(1, "elems" if maps else "inp")), call.argument(0, "fn" if maps else "func")
    half = half_dtype_given_back(facts, function, given, call.context, arrays)
    if half is not None:
        method = _method_around(call)
        dtype = f"{method.parameters[1]}.dtype" if method is not None else None
        yield Finding(
            f"`{callee_text(facts, call.location) or call.method}` declares that its function returns float32, but the "
            f"function returns {half}, the dtype of its input: this raises{' in a graph' if arrays else ''}.",
            HELP.format(dtype or "inputs.dtype"),
            call.location,
            fix=_fix(facts, call, CALLING[public_name(call.callee.name)], None if maps else 2, dtype),
        )


def _method_around(made: Call) -> FunctionFacts | None:
    """The `call` of a layer in which this is made, None where that has no input."""
    function = made.context.function
    while function is not None and function.name != "call":
        function = function.enclosing
    return function if function is not None and len(function.parameters) > 1 else None


def _dtype_of_values(array: Call, value: Value) -> str | None:
    """What names the dtype of a written value where the array is made: that of the method's input where this is a
    tensor which the value was computed from step by step; else that of the layer. An input that is taken apart may be a
    tuple, and the one of an Embedding is of int32."""
    method = _method_around(array)
    if method is None:
        return None
    owner, given = method.parameters[:2]
    parts = tuple(walk(value))
    is_input = any(isinstance(part, Parameter) and part.name == given for part in parts)
    is_whole = not any(isinstance(part, Item) for part in parts)
    arrays = False
    if is_input and is_whole and is_passed_on(value, method, arrays, 0):
        return f"{given}.dtype"
    return f"{owner}.compute_dtype"


def _fix(facts: SourceFacts, made: Call, name: str, position: int | None, dtype: str | None) -> Fix | None:
    """The edit that declares this dtype."""
    if dtype is None:
        return None
    return safe_fix(f"Declare `{dtype}`", argument_replaced(facts, made.location, name, position, dtype))


def _declared(call: Call) -> Value | None:
    """The declared dtype, or dtypes, of the result."""
    assert isinstance(call.callee, Api)
    named = call.keyword(CALLING[public_name(call.callee.name)])
    return named or (call.keyword("dtype") if call.callee.is_(MAP) else call.argument(2))


def _items(value: Value | None) -> tuple[Value | None, ...]:
    return value.items if isinstance(value, Collection) else (value,)

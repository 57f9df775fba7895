"""`call()` passes the layer's 16-bit input to an operation that has no 16-bit kernel.

## Why it matters
The line works under float32 and raises under mixed precision: `RFFT requires tf.float32 or tf.float64 inputs`,
`The real and imag components have incorrect types: float16 float16`, `Could not find device for node: Svd`, and, in a
graph, `Unsupported dtype19 for Range` where positions are counted in float16. Tried in TensorFlow 2.10, 2.15 and
2.21, with Keras 3.15 and tf_keras. (2.21 counts in float16 where the length is not known before the step runs, and
so nothing is said of that in Keras 3.) The decoders of CTC and `tf.linalg.tridiagonal_solve` refuse both 16-bit
dtypes, in a metric of the training step as well. `tf.image.crop_and_resize` takes a float16 image, but its boxes in
float32 alone. Some image operations have a float16 kernel on a GPU and none on a CPU; for those the finding is a
warning. `tf.linalg.qr` and `tf.math.digamma` compute in float16, but their gradients do not, and the first training
step raises (tried in 2.15 and 2.21 on a CPU; 2.21 registers no such kernel for a GPU either).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Spectrum(keras.layers.Layer):
    def call(self, inputs):
        return tf.abs(tf.signal.rfft(inputs))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Spectrum(keras.layers.Layer):
    def call(self, inputs):
        return tf.abs(tf.signal.rfft(tf.cast(inputs, tf.float32)))
```

## Versions
All. QR decomposition and matrix inversion lack only bfloat16.

## Where users met it
keras-team/keras-cv#967, keras-team/keras#16927, tensorflow/tensorflow#31536, tensorflow/tensorflow#50282.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import cache, partial

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Edit, Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.missing_kernels import (
    GRADIENT_WITHOUT_HALF,
    ON_GPU_ONLY,
    RANGES,
    SPARSE_WITHOUT_HALF,
    WITHOUT_HALF,
    makes_sparse,
    operation_without_kernel,
)
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, walk
from mpdoctor.semantics.live.refusing_layers import refuses_half
from mpdoctor.semantics.source.edits.casts import NAMES_OF_FIRST, cast, cast_argument
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.edits.uses import meets_others
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, computes_in_half, runs_in_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.differentiated_values import is_stopped_behind
from mpdoctor.semantics.source.numbers.tensor_shapes import SHAPES, sizes_named
from mpdoctor.semantics.source.numbers.whole_numbers import is_counted
from mpdoctor.semantics.source.operands.mixed_operands import half_dtypes, origin
from mpdoctor.semantics.source.operands.refused_arguments import RefusedArgument, refused_argument
from mpdoctor.semantics.source.texts.written import argument_at
from mpdoctor.semantics.wording import expression_at, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
ONLY_IN_HALF = True
LIBRARIES = ("tensorflow.", "keras.ops.", "keras.backend.")
TRAINING = ("compile", "fit", "train_on_batch", "apply_gradients")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    if any(isinstance(c.callee, Api) and c.callee.root == "tensorflow_probability" for c in facts.library_calls):
        from mpdoctor.semantics.source.operands.distribution_meetings import refused_samples  # few programs have any

        yield from (Finding(*refused) for refused in refused_samples(facts))
    for call in facts.library_calls:
        if not isinstance(call.callee, Api) or not call.callee.name.startswith(LIBRARIES):
            continue
        name = _short_name(call.callee.name)
        lacking = WITHOUT_HALF.get(name, frozenset(("float16",)) if name in ON_GPU_ONLY else None)
        if name in RANGES:
            yield from _range(facts, call)
        elif (refused := refused_argument(facts, call, name)) is not None:
            yield _of_argument(facts, call, refused)
        elif name in SPARSE_WITHOUT_HALF:
            yield from _of_sparse(facts, call)
        elif lacking is not None and not asks_for_dtype(call.context):
            given = _input_dtypes(facts, call) if runs_in_layer(facts, call.context) else ()
            dtype = next((input_dtype for input_dtype in given if input_dtype in lacking), None)
            if dtype is not None:
                yield _finding(facts, call, name, dtype)
            elif name not in ON_GPU_ONLY:
                yield from _of_prediction(facts, call, lacking)
        yield from _gradient(facts, call, GRADIENT_WITHOUT_HALF.get(name, frozenset()))


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    missing = operation_without_kernel(failure.said_by_library)
    if missing is not None and not refuses_half(failure):  # MP219
        device = "" if missing.anywhere else " on this device"
        where = f" (in layer `{failure.layer}`)" if failure.layer else ""
        yield Finding(
            f"{missing.operation} does not take 16-bit numbers{device}{where}: this line raised.",
            "Cast its input to float32 and the result back"
            + (f', or give `{failure.layer}` `dtype="float32"`.' if failure.layer else "."),
            failure.location,
            layer=failure.layer,
            evidence={"exception": failure.exception, "error": failure.message},
        )


def _finding(facts: SourceFacts, call: Call, name: str, dtype: str) -> Finding:
    if name in ON_GPU_ONLY:
        return Finding(
            f"`{call.method}` has no {dtype} kernel on a CPU, and the layer's input is {dtype}: on a CPU this line "
            "raises.",
            f"Cast first, `{call.method}(tf.cast(…, tf.float32), …)`, and cast the result back to the input's dtype.",
            call.location,
            severity=Severity.WARNING,
        )
    return _cast_first(
        facts,
        call,
        f"`{call.method}` does not take {dtype}, and the layer's {_kind_of_first(call)} is {dtype} under the mixed "
        "policy: this line raises.",
    )


def _of_argument(facts: SourceFacts, call: Call, refused: RefusedArgument) -> Finding:
    given = f"`{refused.text}`, which is {refused.dtype} under the mixed policy"
    on_cpu = refused.dtype_to_give == "bool"
    edits = cast(facts, refused.place, refused.dtype_to_give) if refused.place else None
    return Finding(
        f"`{call.method}` looks for what is not 0 in {given}: a CPU has no kernel for that, and this line raises there."
        if on_cpu
        else f"`{call.method}` takes no 16 bits as its `{refused.name}`, and gets {given}: this line raises.",
        f"Cast it: `tf.cast({refused.text}, tf.{refused.dtype_to_give})`.",
        call.location,
        severity=Severity.WARNING if on_cpu else None,
        fix=safe_fix("Cast the argument", edits),
    )


def _of_sparse(facts: SourceFacts, call: Call) -> Iterator[Finding]:
    """The finding where two tensors, both of them made sparse, are added in 16 bits."""
    given = call.arguments(slice(2)) if runs_in_layer(facts, call.context) else ()
    if len(given) == 2 and all(map(_is_sparse, given)) and not asks_for_dtype(call.context):
        dtype, *_ = [*half_dtypes(facts, given[0], call.context), ""]
        if dtype in half_dtypes(facts, given[1], call.context):
            words = f"`tf.sparse.add` adds no two sparse tensors in {dtype}, which these are: this line raises."
            yield _cast_first(facts, call, words, "tf.sparse.")


def _is_sparse(tensor: Value) -> bool:
    """Whether it is made by a function that gives sparse tensors alone."""
    return isinstance(tensor, Call) and isinstance(tensor.callee, Api) and makes_sparse(_short_name(tensor.callee.name))


def _of_prediction(facts: SourceFacts, call: Call, lacking: frozenset[str]) -> Iterator[Finding]:
    """The finding where a function outside of the layers is given what a model answers."""
    precision = precision_of(facts)
    dtype = precision.half(_first_given(call), call.context)
    if dtype in lacking and not precision.runs_in_call(call.context) and not call.context.guarded:
        yield _cast_first(
            facts,
            call,
            f"`{call.method}` does not take {dtype}, the dtype of the model's output under the mixed policy: this line "
            "raises.",
        )


def _cast_first(facts: SourceFacts, call: Call, message: str, module: str = "") -> Finding:
    """A finding whose remedy is to cast what the operation is given to float32."""
    place = argument_at(facts, call.location, 0, *NAMES_OF_FIRST)
    text = "" if place is None else text_at(facts, place)
    cast = f"tf.cast({text or '…'}, tf.float32)"
    has_another = any(half_dtypes(facts, argument, call.context) for argument in call.arguments(slice(1, None)))
    which, more = ("both ", ", …") if has_another else ("", "")
    return Finding(
        message,
        f"Cast {which}first: `{module}{call.method}({cast}{more})`.",
        call.location,
        fix=None if meets_others(facts, call) else safe_fix("Cast first", _each_cast(facts, call)),
    )


def _kind_of_first(call: Call) -> str:
    """ "weight" if the first argument is a weight of the layer, else "input"."""
    first = call.argument(0)
    return "weight" if first is not None and is_weight(origin(first)) else "input"


def _each_cast(facts: SourceFacts, call: Call) -> list[Edit] | None:
    """The edits that cast the first argument, and each other one that is 16-bit: `tf.complex(x, tf.zeros_like(x))`.
    None where a 16-bit one is given by its name."""
    others = [argument for name, argument in call.keywords if call.args or argument is not call.argument(0)]
    if any(half_dtypes(facts, argument, call.context) for argument in others):
        return None
    edits: list[Edit] = []
    for position, argument in enumerate(call.arguments(slice(max(1, len(call.args))))):
        if position == 0 or half_dtypes(facts, argument, call.context):
            edit = cast_argument(facts, call.location, position=position)
            if edit is None:
                return None
            edits += edit
    return edits


def _gradient(facts: SourceFacts, call: Call, lacking: frozenset[str]) -> Iterator[Finding]:
    """An operation that computes in these dtypes, but cannot be differentiated in them, in a program that trains."""
    if not lacking or not runs_in_layer(facts, call.context) or asks_for_dtype(call.context):
        return
    if next(iter(facts.method_calls(*TRAINING)), None) is None:
        return
    stopped = (other for other in facts.library_calls if other.method == "stop_gradient")
    if is_stopped_behind(facts, call) or any(other.context.function is call.context.function for other in stopped):
        return
    dtype = next((input_dtype for input_dtype in _input_dtypes(facts, call) if input_dtype in lacking), None)
    if dtype is not None:
        yield _cast_first(
            facts,
            call,
            f"The gradient of `{call.method}` does not take {dtype}, and the layer's {_kind_of_first(call)} is {dtype} "
            "under the mixed policy: the first training step raises.",
        )


def _range(facts: SourceFacts, call: Call) -> Iterator[Finding]:
    given = call.argument(3, "dtype")
    named = dtype_named(given, facts.keras)
    is_half = named == "float16"
    if named == AUTOCAST and given is not None:
        is_half = computes_in_half(facts, given, call.context, only="float16")
    if isinstance(given, Attribute) and is_counted(facts, given.of):
        return
    if facts.keras.is_keras3 and any(map(partial(_is_unknown_length, facts), call.arguments(slice(3)))):
        return  # TensorFlow 2.21 counts up to a length that it does not know while it builds the graph
    if is_half and runs_in_layer(facts, call.context) and not asks_for_dtype(call.context):
        yield Finding(
            f"`{call.method}` cannot count in float16 inside a graph, which is how Keras trains: it raises "
            "`Unsupported dtype` for its operation Range.",
            f"Count in integers and cast: `{_counted_and_cast(facts, call)}`.",
            call.location,
        )


def _is_unknown_length(facts: SourceFacts, number: Value) -> bool:
    """Whether it is computed of a tensor's shape, of which the source does not show the size."""
    lengths = [part for part in walk(number) if isinstance(part, Item) and is_call_of(part.of, *SHAPES)]
    return bool(lengths) and not all(any(sizes_named(facts, length)) for length in lengths)


def _counted_and_cast(facts: SourceFacts, call: Call) -> str:
    """`tf.cast(tf.range(…), …)`, with the names that the file has for these modules."""
    written = expression_at(facts, call.location)
    function = ast.unparse(written.func) if isinstance(written, ast.Call) else call.method
    module, _, name = function.rpartition(".")
    return f"{module if module and name == 'arange' else 'tf'}.cast({function}(…), …)"


def _input_dtypes(facts: SourceFacts, call: Call) -> tuple[str, ...]:
    given = _first_given(call)
    items = given.items if isinstance(given, Collection) else (given,)
    return tuple(dtype for item in items if item is not None for dtype in half_dtypes(facts, item, call.context))


def _first_given(call: Call) -> Value | None:
    return call.argument(0) or next((value for _, value in call.keywords), None)


@cache
def _short_name(name: str) -> str:
    name = public_name(name)
    is_in_room = name.startswith(("keras.ops.linalg.", "keras.ops.math.", "keras.ops.numpy."))
    return f"keras.ops.{name.rpartition('.')[2]}" if is_in_room else name

"""An activity_regularizer or a layer's add_loss adds a 16-bit loss, which Keras 3 refuses.

## Why it matters
Keras 3 adds these losses to its own loss, which is float32, without casting them. fit raises `Cannot convert a
list containing a tensor of dtype <dtype: 'float16'> to <dtype: 'float32'>`, whatever the loss and the last
layer (Keras 3.15, and according to its source since 3.8; mixed_bfloat16 too). Keras 3.7 and earlier cast them,
as Keras 2 does. Weight regularizers are float32 and fine.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(8, activity_regularizer="l2"),
        keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile(optimizer="adam", loss="mse")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential(
    [
        keras.Input((4,)),
        keras.layers.Dense(8, activity_regularizer="l2", dtype="float32"),
        keras.layers.Dense(1, dtype="float32"),
    ]
)
model.compile(optimizer="adam", loss="mse")
```

## Versions
Keras 3.8 and later. A model that is compiled without a loss has only what its layers add, and trains.

## Where users met it
tensorflow/tensorflow#43978 is related; for Keras 3 no report was found.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtypes_with
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Value, is_api, known, options
from mpdoctor.semantics.live.errors.dtype_errors import half_added_to_float32
from mpdoctor.semantics.live.errors.error_texts import evidence_of
from mpdoctor.semantics.source.edits.casts import cast_argument
from mpdoctor.semantics.source.edits.expressions import safe_fix, unsafe_fix
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.precision import Precision, precision_of
from mpdoctor.semantics.source.numbers.constants import numbers_from_value

SEVERITY = Severity.ERROR
FIXES = ("safe", "unsafe")
FAILS_IN = ("model", "training")
KERAS = ("3",)
CONFIRMED_LIVE = True
ONLY_IN_HALF = True
SINCE = (3, 8)
OWN_LOSSES = ("train_step", "compute_loss")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.shows_mixed_precision and not () < facts.keras.release < SINCE and _may_have_float32_loss(facts):
        yield from _added_by_regularizers(facts)
        yield from _added_by_hand(facts)


def _may_have_float32_loss(facts: SourceFacts) -> bool:
    """Whether an added loss may meet a float32 one: not where models are compiled without a loss, and Keras has nothing
    but what layers add (measured in Keras 3.15)."""
    compiling = list(facts.method_calls("compile"))
    given = [call.argument(1, "loss") for call in compiling]
    has_loss = any(loss is not None and known(loss) is not None for loss in given)
    has_own_step = any(own.find_method(name) is not None for own in facts.classes for name in OWN_LOSSES)
    return not compiling or has_loss or has_own_step or any(call.open for call in compiling)


def _added_by_regularizers(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for layer in facts.calls:
        dtype, regularizer = _dtype_and_regularizer(precision, layer)
        if dtype not in HALF or asks_for_dtype(layer.context):
            continue
        if all(_keeps_dtype(facts, option) for option in options(regularizer)):
            yield Finding(
                f"The activity regularizer adds a {dtype} loss, which Keras 3 cannot add to its own float32 loss: fit "
                "raises.",
                'Give this layer `dtype="float32"`, or regularize the weights instead (`kernel_regularizer`).',
                layer.location,
                fix=unsafe_fix('Give the layer dtype="float32"', in_float32(facts, layer)),
            )


def _added_by_hand(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for call in facts.method_calls("add_loss"):
        if not all(_is_layer(option) for option in options(call.receiver)) or asks_for_dtype(call.context):
            continue
        added = precision.half(call.argument(0, "loss"), call.context)
        if added is not None:
            yield Finding(
                f"`add_loss` gets a {added} tensor, which Keras 3 cannot add to its own float32 loss: fit raises.",
                "Cast it, `self.add_loss(tf.cast(loss, tf.float32))`, or better, compute it in float32 from the start.",
                call.location,
                fix=safe_fix("Cast the added loss to float32", cast_argument(facts, call.location)),
            )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    half = half_added_to_float32(failure) if failure.inside == "total loss" else None
    if half is not None and failure.part is None:  # an error raised inside a regularizer is MP219's
        yield Finding(
            f"A layer adds a {half} loss (`add_loss`, or an activity regularizer), which Keras 3 cannot add to its own "
            "float32 loss.",
            "Cast the added loss: `self.add_loss(tf.cast(loss, tf.float32))`. A layer with an activity regularizer "
            'needs `dtype="float32"`, or a `kernel_regularizer` instead.',
            failure.location,
            evidence=evidence_of(failure),
        )


def _dtype_and_regularizer(precision: Precision, layer: Call) -> tuple[str | None, Value | None]:
    """The output dtype of a layer that certainly has an activity regularizer, and that regularizer."""
    given = layer.keyword("activity_regularizer")
    if isinstance(layer.callee, Api) and kind_of_class(layer.callee.name) == "layer":
        if public_name(layer.callee.name) == "keras.layers.ActivityRegularization":
            given = layer.argument(0, "l1") or layer.argument(1, "l2")
            return (precision.of_layer(layer) if any(numbers_from_value(given)) else None), None
        return (precision.of_layer(layer) if _is_regularizer(given) else None), given
    own = class_of(layer)
    if own is None or not own.is_layer:
        return None, None
    given = own.base_argument("activity_regularizer")
    return (precision.of_model(layer) if _is_regularizer(given) else None), given


def _keeps_dtype(facts: SourceFacts, regularizer: Value) -> bool:
    """Whether a regularizer returns the dtype of the output it gets; a user's regularizer may cast."""
    own = class_of(regularizer)
    function = own.find_method("__call__") if own is not None else None
    if isinstance(regularizer, Defined) and isinstance(regularizer.of, FunctionFacts):
        function = regularizer.of
    if function is None:
        return True
    given = function.parameters[function.first_given :][:1]

    def told(value: Value, dtype: str | None) -> str | None:
        is_output = isinstance(value, Parameter) and value.function is function and value.name in given
        return HALF[0] if is_output else dtype

    dtype = dtypes_with(facts.keras, told)
    returned = [dtype(event.value) for event in facts.returns_of(function)]
    return bool(returned) and all(returned_dtype == HALF[0] for returned_dtype in returned)


def _is_regularizer(value: Value | None) -> bool:
    """Whether it is a name such as "l2", or an object made by a class or function; not a value that may be None."""
    return bool(options(value)) and all(
        isinstance(known(option), str) or isinstance(option, Defined) or _makes_regularizer(option)
        for option in options(value)
    )


def _makes_regularizer(value: Value) -> bool:
    if not isinstance(value, Call) or isinstance(value.callee, Attribute):
        return False
    return not is_api(value.callee, "keras.regularizers.get", "keras.regularizers.deserialize")


def _is_layer(value: Value) -> bool:
    own = class_of(value)
    return own is not None and own.is_layer

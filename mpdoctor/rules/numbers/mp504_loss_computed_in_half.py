"""The training's loss is computed in 16 bits.

## Why it matters
A float16 loss has three digits and ends at 65504: a target of 1000 gives a mean squared error of inf where
float32 gives 1e6, and a loss of 2.0 is infinite as soon as it is multiplied by a loss scale of 2^15. In a
custom loop nothing casts the predictions of a model whose last layer is 16-bit. Keras 2 casts the labels to the
predictions' dtype, in compile() too, and its losses compute in the dtype of their inputs, all but Huber's, which
casts to float32. Keras 3 casts to float32 for the losses in compile() and for loss objects, but not for loss
functions such as `keras.losses.mean_squared_error` (Keras 3.15, tf_keras 2.21, TensorFlow 2.4 to 2.15).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(keras.losses.mean_squared_error(y, model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        predictions = tf.cast(model(x), tf.float32)
        loss = tf.reduce_mean(keras.losses.mean_squared_error(y, predictions))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Versions
All. In Keras 3 the losses passed to compile() compute in float32, unless they are made with another dtype:
`keras.losses.MeanSquaredError(dtype="float16")`, or with the policy as it (Keras 3.15).

## Where users met it
tensorflow/tensorflow#45568, tensorflow/tensorflow#39982, keras-team/keras#16552, vanvalenlab/deepcell-tf#490.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.written_numbers import capitalized
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Return
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Value
from mpdoctor.semantics.source.edits.expressions import unsafe_fix, without_keyword
from mpdoctor.semantics.source.edits.float32.losses import losses_in_float32, way_to_float32
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.precision import Precision, precision_of
from mpdoctor.semantics.source.loops.gradients import applied_gradients, target
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.programs.losses_and_metrics import compiled, half_dtype_of_policy
from mpdoctor.semantics.source.trainings.half_losses import parts_in_half, parts_of

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
NEVER_RAISES = True
ONLY_IN_HALF = True
HELP = 'Cast the predictions, `tf.cast(predictions, tf.float32)`, or give the last layer `dtype="float32"`.'


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.shows_mixed_precision:
        yield from _differentiated(facts, precision_of(facts))
        yield from _given_half(facts) if facts.keras.is_keras3 else _compiled(facts, precision_of(facts))


def _differentiated(facts: SourceFacts, precision: Precision) -> Iterator[Finding]:
    """Losses of the program's own loops."""
    for _, call in applied_gradients(facts):
        if asks_for_dtype(call.context):
            continue
        halves = parts_in_half(precision, target(call), call.context)
        fix = losses_in_float32(facts, [part for part, _ in halves])
        for part, half in halves:
            casts = [summand for summand in (part, *parts_of(part)) if summand is not None and is_cast(summand)]
            is_cast_down = any(precision.half(cast, call.context) for cast in casts)
            if is_cast_down:
                yield _finding_of_cast(half, part.location, fix)
            else:
                yield _finding(half, part.location, fix, _help(facts, part))


def _compiled(facts: SourceFacts, precision: Precision) -> Iterator[Finding]:
    """Losses of the program's own that compile() is given."""
    for call, loss in compiled(facts, 1, "loss"):
        if asks_for_dtype(call.context):
            continue
        for returned in _returned(facts, loss):
            dtype = precision.half(returned.value, returned.context)
            if dtype is not None:
                fix = losses_in_float32(facts, [returned.value])
                yield _finding(dtype, returned.location, fix, _help(facts, returned.value))


def _given_half(facts: SourceFacts) -> Iterator[Finding]:
    """Loss objects of Keras 3 that are made with a 16-bit dtype: they cast labels and predictions to it."""
    for call in facts.calls:
        given = call.keyword("dtype") if call.keywords else None
        named = dtype_named(given, facts.keras)
        dtype = named if named in HALF else half_dtype_of_policy(facts, given)
        if dtype is not None and _takes_dtype_as_keras_does(call) and not call.context.guarded:
            yield Finding(
                f"This loss casts labels and predictions to {dtype}, its own dtype: {_what_it_holds(dtype)}.",
                "Leave out its dtype: Keras computes a loss in float32.",
                call.location,
                evidence={"own_dtype": dtype},
                fix=unsafe_fix("Leave out the dtype of the loss", without_keyword(facts, call.location, "dtype")),
            )


def _takes_dtype_as_keras_does(call: Call) -> bool:
    """Whether it makes a loss object, of Keras' own or of a class that hands its dtype on unread."""
    own = class_of(call)
    if own is None:
        return isinstance(call.callee, Api) and kind_of_class(call.callee.name) == "loss"
    initializer = own.find_method("__init__")
    return own.kind == "loss" and (initializer is None or "dtype" not in initializer.parameters)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    """Losses passed to compile() in Keras 2, whose own losses compute in the dtype of their inputs. A user's loss may
    cast inside, which is not visible here."""
    if model.keras.is_keras3 or not model.compiled or model.call.kind == "loop" or not model.loss_is_of_keras:
        return
    dtype = model.half_output()
    if dtype is not None:
        yield _finding(dtype, None)


def _finding(dtype: str, location: Location | None, fix: Fix | None = None, advice: str = HELP) -> Finding:
    return Finding(
        f"This loss is computed in {dtype}, the dtype of the predictions: {_what_it_holds(dtype)}.",
        advice,
        location,
        fix=fix,
    )


def _help(facts: SourceFacts, loss: Value) -> str:
    """The advice in the names of the program."""
    return f"{capitalized(way_to_float32(facts, loss))}."


def _finding_of_cast(dtype: str, location: Location | None, fix: Fix | None) -> Finding:
    return Finding(
        f"This loss is cast to {dtype} and computed in it: {_what_it_holds(dtype)}.",
        'Leave the cast out: what a loss is made of is float32 where the last layer has `dtype="float32"`.',
        location,
        fix=fix,
    )


def _what_it_holds(dtype: str) -> str:
    return "it has three digits and ends at 65504" if dtype == "float16" else "it has two digits"


def _returned(facts: SourceFacts, loss: Value) -> Iterator[Return]:
    """The values that a user's loss, passed to compile(), returns."""
    own = class_of(loss)
    function = loss.of if isinstance(loss, Defined) and isinstance(loss.of, FunctionFacts) else None
    if own is not None:
        function = own.find_method("call")
    return facts.returns_of(function) if function is not None else iter(())

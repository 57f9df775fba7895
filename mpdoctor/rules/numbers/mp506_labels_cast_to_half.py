"""Class ids are cast to 16 bits and then used as an index.

## Why it matters
float16 holds integers only up to 2048, bfloat16 only up to 256: 4999 becomes 5000, which is another class or no
class at all, and no error shows it. The loss trains the wrong rows, or is NaN. `tf.cast(y, p.dtype)` is right
for targets that are compared with p; ids belong in an integer dtype. Keras 2 passes float labels to a loss in
the model's own 16 bits, and a layer casts a float Input before its `call()`: 5999 from `keras.Input(())` is
6000 there (Keras 3.15, tf_keras 2.21).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Picked(keras.layers.Layer):
    def call(self, scores, labels):
        ids = tf.cast(labels, scores.dtype)
        return scores * tf.one_hot(tf.cast(ids, tf.int32), 5000, dtype=scores.dtype)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Picked(keras.layers.Layer):
    def call(self, scores, labels):
        return scores * tf.one_hot(tf.cast(labels, tf.int32), 5000, dtype=scores.dtype)
```

## Versions
All. Up to TensorFlow 2.6, SparseCategoricalCrossentropy itself cast the ids so.

## Where users met it
keras-team/keras#15012, tensorflow/tensorflow#50964, huggingface/transformers#12898.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import EXACT
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.events import Call
from mpdoctor.program.instances import has_method, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Collection, Item, Value, agreed, known
from mpdoctor.semantics.source.edits.casts import cast_around
from mpdoctor.semantics.source.edits.expressions import argument_replaced, unsafe_fix
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.class_ids import (
    casts_behind,
    classes_behind,
    gives_floats,
    ids_before_casts,
    indexings,
)

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
ONLY_IN_HALF = True


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    for call, ids, sized in indexings(facts):
        if asks_for_dtype(call.context):
            continue
        cast = next((cast for cast in casts_behind(ids) if precision.half(cast, call.context)), None)
        dtype = precision.half(cast, call.context) if cast is not None else _cast_by_the_layer(facts, call, ids)
        classes = classes_behind(facts, sized) if dtype is not None else 0
        if dtype is None or classes <= EXACT[dtype]:
            continue
        rounded = f"{dtype} holds integers only up to {EXACT[dtype]}, and larger ids are rounded to other ids."
        if cast is not None:
            yield Finding(
                f"Class ids are cast to {dtype} here and used as an index into {classes} classes: {rounded}",
                "Keep ids in an integer dtype: `tf.cast(labels, tf.int32)`.",
                cast.location,
                fix=_fix(facts, cast),
            )
        else:
            yield Finding(
                f"Class ids come from a float Input and are used as an index into {classes} classes here, but the "
                f"layer has already cast them to {dtype}: {rounded}",
                'Make them integers from the start: `keras.Input(…, dtype="int32")`. Keras never casts integers.',
                call.location,
            )


def _cast_by_the_layer(facts: SourceFacts, call: Call, ids: Value) -> str | None:
    """The 16-bit dtype to which a layer casts the float Input that holds these ids before its `call()`; None where any
    such layer may get another input, and of ids for an Embedding (MP216)."""
    if is_call_of(call.callee, "keras.layers.Embedding"):
        return None
    before = ids_before_casts(ids)
    place = known(before.index) if isinstance(before, Item) else None
    parameter = before.of if isinstance(before, Item) else before
    if not isinstance(parameter, Parameter) or facts.dtype_of(parameter) != AUTOCAST:
        return None
    dtypes = set[str | None]()
    for made, layer in _calls_of_owner(facts, parameter):
        given = made.argument(parameter.index - 1, parameter.name)
        if isinstance(before, Item):
            given = given.entry(place) if isinstance(given, Collection) else None
        is_float = given is not None and is_call_of(given, "keras.Input") and gives_floats(given)
        dtypes.add(half_dtype_of_layer(facts, layer) if is_float else None)
    return agreed(dtypes)


def _calls_of_owner(facts: SourceFacts, parameter: Parameter) -> Iterator[tuple[Call, Call]]:
    """The calls of the layers whose class the parameter's method belongs to, and where each layer is made."""
    method = parameter.function
    if method is None or method.owner is None:
        return
    for call in facts.calls:
        if isinstance(call.callee, Call) and has_method(call.callee, method):
            yield call, call.callee


def _fix(facts: SourceFacts, cast: Call) -> Fix | None:
    around = cast_around(facts, "int32")
    dtype = around[1].removeprefix(", ").removesuffix(")") if around is not None else ""
    edit = argument_replaced(facts, cast.location, "dtype", 1, dtype) if dtype else None
    return unsafe_fix("Cast to int32", edit)

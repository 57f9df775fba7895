"""A cross-entropy is taken of probabilities that are 16-bit.

## Why it matters
In float16 the largest probability below 1 is 0.9995, in bfloat16 0.996: 0.9999 is 1.0. Keras 3's
`binary_crossentropy` function gives inf for a probability of 1.0 and the label 0, and NaN for 0.9999 and
the label 1. Loss objects, and Keras 2, clip to a finite value (16 where 9 is right), and where they clip
the gradient is 0: what the model is most wrong about, it no longer learns (Keras 3.15, tf_keras 2.21). From
logits nothing of this happens, because the softmax is then part of the loss.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(10, activation="softmax")])
loss_fn = keras.losses.SparseCategoricalCrossentropy()
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(10, activation="softmax", dtype="float32")])
loss_fn = keras.losses.SparseCategoricalCrossentropy()
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = loss_fn(y, model(x))
    optimizer.apply(tape.gradient(loss, model.trainable_variables), model.trainable_variables)
```

## Versions
All.

## Where users met it
tensorflow/tensorflow#38457.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.names import public_name
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Api, Call, Known, Value, known, options
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.layers.calls import asks_for_dtype
from mpdoctor.rules.layers.outputs import half_output
from mpdoctor.rules.numbers.losses import compiled, prediction_of
from mpdoctor.rules.numbers.precision import precision_of

SEVERITY = Severity.WARNING
PROBABILITIES = ("softmax", "sigmoid")
FUNCTIONS = (
    "binary_crossentropy",
    "categorical_crossentropy",
    "sparse_categorical_crossentropy",
    "binary_focal_crossentropy",
    "categorical_focal_crossentropy",
)
CLASSES = tuple(name.title().replace("_", "") for name in FUNCTIONS)
PLACES = ("keras.losses", "keras.metrics", "keras.backend")
LAST_BELOW_ONE = {"float16": "0.9995", "bfloat16": "0.996"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    for call in facts.calls:
        if not _takes_probabilities(call) or asks_for_dtype(call.context):
            continue
        dtype = precision.half(_prediction(call), call.context)
        if dtype is not None:
            yield _finding(dtype, call.location)
    for call, loss in compiled(facts, 1, "loss"):
        dtype = precision.of_model(call.receiver)
        if dtype in LAST_BELOW_ONE and dtype is not None and _is_of_probabilities(loss):
            yield _finding(dtype, call.location)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not (model.compiled and model.loss_takes_probabilities) or model.call.kind == "loop":
        return
    dtype = half_output(model, PROBABILITIES)
    if dtype is not None:
        yield _finding(dtype, None)


def _finding(dtype: str, location: Location | None) -> Finding:
    return Finding(
        f"This cross-entropy is taken of {dtype} probabilities, of which {LAST_BELOW_ONE[dtype]} is the last below 1: "
        "where the model is sure, the loss saturates and the gradient is lost.",
        "Let the model return logits and say `from_logits=True`, or cast the input of the softmax (or sigmoid) to "
        'float32: `Activation("softmax", dtype="float32")`.',
        location,
    )


def _takes_probabilities(call: Call) -> bool:
    """Whether it calls a cross-entropy, a function or an object, without `from_logits=True`."""
    if isinstance(call.callee, Api):
        return _is_function(call.callee) and not call.open and _not_from_logits(call, 2)
    return isinstance(call.callee, Call) and _is_of_probabilities(call.callee)


def _prediction(call: Call) -> Value | None:
    if isinstance(call.callee, Api) and public_name(call.callee.name).startswith("keras.backend."):
        return call.argument(1, "output")
    return prediction_of(call)


def _is_function(value: Value) -> bool:
    if not isinstance(value, Api):
        return False
    place, _, name = public_name(value.name).rpartition(".")
    return place in PLACES and name in FUNCTIONS


def _is_of_probabilities(loss: Value) -> bool:
    """Whether a loss that compile() may be given is a cross-entropy of probabilities."""
    if isinstance(loss, Known):
        return loss.value in FUNCTIONS
    if isinstance(loss, Call) and isinstance(loss.callee, Api):
        place, _, name = public_name(loss.callee.name).rpartition(".")
        return place == "keras.losses" and name in CLASSES and not loss.open and _not_from_logits(loss, 0)
    return _is_function(loss)


def _not_from_logits(call: Call, position: int) -> bool:
    given = call.argument(position, "from_logits")
    return given is None or (known(given) is False and len(options(given)) == 1)

"""An input value beyond 65504 becomes inf in the first layer, and no float16 output comes to a label beyond it.

## Why it matters

Under mixed_float16 a layer casts its input to float16 before anything else. A timestamp, a price or a 16-bit
image beyond 65504 becomes inf, and so does everything computed from it: the loss is NaN, and every step with
such a batch is skipped. A Rescaling or Normalization layer in the model comes too late, because it casts first
(measured in Keras 3 and tf_keras: Rescaling(1/65535) of 65535 is inf; a single value of 1,000,000 in a batch of
16 has that batch skipped in every epoch).

A label beyond 65504 is as much out of reach where the model's output is float16: no prediction comes to it, one that
would is inf, and Keras 2, which casts the labels to the output's dtype, makes the label itself inf.

## Flagged

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.uniform(6e4, 2e5, (640, 3)).astype("float32")  # prices
model = tf.keras.Sequential([tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(x, x[:, :1] / 1e5, epochs=3)
```

## Fixed

```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
x = np.random.uniform(6e4, 2e5, (640, 3)).astype("float32")  # prices
rescaling = tf.keras.layers.Rescaling(1e-5, dtype="float32")
model = tf.keras.Sequential([rescaling, tf.keras.layers.Dense(8, "relu"), tf.keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(x, x[:, :1] / 1e5, epochs=3)
```

## Versions

All.

## Where users met it

keras-team/keras#22586. Integer inputs are cast in the same way.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ArrayFacts, ModelFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.written_numbers import capitalized, magnitude_text
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.broken_operations import is_of_input
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.tried_remedies import after_trials

SEVERITY = Severity.ERROR
EXPLAINS = {"MP907": "model"}
SCALED = (
    "scale the data before the model gets it, or in a first layer that computes in float32: "
    '`Rescaling(…, dtype="float32")`, or a `Normalization(dtype="float32")` that is adapted to the data'
)
HELP = f"{capitalized(SCALED)}."


def in_model(model: ModelFacts) -> Iterator[Finding]:
    yield from _labels_out_of_reach(model)
    first = _casting_first(model) if model.is_trained or model.only_predicts else None
    if first is None:
        return
    for array in _features(model):
        if array.largest is None or array.largest <= FLOAT16_LIMIT:
            continue
        yield Finding(
            f"The input reaches {magnitude_text(array.largest)}, and `{first.path}` ({first.class_name}) casts it to "
            f"float16, whose largest number is {FLOAT16_LIMIT}: it becomes inf.",
            HELP,
            model.call.location,
            layer=first.path,
            evidence={"largest": array.largest},
        )


def _labels_out_of_reach(model: ModelFacts) -> Iterator[Finding]:
    """Labels that a float16 output is held against by losses of Keras' own, which compare them as they are."""
    outputs = [layer for layer in model.layers if layer.is_output and layer.floating]
    labels = [array for array in model.data if array.role == "labels"]
    is_compared = model.is_trained and model.loss_is_of_keras and "entropy" not in model.loss.lower()
    if not is_compared or len(outputs) != 1 or len(labels) != 1 or model.half_output() != "float16":
        return
    largest = labels[0].largest
    if largest is not None and largest > FLOAT16_LIMIT:
        cast = "" if model.keras.is_keras3 else ", and the labels are cast to it"
        yield Finding(
            f"The labels reach {magnitude_text(largest)}, and the model's output is float16, whose largest number is "
            f"{FLOAT16_LIMIT}: no prediction comes to them{cast}.",
            'Give the last layer `dtype="float32"`, and standardise the labels: gradients of a loss of such numbers '
            "overflow as well.",
            model.call.location,
            layer=outputs[0].path,
            evidence={"largest_label": largest},
        )


def _casting_first(model: ModelFacts) -> LayerFacts | None:
    """The first layer that computes, of a model with one input, if it casts floats to float16."""
    inputs = [layer for layer in model.layers if layer.class_name == "InputLayer"]
    if len(inputs) > 1 or len(_features(model)) != 1:
        return None
    first = next((layer for layer in model.layers if layer.floating and not layer.is_model), None)
    return first if first is not None and _casts_to_float16(first) else None


def _casts_to_float16(layer: LayerFacts) -> bool:
    if layer.is_operation or layer.class_name == "Embedding":
        return False
    return layer.compute_dtype == "float16" and layer.autocast and set(layer.input_dtypes) == {"float32"}


def _features(model: ModelFacts) -> list[ArrayFacts]:
    return [array for array in model.data if array.role == "features"]


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    culprit = training.culprit
    operation = culprit.operation if culprit else None
    if culprit is None or operation is None or not is_of_input(operation):
        return
    layer = culprit.overflow.layer
    yield Finding(
        f"The input reaches {magnitude_text(operation.largest)} {training.moment(culprit.step)}, and `{layer}` "
        f"({culprit.overflow.layer_class}) casts it to float16, whose largest number is {FLOAT16_LIMIT}: it becomes "
        "inf.",
        after_trials(training, HELP, SCALED),
        training.model.call.location,
        model=training.model.id,
        layer=layer,
        evidence={"step": culprit.step + 1, "largest": operation.largest},
        remedies=remedies_to_report(training),
    )

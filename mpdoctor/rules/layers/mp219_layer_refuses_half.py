"""A library's layer raises on the 16-bit input that the mixed policy gives it.

## Why it matters
The code that raises is none of yours, so there is no line to mend in it: `inputs + tf.constant(1.0)`, an operation
without a 16-bit kernel, or the float32 signature of a SavedModel inside a package's layer stops the whole program under
a mixed policy. With `dtype="float32"` the layer computes in float32, Keras casts what it is given, and the
next layer casts its output back. Where the same call could be made again in float32, that was tried, and the report
says so.

## Flagged
```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
inputs = tf.keras.Input((8, 8))
spectrum = tf.keras.layers.Activation(tf.linalg.eigvalsh)  # TensorFlow has no 16-bit kernel for it
hidden = tf.keras.layers.Dense(8)(inputs)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, dtype="float32")(spectrum(hidden)))
model.compile("adam", "mse")
model.fit(np.random.rand(64, 8, 8), np.random.rand(64, 1))
```

## Fixed
```python
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
inputs = tf.keras.Input((8, 8))
spectrum = tf.keras.layers.Activation(tf.linalg.eigvalsh, dtype="float32")
hidden = tf.keras.layers.Dense(8)(inputs)
model = tf.keras.Model(inputs, tf.keras.layers.Dense(1, dtype="float32")(spectrum(hidden)))
model.compile("adam", "mse")
model.fit(np.random.rand(64, 8, 8), np.random.rand(64, 1))
```

## Versions
All.

## Where users met it
tensorflow/hub#748, tensorflow/hub#854, keras-team/keras-cv#734.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.live.errors.error_texts import evidence_of, headline_from_failure, place_of_failure
from mpdoctor.semantics.live.refusing_layers import refuses_half

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if not refuses_half(failure):
        return
    half = failure.layer_dtype or "16-bit"
    place = place_of_failure(failure)
    tried = ", and none in float32 (tried)" if failure.ran_in_float32 else ""
    yield Finding(
        f"{place[0].upper()}{place[1:]}, in which no line of yours runs, raises an error on {half} input{tried}: "
        f"{headline_from_failure(failure)}",
        _help(failure),
        failure.layer_made_at or failure.location,
        layer=failure.layer,
        evidence=evidence_of(failure),
    )


def _help(failure: FailureFacts) -> str:
    around = '`set_global_policy("float32")` before that line and the mixed policy again behind it'
    untried = "" if failure.ran_in_float32 else " (Not tried.)"
    if failure.layer_made_by:
        maker = "the library" if failure.layer_made_by == "__init__" else f"`{failure.layer_made_by}`"
        return f"Here {maker} makes `{failure.layer_class}`: write {around}.{untried}"
    with_dtype = f'`{failure.layer_class}(…, dtype="float32")`'
    return f"Make it with a dtype, {with_dtype}; where it takes none, write {around}.{untried}"

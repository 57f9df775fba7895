"""A SavedModel stores its variables in 16 bits, without float32 master copies.

## Why it matters
Under mixed_float16 every variable is float32, and only the computation is 16-bit. Variables stored in 16 bits
come from a pure "float16" or "bfloat16" policy, from a dtype given to add_weight, or from a conversion for
serving. For serving they are fine, and half the size. Continued training from such a file loses every update
smaller than 1/2048 of a float16 weight, or 1/256 of a bfloat16 one.

## Flagged
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("float16")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])
tf.saved_model.save(model, "exported")
```

## Fixed
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
tf.saved_model.save(model, "exported")
```

## Versions
All.

## Where users met it
The pure policy behind it: keras-team/keras#9582, tensorflow/tensorflow#38457, tensorflow/tensorflow#43172.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.INFO
LOST = {"float16": "1/2048", "bfloat16": "1/256"}


def in_saved_graph(graph: SavedGraphFacts) -> Iterator[Finding]:
    for dtype in HALF:
        half = [variable for variable in graph.variables if variable.dtype == dtype]
        if half:
            numbers = sum(variable.size for variable in half)
            how_many = f"{len(half)} of {len(graph.variables)} variables"
            names = listed([f"`{variable.name}`" for variable in half], most=2)
            yield Finding(
                f"{how_many} of this graph {'is' if len(half) == 1 else 'are'} {dtype} ({names}): "
                f"{numbers} number{'s' if numbers != 1 else ''} without a float32 master copy. Training on from here "
                f"would lose every update below {LOST[dtype]} of a weight.",
                "For serving alone this is fine. To continue training, save the model before the conversion, or build "
                f'it under "mixed_{dtype}" instead of "{dtype}".',
                evidence={"variables": [variable.name for variable in half], "dtype": dtype, "numbers": numbers},
            )

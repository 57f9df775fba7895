"""A SavedModel graph computes some matrix products or convolutions in float32 and others in 16 bits.

## Why it matters
Matrix products and convolutions gain most from 16 bits: on tensor cores they are up to 8 times as fast as in
float32. A float32 product in a 16-bit graph belongs to a part that kept another policy, often a model that was
loaded or built before the policy was set. Not reported: the last float32 product before an output, which is
there on purpose, and products computed from constants.

## Flagged
```python
import tensorflow as tf

body = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8)])  # float32: built before the policy is set
tf.keras.mixed_precision.set_global_policy("mixed_float16")
head = [tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")]
model = tf.keras.Sequential([tf.keras.Input((8,)), body, *head])
tf.saved_model.save(model, "exported")
```

## Fixed
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
body = tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(8)])
head = [tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")]
model = tf.keras.Sequential([tf.keras.Input((8,)), body, *head])
tf.saved_model.save(model, "exported")
```

## Versions
All. The list comes from TensorFlow 2.21.0 (auto_mixed_precision_lists.h).

## Where users met it
zzh8829/yolov3-tf2#243, tensorflow/hub#466, tensorflow/hub#854.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.op_lists import ALLOW
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.INFO


def in_saved_graph(graph: SavedGraphFacts) -> Iterator[Finding]:
    for dtype in HALF:
        half = sum(op.count for op in graph.ops_in(dtype, ALLOW[dtype]))
        wide = [op for op in graph.ops_in("float32", ALLOW[dtype]) if op.inner]
        if not half or not wide:
            continue
        names = listed([f"{op.op} ({op.inner}: `{op.examples[0]}`)" for op in wide])
        yield Finding(
            f"This graph computes {names} in float32, beside {half} in {dtype}: they gain nothing from 16 bits, and "
            "their results are cast back.",
            f'Build that part under "mixed_{dtype}" too: set the policy before building it, and copy its weights with '
            "`new.set_weights(old.get_weights())`.",
            layer=wide[0].examples[0],
            evidence={"float32": {op.op: op.inner for op in wide}, dtype: half},
        )
        return

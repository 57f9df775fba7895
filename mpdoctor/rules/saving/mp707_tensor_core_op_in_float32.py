"""A SavedModel graph computes matrix products or convolutions in float32 in the midst of 16-bit ones.

## Why it matters
Matrix products and convolutions are what 16 bits gain most on: on tensor cores they are up to 8 times as fast as in
float32. A float32 one in the midst of a 16-bit graph is a part that kept another policy, often a model that was
loaded or built before the policy was set. The last one before an output, on top of 16-bit ones, is meant to be float32,
and so is what is computed from constants; both are passed over.

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
All. The list is that of TensorFlow 2.21.0 (auto_mixed_precision_lists.h).

## Where users met it
zzh8829/yolov3-tf2#243, tensorflow/hub#466, tensorflow/hub#854.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.half_dtypes import HALF
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
            "what they give is cast back.",
            f'Build that part under "mixed_{dtype}" too: set the policy before it is built, and copy its weights with '
            "`new.set_weights(old.get_weights())`.",
            layer=wide[0].examples[0],
            evidence={"float32": {op.op: op.inner for op in wide}, dtype: half},
        )
        return

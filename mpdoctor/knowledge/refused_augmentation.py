"""Layers of Keras 3 that augment pictures and raise in 16 bits, as data.

Tried on a CPU in Keras 3.10, 3.12 and 3.15 with TensorFlow 2.21: in fit(), in `Dataset.map`, with sizes that are known
and that are not, and eagerly. Outside of training (`training=False`, predict()) none of them does anything."""

from __future__ import annotations

# The 16-bit dtypes that they refuse. They count positions in float16 (`Unsupported dtype19 for Range`), which an eager
# call may do; CutMix meets float32 numbers in bfloat16 as well.
REFUSED = {
    "RandomErasing": ("float16",),
    "RandomGaussianBlur": ("float16",),
    "RandomElasticTransform": ("float16",),
    "CutMix": ("float16", "bfloat16"),
}
# It leaves a single picture as it is.
OF_BATCHES = "CutMix"

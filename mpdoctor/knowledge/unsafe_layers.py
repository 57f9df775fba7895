"""Built-in layers that go wrong in float16 only, as data.

Tried on a CPU in Keras 3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10: inputs of 300 and 1e-4 and rows of zeros for what
normalises, 256 for squareplus, 4096 steps for the mean over a mask. Each was right in float32."""

from __future__ import annotations

NORMALISES = "squares its inputs: rows with values beyond 256 become 0, and rows of zeros NaN"
SQUAREPLUS = "squares its inputs: from 256 on it gives inf"
MASKED_MEAN = "counts and sums the steps in float16: over 4096 steps the mean of ones is 0.5, and that of hundreds inf"

# Whole numbers up to here can be counted in float16.
COUNTABLE = 2048

# They hand the mask of their input on.
MASK_PASSING = frozenset(
    (
        "Dense",
        "Dropout",
        "SpatialDropout1D",
        "Activation",
        "LayerNormalization",
        "BatchNormalization",
        "LSTM",
        "GRU",
        "Bidirectional",
        "Embedding",
        "Masking",
    )
)

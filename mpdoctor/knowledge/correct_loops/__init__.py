"""Custom training loops in mixed precision that are right, as text: for each Keras, and for each thing that loops do
besides (`FEATURES`), alone and together.

Keras 3's LossScaleOptimizer scales with `scale_loss` and divides the gradients in `apply`; Keras 2's has
`get_scaled_loss` and `get_unscaled_gradients`, and its `apply_gradients` divides nothing. What comes after the division
(clipping, accumulation, averages of the weights) is the inner optimizer's in Keras 3 and the loop's own in Keras 2.
https://github.com/keras-team/keras/blob/master/keras/src/optimizers/loss_scale_optimizer.py
https://www.tensorflow.org/versions/r2.15/api_docs/python/tf/keras/mixed_precision/LossScaleOptimizer
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

from mpdoctor.knowledge.correct_loops.keras2_loop import Keras2Loop
from mpdoctor.knowledge.correct_loops.keras3_loop import Keras3Loop

Generation = Literal["3", "2"]
FEATURES = {
    "clip": "gradients clipped by their global norm",
    "accumulate": "one update from the gradients of four batches",
    "ema": "an average of the weights kept beside them",
    "penalty": "a penalty on the gradient with respect to the input",
    "gan": "two models, each with an optimizer of its own",
    "xla": "compiled by XLA",
    "replicas": "several replicas",
}
IMPORTS = {
    "3": "import keras\nimport numpy as np\nimport tensorflow as tf\n",
    "2": "import numpy as np\nimport tensorflow as tf\n\nkeras = tf.keras\n",
    "tf_keras": "import numpy as np\nimport tensorflow as tf\nimport tf_keras as keras\n",
}


def correct_loop(generation: Generation, features: Collection[str] = (), package: str = "") -> str:
    """A program that runs as it stands. `package`: "tf_keras" for Keras 2 beside TensorFlow 2.16 and later.

    Raises ValueError for a feature that is none of `FEATURES`, and for XLA with several replicas, whose gradients
    TensorFlow adds up outside of what it compiles."""
    unknown = set(features) - set(FEATURES)
    if unknown:
        raise ValueError(f"no such features of a loop: {', '.join(sorted(unknown))}")
    if {"xla", "replicas"} <= set(features):
        raise ValueError("a step of several replicas is not compiled as a whole")
    make = Keras3Loop(features) if generation == "3" else Keras2Loop(features)
    return IMPORTS[package or generation] + "\n" + make.program()

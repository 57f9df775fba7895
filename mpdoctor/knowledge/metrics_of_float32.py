"""The top-k metrics of Keras, which ask TensorFlow's in_top_k: that takes float32 predictions and nothing else.

Tried in Keras 3.15 (TensorFlow 2.21): each raises on float16 and bfloat16 predictions, in fit() and called by hand. In
Keras 2 the classes cast first (2.21); the functions, called by hand, raise as well."""

from __future__ import annotations

CLASSES = ("keras.metrics.TopKCategoricalAccuracy", "keras.metrics.SparseTopKCategoricalAccuracy")
FUNCTIONS = ("keras.metrics.top_k_categorical_accuracy", "keras.metrics.sparse_top_k_categorical_accuracy")
# What compile() takes for them.
NAMES = tuple(name.rpartition(".")[2] for name in (*CLASSES, *FUNCTIONS))
# Where TensorFlow refuses, in a graph and eagerly; the group is the dtype of the predictions.
REFUSES = (
    r"'InTopK(?:V2)?' Op has type (\w+) that does not match expected type of float32",
    r"cannot compute InTopK(?:V2)? as input #0\(zero-based\) was expected to be a float tensor but is a (\w+) tensor",
)

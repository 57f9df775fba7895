"""The metrics of Keras that take float32 predictions and nothing else, whatever their `dtype`.

The top-k metrics ask TensorFlow's in_top_k. Tried in Keras 3.15 (TensorFlow 2.21): each raises on float16 and bfloat16
predictions, in fit() and called by hand. In Keras 2 the classes cast first (2.21); the functions, called by hand, raise
as well.

The scores convert their predictions to float32, which a 16-bit tensor refuses. Tried in TensorFlow 2.15 and tf_keras
2.21 (2.10 has none of them): each raises in fit() and called by hand. In Keras 3 they cast."""

from __future__ import annotations

from typing import NamedTuple

CLASSES = ("keras.metrics.TopKCategoricalAccuracy", "keras.metrics.SparseTopKCategoricalAccuracy")
FUNCTIONS = ("keras.metrics.top_k_categorical_accuracy", "keras.metrics.sparse_top_k_categorical_accuracy")
_SCORES = ("keras.metrics.F1Score", "keras.metrics.FBetaScore", "keras.metrics.R2Score")
# Where TensorFlow refuses, in a graph and eagerly; the group is the dtype of the predictions.
REFUSES = (
    r"'InTopK(?:V2)?' Op has type (\w+) that does not match expected type of float32",
    r"cannot compute InTopK(?:V2)? as input #0\(zero-based\) was expected to be a float tensor but is a (\w+) tensor",
)


class Refusing(NamedTuple):
    """Metrics of one Keras that refuse 16-bit predictions.

    called
        The beginning of a sentence about one of them.
    """

    called: str
    classes: tuple[str, ...]
    functions: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """What compile() takes for them."""
        return tuple(name.rpartition(".")[2] for name in (*self.classes, *self.functions))


TOP_K = Refusing("Keras 3's top-k accuracy accepts", CLASSES, FUNCTIONS)
SCORES = Refusing("This score of Keras 2 accepts", _SCORES, ())

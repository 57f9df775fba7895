"""What several training rules say alike: the culprit of an overflow and what to do about it."""

from __future__ import annotations

from typing import Any

from mpdoctor.facts.training import TensorFacts, TrainingFacts

FLOAT16_LIMIT = 65504


def culprit_evidence(training: TrainingFacts) -> dict[str, Any]:
    """The first variable whose gradient was not finite, and the layer, where a replay found it."""
    evidence: dict[str, Any] = {}
    variable = next((step.first_nonfinite for step in training.steps if step.first_nonfinite), None)
    if variable:
        evidence["first_nonfinite_gradient"] = variable
    if training.culprit:
        evidence["first_nonfinite_layer"] = training.culprit.overflow.layer
    return evidence


def remedy_from_culprit(training: TrainingFacts) -> str:
    if training.culprit is None:
        return (
            "No layer's output overflows, so look at the loss and at what happens between the layers: compute it in "
            "float32, tf.cast(predictions, tf.float32)."
        )
    return f"The overflow begins in layer `{training.culprit.overflow.layer}` (see MP904): mend it there."


def in_words(tensor: TensorFacts) -> str:
    """One frame: "dense (Dense) float16, up to 5.2e+04"."""
    return f"{tensor.layer} ({tensor.layer_class}) {tensor.dtype}, up to {tensor.largest:.3g}"

"""What a short training could not measure, and which rule could not run because of that."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.fit_ending import NotMeasured
from mpdoctor.facts.reference import LOW_SCALE
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.semantics.live.training_texts import flushed_below

_RULES: dict[NotMeasured, str] = {
    "first number not finite": "MP904",
    "what holds the weights": "MP909",
    "two loss scales": "MP912",
}


def not_looked_in(training: TrainingFacts) -> Iterator[tuple[str, str]]:
    """The code of a rule, "fit" for the end of fit(), which no rule looks at alone; and why it did not look."""
    for measurement, reason in training.not_looked:
        yield _RULES.get(measurement, measurement), reason
    scales = [step.loss_scale for step in training.steps if step.loss_scale is not None]
    is_low = bool(scales) and 0 < max(scales) <= LOW_SCALE and training.ended != "failed"
    if is_low and training.model.computes_in_float16 and training.reference is None:
        yield (
            "MP906",
            f"at this loss scale gradients below {flushed_below(max(scales))} become 0 in float16, and only "
            "--reference compares those of several batches with float32's",
        )

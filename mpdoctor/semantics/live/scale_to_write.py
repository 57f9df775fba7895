"""The loss scale to write instead of one that loses gradients: which argument of which optimizer, and its value."""

from __future__ import annotations

from typing import NamedTuple

from mpdoctor.facts.training import TrainingFacts

DEFAULT_SCALE = 2.0**15  # LossScaleOptimizer's first one
FACTOR = "loss_scale_factor"  # of any optimizer of Keras 3


class ScaleToWrite(NamedTuple):
    """argument
        "initial_scale" of a LossScaleOptimizer, or "loss_scale_factor" of an optimizer of Keras 3.
    value
        A power of 2; None where the argument is to be left out, because Keras' default fits.
    """

    argument: str
    value: float | None


def scale_to_write(training: TrainingFacts) -> ScaleToWrite | None:
    """As the gradients of the batches tried say it: from 4 times the scale below which they are lost to a quarter of
    the one above which they overflow. None where nothing is scaled, or no scale does both."""
    reference = training.reference
    room = reference.room if reference is not None else None
    scale = reference.steps[-1].loss_scale if reference is not None and reference.steps else None
    if scale is None or room is None or room.lowest is None or room.highest is None or room.middle is None:
        return None
    if training.dynamic and scale < DEFAULT_SCALE and room.lowest <= DEFAULT_SCALE <= room.highest:
        return ScaleToWrite("initial_scale", None)
    return ScaleToWrite(FACTOR if training.uses_loss_scale_factor else "initial_scale", room.middle)

"""The loss scale to write instead of one that loses gradients: which argument of which optimizer, and its value."""

from __future__ import annotations

import math
from typing import NamedTuple

from mpdoctor.facts.half_dtypes import DEFAULT_SCALE
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.knowledge.wrapper_api import LOSS_SCALE_FACTOR

EXPERIMENTAL = "LossScaleOptimizerV1"  # mixed_precision.experimental's of TensorFlow 2.4, which must be told its scale


class ScaleToWrite(NamedTuple):
    """The argument to write, and its value.

    argument
        "initial_scale" of a LossScaleOptimizer, "loss_scale" of the experimental one, or "loss_scale_factor" of an
        optimizer of Keras 3.
    text
        What to write there; None where the argument is to be left out.
    is_default
        Whether Keras' default fits, which that brings about.
    """

    argument: str
    text: str | None
    is_default: bool = False


def scale_to_write(training: TrainingFacts) -> ScaleToWrite | None:
    """The loss scale that the gradients of the tried batches allow: from 4 times the scale below which they are lost,
    to a quarter of the scale above which they overflow. None where nothing is scaled, or no scale does both."""
    reference = training.reference
    room = reference.room if reference is not None else None
    scale = reference.steps[-1].loss_scale if reference is not None and reference.steps else None
    if scale is None or room is None or room.lowest is None or room.highest is None or room.middle is None:
        return None
    is_experimental = any(link.class_name == EXPERIMENTAL for link in training.model.optimizer)
    if training.dynamic and scale < DEFAULT_SCALE and room.lowest <= DEFAULT_SCALE <= room.highest:
        by_name = ScaleToWrite("loss_scale", '"dynamic"', is_default=True)
        return by_name if is_experimental else ScaleToWrite("initial_scale", None, is_default=True)
    text = f"2.0**{math.log2(room.middle):.0f}"
    if training.uses_loss_scale_factor:
        return ScaleToWrite(LOSS_SCALE_FACTOR, text)
    return ScaleToWrite("loss_scale" if is_experimental else "initial_scale", text)

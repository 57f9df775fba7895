"""Which part of Keras or TensorFlow raised an error: loss, metric, optimizer …, by the frames of its traceback."""

from __future__ import annotations

import re
from typing import Iterable

from mpdoctor.facts.failure import Frame

# (what it was doing, path from the package down, function), for every Keras from TensorFlow 2.4 on
_PLACES = tuple(
    (name, re.compile(path), re.compile(function))
    for name, path, function in (
        ("data", r"/tensorflow/python/data/", ""),
        ("metric", r"/keras/(src/)?metrics?(/|\.py)", ""),
        ("metric", r"/keras/(src/)?utils/metrics_utils\.py", ""),
        ("metric", r"/keras/(src/)?engine/compile_utils\.py", r"^update_state$"),
        ("metric", r"/keras/(src/)?trainers/compile_utils\.py", r"^update_state$"),
        ("loss", r"/keras/(src/)?losses?(/|\.py)", ""),
        ("loss", r"/keras/(src/)?utils/losses_utils\.py", ""),
        ("loss scaling", r"/keras/(src/)?(mixed_precision|optimizers)/loss_scale_optimizer\.py", ""),
        ("optimizer", r"/keras/(src/)?optimizers?(_v\d|_experimental)?(/|\.py)", ""),
        ("layer", r"/keras/(src/)?layers/layer\.py", r"^__call__$"),
        ("layer", r"/keras/(src/)?engine/base_layer(_v1)?\.py", r"^__call__$"),
        ("total loss", r"/keras/(src/)?(engine/training|trainers/trainer|backend/tensorflow/trainer)\.py",
         r"^_?compute_loss$"),
        ("total loss", r"/keras/(src/)?engine/compile_utils\.py", r"^__call__$"),
        ("step", r"/keras/(src/)?(engine/training(_v\d)?|backend/tensorflow/trainer)\.py", r"^train_step$"),
    )
)  # fmt: skip


def inside_from_frames(frames: Iterable[Frame]) -> str:
    """The part of Keras or TensorFlow that raised: the innermost one among these frames; "" where none is known. A
    metric may be made of a loss, and is a metric then. Where Keras calls a `compute_loss` of the program's own, it adds
    up nothing itself."""
    inside = ""
    is_overridden = False
    for frame in reversed(list(frames)):
        place = _place_of(frame)
        is_overridden |= frame.own and frame.function == "compute_loss"
        if place == "total loss" and is_overridden:
            place = "step"
        if place == "loss":
            inside = place
        elif place == "metric" or (place and not inside):
            return place
        elif place:
            return inside
    return inside


def _place_of(frame: Frame) -> str | None:
    if frame.own:
        return "step" if frame.function == "train_step" else None
    path = frame.path.replace("\\", "/").replace("/tf_keras/", "/keras/")
    for name, where, function in _PLACES:
        if where.search(path) and function.search(frame.function):
            return name
    return None

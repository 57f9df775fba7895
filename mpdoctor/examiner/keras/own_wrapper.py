"""mpdoctor.training's LossScaleOptimizer. In Keras 3 it steps and scales in methods of its own: to be hooked into once
a program makes one, and to be adopted with its own state machine."""

from __future__ import annotations

from typing import Any, Iterator

import tensorflow as tf

from mpdoctor.examiner.keras.step_record import Record

MODULE = "mpdoctor.training.keras3"
MODULES = (MODULE, "mpdoctor.training.keras2")


def is_own(optimizer: object) -> bool:
    """Whether the optimizer is mpdoctor.training's wrapper. It skips steps whose gradients are not finite under a fixed
    scale, too."""
    return any(cls.__module__ in MODULES for cls in type(optimizer).__mro__)


def defining(wrapper: object, name: str) -> Iterator[type]:
    """The class of mpdoctor.training's that this wrapper has a method from."""
    definer = next((cls for cls in type(wrapper).__mro__ if name in vars(cls)), None)
    if definer is not None and definer.__module__ == MODULE:
        yield definer


def adopted_own_class(base: Any, record: Record) -> type:
    """The recording class for mpdoctor.training's wrapper, which asks all replicas before it steps and moves its scale
    itself: its decisions are recorded, and not replaced."""

    class Adopted(base):
        def _step(self, strategy: Any, grads: Any, *args: Any) -> None:
            self.__dict__["_arrived"] = grads
            super()._step(strategy, grads, *args)

        def _move_scale(self, now: tf.Tensor, finite: tf.Tensor) -> None:
            record.write_judged(now, finite, self.__dict__["_arrived"])
            super()._move_scale(now, finite)

    return Adopted

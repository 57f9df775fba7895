"""Hooks on a LossScaleOptimizer: does the program scale its loss, unscale its gradients, read the scale?"""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Callable

from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import own_code

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.loss_hooks import Losses
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasOptimizer


class ScalingCalls:
    """`made`: whether the program has "scaled", and whether it has "unscaled". `losses()` are the session's."""

    def __init__(self, losses: Callable[[], Losses]) -> None:
        self._losses = losses
        self.made = {"scaled": False, "unscaled": False}

    def install(self, keras: KerasAdapter) -> None:
        for cls, name in keras.scaling_methods():
            replace_method(cls, name, self.scale_loss)
        for cls, name in keras.scale_properties():
            self._note_reads(cls, name)
        for cls, name in keras.unscaling_methods():
            replace_method(cls, name, self._unscale)

    def scale_loss(
        self, original: Callable[..., object], optimizer: KerasOptimizer, loss: object, *args: object, **kwargs: object
    ) -> object:
        self.made["scaled"] = True
        result = original(optimizer, loss, *args, **kwargs)
        if not callable(loss):
            self._losses().scaled(loss, result, optimizer)
        return result

    def _unscale(
        self, original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
    ) -> object:
        self.made["unscaled"] = True
        return original(optimizer, *args, **kwargs)

    def _note_reads(self, cls: type, name: str) -> None:
        """Note that the scale is read: such code may scale by hand, so it can no longer be said that the loss was never
        scaled."""
        read = getattr(cls, name).fget

        def scale(optimizer: KerasOptimizer) -> object:
            if own_code(sys._getframe(1)):
                self.made["scaled"] = True
            return read(optimizer)

        setattr(cls, name, property(functools.update_wrapper(scale, read)))

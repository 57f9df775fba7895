"""Hooks on losses: the unscaled loss that a program passes to each optimizer or gradient tape."""

from __future__ import annotations

import collections
from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.keras.loss_tap import LossTap
from mpdoctor.examiner.process.user_code import called_by_user, own_location
from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasOptimizer, KerasVariable


class _Scaled(NamedTuple):
    """A loss that was scaled: what came of it, the loss as it was, by which optimizer, and in which line of the
    user's."""

    result: object
    loss: tf.Tensor
    optimizer: KerasOptimizer
    at: Location | None


class Losses:
    """Which loss belongs to which optimizer: the loss that a tape differentiated by the optimizer's variables."""

    def __init__(self) -> None:
        self._taps: dict[int, LossTap] = {}  # by the identity of the first variable that a loss is differentiated by
        self._newest: LossTap | None = None
        self._scaled: collections.deque[_Scaled] = collections.deque(maxlen=8)
        self.scaled_dtype = ""  # of the loss that was scaled last
        self.scaled_at: Location | None = None  # the user's line that did so, None where Keras did
        self.scaled_before_at: Location | None = None  # where the loss that was scaled last had been scaled already
        # (loss, by which optimizer) of those that were scaled and not differentiated yet
        self._waiting: collections.deque[tuple[tf.Tensor, KerasOptimizer]] = collections.deque(maxlen=8)

    def scaled(self, loss: tf.Tensor, result: object, optimizer: KerasOptimizer) -> None:
        """`result` is this loss times the loss scale of this optimizer."""
        before = next((scaled for scaled in self._scaled if scaled.result is loss), None)
        if before is not None:
            self._waiting = collections.deque((each for each in self._waiting if each[0] is not before.loss), 8)
            loss = before.loss
        self.scaled_dtype = getattr(getattr(loss, "dtype", None), "name", "")
        self.scaled_at = own_location() if called_by_user() else None
        self.scaled_before_at = before.at if before is not None else None
        self._scaled.append(_Scaled(result, loss, optimizer, self.scaled_at))
        self._waiting.append((loss, optimizer))

    def differentiated(self, target: tf.Tensor, sources: object) -> None:
        """A tape is asked for the gradients of `target` by `sources`; by anything but variables it is no loss."""
        first = next(iter(tf.nest.flatten(sources)), None)
        if (
            not getattr(first, "trainable", False)
            or not hasattr(target, "dtype")
            or not tf.as_dtype(target.dtype).is_floating
        ):
            return
        known = [(scaled.loss, scaled.optimizer) for scaled in self._scaled if scaled.result is target]
        waiting = list(self._waiting)
        self._waiting.clear()
        self._newest = self._taps.setdefault(id(first), LossTap())
        self._newest.scaled_by = known[0][1] if known else None
        self._newest.put(known[0][0] if known else _whole(waiting) if waiting else target)

    def of(self, variables: list[KerasVariable]) -> LossTap | None:
        """The tap of an optimizer whose gradients are those by these variables."""
        own = (self._taps[id(variable)] for variable in variables if id(variable) in self._taps)
        return next(own, self._newest)


def _whole(waiting: list[tuple[tf.Tensor, KerasOptimizer]]) -> tf.Tensor:
    """The loss of which these are the parts, where one optimizer scaled them all in one graph; else the newest."""
    newest, scaler = waiting[-1]
    graph = getattr(newest, "graph", None)
    if any(optimizer is not scaler or getattr(loss, "graph", None) is not graph for loss, optimizer in waiting):
        return newest
    return tf.add_n([tf.reduce_mean(tf.cast(loss, tf.float32)) for loss, _ in waiting]) if waiting[1:] else newest

"""Replicas of one model that train in step under a tf.distribute strategy."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

import tensorflow as tf

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel


def replicas_in_step() -> int:
    """How many replicas run the step that is traced or run here; 1 outside of every replica."""
    context = tf.distribute.get_replica_context()
    return 1 if context is None else int(context.num_replicas_in_sync)


def replica_number() -> int | None:
    """The number of the current replica, from 0 on; None where only the device knows it (TPU)."""
    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 0
    number = tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group))
    return None if number is None else int(number)


def run_in_replicas(model: KerasModel, step: Callable[..., object], batch: object) -> object:
    """One step on a batch, on every replica of the strategy that this model was built under."""
    strategy = model.distribute_strategy
    if type(strategy).__name__ == "_DefaultDistributionStrategy":
        return step(tf.nest.map_structure(_tensor_from_part, batch))
    return strategy.run(step, args=(batch,))


def _tensor_from_part(part: object) -> object:
    """A part of a batch as a tensor; None and ragged or sparse tensors as they are."""
    return part if part is None or tf.is_tensor(part) else tf.convert_to_tensor(part)

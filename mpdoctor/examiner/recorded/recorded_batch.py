"""Replaces the script's batch and weights by a recorded failing batch and the weights at which it failed."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.recorded.kept_arrays import NotKeptArrays, arrays_from_file

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel


class DoesNotFit(Exception):
    """The recorded batch cannot be used in this program. The text says why, and what to do."""


class RecordedBatch:
    """The batch in a file that LossScaleMonitor(keep_batch=True) wrote."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._arrays: dict[str, np.ndarray] = {}

    def in_place_of(self, batch: object, model: KerasModel, keras: KerasAdapter) -> object:
        """The recorded batch, made as this one is. The model gets the recorded weights before the first.

        Raises DoesNotFit."""
        if not self._arrays:
            self._arrays = _arrays(self._path)
            _make_weights(model, batch, keras)
            self._give_weights(model)
        return self._packed_as(batch)

    def _give_weights(self, model: KerasModel) -> None:
        recorded = [self._arrays[name] for name in _in_order(self._arrays, "weight_0_")]
        own = _shapes_of_weights(model)
        if [weight.shape for weight in recorded] != own:
            raise DoesNotFit(
                f"The recorded weights are not those of this model: {_shapes([w.shape for w in recorded])} were kept,"
                f" and it has {_shapes(own)}. Check the script and the arguments that the run was recorded with."
            )
        model.set_weights(recorded)

    def _packed_as(self, batch: object) -> object:
        leaves = tf.nest.flatten(batch)
        recorded = [self._arrays[name] for name in _in_order(self._arrays, "batch_")]
        held = [leaf for leaf in leaves if leaf is not None]
        if not all(_is_of_numbers(leaf) for leaf in held):
            raise DoesNotFit("The script's batches are not plain tensors of numbers. Check it without --from-run.")
        own, kept = [tuple(leaf.shape[1:]) for leaf in held], [array.shape[1:] for array in recorded]
        if own != kept:
            raise DoesNotFit(
                f"The recorded batch is none of this script's: its samples have the shapes {_shapes(kept)}, and those"
                f" of the script {_shapes(own)}. Check the script and the arguments that the run was recorded with."
            )
        arrays = iter(recorded)
        packed = [None if leaf is None else tf.cast(next(arrays), leaf.dtype) for leaf in leaves]
        return tf.nest.pack_sequence_as(batch, packed)


def _make_weights(model: KerasModel, batch: object, keras: KerasAdapter) -> None:
    """Have the model make the weights that it makes when it is first called. What its call raises does not count: a
    model with a train_step of its own may have none."""
    with suppress(Exception):
        keras.make_variables(model, batch)
        if not getattr(model, "built", True):  # Keras 2
            model(batch[0] if isinstance(batch, (tuple, list)) else batch)


def _shapes_of_weights(model: KerasModel) -> list[tuple[int, ...]]:
    """The shapes of the model's weights; [] where Keras 2 has none yet, and raises."""
    try:
        return [tuple(weight.shape) for weight in model.get_weights()]
    except ValueError:
        return []


def _arrays(path: str) -> dict[str, np.ndarray]:
    """The arrays in the file. Raises DoesNotFit."""
    try:
        return arrays_from_file(path)
    except NotKeptArrays as reason:
        raise DoesNotFit(f"{path} {reason}. Check without --from-run.") from reason
    except OSError as error:
        raise DoesNotFit(f"{path} cannot be read: {error.strerror}. Check without --from-run.") from error


def _is_of_numbers(leaf: object) -> bool:
    return (tf.is_tensor(leaf) or isinstance(leaf, np.ndarray)) and tf.as_dtype(leaf.dtype) != tf.string  # type: ignore[attr-defined]


def _in_order(names: dict[str, np.ndarray], prefix: str) -> list[str]:
    return sorted((name for name in names if name.startswith(prefix)), key=lambda name: int(name[len(prefix) :]))


def _shapes(shapes: list[tuple[int, ...]]) -> str:
    listed = ", ".join(str(shape) for shape in shapes[:6])
    return listed + (f" and {len(shapes) - 6} more" if len(shapes) > 6 else "") or "none"

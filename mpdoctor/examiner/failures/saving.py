"""Calls `get_config` of the model as the program's ModelCheckpoint would: the callback itself is left out of the probe.

Only where it saves for certain, and in a format that needs the configuration: .keras and HDF5."""

from __future__ import annotations

import math
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel

HDF5 = (".h5", ".hdf5")


def saving_checkpoint(keras: KerasAdapter, callbacks: object, arguments: dict[str, Any]) -> object | None:
    """The first ModelCheckpoint that saves the whole model at the end of the first epoch; None where there is none."""
    given = callbacks if isinstance(callbacks, (list, tuple)) else [callbacks]
    validates = arguments.get("validation_data") is not None or bool(arguments.get("validation_split"))
    checkpoint = getattr(keras.module.callbacks, "ModelCheckpoint", None)
    return next((callback for callback in given if type(callback) is checkpoint and _saves(callback, validates)), None)


def _saves(checkpoint: Any, validates: bool) -> bool:
    if getattr(checkpoint, "save_weights_only", True) or getattr(checkpoint, "save_freq", None) != "epoch":
        return False
    known = ("loss", "val_loss") if validates else ("loss",)
    best = getattr(checkpoint, "best", None)
    is_first_best = getattr(checkpoint, "monitor", "") in known and (best is None or math.isinf(best))
    return not getattr(checkpoint, "save_best_only", True) or is_first_best


def ask_for_configuration(keras: KerasAdapter, model: KerasModel, checkpoint: object) -> None:
    """Ask the model for its configuration. Raises what saving to its file would raise before anything is written."""
    path = os.fspath(getattr(checkpoint, "filepath", ""))
    serialize = getattr(getattr(keras.module, "saving", None), "serialize_keras_object", None)
    if path.endswith(".keras") and serialize is not None:
        serialize(model)
    elif path.endswith((".keras", *HDF5)):
        model.get_config()

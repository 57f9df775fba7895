"""The batch that failed, and the weights that it failed with, in a file beside the run file: numpy's .npz, no pickle.

It is written only where `keep_batch=True` asks for it: a batch is the user's data, and the weights may be large.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf

from mpdoctor.training.monitoring.users_line import warn_of_training

LARGEST = 1 << 32  # bytes


def path_of_batch(path: str | os.PathLike[str]) -> Path:
    """The path of the kept batch beside a run file: run.mpdoctor → run.batch.npz."""
    run = Path(path)
    return run.with_name(f"{run.stem}.batch.npz")


def keep_batch(path: Path, batch: Any, models: list[Any]) -> str:
    """The name of the file, "" where the batch is no arrays of numbers, or too large, or cannot be written."""
    arrays: dict[str, Any] = {}
    for at, tensor in enumerate(tf.nest.flatten(batch)):
        if tensor is None:
            continue
        array = np.asarray(tensor) if not hasattr(tensor, "numpy") else tensor.numpy()
        if not isinstance(array, np.ndarray) or not _holds_numbers(array):
            return ""
        arrays[f"batch_{at}"] = array.astype(np.float32) if array.dtype.name == "bfloat16" else array
    for number, model in enumerate(models):
        for at, weight in enumerate(model.get_weights()):
            arrays[f"weight_{number}_{at}"] = weight.astype(np.float32) if weight.dtype.name == "bfloat16" else weight
    if sum(array.nbytes for array in arrays.values()) > LARGEST or not any(key.startswith("batch") for key in arrays):
        return ""
    return path.name if _is_written(path, arrays) else ""


def _is_written(path: Path, arrays: dict[str, Any]) -> bool:
    """Whether the file could be written. An error of the file system is reported, and ends no training."""
    partial = path.with_suffix(".part")
    try:
        with partial.open("wb") as file:
            np.savez(file, **arrays)
        partial.replace(path)
    except OSError as error:
        warn_of_training(f"The batch cannot be kept in {path} ({error.strerror or error}).")
        with contextlib.suppress(OSError):
            partial.unlink()
        return False
    return True


def _holds_numbers(array: Any) -> bool:
    return array.dtype.kind in "biufc" or array.dtype.name == "bfloat16"

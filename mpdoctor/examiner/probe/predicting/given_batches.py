"""Takes the batches of predict() or evaluate() from its data again."""

from __future__ import annotations

import functools
import math
from typing import TYPE_CHECKING, Any, Callable, Iterator

import numpy as np

from mpdoctor.examiner.capture.layer_calls import flat_tensors

if TYPE_CHECKING:
    import tensorflow as tf

BATCH = 32  # of Keras, where nobody says


def batches_from_row(arguments: dict[str, Any], row: int) -> Iterator[object]:
    """Batches as Keras' steps take them, from the one with this sample on; none where the data are spent."""
    x = arguments.get("x", arguments.get("data"))
    first = 0
    for batch in _all_batches(x, arguments):
        size = next((int(t.shape[0]) for t in flat_tensors(batch) if len(t.shape)), 1)
        first += size
        if first > row:
            yield batch


def _all_batches(x: Any, arguments: dict[str, Any]) -> Iterator[Any]:
    if hasattr(x, "element_spec"):  # a tf.data.Dataset
        yield from x
    elif hasattr(x, "__next__") or (x is not None and not _is_data(x) and not hasattr(x, "__getitem__")):
        return
    elif not _is_data(x):  # a Sequence or PyDataset
        yield from (_as_tensors(x[place]) for place in range(len(x)))
    else:
        parts = tuple(arguments[name] for name in ("x", "y", "sample_weight") if arguments.get(name) is not None)
        arrays = _as_tensors(parts)
        rows = max((int(t.shape[0]) for t in flat_tensors(list(arrays)) if len(t.shape)), default=0)
        size = arguments.get("batch_size") or BATCH
        for batch in range(math.ceil(rows / size)):
            yield _mapped(functools.partial(_rows, batch * size, size), arrays)


def _rows(start: int, size: int, tensor: tf.Tensor) -> tf.Tensor:
    return tensor[start : start + size]


def _is_data(x: object) -> bool:
    """Whether it is an array, a tensor, a data frame, or a list, tuple or dict of them."""
    return isinstance(x, (list, tuple, dict)) or hasattr(x, "shape")


def _as_tensors(structure: object) -> Any:
    """The batch as Keras hands it to a step: 64-bit floats become float32."""
    import tensorflow as tf

    def tensor(value: object) -> tf.Tensor:
        made = tf.convert_to_tensor(value if isinstance(value, tf.Tensor) else np.asarray(value))
        return tf.cast(made, tf.float32) if made.dtype == tf.float64 else made

    return _mapped(tensor, structure)


def _mapped(change: Callable[[tf.Tensor], object], structure: Any) -> Any:
    if isinstance(structure, dict):
        return {key: _mapped(change, value) for key, value in structure.items()}
    if isinstance(structure, (list, tuple)) and any(
        hasattr(element, "shape") or _is_data(element) for element in structure
    ):
        return type(structure)(_mapped(change, value) for value in structure)
    return change(structure)

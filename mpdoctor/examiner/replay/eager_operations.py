"""Calls a function after each operation that TensorFlow runs eagerly, except the function's own operations."""

from __future__ import annotations

from typing import Callable, List, Tuple

import tensorflow as tf
from tensorflow.python.framework import op_callbacks

# (name of the operation, inputs, attributes, outputs)
See = Callable[[str, List[tf.Tensor], Tuple[object, ...], List[tf.Tensor]], None]


class EagerOperations:
    """Calls `see` while it is entered. tf.debugging.enable_check_numerics stands on the same callbacks, which see the
    way back as well."""

    def __init__(self, see: See) -> None:
        self._see = see
        self._is_seeing = False

    def __enter__(self) -> EagerOperations:
        op_callbacks.add_op_callback(self._ran)
        return self

    def __exit__(self, *error: object) -> None:
        op_callbacks.remove_op_callback(self._ran)

    def _ran(
        self,
        name: bytes | str,
        inputs: tuple[tf.Tensor, ...],
        attrs: tuple[object, ...],
        outputs: tuple[tf.Tensor, ...],
        op_name: object = None,
        graph: tf.Graph | None = None,
    ) -> None:
        if self._is_seeing or graph is not None:
            return
        self._is_seeing = True
        try:
            self._see(tf.compat.as_str(name), list(inputs), attrs, list(outputs))
        finally:
            self._is_seeing = False

"""Where the loss of an optimizer's newest step is kept on the device, for the record of the step to read."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

# tf.Variable would ask the distribution strategy in force, and become one variable a replica
from tensorflow.python.ops.resource_variable_ops import ResourceVariable

from mpdoctor.examiner.keras.replicas import replica_number, replicas_in_step

# Stands where there is no number, as tf.debugging.enable_check_numerics() stops at every NaN.
UNKNOWN = -1e30


class LossTap:
    """The newest loss of one optimizer; the sum over the replicas, each of which holds its share."""

    def __init__(self) -> None:
        self._variable: Any = None
        self.scaled_by: Any = None  # the optimizer whose scale_loss gave the very tensor that was differentiated

    def put(self, loss: Any) -> None:
        """Remember a loss of any shape and dtype; a vector counts with its mean."""
        loss = tf.stop_gradient(tf.convert_to_tensor(loss))
        replicas = replicas_in_step()
        if self._variable is None or self._variable.shape[0] < replicas:
            with tf.init_scope():
                self._variable = ResourceVariable([UNKNOWN] * replicas, trainable=False, name="mpdoctor_loss")
        mean = tf.reduce_mean(tf.cast(loss, tf.float32))
        if self._variable.shape[0] == 1:
            self._variable.assign(mean[tf.newaxis])
        else:
            self._variable.scatter_nd_update([[replica_number() or 0]], [mean])

    def value(self) -> Any:
        """The loss as a scalar float32 tensor; UNKNOWN or less where a replica has put none."""
        return tf.reduce_sum(self._variable.read_value())

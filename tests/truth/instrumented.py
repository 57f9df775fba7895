"""Plain Keras that is watched, in processes without mpdoctor: what a script does at each of its first 320 steps.

    python tests/truth/instrumented.py KERAS     then, on standard input, lines of JSON: ["SCRIPT.py", "RECORD.json"]

TensorFlow and one Keras are imported once; each script runs in a child of its own, from there on as `python SCRIPT`
would. After each one a line says how the child ended. The record:

    raised       the exception that ended the script, or null
    optimizers   a row for each outermost optimizer, in the order of their first step. In lists, a value a step:
        scale      the loss scale at hand when the gradients arrived; null where nothing is scaled
        finite     whether the gradients that arrived are finite
        loss       the loss before it was scaled, "nan" and "inf" included; null where none was seen
        moved      whether any weight differed from its first value, before this step
        sound      whether all weights were finite, before this step
      and dynamic, initial, growth (of a dynamic scale, else null), last_moved, last_sound (after the last step)
"""

from __future__ import annotations

import json
import os
import runpy
import sys
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "support"))

from plain_training import Observer, is_dynamic, is_wrapper, json_number, numpy_values

MOST_STEPS = 320


class Columns:
    """One outermost optimizer: what is noted of each step, in variables on the device."""

    def __init__(self, optimizer: Any, variables: list[Any], observer: LossObserver) -> None:
        import tensorflow as tf
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        self.optimizer, self.variables, self.observer = optimizer, variables, observer
        with tf.init_scope():
            if not optimizer.built if hasattr(optimizer, "built") else False:
                optimizer.build(variables)  # Keras 3 does so on the first step; the loss scale is made there
            self.steps = ResourceVariable(0, dtype=tf.int64, trainable=False)
            self.rows = ResourceVariable(tf.zeros([MOST_STEPS + 1, 5]), trainable=False)
            self.before = [numpy_values(variable)[0] for variable in variables]

    def note(self, gradients: list[Any]) -> None:
        import tensorflow as tf

        values = [getattr(g, "values", g) for g in gradients if g is not None]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(tf.cast(v, tf.float32))) for v in values])
        now = [tf.cast(tf.convert_to_tensor(variable), tf.float32) for variable in self.variables]
        moved = tf.reduce_any([tf.reduce_any(v != w) for v, w in zip(now, self.before, strict=False)])
        sound = tf.reduce_all([tf.reduce_all(tf.math.is_finite(v)) for v in now])
        scale = scale_at_hand(self.optimizer)
        row = [tf.cast(-1.0 if scale is None else scale, tf.float32), finite, self.observer.loss_now, moved, sound]
        row = tf.stack([tf.cast(value, tf.float32) for value in row])
        at = tf.minimum(self.steps, MOST_STEPS)
        self.rows.assign(tf.tensor_scatter_nd_update(self.rows, [[at]], [row]))
        self.steps.assign_add(1)

    def row(self) -> dict[str, Any]:
        import numpy as np

        number = min(int(self.steps.numpy()), MOST_STEPS)
        rows = self.rows.numpy()[:number]
        after = [numpy_values(variable)[0] for variable in self.variables]
        scales, losses = [float(row[0]) for row in rows], [float(row[2]) for row in rows]
        return {
            "steps": int(self.steps.numpy()),
            "scale": [None if scale == -1 else json_number(scale) for scale in scales],
            "finite": [bool(row[1]) for row in rows],
            "loss": [None if loss == NOT_SEEN else json_number(loss) for loss in losses],
            "moved": [bool(row[3]) for row in rows],
            "sound": [bool(row[4]) for row in rows],
            "last_moved": any(not np.array_equal(now, then) for now, then in zip(after, self.before, strict=False)),
            "last_sound": all(bool(np.isfinite(now).all()) for now in after),
            "dynamic": is_dynamic(self.optimizer),
            "initial": json_number(self.optimizer.initial_scale) if is_dynamic(self.optimizer) else None,
            "growth": int(self.optimizer.dynamic_growth_steps) if is_dynamic(self.optimizer) else None,
        }


NOT_SEEN = -3.0e38


def scale_at_hand(optimizer: Any) -> Any:
    if not is_wrapper(optimizer):
        return getattr(optimizer, "loss_scale_factor", None)
    scale = optimizer.loss_scale if hasattr(optimizer, "loss_scale") else optimizer.dynamic_scale
    return getattr(scale, "value", scale) if not callable(getattr(scale, "value", None)) else scale


class LossObserver(Observer):
    """Watches the loss as well: what is handed to be scaled, else what a tape differentiates."""

    def __init__(self) -> None:
        super().__init__()
        self._seen, self._loss_now = False, None

    @property
    def loss_now(self) -> Any:
        import tensorflow as tf
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        if self._loss_now is None:
            with tf.init_scope():
                self._loss_now = ResourceVariable(NOT_SEEN, trainable=False)
        return self._loss_now

    def watching(self, optimizer: Any, variables: list[Any]) -> Columns:
        return Columns(optimizer, variables, self)

    def arrives(self, optimizer: Any, gradients: list[Any], variables: list[Any]) -> None:
        super().arrives(optimizer, gradients, variables)
        self._seen = False

    def watch(self, keras: str) -> None:
        super().watch(keras)
        import tensorflow as tf

        if keras == "3":
            from keras.src.optimizers import base_optimizer, loss_scale_optimizer

            owners = [
                (owner, "scale_loss")
                for owner in (base_optimizer.BaseOptimizer, loss_scale_optimizer.LossScaleOptimizer)
            ]
        else:
            from tf_keras.src.mixed_precision import loss_scale_optimizer as of_keras2

            both = (of_keras2.LossScaleOptimizer, of_keras2.LossScaleOptimizerV3)
            owners = [(owner, "get_scaled_loss") for owner in both]
        for owner, name in [*owners, (tf.GradientTape, "gradient")]:
            if name in vars(owner):
                self._note_loss(owner, name)

    def _note_loss(self, owner: type, name: str) -> None:
        original = vars(owner)[name]

        def noted(this: Any, loss: Any, *args: Any, **kwargs: Any) -> Any:
            if not self._seen and not callable(loss) and not isinstance(loss, (list, tuple, dict)):
                import tensorflow as tf

                self._seen = True
                self.loss_now.assign(tf.reduce_sum(tf.cast(loss, tf.float32)))
            return original(this, loss, *args, **kwargs)

        setattr(owner, name, noted)


def record_of_script(path: str, observer: LossObserver) -> dict[str, Any]:
    sys.argv, raised = [path], None
    try:
        runpy.run_path(path, run_name="__main__")
    except Exception as error:  # whatever it raises, that is what the script does
        raised = type(error).__name__
        traceback.print_exc()
    return {"raised": raised, "optimizers": [watched.row() for watched in observer.watched.values()]}


def serve(keras: str) -> None:
    """Importing makes no tensor and starts no thread of TensorFlow's: a child can begin from there."""
    observer = LossObserver()
    observer.watch(keras)
    for line in sys.stdin:
        script, record = json.loads(line)
        child = os.fork()
        if not child:
            os.dup2(2, 1)
            status = 1
            try:
                Path(record).write_text(json.dumps(record_of_script(script, observer)), encoding="utf-8")
                status = 0
            finally:
                os._exit(status)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)


if __name__ == "__main__":
    serve(sys.argv[1])

"""By how much the first step of a training script moves each weight, in plain Keras and without mpdoctor.

    python tests/support/first_updates.py SCRIPT.py KERAS RESULT.npz [float32]

Each LossScaleOptimizer begins with a scale of 1024, at which no first step of these scripts is skipped. `float32`:
mixed_float16 computes in float32, and the scale is 1 and never changes: whatever a loop does with it comes to nothing,
so that it trains as plain Keras does in float32. RESULT holds, by the number of the optimizer and that of the weight,
what was added to it.
"""

from __future__ import annotations

import functools
import runpy
import shlex
import sys
from pathlib import Path
from typing import Any

from marks import marks_from_source
from plain_training import Observer, Watched, numpy_values

ONE, LOW, NEVER = 1.0, 1024.0, 10**9


class FirstUpdate(Watched):
    """Besides, the weights as they are when gradients arrive for the second time."""

    def __init__(self, optimizer: Any, variables: list[Any]) -> None:
        import tensorflow as tf
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        super().__init__(optimizer, variables)
        with tf.init_scope():
            self.after = [ResourceVariable(value, trainable=False) for (value,) in self.before]

    def note(self, gradients: list[Any]) -> None:
        import tensorflow as tf

        is_second = self.steps[0] == 1
        for kept, variable in zip(self.after, self.variables, strict=True):
            now = tf.cast(getattr(variable, "_value", variable), tf.float32)
            kept.assign(tf.where(is_second, now, kept))
        super().note(gradients)

    def updates(self) -> list[Any]:
        moved = (after.numpy() - before for after, (before,) in zip(self.after, self.before, strict=True))
        if int(self.steps[0].numpy()) > 1:
            return list(moved)
        last = (numpy_values(variable)[0] for variable in self.variables)
        return [after - before for after, (before,) in zip(last, self.before, strict=True)]


class FirstUpdates(Observer):
    def watching(self, optimizer: Any, variables: list[Any]) -> FirstUpdate:
        return FirstUpdate(optimizer, variables)


def begin_with_scale(keras: str, scale: float) -> None:
    if keras == "3":
        from keras.src.optimizers.loss_scale_optimizer import LossScaleOptimizer

        LossScaleOptimizer.__init__ = functools.partialmethod(
            LossScaleOptimizer.__init__, initial_scale=scale, dynamic_growth_steps=NEVER
        )
    else:
        from tf_keras.src.mixed_precision import loss_scale_optimizer

        loss_scale_optimizer._DEFAULT_INITIAL_SCALE = scale
        loss_scale_optimizer._DEFAULT_GROWTH_STEPS = NEVER


def compute_in_float32(keras: str) -> None:
    policy: Any
    if keras == "3":
        from keras.src.dtype_policies.dtype_policy import DTypePolicy as policy
    else:
        from tf_keras.src.mixed_precision.policy import Policy as policy
    parse = policy._parse_name

    def parsed(self: Any, name: str) -> Any:
        return ("float32", "float32") if name == "mixed_float16" else parse(self, name)

    policy._parse_name = parsed


def main(script: str, keras: str, result: str, in_float32: bool) -> None:
    import numpy as np

    observer = FirstUpdates()
    observer.watch(keras)
    begin_with_scale(keras, ONE if in_float32 else LOW)
    if in_float32:
        compute_in_float32(keras)
    marks = marks_from_source(Path(script).read_text(encoding="utf-8"))
    sys.argv = [script, *shlex.split(marks.setting("args"))]
    runpy.run_path(script, run_name="__main__")
    updates = [watched.updates() for watched in observer.watched.values()]
    np.savez(
        result,
        **{
            f"{n}-{place}": update
            for n, of_optimizer in enumerate(updates)
            for place, update in enumerate(of_optimizer)
        },
    )


if __name__ == "__main__":
    main(*sys.argv[1:4], in_float32="float32" in sys.argv[4:])

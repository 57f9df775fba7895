"""Steps of a script in plain Keras, without mpdoctor: replayed at given loss scales, or fifty of them trained at one.

    python tests/truth/replayed_steps.py JOB.json

The job: script, arguments, keras ("3" or "tf_keras"), what to `do`, state and result (files), and
    half     run the script; the weights after each of the steps told and its batch go into `state`. Then each of these
             batches is run eagerly at each of the scales told: gradients, unscaled, by (step, scale)
    single   the script with float32 in the place of mixed_float16, up to its first step: gradients of the batches and
             weights in `state`, by (step, None)
    train    the script from its first step on at the one scale told: [steps run, of these skipped]

Gradients are those that the last tape gave of variables, in its order. Random numbers are drawn as `check --reference`
draws them, so that both kinds of a step have the same dropout masks.
"""

from __future__ import annotations

import json
import os
import pickle
import runpy
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[2]))

MOST_STEPS = 50


class Job:
    """`around(model, run, batch)` takes the place of each step that the script's first model takes."""

    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.steps: list[int] = told.get("steps", [])
        self.scales: list[float] = told.get("scales", [])
        self._taken = self._skipped = 0
        self._model: Any = None
        self._state: dict[int, Any] = {}

    def run(self) -> None:
        watch_steps(self.told["keras"], self._around)
        path = Path(self.told["script"])
        text = path.read_text(encoding="utf-8")
        os.chdir(path.parent)
        if self.told["do"] == "single":
            sys.path.insert(0, str(path.parent))
            path = Path(self.told["state"]).with_name(f"{path.stem}_float32.py")
            path.write_text(text.replace("mixed_float16", "float32"), encoding="utf-8")
        sys.argv = [str(path), *self.told.get("arguments", [])]
        runpy.run_path(str(path), run_name="__main__")
        if self.told["do"] != "train":
            raise RuntimeError("the script has ended before all steps were seen")
        self._end([self._taken, self._skipped])

    def _around(self, model: Any, run: Callable[[Any], Any], batch: Any) -> Any:
        if self._model is None:
            self._model = model
        if model is not self._model:
            return run(batch)
        outputs: Any = getattr(self, f"_{self.told['do']}")(model, run, batch)
        return outputs

    def _half(self, model: Any, run: Callable[[Any], Any], batch: Any) -> Any:
        outputs = run(batch)
        if self._taken in self.steps:
            self._state[self._taken] = batch, [numpy_of(variable) for variable in model.variables]
        self._taken += 1
        if len(self._state) == len(self.steps):
            Path(self.told["state"]).write_bytes(pickle.dumps(as_arrays(self._state)))
            self._end({(step, scale): self._gradients(step, scale) for step in self.steps for scale in self.scales})
        return outputs

    def _single(self, model: Any, run: Callable[[Any], Any], batch: Any) -> None:
        if self.told["keras"] != "3" and not hasattr(model.optimizer, "_loss_scale"):
            from tf_keras.mixed_precision import LossScaleOptimizer  # a train step of Keras 2 asks it to scale

            model.optimizer = LossScaleOptimizer(model.optimizer, dynamic=False, initial_scale=1.0)
        if not model.built or not model.trainable_variables:
            run(batch)
        self._state = pickle.loads(Path(self.told["state"]).read_bytes())
        self._end({(step, None): self._gradients(step, 1.0) for step in self.steps})

    def _train(self, model: Any, run: Callable[[Any], Any], batch: Any) -> Any:
        """The scale is set before each step: one that grows in between is no longer the one that is tried."""
        (scale,) = self.scales
        set_scale(model.optimizer, scale)
        outputs = run(batch)
        self._taken += 1
        self._skipped += scale_of(model.optimizer) < scale
        if self._taken == MOST_STEPS:
            self._end([self._taken, self._skipped])
        return outputs

    def _gradients(self, step: int, scale: float) -> list[Any]:
        import numpy as np
        import tensorflow as tf

        from mpdoctor.examiner.reference.same_draws import same_draws

        batch, values = self._state[step]
        variables = list(self._model.variables)
        assert len(variables) == len(values), (len(variables), len(values))
        for variable, value in zip(variables, values, strict=True):
            variable.assign(value)
        scaled = set_scale(self._model.optimizer, scale)
        tf.random.set_seed(1)
        with same_draws("float16"), tape_watched() as seen:
            self._model.train_step(as_tensors(batch))
        return [np.asarray(tf.convert_to_tensor(g), np.float32) / (scale if scaled else 1.0) for g in seen[-1]]

    def _end(self, result: object) -> None:
        Path(self.told["result"]).write_bytes(pickle.dumps(result))
        sys.stdout.flush()
        os._exit(0)


class tape_watched:
    """Gradients that tapes give of variables while it is entered, in lists."""

    def __enter__(self) -> list[list[Any]]:
        import tensorflow as tf

        self.seen: list[list[Any]] = []
        self._original = original = tf.GradientTape.gradient

        def gradient(tape: Any, target: Any, sources: Any, *args: Any, **kwargs: Any) -> Any:
            found = original(tape, target, sources, *args, **kwargs)
            if all(hasattr(source, "assign") for source in tf.nest.flatten(sources)):
                self.seen.append([g for g in tf.nest.flatten(found) if g is not None])
            return found

        tf.GradientTape.gradient = gradient
        return self.seen

    def __exit__(self, *_: object) -> None:
        import tensorflow as tf

        tf.GradientTape.gradient = self._original


# --- Keras ------------------------------------------------------------------------------------------------------------
def watch_steps(keras: str, around: Callable[[Any, Callable[[Any], Any], Any], Any]) -> None:
    """`around(model, run, batch)` is called for each batch of fit() and train_on_batch()."""
    if keras == "3":
        from keras.src.backend.tensorflow.trainer import TensorFlowTrainer as Trainer
    else:
        from tf_keras.src.engine.training import Model as Trainer
    make = Trainer.make_train_function

    def make_watched(model: Any, force: bool = False) -> Any:
        if model.train_function is not None and not force:
            return model.train_function
        if keras == "3":
            model.steps_per_execution = 1
        elif model._steps_per_execution is not None:
            model._steps_per_execution.assign(1)
        made = make(model, force) or model.train_function

        def run(batch: Any) -> Any:
            return made(one_batch(keras, batch))

        model.train_function = lambda iterator: around(model, run, next(iterator))
        return model.train_function

    Trainer.make_train_function = make_watched


def one_batch(keras: str, batch: Any) -> Iterator[Any]:
    import tensorflow as tf

    return iter([batch]) if keras == "3" else iter(tf.data.Dataset.from_tensors(batch))


def set_scale(optimizer: Any, scale: float) -> bool:
    """Of the outermost wrapper; whether there is one."""
    if hasattr(optimizer, "_loss_scale"):  # Keras 2
        if optimizer.dynamic:
            optimizer._loss_scale.current_loss_scale.assign(scale)
        else:
            optimizer._loss_scale = scale
    elif hasattr(optimizer, "inner_optimizer"):
        optimizer.initial_scale = scale
        if optimizer.built:
            optimizer.dynamic_scale.assign(scale)
    else:
        return False
    return True


def scale_of(optimizer: Any) -> float:
    if hasattr(optimizer, "_loss_scale"):
        return float(optimizer.loss_scale)
    return float(optimizer.dynamic_scale if optimizer.built else optimizer.initial_scale)


def numpy_of(variable: Any) -> Any:
    import tensorflow as tf

    return tf.convert_to_tensor(getattr(variable, "value", variable) if hasattr(variable, "path") else variable).numpy()


def as_arrays(state: dict[int, Any]) -> dict[int, Any]:
    import tensorflow as tf

    def array(value: Any) -> Any:
        return value.numpy() if hasattr(value, "numpy") else value

    return {step: (tf.nest.map_structure(array, batch), values) for step, (batch, values) in state.items()}


def as_tensors(batch: Any) -> Any:
    import tensorflow as tf

    return tf.nest.map_structure(lambda value: value if value is None else tf.convert_to_tensor(value), batch)


if __name__ == "__main__":
    Job(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))).run()

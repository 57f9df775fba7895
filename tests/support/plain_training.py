"""What a training script does without mpdoctor: Keras' own optimizers, the script's own number of steps.

    python tests/support/plain_training.py SCRIPT.py KERAS       run one script to its end, print its row as JSON
    python tests/support/plain_training.py --table [NAME ...]    run the battery, each script in a process of its own;
                                                                 the rows go to fixtures/battery/plain_training.json

Nothing is adopted, replaced or stopped: every optimizer class' own entry is wrapped by one that first notes, in
variables on the device, the scale at hand and whether the gradients that arrive are finite. What is skipped is then
decided and done by Keras. A row per optimizer, in the order of their first step:

    steps           how often gradients arrived
    skipped         steps (from 0) whose gradients were not finite and which a wrapper skipped: "0-3 17"
    scale           loss scale after the last step; null where nothing is scaled
    initial, growth initial scale and growth interval of a dynamic scale, else null
    weights_finite  whether all weights that it trains are finite at the end, on every replica
    weights_moved   whether any weight that it trains has changed since its first step

Beside them `raised`, the exception that ended the script, and `loss`: "nan" or "inf" where fit() put that into its
history last.
"""

from __future__ import annotations

import json
import math
import os
import runpy
import shlex
import subprocess
import sys
import threading
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from marks import marks_from_source

BATTERY = Path(__file__).parents[2] / "fixtures" / "battery"
TABLE = BATTERY / "plain_training.json"
MOST_STEPS, MOST_REPLICAS = 1000, 2
AT_ONCE = 2


class Watched:
    """One outermost optimizer: counters on the device, one column a replica, and its weights as they were."""

    def __init__(self, optimizer: Any, variables: list[Any]) -> None:
        import tensorflow as tf
        from tensorflow.python.ops.resource_variable_ops import ResourceVariable

        self.optimizer, self.variables = optimizer, variables
        with tf.init_scope():
            self.steps = [ResourceVariable(0, dtype=tf.int64, trainable=False) for _ in range(MOST_REPLICAS)]
            self.finite = [ResourceVariable(tf.ones([MOST_STEPS]), trainable=False) for _ in range(MOST_REPLICAS)]
            self.before = [numpy_values(variable) for variable in variables]

    def note(self, gradients: list[Any]) -> None:
        import tensorflow as tf

        values = [getattr(g, "values", g) for g in gradients if g is not None]
        finite = tf.reduce_all([tf.reduce_all(tf.math.is_finite(tf.cast(v, tf.float32))) for v in values])
        steps, flags = self.steps[replica()], self.finite[replica()]
        flags.assign(tf.tensor_scatter_nd_update(flags, [[steps]], [tf.cast(finite, tf.float32)]))
        steps.assign_add(1)

    def row(self) -> dict[str, Any]:
        import numpy as np

        steps = int(self.steps[0].numpy())
        # Keras 3 looks at the first replica's gradients alone, Keras 2 at their sum.
        looked_at = self.finite[:1] if hasattr(self.optimizer, "scale_loss") else self.finite
        finite = np.min([flags.numpy()[:steps] for flags in looked_at], axis=0)
        after = [numpy_values(variable) for variable in self.variables]
        return {
            "steps": steps,
            "skipped": runs_from_numbers(np.flatnonzero(finite == 0)) if is_dynamic(self.optimizer) else "",
            "scale": loss_scale(self.optimizer),
            "initial": float(self.optimizer.initial_scale) if is_dynamic(self.optimizer) else None,
            "growth": int(self.optimizer.dynamic_growth_steps) if is_dynamic(self.optimizer) else None,
            "weights_finite": all(bool(np.isfinite(v).all()) for values in after for v in values),
            "weights_moved": any(
                not np.array_equal(old, new)
                for then, now in zip(self.before, after, strict=True)
                for old, new in zip(then, now, strict=True)
            ),
        }


def runs_from_numbers(numbers: Any) -> str:
    """ "0-3 17" for 0, 1, 2, 3, 17."""
    runs: list[list[int]] = []
    for number in map(int, numbers):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return " ".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def numbers_from_runs(runs: str) -> list[int]:
    ends = [[int(end) for end in run.split("-")] for run in runs.split()]
    return [number for run in ends for number in range(run[0], run[-1] + 1)]


def replica() -> int:
    import tensorflow as tf

    context = tf.distribute.get_replica_context()
    if context is None or context.num_replicas_in_sync == 1:
        return 0
    return int(tf.get_static_value(tf.convert_to_tensor(context.replica_id_in_sync_group)))


def numpy_values(variable: Any) -> list[Any]:
    """The variable's value on every replica, as float32."""
    import numpy as np

    variable = getattr(variable, "_value", variable)  # Keras 3 keeps the TensorFlow variable inside
    return [np.array(local.numpy(), dtype="float32") for local in getattr(variable, "values", None) or [variable]]


def is_wrapper(optimizer: Any) -> bool:
    return getattr(optimizer, "inner_optimizer", None) is not None


def loss_scale(optimizer: Any) -> float | str | None:
    if not is_wrapper(optimizer):
        factor = getattr(optimizer, "loss_scale_factor", None)
        return None if factor is None else float(factor)
    scale = optimizer.loss_scale if hasattr(optimizer, "loss_scale") else optimizer.dynamic_scale
    return json_number(scale.numpy() if hasattr(scale, "numpy") else scale)


def json_number(number: Any) -> float | str | None:
    """As JSON can hold it: "nan", "inf"."""
    if number is None:
        return None
    value = float(number)
    return value if math.isfinite(value) else str(value)


def is_dynamic(optimizer: Any) -> bool:
    return is_wrapper(optimizer) and getattr(optimizer, "dynamic", True) is not False


class Observer:
    """Wraps every way into an optimizer, in each Keras that the script imports."""

    def __init__(self) -> None:
        self.watched: dict[int, Any] = {}
        self._inner: set[int] = set()
        self._entered = threading.local()
        self.loss: str | None = None

    def arrives(self, optimizer: Any, gradients: list[Any], variables: list[Any]) -> None:
        inner = getattr(optimizer, "inner_optimizer", None)
        while inner is not None:
            self._inner.add(id(inner))
            inner = getattr(inner, "inner_optimizer", None)
        if id(optimizer) in self._inner:
            return
        if id(optimizer) not in self.watched:
            self.watched[id(optimizer)] = self.watching(optimizer, list(variables))
        self.watched[id(optimizer)].note(gradients)

    def watching(self, optimizer: Any, variables: list[Any]) -> Any:
        """What notes the steps of an optimizer that was not seen before."""
        return Watched(optimizer, variables)

    def watch(self, keras: str) -> None:
        """Importing the modules makes no tensor: a script may still set up its devices."""
        if keras == "3":
            from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
            from keras.src.optimizers import base_optimizer, loss_scale_optimizer

            self._keep_loss(TensorFlowTrainer)
            for owner in (base_optimizer.BaseOptimizer, loss_scale_optimizer.LossScaleOptimizer):
                self._wrap(
                    owner,
                    "apply",
                    lambda self, grads, trainable_variables=None: (
                        grads,
                        trainable_variables or self._trainable_variables,
                    ),
                )
            return
        from tf_keras.src.engine.training import Model
        from tf_keras.src.mixed_precision import loss_scale_optimizer
        from tf_keras.src.optimizers import optimizer
        from tf_keras.src.optimizers.legacy import optimizer_v2

        self._keep_loss(Model)
        for owner in (
            optimizer._BaseOptimizer,
            optimizer.Optimizer,
            optimizer_v2.OptimizerV2,
            loss_scale_optimizer.LossScaleOptimizer,
            loss_scale_optimizer.LossScaleOptimizerV3,
        ):
            if "apply_gradients" in vars(owner):
                self._wrap(owner, "apply_gradients", lambda self, pairs, *args, **kwargs: zip(*pairs, strict=True))

    def _keep_loss(self, model: type) -> None:
        fit = model.fit

        def fit_and_keep(*args: Any, **kwargs: Any) -> Any:
            history = fit(*args, **kwargs)
            loss = json_number(history.history.get("loss", [None])[-1])
            self.loss = loss if isinstance(loss, str) else None
            return history

        model.fit = fit_and_keep

    def _wrap(self, owner: Any, name: str, gradients_and_variables: Any) -> None:
        original = vars(owner)[name]

        def entry(optimizer: Any, first: Any, *args: Any, **kwargs: Any) -> Any:
            first = list(first)
            if getattr(self._entered, "by", None) is optimizer:  # a subclass' entry has called its base's
                return original(optimizer, first, *args, **kwargs)
            gradients, variables = gradients_and_variables(optimizer, first, *args, **kwargs)
            self.arrives(optimizer, list(gradients), list(variables))
            self._entered.by = optimizer
            try:
                return original(optimizer, first, *args, **kwargs)
            finally:
                self._entered.by = None

        setattr(owner, name, entry)


def row_of_script(path: Path, keras: str) -> dict[str, Any]:
    """Run it as `python SCRIPT` would."""
    observer = Observer()
    observer.watch(keras)
    marks = marks_from_source(path.read_text(encoding="utf-8"))
    sys.argv = [str(path), *shlex.split(marks.setting("args"))]
    raised = None
    try:
        runpy.run_path(str(path), run_name="__main__")
    except Exception as error:  # whatever it raises, that is what the script does
        raised = type(error).__name__
        traceback.print_exc()
    return {
        "raised": raised,
        "loss": observer.loss,
        "optimizers": [watched.row() for watched in observer.watched.values()],
    }


def row_from_own_process(path: Path, keras: str) -> dict[str, Any]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "01"[keras == "tf_keras"]}
    done = subprocess.run(
        [sys.executable, __file__, path, keras], env=environment, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise RuntimeError(f"{path.name} in {keras}:\n{done.stderr[-3000:]}")
    row: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return row


def scripts(names: list[str]) -> dict[str, tuple[Path, str]]:
    """NAME-KERAS of every script of the battery (or of those whose name holds one of `names`)."""
    found = {}
    for path in sorted(BATTERY.rglob("*.py")):
        for keras in marks_from_source(path.read_text(encoding="utf-8")).keras:
            name = f"{path.relative_to(BATTERY).with_suffix('').as_posix()}-{keras}"
            if not names or any(wanted in name for wanted in names):
                found[name] = (path, keras)
    return found


def rows_of_table() -> dict[str, dict[str, Any]]:
    rows: dict[str, dict[str, Any]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return rows


def write_table(names: list[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        runs = {name: pool.submit(row_from_own_process, *script) for name, script in scripts(names).items()}
        for name, run in runs.items():
            print(name, json.dumps(run.result()), flush=True)
    table = {**(rows_of_table() if TABLE.exists() else {}), **{name: run.result() for name, run in runs.items()}}
    known = scripts([])
    lines = [f"  {json.dumps(name)}: {json.dumps(row)}" for name, row in sorted(table.items()) if name in known]
    TABLE.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


if __name__ == "__main__":
    if sys.argv[1] == "--table":
        write_table(sys.argv[2:])
    else:
        print(json.dumps(row_of_script(Path(sys.argv[1]), sys.argv[2])))

"""One of two workers of a MultiWorkerMirroredStrategy, which TF_CONFIG numbers, in the Keras at hand.

`python tests/support/live_two_workers.py FOLDER` trains with mpdoctor's LossScaleOptimizer and prints as JSON what each
training ended with. It needs TensorFlow and, of this project, mpdoctor.training alone; TF_USE_LEGACY_KERAS=1 takes
tf_keras.
"""

import faulthandler
import json
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from mpdoctor.training import LossScaleMonitor, LossScaleOptimizer

keras = tf.keras
IS_KERAS3 = getattr(keras, "__version__", "2").startswith("3")
WORKER = json.loads(os.environ["TF_CONFIG"])["task"]["index"]
STEPS, BAD_STEP, BAD_WORKER = 4, 2, 1


def loop(strategy, compiled):
    """[weight, scale] after each step of a loop; in one step the second worker's gradient is NaN."""
    with strategy.scope():
        variable = tf.Variable([1.0])
        optimizer = LossScaleOptimizer(keras.optimizers.SGD(0.5), initial_scale=16.0)
        if hasattr(optimizer, "build"):
            optimizer.build([variable])

    def step_of_replica(gradient):
        scale = optimizer.loss_scale if IS_KERAS3 else 1.0
        optimizer.apply_gradients([(gradient * scale, variable)])

    def step(gradient):
        strategy.run(step_of_replica, args=(gradient,))

    taken = tf.function(step) if compiled else step
    rows = []
    for number in range(STEPS):
        is_bad = number == BAD_STEP and WORKER == BAD_WORKER
        taken(tf.constant([float("nan") if is_bad else 0.25 * (WORKER + 1)]))
        rows.append([float(variable.numpy()[0]), float(optimizer.loss_scale)])
    return rows


def fit(strategy, folder):
    """[weights, scale, skipped steps] after a fit whose last batch is NaN in the second worker's part."""
    with strategy.scope():
        model = keras.Sequential([keras.Input((1,)), keras.layers.Dense(1, use_bias=False, kernel_initializer="ones")])
        model.compile(LossScaleOptimizer(keras.optimizers.SGD(0.25), initial_scale=16.0), "mse")
    x = np.ones([8, 1], "float32")
    x[7] = np.nan
    batches = tf.data.Dataset.from_tensor_slices((x, np.zeros([8, 1], "float32"))).batch(2)
    sharding = tf.data.Options()
    sharding.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.DATA
    monitor = LossScaleMonitor(folder / "run.mpdoctor")
    history = model.fit(batches.with_options(sharding), epochs=1, verbose=0, callbacks=[monitor]).history
    weights = [float(weight) for weight in np.concatenate([w.ravel() for w in model.get_weights()])]
    return [weights, float(model.optimizer.loss_scale), history["skipped_steps"]]


def wait_for_the_other(folder):
    """A worker that ends takes the other one's last exchange with it."""
    (folder / f"done_{WORKER}").touch()
    while not (folder / f"done_{1 - WORKER}").exists():
        time.sleep(0.05)


def main():
    faulthandler.dump_traceback_later(240, exit=True)  # of a worker that waits for the other one for ever
    folder = Path(sys.argv[1])
    strategy = tf.distribute.MultiWorkerMirroredStrategy()
    found = {"workers": strategy.num_replicas_in_sync, "graph": loop(strategy, True), "eager": loop(strategy, False)}
    if not IS_KERAS3:  # its own fit does not train on two workers
        found["fit"] = fit(strategy, folder)
    print("\n" + json.dumps(found), flush=True)
    wait_for_the_other(folder)


if __name__ == "__main__":
    main()

"""What does a step cost with mpdoctor.training.LossScaleOptimizer instead of Keras' own, and with LossScaleMonitor?

The same training in four models, in one process for each; in float32, whose steps are the shortest on a CPU. Both
train by turns, a round of steps each, so that a busy machine slows both. It prints the median milliseconds of a step,
the median of the rounds' ratios and, of the same, the quartiles. With --processor it is processor time of one thread,
which tells more on a busy machine.

    python -m benchmarks.optimizer_cost --rounds 20 --keras 3 [--processor]
    python -m benchmarks.optimizer_cost --rounds 5 --monitor [--measure-every 1000]
    python -m benchmarks.optimizer_cost --rounds 5 --nothing
    python -m benchmarks.optimizer_cost --rounds 9 --alone

With --monitor each round is a fit, with and without the callback, both with Keras' own optimizer. A step is measured
in one round of several, where a round has fewer steps than --measure-every says. With --nothing neither fit has the
callback: how far its ratio is from 1 is what this benchmark cannot tell from a cost. With --alone a fit's steps do
nothing, and what is compared is processor time: what the monitor adds, beside that of a step, also on a busy machine.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys

AIM = 1.02
STEPS = {"mlp": 60, "cnn": 30, "mobilenet": 8, "transformer": 20}  # of a round
FITTED = 5  # times as many where a round is a fit, which takes a while to begin

SCRIPT = """
import json, os, tempfile, time

import numpy as np
import tensorflow as tf

from mpdoctor.training import LossScaleMonitor, LossScaleOptimizer

clock = time.perf_counter
if os.environ["BENCH_PROCESSOR"]:
    clock = time.process_time
    tf.config.threading.set_intra_op_parallelism_threads(1)  # another one waits for work by computing
    tf.config.threading.set_inter_op_parallelism_threads(1)
MODEL, STEPS, ROUNDS = os.environ["BENCH_MODEL"], int(os.environ["BENCH_STEPS"]), int(os.environ["BENCH_ROUNDS"])
keras = tf.keras
layers = keras.layers


def mlp():
    hidden = [layers.Dense(256, "relu") for _ in range(3)]
    return keras.Sequential([keras.Input((64,)), *hidden, layers.Dense(10, dtype="float32")]), (64, 64)


def cnn():
    blocks = [part for n in (16, 32) for part in (layers.Conv2D(n, 3, activation="relu"), layers.MaxPooling2D())]
    head = [layers.Flatten(), layers.Dense(10, dtype="float32")]
    return keras.Sequential([keras.Input((28, 28, 1)), *blocks, *head]), (32, 28, 28, 1)


def mobilenet():
    base = keras.applications.MobileNetV2((64, 64, 3), include_top=False, weights=None, pooling="avg", alpha=0.35)
    return keras.Sequential([base, layers.Dense(10, dtype="float32")]), (16, 64, 64, 3)


def transformer():
    x = inputs = keras.Input((32, 64))
    for _ in range(2):
        x = layers.LayerNormalization()(x + layers.MultiHeadAttention(4, 16)(x, x))
        x = layers.LayerNormalization()(x + layers.Dense(64)(layers.Dense(128, "relu")(x)))
    outputs = layers.Dense(10, dtype="float32")(layers.GlobalAveragePooling1D()(x))
    return keras.Model(inputs, outputs), (32, 32, 64)


def compiled(wrapper):
    keras.utils.set_random_seed(1)
    model, (batch, *shape) = globals()[MODEL]()
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(wrapper(keras.optimizers.Adam(1e-4)), loss, jit_compile=False)
    x = tf.constant(np.random.rand(batch, *shape), tf.float32)
    y = tf.constant(np.random.randint(0, 10, batch))
    data = tf.data.Dataset.from_tensors((x, y)).repeat()
    model.fit(data, steps_per_epoch=5, verbose=0)  # traces
    return model, data


def stepping(wrapper):
    model, data = compiled(wrapper)
    iterator = iter(data)
    function = model.make_train_function() or model.train_function

    def steps():
        for _ in range(STEPS):
            result = function(iterator)
        tf.nest.map_structure(lambda value: value.numpy() if hasattr(value, "numpy") else value, result)

    return steps


def fitting(callbacks):
    model, data = compiled(keras.mixed_precision.LossScaleOptimizer)
    return lambda: model.fit(data, steps_per_epoch=STEPS, verbose=0, callbacks=callbacks)


def alone(path):
    # [processor time of a step, the same and what the monitor adds to it] for each round
    model, data = compiled(keras.mixed_precision.LossScaleOptimizer)
    function, iterator = model.train_function, iter(data)

    def spent(do):
        began = time.process_time()
        do()
        return 1000 * (time.process_time() - began) / STEPS

    def steps():
        for _ in range(STEPS):
            function(iterator)

    def fit(callbacks):
        model.train_function = lambda _: {"loss": tf.constant(0.0)}
        model.fit(data, steps_per_epoch=STEPS, verbose=0, callbacks=callbacks)

    monitor = LossScaleMonitor(path)
    return [
        [own, own + spent(lambda: fit([monitor])) - spent(lambda: fit([]))]
        for own in (spent(steps) for _ in range(ROUNDS + 1))
    ]


def milliseconds(steps):
    began = clock()
    steps()
    return 1000 * (clock() - began) / STEPS


path = os.path.join(tempfile.mkdtemp(), "run.mpdoctor")
if os.environ["BENCH_MONITOR"] == "alone":
    print(json.dumps(alone(path)[1:]))
    raise SystemExit
if os.environ["BENCH_MONITOR"] == "nothing":
    both = [fitting([]), fitting([])]
elif os.environ["BENCH_MONITOR"]:
    every = int(os.environ["BENCH_MONITOR"]) or None
    both = [fitting([]), fitting([LossScaleMonitor(path, measure_every=every)])]
else:
    both = [stepping(wrapper) for wrapper in (keras.mixed_precision.LossScaleOptimizer, LossScaleOptimizer)]
rounds = []
for number in range(ROUNDS + 1):
    order = (0, 1) if number % 2 else (1, 0)
    taken = {which: milliseconds(both[which]) for which in order}
    rounds.append([taken[0], taken[1]])
print(json.dumps(rounds[1:]))
"""


def rounds_of(model: str, rounds: int, keras: str, monitor: str, processor: bool) -> list[list[float]]:
    """[milliseconds of a step with Keras' own, with ours] for each round. CalledProcessError where it fails."""
    steps = STEPS[model] * (FITTED if monitor else 1)
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_USE_LEGACY_KERAS": str(int(keras == "tf_keras")),
        "BENCH_MODEL": model,
        "BENCH_STEPS": str(steps),
        "BENCH_ROUNDS": str(rounds),
        "BENCH_MONITOR": monitor,
        "BENCH_PROCESSOR": "1" if processor else "",
    }
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT], env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=20, help="rounds of each, alternating (default 20)")
    parser.add_argument("--keras", choices=("3", "tf_keras"), default="3")
    parser.add_argument("--models", nargs="+", choices=tuple(STEPS), default=tuple(STEPS))
    parser.add_argument("--monitor", action="store_true", help="the cost of LossScaleMonitor, in fits")
    parser.add_argument(
        "--measure-every", type=int, default=0, help="with --monitor: its measure_every (default: none)"
    )
    parser.add_argument("--nothing", action="store_true", help="two fits alike: what the benchmark itself is worth")
    parser.add_argument("--alone", action="store_true", help="what LossScaleMonitor adds, in processor time")
    parser.add_argument("--processor", action="store_true", help="processor time of one thread, not the clock's")
    given = parser.parse_args()
    monitor = str(given.measure_every) if given.monitor else ""
    monitor = "alone" if given.alone else "nothing" if given.nothing else monitor
    print(f"Keras {given.keras}, milliseconds a step, medians of {given.rounds} alternating rounds")
    columns = ("without", "monitored") if monitor else ("Keras own", "ours")
    print(f"{'model':14}{columns[0]:>12}{columns[1]:>12}{'ratio':>8}{'quartiles':>16}")
    ratios = []
    for model in given.models:
        rounds = rounds_of(model, given.rounds, given.keras, monitor, given.processor)
        own, ours = (statistics.median(times) for times in zip(*rounds, strict=True))
        of_rounds = [ours_of / own_of for own_of, ours_of in rounds]
        lower, middle, upper = statistics.quantiles(of_rounds * (2 if len(of_rounds) == 1 else 1), n=4)
        ratios.append(middle)
        print(f"{model:14}{own:12.2f}{ours:12.2f}{middle:8.3f}{lower:9.3f}{upper:7.3f}", flush=True)
    print(f"largest ratio {max(ratios):.3f}, aim {AIM:.2f} or less")


if __name__ == "__main__":
    main()

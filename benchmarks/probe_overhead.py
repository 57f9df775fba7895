"""What does a step cost while mpdoctor watches it?

The same training, four ways: with Keras' own LossScaleOptimizer; under `mpdoctor check`; with
tf.debugging.enable_check_numerics; with enable_dump_debug_info(FULL_HEALTH). A callback of the script's own takes the
time of every step, the first ones (tracing) left out. The four alternate, so that a busy machine slows all; it prints
medians in milliseconds and their ratio to plain Keras.

    python benchmarks/probe_overhead.py --runs 5 --keras 3
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

AIM = 1.10
STEPS = {"mlp": 300, "cnn": 150, "mobilenet": 40, "transformer": 100}
WARM_UP = 10
SLOW = 6  # FULL_HEALTH and check_numerics train a part of the steps only
MODES = ("plain", "mpdoctor", "check_numerics", "full_health")

SCRIPT = """
import os, statistics, sys, tempfile, time

import numpy as np
import tensorflow as tf

MODEL, STEPS, MODE, OUT = (os.environ["BENCH_" + name] for name in ("MODEL", "STEPS", "MODE", "OUT"))
if MODE == "check_numerics":
    tf.debugging.enable_check_numerics()
if MODE == "full_health":
    tf.debugging.experimental.enable_dump_debug_info(tempfile.mkdtemp(), "FULL_HEALTH", circular_buffer_size=1000)
keras = tf.keras
keras.utils.set_random_seed(1)
keras.mixed_precision.set_global_policy("mixed_float16")
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


class Clock(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.times = []

    def on_train_batch_end(self, batch, logs=None):
        self.times.append(time.perf_counter())
        if len(self.times) == int(STEPS):
            gaps = [b - a for a, b in zip(self.times, self.times[1:])]
            with open(OUT, "w") as file:
                file.write(str(1000 * statistics.median(gaps[WARM_UP:])))


model, (batch, *shape) = globals()[MODEL]()
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(keras.optimizers.Adam(1e-4), loss, jit_compile=False)
x = np.random.rand(batch * 10, *shape).astype("float32")
y = np.random.randint(0, 10, batch * 10)
model.fit(x, y, batch_size=batch, epochs=int(STEPS) // 10 + 1, verbose=0, callbacks=[Clock()])
""".replace("WARM_UP", str(WARM_UP))


def milliseconds(model: str, mode: str, keras: str) -> float:
    """Median time of one step. Raises CalledProcessError where the training fails, OSError where nothing was timed."""
    steps = max(STEPS[model] // (SLOW if mode in MODES[2:] else 1), WARM_UP + 10)
    with tempfile.TemporaryDirectory() as folder:
        script, out = Path(folder, "train.py"), Path(folder, "median")
        script.write_text(SCRIPT)
        command = [sys.executable, str(script)]
        if mode == "mpdoctor":
            options = ["--steps", str(steps + 1), "--budget", "600", "--exit-zero"]
            command = [sys.executable, "-m", "mpdoctor", "check", str(script), *options]
        environment = {
            **os.environ,
            "TF_CPP_MIN_LOG_LEVEL": "3",
            "TF_USE_LEGACY_KERAS": str(int(keras == "tf_keras")),
            "TMPDIR": folder,
            "BENCH_MODEL": model,
            "BENCH_STEPS": str(steps),
            "BENCH_MODE": mode,
            "BENCH_OUT": str(out),
        }
        subprocess.run(command, env=environment, capture_output=True, check=True, timeout=900)
        return float(out.read_text())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each, alternating (default 5)")
    parser.add_argument("--keras", choices=("3", "tf_keras"), default="3")
    parser.add_argument("--models", nargs="+", choices=tuple(STEPS), default=tuple(STEPS))
    parser.add_argument("--modes", nargs="+", choices=MODES, default=MODES)
    given = parser.parse_args()
    print(f"Keras {given.keras}, milliseconds a step (ratio to plain); medians of {given.runs} alternating runs")
    print(f"{'model':14}" + "".join(f"{mode:>24}" for mode in given.modes))
    ratios = []
    for model in given.models:
        times: dict[str, list[float]] = {mode: [] for mode in given.modes}
        for _ in range(given.runs):
            for mode in given.modes:
                times[mode].append(milliseconds(model, mode, given.keras))
        plain = statistics.median(times[MODES[0]])
        medians = {mode: statistics.median(times[mode]) for mode in given.modes}
        ratios.append(medians.get("mpdoctor", plain) / plain)
        print(f"{model:14}" + "".join(f"{f'{t:.2f} ({t / plain:.2f})':>24}" for t in medians.values()), flush=True)
    print(f"mpdoctor's largest ratio {max(ratios):.2f}, aim {AIM:.2f} or less")


if __name__ == "__main__":
    main()

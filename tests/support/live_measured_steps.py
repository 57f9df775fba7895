"""What LossScaleMonitor(measure_every=n) measures in the Keras at hand, and that the training is what it is without.

`python tests/support/live_measured_steps.py [name ...]` prints {check: what went wrong, ""} as JSON. It needs
TensorFlow and, of this project, mpdoctor.training alone; TF_USE_LEGACY_KERAS=1 takes tf_keras.
"""

from __future__ import annotations

import json
import os
import random
import sys
import tempfile
import time
import traceback
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from mpdoctor.training import LossScaleMonitor, LossScaleOptimizer
from mpdoctor.training.monitoring.measuring.numbers import BIAS, exponents_of, numbers_of

keras = tf.keras
IS_KERAS3 = getattr(keras, "__version__", "2").startswith("3")
RELEASE = tuple(int(number) for number in tf.__version__.split(".")[:2])
KerasOwn = keras.mixed_precision.LossScaleOptimizer
SUBNORMAL = 2.0**-20
INPUTS = np.random.RandomState(7).normal(size=(30, 5, 3)).astype("float32")
TARGETS = INPUTS[:, 0, :1]


def seeded():
    keras.backend.clear_session()
    tf.random.set_seed(1)
    np.random.seed(1)
    random.seed(1)


def model_with_state(step=None, metrics=("mae",), **compiled):
    """Dropout, moving averages, a recurrent layer and metrics: all that a step keeps beside its weights."""
    keras.mixed_precision.set_global_policy("mixed_float16")
    layers = keras.layers
    within = [layers.Dense(4, "relu", name="one"), layers.Dropout(0.5, seed=3, name="half")]
    parts = [
        layers.LSTM(4, name="recurrent"),
        layers.BatchNormalization(name="norm"),
        keras.Sequential(within, name="inner"),
        layers.GaussianNoise(0.1, name="noise"),
        layers.Dense(1, dtype="float32", name="last"),
    ]
    model = (step or keras.Sequential)(parts)
    model.compile(keras.optimizers.Adam(1e-2), "mse", metrics=list(metrics) or None, **compiled)
    return model


def made(*args, **kwargs):
    seeded()
    return model_with_state(*args, **kwargs)


def fitted(model, monitor=None, epochs=2, given=None):
    """(all numbers that the training leaves behind, what was warned of)"""
    data = given or tf.data.Dataset.from_tensor_slices((INPUTS, TARGETS)).batch(4)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = model.fit(data, epochs=epochs, verbose=0, callbacks=[monitor] if monitor else [])
    kept = {name: values for name, values in history.history.items() if name not in ("loss_scale", "skipped_steps")}
    optimizer = model.optimizer
    variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
    numbers = [*model.get_weights(), *(tf.convert_to_tensor(v).numpy() for v in variables)]
    said = [str(w.message) for w in caught if "measured" in str(w.message)]
    return ([number.tobytes() for number in numbers], kept), said


def run_path():
    return os.path.join(tempfile.mkdtemp(), "run.mpdoctor")


def measured_in(path):
    return [line for line in lines_of(path) if isinstance(line, dict) and line.get("event") == "measured"]


def lines_of(path):
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def part(line, kind, name):
    (found,) = [row for row in line[kind] if row[0].endswith(name)]
    return found


# --- the numbers --------------------------------------------------------------------------------------------------
def check_numbers_of_whatever_a_tensor_holds():
    for dtype in (tf.float16, tf.bfloat16, tf.float32, tf.float64):
        values = [0.0, -0.0, SUBNORMAL, -SUBNORMAL, 0.5, -2.0, float("nan"), float("inf")]
        tensor = tf.constant(values, dtype)
        for function in (numbers_of, tf.function(numbers_of)):
            assert function([tensor]).numpy().tolist() == [2.0, 0.25, 0.25, 0.25], (dtype, function([tensor]))
        assert numbers_of([tensor[:0]]).numpy().tolist() == [0.0] * 4
        assert numbers_of([tensor[6:]]).numpy().tolist() == [0.0, 1.0, 0.0, 0.0]
        assert numbers_of([tensor[:4], tensor[4:6], tensor[:0]]).numpy()[0] == 2.0


def check_exponents_of_whatever_a_tensor_holds():
    given = [0.0, -0.0, SUBNORMAL, -SUBNORMAL, 0.5, -2.0, 3.0, float("nan"), float("inf"), -float("inf")]
    ends = [2.0**-24, 65504.0, 0.9990234375]  # float16's smallest and largest, and its neighbour of 1
    for dtype in (tf.float16, tf.float32, tf.float64):
        for function in (exponents_of, tf.function(exponents_of)):
            seen = function([tf.constant([given], dtype), tf.constant(ends, dtype), tf.zeros([0, 3], dtype)]).numpy()
            there = {at - BIAS: count for at, count in enumerate(seen.tolist()) if count}
            assert there == {-127: 2, -24: 1, -20: 2, -1: 2, 1: 2, 15: 1, 128: 3}, (dtype, there)
    values = np.float32(np.random.RandomState(3).normal(size=10_000) * 2.0 ** np.arange(-100, 100, 0.02))
    seen = exponents_of([tf.constant(values)]).numpy()
    expected = np.bincount(np.frexp(values)[1] - 1 + BIAS, minlength=256)
    assert seen.tolist() == expected.tolist()


def check_layers_and_gradients_are_those_of_the_step():
    """A layer whose numbers are known: x = 2, kernel 3, no bias; the loss is the mean of its output."""
    for optimizer in (KerasOwn, LossScaleOptimizer):
        seeded()
        keras.mixed_precision.set_global_policy("mixed_float16")
        dense = keras.layers.Dense(2, use_bias=False, kernel_initializer=keras.initializers.Constant(3.0), name="dense")
        model = keras.Sequential([dense])
        model.compile(optimizer(keras.optimizers.SGD(0.0), initial_scale=64.0), lambda y, x: tf.reduce_mean(x))
        path = run_path()
        data = tf.data.Dataset.from_tensors((np.full([1, 4], 2, "float32"), np.zeros([1, 2], "float32"))).repeat(7)
        fitted(model, LossScaleMonitor(path, measure_every=2), 1, data)
        lines = measured_in(path)
        assert [line["step"] for line in lines] == [2, 4, 6], lines
        for line in lines:
            assert part(line, "layers", "dense") == ["dense", "float16", 24, 0, 0, 0], line
            assert part(line, "gradients", "kernel")[1:] == ["float16", 64, 0, 0, 0], line


def check_underflow_is_seen_at_the_scale_in_force():
    """Gradients of 2^-23 are subnormal in float16 unscaled, those of 2^-26 zero; scaled by 2^12 they are normal."""
    for scale, subnormal, zero in ((1.0, 0.5, 0.5), (2.0**12, 0.0, 0.0)):
        seeded()
        keras.mixed_precision.set_global_policy("mixed_float16")
        model = keras.Sequential([keras.layers.Dense(2, use_bias=False, name="dense")])
        optimizer = LossScaleOptimizer(keras.optimizers.SGD(0.0), dynamic=False, initial_scale=scale)
        model.compile(optimizer, lambda y, x: tf.reduce_sum(tf.cast(x, tf.float32) * [[2.0**-23, 2.0**-26]]))
        path = run_path()
        data = tf.data.Dataset.from_tensors((np.ones([1, 1], "float32"), np.zeros([1, 2], "float32"))).repeat(4)
        fitted(model, LossScaleMonitor(path, measure_every=3), 1, data)
        (line,) = measured_in(path)
        assert part(line, "gradients", "kernel")[3:] == [0, zero, subnormal], (scale, line)


def check_what_is_not_finite_is_counted():
    model = made()
    model.fit(INPUTS, TARGETS, verbose=0)
    bad = INPUTS.copy()
    bad[:, :, 0] = np.nan
    path = run_path()
    given = tf.data.Dataset.from_tensor_slices((bad, TARGETS)).batch(4)
    fitted(model, LossScaleMonitor(path, measure_every=4), 1, given)
    line = measured_in(path)[0]
    assert part(line, "layers", "recurrent")[2:] == [0, 1, 0, 0], line
    assert part(line, "gradients", "last/kernel")[3] == 1, line


# --- the training is what it was ----------------------------------------------------------------------------------
def check_the_training_is_the_same_bit_for_bit():
    expected = fitted(made())[0]
    for every in (1, 3):
        path = run_path()
        ours, said = fitted(made(), LossScaleMonitor(path, measure_every=every))
        assert said == [] and len(measured_in(path)) == {1: 15, 3: 5}[every], (said, len(measured_in(path)))
        assert ours == expected, every


def check_the_training_is_the_same_where_xla_compiles_it():
    if not IS_KERAS3:
        return
    path = run_path()
    expected = fitted(made(jit_compile=True), None, 1)[0]
    assert fitted(made(jit_compile=True), LossScaleMonitor(path, measure_every=3), 1)[0] == expected
    assert len(measured_in(path)) == 2


def check_a_custom_step_and_data_of_unknown_length():
    class Own(keras.Sequential):
        def train_step(self, data):
            inputs, targets = data
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(self(inputs, training=True) - targets))
                scaled = self.optimizer.scale_loss(loss) if IS_KERAS3 else self.optimizer.get_scaled_loss(loss)
            grads = tape.gradient(scaled, self.trainable_variables)
            grads = grads if IS_KERAS3 else self.optimizer.get_unscaled_gradients(grads)
            self.optimizer.apply_gradients(zip(grads, self.trainable_variables))
            return {"own": loss}

    def batches():
        for at in range(0, 28, 4):
            yield INPUTS[at : at + 4], TARGETS[at : at + 4]

    kinds = (tf.TensorSpec([None, 5, 3]), tf.TensorSpec([None, 1]))
    found = []
    for every in (None, 8, 7):
        path = run_path()
        data = tf.data.Dataset.from_generator(batches, output_signature=kinds)
        found.append(fitted(made(Own, ()), LossScaleMonitor(path, measure_every=every), 3, data))
        assert len(measured_in(path)) == {None: 0, 8: 2, 7: 3}[every], lines_of(path)
    assert found[0] == found[1] == found[2] and found[0][1] == [], found


def check_a_loop_is_the_same_and_two_optimizers_are_measured():
    ended = []
    for every in (None, 2):
        first, second = made(), model_with_state()
        first.predict(INPUTS[:4], verbose=0), second.predict(INPUTS[:4], verbose=0)
        wrappers = [KerasOwn(keras.optimizers.SGD(1e-2)) for _ in range(2)]

        def apply(tape, loss, optimizer, model):
            grads = tape.gradient(loss, model.trainable_variables)
            grads = grads if IS_KERAS3 else optimizer.get_unscaled_gradients(grads)
            optimizer.apply_gradients(zip(grads, model.trainable_variables))

        @tf.function
        def step(batch, first=first, second=second, wrappers=wrappers):
            with tf.GradientTape(persistent=True) as tape:
                losses = [tf.reduce_mean(tf.square(model(batch, training=True))) for model in (first, second)]
                pairs = list(zip(wrappers, losses))
                losses = [
                    o.scale_loss(model_loss) if IS_KERAS3 else o.get_scaled_loss(model_loss) for o, model_loss in pairs
                ]
            for loss, optimizer, model in zip(losses, wrappers, (first, second)):
                apply(tape, loss, optimizer, model)

        path = run_path()
        monitor = LossScaleMonitor(path, optimizer=wrappers, model=[first, second], measure_every=every)
        step = monitor.wrap(step)
        with monitor:
            for at in range(0, 20, 4):
                step(INPUTS[at : at + 4])
        ended.append([w.tobytes() for model in (first, second) for w in model.get_weights()])
        lines = measured_in(path)
        assert [line["step"] for line in lines] == ([2, 4] if every else []), lines
        for line in lines:
            assert len(line["gradients"]) == len(first.trainable_variables) * 2, line
    assert ended[0] == ended[1]


# --- what cannot be measured is told, and trains on ---------------------------------------------------------------
def check_what_fails_ends_the_measuring_alone():
    calls = []

    class Failing(keras.Sequential):
        def train_step(self, data):
            def counted(inputs):
                calls.append(1)
                if len(calls) == 3:  # step 3, measured
                    raise RuntimeError("device lost")
                return inputs

            inputs = tf.numpy_function(counted, [data[0]], tf.float32)
            inputs.set_shape([None, 5, 3])
            return super().train_step((inputs, data[1]))

    path = run_path()
    model = made(Failing, **({"jit_compile": False} if IS_KERAS3 else {}))
    _, said = fitted(model, LossScaleMonitor(path, measure_every=3), 1)
    assert len(said) == 1 and "The training goes on" in said[0], said
    (told,) = [line for line in lines_of(path) if isinstance(line, dict) and line.get("event") == "not_measured"]
    assert "where it is measured" in told["text"], told
    assert measured_in(path) == [] and lines_of(path)[-1]["how"] == "finished", lines_of(path)


def check_what_cannot_be_measured_is_told_once():
    if RELEASE >= (2, 10):
        told_of_fit("steps_per_execution", steps_per_execution=2)
    told_of_fit("runs eagerly", run_eagerly=True)
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    seeded()
    with strategy.scope():
        model = model_with_state()
    path = run_path()
    _, said = fitted(model, LossScaleMonitor(path, measure_every=3), 1)
    assert len(said) == 1 and "strategy" in said[0], said


def told_of_fit(words, **compiled):
    expected = fitted(made(**compiled))[0]
    ours, said = fitted(made(**compiled), LossScaleMonitor(None, measure_every=3))
    assert ours == expected and len(said) == 1 and words in said[0], said


def check_loops_that_cannot_be_measured_are_told_once():
    model = made()
    model.predict(INPUTS[:4], verbose=0)
    optimizer = KerasOwn(keras.optimizers.SGD(1e-2))
    seen = []

    def plain(batch):
        seen.append(batch)

    @tf.function
    def from_iterator(batches):
        return next(batches)

    for step, given, words in (
        (plain, lambda: INPUTS[:4], "is no tf.function"),
        (from_iterator, lambda: iter(tf.data.Dataset.from_tensors(INPUTS[:4]).repeat(9)), "is given an iterator"),
        (tf.function(lambda batch: batch), lambda: INPUTS[:4], "gives no gradients"),
        (None, None, "monitor.wrap(step)"),
    ):
        monitor = LossScaleMonitor(None, optimizer=optimizer, model=model, measure_every=2)
        argument = given() if given else None
        with warnings.catch_warnings(record=True) as caught, monitor:
            warnings.simplefilter("always")
            call = monitor.wrap(step) if step else (lambda _, monitor=monitor: monitor.after_step())
            for _ in range(6):
                call(argument)
        said = [str(w.message) for w in caught if "measured" in str(w.message)]
        assert len(said) == 1 and words in said[0], (words, said)
    assert len(seen) == 6 and all(isinstance(array, np.ndarray) for array in seen)


def check_without_it_no_batch_is_touched():
    model = made()
    monitor = LossScaleMonitor(None)
    held = []

    class Looks(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            held.append(monitor._fit.before)

    data = tf.data.Dataset.from_tensor_slices((INPUTS, TARGETS)).batch(4)
    model.fit(data, verbose=0, callbacks=[monitor, Looks()])
    assert held == [None]


def check_summaries_of_measured_steps():
    place = tempfile.mkdtemp()
    expected = fitted(made(), None, 1)
    assert fitted(made(), LossScaleMonitor(None, log_dir=place, measure_every=3), 1) == expected
    tags, tensors = summaries_in(place)
    for tag in ("activations_largest/recurrent", "activations_zero/inner/one", "gradients_subnormal/"):
        assert any(name.startswith(tag) for name in tags["scalars"]), tags
    for tag in ("activations_exponents/recurrent", "activations_exponents/inner/one", "gradients_exponents/"):
        assert any(name.startswith(tag) for name in tags["histograms"]), tags
    assert not any("exponents" in tag for tag in tags["scalars"]), tags
    for step in (3, 6):
        for layer, size in (("recurrent", 16), ("inner/one", 16), ("last", 4), ("norm", 16)):
            left, right, count = tensors[f"activations_exponents/{layer}", step].T
            assert (right == left + 1).all() and (np.diff(left) == 1).all() and count[0] > 0 and count[-1] > 0
            zero, bad, largest = [tensors[f"activations_{n}/{layer}", step] for n in ("zero", "not_finite", "largest")]
            assert sum(count) == round((1 - zero - bad) * size), (layer, step, count, zero)
            assert 2 ** left[-1] <= largest < 2 ** right[-1], (layer, step, left, largest)


def check_histograms_of_known_numbers():
    """x = 2, kernel 3, no bias, a scale of 64: see check_layers_and_gradients_are_those_of_the_step."""
    seeded()
    keras.mixed_precision.set_global_policy("mixed_float16")
    dense = keras.layers.Dense(2, use_bias=False, kernel_initializer=keras.initializers.Constant(3.0), name="dense")
    model = keras.Sequential([dense, keras.layers.ReLU(name="relu"), keras.layers.Lambda(lambda x: 0 * x, name="none")])
    model.compile(KerasOwn(keras.optimizers.SGD(0.0), initial_scale=64.0), lambda y, x: tf.reduce_mean(x))
    place = tempfile.mkdtemp()
    data = tf.data.Dataset.from_tensors((np.full([1, 4], 2, "float32"), np.zeros([1, 2], "float32"))).repeat(7)
    fitted(model, LossScaleMonitor(None, log_dir=place, measure_every=2), 1, data)
    tags, tensors = summaries_in(place)
    for step in (2, 4, 6):
        assert tensors["activations_exponents/dense", step].tolist() == [[4, 5, 2]]
        assert tensors["activations_exponents/relu", step].tolist() == [[4, 5, 2]]
    assert "activations_exponents/none" not in tags["histograms"], tags  # all is 0
    assert "activations_zero/none" in tags["scalars"], tags


def check_exponents_are_counted_for_a_log_directory_alone():
    monitor = LossScaleMonitor(run_path(), measure_every=3)
    fitted(made(), monitor, 1)
    (graph,) = monitor._measuring._made._graphs
    assert not [operation for operation in graph.get_operations() if operation.type == "Bincount"]


def summaries_in(place):
    """({plugin: tags}, {(tag, step): array}) of the one file of events there."""
    (name,) = os.listdir(place)
    tags, tensors = {}, {}
    for event in tf.compat.v1.train.summary_iterator(os.path.join(place, name)):
        for value in event.summary.value:
            tags.setdefault(value.metadata.plugin_data.plugin_name, set()).add(value.tag)
            tensors[value.tag, event.step] = tf.make_ndarray(value.tensor)
    return tags, tensors


def main():
    checks = {name[6:]: value for name, value in globals().items() if name.startswith("check_")}
    tf.config.set_logical_device_configuration(
        tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
    )
    found = {}
    for name in sys.argv[1:] or checks:
        began = time.process_time()
        try:
            checks[name]()
            found[name] = ""
        except Exception:
            found[name] = traceback.format_exc()
        print(f"{time.process_time() - began:6.2f} s  {name}", file=sys.stderr)
    print("\n" + json.dumps(found))


if __name__ == "__main__":
    main()

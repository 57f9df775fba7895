"""What the LossScaleMonitor of mpdoctor.training does in the Keras at hand: a check each.

`python tests/support/live_loss_scale_monitor.py [name ...]` prints {check: what went wrong, ""} as JSON. It needs
TensorFlow and, of this project, mpdoctor.training alone; TF_USE_LEGACY_KERAS=1 takes tf_keras.
"""

from __future__ import annotations

import contextlib
import copy
import csv
import json
import linecache
import os
import pathlib
import pickle
import resource
import sys
import tempfile
import time
import traceback
import warnings

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

from mpdoctor.training import LossScaleMonitor, LossScaleOptimizer

keras = tf.keras
IS_KERAS3 = getattr(keras, "__version__", "2").startswith("3")
KerasOwn = keras.mixed_precision.LossScaleOptimizer
HERE = os.path.abspath(__file__)
FINITE = np.ones([4, 3], "float32")
FAILING = np.full([4, 3], np.nan, "float32")
TARGET = np.ones([4, 1], "float32")


class Large(keras.layers.Layer):
    """Its output is finite as long as its input is below 1."""

    def build(self, shape):
        self.kernel = self.add_weight(name="kernel", shape=(4, 4), initializer="ones", trainable=True)
        self.built = True

    def call(self, inputs):
        return tf.matmul(inputs, tf.cast(self.kernel, inputs.dtype)) * tf.cast(6e4, inputs.dtype)


class Layered(keras.Model):
    def __init__(self, middle):
        super().__init__()
        self.first = keras.layers.Dense(4, kernel_initializer="ones", name="first")
        self.norm = keras.layers.BatchNormalization(name="norm")
        self.middle = middle
        self.last = keras.layers.Dense(1, kernel_initializer="ones", dtype="float32", name="last")

    def call(self, inputs, training=None):
        hidden = self.norm(self.first(inputs), training=training)
        hidden = self.middle(hidden + tf.cast(3.0, hidden.dtype))  # line of the call
        return self.last(hidden)


def line_of_call():
    with open(HERE, encoding="utf-8") as file:
        return next(number for number, line in enumerate(file, 1) if "# line of the call" in line)


def model_of(policy="mixed_float16", fails=False, optimizer=None):
    keras.mixed_precision.set_global_policy(policy)
    tf.random.set_seed(1)
    np.random.seed(1)
    model = Layered(Large(name="large") if fails else keras.layers.Dense(4, kernel_initializer="ones", name="dense"))
    model.compile(optimizer or keras.optimizers.SGD(1e-3), "mse")
    return model


def folder():
    return tempfile.mkdtemp()


def lines_of(path):
    with open(path, encoding="ascii") as file:
        return [json.loads(line) for line in file]


def fitted(model, monitor, batches, epochs=1, callbacks=()):
    """(history, what was warned of) of a fit with these inputs, a batch each."""
    data = tf.data.Dataset.from_tensor_slices((np.stack(batches), np.stack([TARGET] * len(batches))))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        history = model.fit(data, epochs=epochs, verbose=0, callbacks=[monitor, *callbacks])
    return history.history, [
        str(w.message) for w in caught if "trained:" in str(w.message) or "nothing to" in str(w.message)
    ]


def settled(model):
    """A scale at which finite batches are applied."""
    model.fit(FINITE, TARGET, batch_size=4, epochs=30, verbose=0)
    return model


# --- what is counted ----------------------------------------------------------------------------------------------
def check_skipped_steps_are_counted():
    for every in (1, 7):
        model = settled(model_of())
        for bad in ([], [3], [3, 4, 5], [0, 9, 10, 19], list(range(5, 20))):
            monitor = LossScaleMonitor(None, every=every)
            batches = [FAILING if at in bad else FINITE for at in range(20)]
            history, _ = fitted(model, monitor, batches)
            assert history["skipped_steps"] == [len(bad)], (every, bad, history)
            assert history["loss_scale"] == [scale_of(model)], (every, bad, history)


def scale_of(model):
    scale = getattr(model.optimizer, "dynamic_scale", None)
    return float(tf.convert_to_tensor(model.optimizer.loss_scale if scale is None else scale))


def check_epochs_have_their_own_numbers():
    path = os.path.join(folder(), "log.csv")
    model = settled(model_of())
    batches = [FINITE] * 6 + [FAILING] * 2
    history, _ = fitted(model, LossScaleMonitor(None), batches, 3, [keras.callbacks.CSVLogger(path)])
    assert history["skipped_steps"] == [2, 2, 2], history
    with open(path, encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [row["skipped_steps"] for row in rows] == ["2"] * 3 and "loss_scale" in rows[0], rows


def check_ours_is_watched():
    optimizer = LossScaleOptimizer(keras.optimizers.SGD(1e-3), initial_scale=4.0)
    path = os.path.join(folder(), "run.mpdoctor")
    model = model_of(optimizer=optimizer)
    history, said = fitted(model, LossScaleMonitor(path), [FINITE] * 4 + [FAILING] * 40)
    assert history["skipped_steps"] == [40] and history["loss_scale"] == [1.0], history
    start = lines_of(path)[0]
    assert start["floor"] == 1.0 and start["initial_scale"] == 4, start
    assert len(said) == 1 and "its floor of 1" in said[0], said


def check_summaries_are_written():
    place = folder()
    model = settled(model_of())
    fitted(model, LossScaleMonitor(None, log_dir=place), [FINITE, FAILING])
    (name,) = os.listdir(place)
    seen = {}
    for event in tf.compat.v1.train.summary_iterator(os.path.join(place, name)):
        for value in event.summary.value:
            assert value.metadata.plugin_data.plugin_name == "scalars", value
            seen[value.tag, event.step] = float(tf.make_ndarray(value.tensor))
    assert seen["loss_scale", 2] == scale_of(model) and seen["skipped_steps", 2] == 1, seen


@contextlib.contextmanager
def files_end_at(size):
    """As on a full disk: what would make a file larger fails."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def check_a_full_disk_ends_no_training():
    for written in ("run file", "log directory", "batch"):
        place = folder()
        logs = os.path.join(place, "logs") if written == "log directory" else None
        path, measured = os.path.join(place, "run.mpdoctor"), 5 if logs else None
        monitor = LossScaleMonitor(path, log_dir=logs, keep_batch=written == "batch", measure_every=measured)
        model = model_of()
        size = 256 if written == "run file" else 1600
        with files_end_at(size), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            history = model.fit(np.repeat(FINITE if written != "batch" else FAILING, 40, 0), np.repeat(TARGET, 40, 0),
                                batch_size=4, epochs=2, verbose=0, callbacks=[monitor]).history  # fmt: skip
        said = [str(w.message) for w in caught if written in str(w.message) and "(" in str(w.message)]
        assert any("written" in text or "kept" in text for text in said), (written, [str(w.message) for w in caught])
        assert len(history["loss"]) == 2, (written, history)


def check_folders_of_the_run_file_are_made():
    path = os.path.join(folder(), "runs", "first", "run.mpdoctor")
    fitted(model_of(), LossScaleMonitor(path), [FINITE] * 3)
    assert lines_of(path)[-1]["how"] == "finished"


def check_a_log_directory_that_cannot_be_is_told():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        LossScaleMonitor(None, log_dir=os.path.join(HERE, "logs"))
    assert [str(w.message) for w in caught if "log directory" in str(w.message)], caught


# --- what is told -------------------------------------------------------------------------------------------------
def check_a_stuck_fit_names_layer_and_line_and_stops():
    path = os.path.join(folder(), "run.mpdoctor")
    model = model_of(fails=True)
    monitor = LossScaleMonitor(path, stop_when="stuck", keep_batch=True)
    history, said = fitted(model, monitor, [FINITE] * 60, epochs=3)
    assert monitor.stopped and len(history["loss"]) == 1, history
    assert len(said) == 1 and said == [said[0]], said
    for words in (
        "'large' (Large)",
        "is the first that is inf or NaN",
        f"{os.path.basename(__file__)}:{line_of_call()}",
    ):
        assert words in said[0], (words, said)
    (event,) = [line for line in lines_of(path) if isinstance(line, dict) and line.get("layer")]
    assert (event["layer"], event["line"], event["since"]) == ("large", line_of_call(), 1), event
    with np.load(os.path.join(os.path.dirname(path), event["kept"]), allow_pickle=False) as kept:
        assert np.array_equal(kept["batch_0"], FINITE), list(kept)
    assert lines_of(path)[-1]["how"] == "stopped"


def check_what_the_batch_itself_holds_is_told():
    _, said = fitted(settled(model_of()), LossScaleMonitor(None), [FAILING] * 60)
    assert len(said) == 1 and "as the batch itself is" in said[0], said


def check_a_weight_that_is_not_finite_is_named():
    for value, words in (
        (np.nan, "'dense' (Dense) is inf or NaN, as 1 of the 16 elements of its weight"),
        (1e5, "up to 1e+05, is cast to float16, which ends at 65504"),
    ):
        path = os.path.join(folder(), "run.mpdoctor")
        model = settled(model_of())
        kernel, bias = model.middle.get_weights()
        kernel[1, 2] = value
        model.middle.set_weights([kernel, bias])
        _, said = fitted(model, LossScaleMonitor(path), [FINITE] * 60)
        assert len(said) == 1 and words in said[0] and "dense/kernel'" in said[0], said
        (event,) = [line for line in lines_of(path) if isinstance(line, dict) and line.get("layer")]
        assert event["layer"] == "dense" and event["variable"].endswith("dense/kernel"), event


def check_moving_averages_are_named_where_they_are_used():
    for trains in (True, False):
        model = settled(model_of())
        model.norm.trainable = trains
        model.norm.set_weights([*model.norm.get_weights()[:3], np.array([1, 1, 1, np.nan], "float32")])
        model.compile(model.optimizer, "mse")
        _, said = fitted(model, LossScaleMonitor(None), [FINITE] * 60)
        assert bool(said) is not trains, (trains, said)
        if said:
            assert "as 1 of the 4 elements of its weight" in said[0] and "norm/moving_variance'" in said[0], said


def check_a_healthy_fit_is_silent():
    model = model_of()
    _, said = fitted(model, LossScaleMonitor(None), [FINITE] * 40 + [FAILING] + [FINITE] * 40)
    assert said == [], said


def check_trouble_that_was_over_is_told_again():
    path = os.path.join(folder(), "run.mpdoctor")
    batches = [FAILING] * 60 + [FINITE] * 130 + [FAILING] * 60
    fitted(settled(model_of(optimizer=LossScaleOptimizer(keras.optimizers.SGD(1e-3)))), LossScaleMonitor(path), batches)
    kinds = [line["event"] for line in lines_of(path) if isinstance(line, dict) and "event" in line]
    assert kinds == ["stuck", "recovered", "stuck", "epoch", "end"], kinds


def check_a_warning_points_to_the_line_that_trains():
    data = tf.data.Dataset.from_tensors((FINITE, TARGET)).repeat(60)
    model = model_of(fails=True)
    looped = model_of(fails=True)
    optimizer, step = loop_of(looped)
    monitor = LossScaleMonitor(None, optimizer=optimizer, model=looped)
    step = monitor.wrap(step)
    with warnings.catch_warnings(record=True) as caught, monitor:
        warnings.simplefilter("always")
        model.fit(data, verbose=0, callbacks=[LossScaleMonitor(None)])
        for _ in range(60):
            step(FINITE, TARGET)
    places = [(w.filename, line_text(w.lineno)) for w in caught if "trained:" in str(w.message)]
    trains = ("model.fit(data, verbose=0, callbacks=[LossScaleMonitor(None)])", "step(FINITE, TARGET)")
    assert places == [(__file__, line) for line in trains], places


def line_text(number):
    return linecache.getline(__file__, number).strip()


def check_without_a_loss_scale_it_says_so():
    history, said = fitted(model_of("float32"), LossScaleMonitor(None), [FINITE] * 2)
    assert "loss_scale" not in history and len(said) == 1 and "nothing to watch" in said[0], (history, said)


# --- nothing else changes -----------------------------------------------------------------------------------------
def check_weights_are_those_of_a_fit_without_it():
    for fails in (False, True):
        batches = [FAILING if at % 9 == 0 or 40 < at < 90 else FINITE for at in range(120)]
        with_it, without = model_of(fails=fails), model_of(fails=fails)
        fitted(with_it, LossScaleMonitor(None), batches)
        data = tf.data.Dataset.from_tensor_slices((np.stack(batches), np.stack([TARGET] * len(batches))))
        without.fit(data, verbose=0)
        for ours, theirs in zip(with_it.get_weights(), without.get_weights()):
            assert np.array_equal(ours, theirs, equal_nan=True), (fails, ours, theirs)


class Keeping(keras.layers.Layer):
    """A number of its own that float16 does not hold."""

    def build(self, shape):
        tenth = keras.initializers.Constant(0.1)
        self.kept = self.add_weight(name="kept", shape=(), initializer=tenth, trainable=False)
        self.built = True

    def call(self, inputs):
        return inputs * tf.cast(self.kept, inputs.dtype)


def check_what_a_layer_keeps_is_put_back_to_the_bit():
    keras.mixed_precision.set_global_policy("mixed_float16")
    model = Layered(Keeping(name="keeping"))
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    _, said = fitted(settled(model), LossScaleMonitor(None), [FAILING] * 60)
    assert len(said) == 1 and model.middle.get_weights()[0] == np.float32(0.1), (said, model.middle.get_weights())


@contextlib.contextmanager
def reads_counted(counts):
    """Tensors that are brought to the host."""
    base = next(cls for cls in type(tf.constant(0)).__mro__ if "numpy" in vars(cls))
    numpy = base.numpy

    def counted(tensor):
        counts.append(tensor)
        return numpy(tensor)

    base.numpy = counted
    try:
        yield
    finally:
        base.numpy = numpy


def check_steps_between_two_readings_read_nothing():
    """On a GPU each number that is read waits for the device; on any machine it takes longer than all else here."""
    model, read = settled(model_of()), {True: [], False: []}
    for monitored in (False, True):
        with reads_counted(read[monitored]):
            callbacks = [LossScaleMonitor(None, every=5)] if monitored else []
            model.fit(np.ones([1600, 3]), np.ones([1600, 1]), batch_size=4, verbose=0, callbacks=callbacks)
    more = len(read[True]) - len(read[False])
    assert 0 < more <= 4 * (400 // 5 + 3), more


# --- fits that end otherwise ----------------------------------------------------------------------------------------
class Interrupting(keras.callbacks.Callback):
    def __init__(self, at):
        super().__init__()
        self.at = at

    def on_train_batch_end(self, batch, logs=None):
        if batch == self.at:
            raise KeyboardInterrupt


def interrupted(model, monitor, at):
    with contextlib.suppress(KeyboardInterrupt):
        fitted(model, monitor, [FINITE] * 8, callbacks=[Interrupting(at)])


def check_a_fit_that_was_interrupted_is_counted_to_its_end_and_no_further():
    """As in a notebook: the next fits of this model are not the monitor's, and another monitor goes on in its file."""
    path = os.path.join(folder(), "run.mpdoctor")
    model, monitor = settled(model_of()), LossScaleMonitor(path)
    interrupted(model, monitor, 3)
    model.fit(FINITE, TARGET, batch_size=4, epochs=5, verbose=0)
    model.train_on_batch(FINITE, TARGET)
    interrupted(model, LossScaleMonitor(path), 1)
    interrupted(model_of(), LossScaleMonitor(path), 2)
    again = model_of()
    fitted(again, LossScaleMonitor(path), [FINITE] * 4)
    rows = [line for line in lines_of(path) if isinstance(line, list)]
    starts = [line["step"] for line in lines_of(path) if isinstance(line, dict) and "mpdoctor_run" in line]
    assert starts == [0, 4, 6, 9] and rows[-1][1] == 13, lines_of(path)
    assert [row[1] for row in rows] == sorted(row[1] for row in rows), rows
    assert not hasattr(again.train_function, "__self__"), again.train_function


def check_a_step_that_raises_ends_the_run_in_words():
    class Failing(keras.layers.Layer):
        def call(self, inputs):
            return tf.debugging.check_numerics(inputs, "the input")

    keras.mixed_precision.set_global_policy("mixed_float16")
    path = os.path.join(folder(), "run.mpdoctor")
    model = keras.Sequential([Failing(), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    try:
        fitted(model, LossScaleMonitor(path), [FINITE] * 3 + [FAILING])
    except tf.errors.InvalidArgumentError:
        assert lines_of(path)[-1]["how"] == "raised InvalidArgumentError", lines_of(path)
        assert lines_of(path)[-2][1] == 3, lines_of(path)
        return
    raise AssertionError("it did not raise")


def check_two_monitors_of_a_fit_count_alike():
    model = settled(model_of())
    monitors = [LossScaleMonitor(None), LossScaleMonitor(os.path.join(folder(), "run.mpdoctor"))]
    fitted(model, monitors[0], [FINITE, FINITE, FAILING], 3, monitors[1:])
    for monitor in monitors:
        (series,) = monitor._recording.series
        assert (series.step, series.skipped) == (9, 3), (series.step, series.skipped)
    assert not hasattr(model.train_function, "__self__"), model.train_function


def check_a_fit_within_a_fit_is_counted_with_it():
    class Inner(keras.callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            if epoch == 0:
                self.model.fit(np.stack([FINITE[0]] * 20), np.ones([20, 1]), batch_size=4, verbose=0)

    model, monitor = settled(model_of()), LossScaleMonitor(None)
    history, _ = fitted(model, monitor, [FINITE] * 7 + [FAILING], 2, [Inner()])
    (series,) = monitor._recording.series
    assert history["skipped_steps"] == [1, 1] and series.step == 21, (history, series.step)


def check_a_monitor_may_be_copied():
    """Tuners give each trial a copy."""
    monitor = LossScaleMonitor(None, log_dir=folder(), every=3)
    for copied in (copy.deepcopy(monitor), copy.copy(monitor), pickle.loads(pickle.dumps(monitor))):
        history, _ = fitted(settled(model_of()), copied, [FINITE, FAILING])
        assert history["skipped_steps"] == [1] and copied.every == 3 and copied is not monitor, history


# --- loops --------------------------------------------------------------------------------------------------------
def loop_of(model):
    """(optimizer, a step that is a tf.function)"""
    optimizer = KerasOwn(keras.optimizers.SGD(1e-3))

    @tf.function
    def step(inputs, targets):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
            scaled = optimizer.scale_loss(loss) if IS_KERAS3 else optimizer.get_scaled_loss(loss)
        grads = tape.gradient(scaled, model.trainable_variables)
        grads = grads if IS_KERAS3 else optimizer.get_unscaled_gradients(grads)
        optimizer.apply_gradients(zip(grads, model.trainable_variables))
        return loss

    return optimizer, step


def check_a_loop_is_watched_by_wrap():
    path = os.path.join(folder(), "run.mpdoctor")
    model = model_of(fails=True)
    optimizer, step = loop_of(model)
    monitor = LossScaleMonitor(path, optimizer=optimizer, model=model)
    step = monitor.wrap(step)
    taken = 0
    with warnings.catch_warnings(record=True) as caught, monitor:
        warnings.simplefilter("always")
        for _ in range(60):
            step(FINITE, TARGET)
            taken += 1
            if taken == 30:
                before = model.get_weights()
    assert taken == 60
    said = [str(w.message) for w in caught if "trained:" in str(w.message)]
    assert len(said) == 1 and "'large' (Large)" in said[0] and f":{line_of_call()}" in said[0], said
    assert len(before) == len(model.get_weights())
    (row,) = [line for line in lines_of(path) if isinstance(line, dict) and "layer" in line]
    assert row["layer"] == "large" and lines_of(path)[-1]["how"] == "finished"


def check_a_variable_that_no_layer_has_is_named():
    model = model_of()
    factor, optimizer = tf.Variable([1.0, np.nan], name="factor"), KerasOwn(keras.optimizers.SGD(1e-3))

    @tf.function
    def step(inputs):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(inputs, training=True) * factor)
            scaled = optimizer.scale_loss(loss) if IS_KERAS3 else optimizer.get_scaled_loss(loss)
        variables = [*model.trainable_variables, factor]
        grads = tape.gradient(scaled, variables)
        grads = grads if IS_KERAS3 else optimizer.get_unscaled_gradients(grads)
        optimizer.apply_gradients(zip(grads, variables))

    monitor = LossScaleMonitor(None, optimizer=optimizer, model=model)
    step = monitor.wrap(step)
    with warnings.catch_warnings(record=True), monitor:
        warnings.simplefilter("always")
        for _ in range(60):
            step(FINITE)
    (said,) = monitor.warnings
    assert "is inf or NaN, as 1 of the 2 elements of the variable 'factor' are" in said, said


def check_a_loop_that_raises_says_so():
    path = os.path.join(folder(), "run.mpdoctor")
    model = model_of()
    optimizer, step = loop_of(model)
    monitor = LossScaleMonitor(path, optimizer=optimizer, model=model)
    try:
        with monitor:
            for _ in range(5):
                step(FINITE, TARGET)
                monitor.after_step()
            raise KeyError("mine")
    except KeyError:
        pass
    assert lines_of(path)[-1]["how"] == "raised KeyError" and lines_of(path)[-2][1] == 5, lines_of(path)


def check_two_optimizers_have_a_series_each():
    path = os.path.join(folder(), "run.mpdoctor")
    first, second = model_of(), model_of()
    (optimizer, step), (other_optimizer, other_step) = loop_of(first), loop_of(second)
    with LossScaleMonitor(path, optimizer=[optimizer, other_optimizer], model=[first, second]) as monitor:
        for at in range(20):
            step(FINITE, TARGET)
            other_step(FAILING if at > 15 else FINITE, TARGET)
            monitor.after_step()
    rows = [line for line in lines_of(path) if isinstance(line, list)]
    assert sorted({row[0] for row in rows}) == [0, 1], rows
    more = [sum(row[2] for row in rows if row[0] == number) for number in (0, 1)]
    assert more[1] == more[0] + 4, rows


class Pair(keras.Model):
    """Two models with an optimizer each, as a GAN has them; the second one is trained in every other step alone."""

    def __init__(self, fails=False):
        super().__init__()
        self.one = model_of(fails=fails)
        self.other = model_of()

    def compile(self, first, second, **kwargs):
        super().compile(**kwargs)
        self.first, self.second = first, second
        self.steps = tf.Variable(0, trainable=False, dtype=tf.int64)

    def call(self, inputs):
        return self.one(inputs) + self.other(inputs)

    def train_step(self, data):
        inputs, targets = data
        self.trained(self.second, self.other, inputs, targets, self.steps % 2 == 0)
        self.trained(self.first, self.one, inputs, targets, True)
        self.steps.assign_add(1)
        return {"none": tf.constant(0.0)}

    def trained(self, optimizer, model, inputs, targets, now):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(inputs, training=True) - targets))
            scaled = optimizer.scale_loss(loss) if IS_KERAS3 else optimizer.get_scaled_loss(loss)
        grads = tape.gradient(scaled, model.trainable_variables)
        grads = grads if IS_KERAS3 else optimizer.get_unscaled_gradients(grads)
        if now is True:
            optimizer.apply_gradients(zip(grads, model.trainable_variables))
            return
        tf.cond(now, lambda: [optimizer.apply_gradients(zip(grads, model.trainable_variables)), 0][1], lambda: 0)


def pair_of(wrapper, **kwargs):
    """(pair, its optimizers), with scales at which finite batches are applied."""
    pair = Pair(**kwargs)
    pair.predict(FINITE, verbose=0)
    optimizers = [wrapper(keras.optimizers.SGD(1e-3), initial_scale=64.0) for _ in range(2)]
    for optimizer, model in zip(optimizers, (pair.one, pair.other)):
        if hasattr(optimizer, "build"):
            optimizer.build(model.trainable_variables)
    return pair, optimizers


def check_an_optimizer_that_is_given_nothing_is_in_no_trouble():
    """`compile()` without one makes an RMSprop, which a model with two optimizers of its own never calls."""
    for wrapper in (KerasOwn, LossScaleOptimizer):
        pair, optimizers = pair_of(wrapper)
        pair.compile(*optimizers, optimizer=wrapper(keras.optimizers.RMSprop()))
        history, said = fitted(pair, LossScaleMonitor(None), [FINITE] * 60)
        assert said == [] and history["skipped_steps"] == [0], (said, history)


def check_optimizers_that_are_named_are_watched_in_a_fit():
    """Of the second one, which takes half of the steps, the others are not skipped."""
    for wrapper in (KerasOwn, LossScaleOptimizer):
        path = os.path.join(folder(), "run.mpdoctor")
        pair, optimizers = pair_of(wrapper)
        pair.compile(*optimizers)
        batches = [FAILING if at in (7, 8) else FINITE for at in range(60)]
        history, said = fitted(pair, LossScaleMonitor(path, optimizer=optimizers), batches)
        assert said == [] and history["skipped_steps"] == [2], (said, history)
        rows = [line for line in lines_of(path) if isinstance(line, list)]
        skipped = [sum(row[2] for row in rows if row[0] == number) for number in (0, 1)]
        assert skipped == [2, 1] or (skipped[0] == 2 and skipped[1] < 20), rows


def check_a_replay_trains_no_other_optimizer():
    for named in (True, False):
        pair, optimizers = pair_of(LossScaleOptimizer, fails=True)
        pair.compile(*optimizers, optimizer=optimizers[0])
        given = {"optimizer": optimizers} if named else {}
        fitted(pair, LossScaleMonitor(None, replay=False, **given), [FINITE] * 60)
        expected = [weight.tobytes() for weight in pair.get_weights()]
        pair, optimizers = pair_of(LossScaleOptimizer, fails=True)
        pair.compile(*optimizers, optimizer=optimizers[0])
        given = {"optimizer": optimizers} if named else {}
        _, said = fitted(pair, LossScaleMonitor(None, **given), [FINITE] * 60)
        assert len(said) == 1 and "'large' (Large)" in said[0], said
        assert [weight.tobytes() for weight in pair.get_weights()] == expected, named


def check_arguments_that_cannot_be_are_refused():
    for said, arguments in (
        ("whole number of steps", {"every": 0}),
        ("whole number of steps", {"every": 2.5}),
        ("whole number of steps", {"measure_every": True}),
        ('None or "stuck"', {"stop_when": "nan"}),
        ("give a path", {"path": None, "keep_batch": True}),
        ("name of a file", {"path": 5}),
        ("name of a file", {"path": b"run.mpdoctor"}),
        ("name of a file", {"path": ""}),
        ("of this machine", {"path": "gs://bucket/run.mpdoctor"}),
        ("of this machine", {"path": pathlib.Path("s3://bucket/run.mpdoctor")}),
        ("an optimizer itself", {"optimizer": "adam"}),
        ("an optimizer itself", {"optimizer": [keras.optimizers.SGD]}),
    ):
        try:
            LossScaleMonitor(**arguments)
        except (TypeError, ValueError) as error:
            assert said in str(error), (arguments, error)
            continue
        raise AssertionError(arguments)
    assert LossScaleMonitor(None, every=np.int64(3)).every == 3


def check_a_wrapped_step_with_arrays_tells_what_the_batch_holds():
    for given, words in ((FAILING, "as the batch itself is"), (FINITE * 1e6, "whose largest number is 1e+06")):
        model = model_of(optimizer=LossScaleOptimizer(keras.optimizers.SGD(1e-3), initial_scale=4.0))
        monitor = LossScaleMonitor(None, optimizer=model.optimizer, model=model)
        step = monitor.wrap(model.train_on_batch)
        with warnings.catch_warnings(record=True), monitor:
            warnings.simplefilter("always")
            for _ in range(40):
                step(given, TARGET)
        (said,) = monitor.warnings
        assert words in said, said


def main():
    checks = {name[6:]: value for name, value in globals().items() if name.startswith("check_")}
    place, found = folder(), {}
    os.chdir(place)
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

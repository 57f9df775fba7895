"""Whether a training with mpdoctor.training's LossScaleOptimizer that is ended and resumed goes on bit for bit, by the
callbacks of the Keras at hand and by SavedModel. live_loss_scaling.py has checkpoints and single files.

`python tests/support/live_resumed_training.py [way ...]` prints {way: {kind of optimizers: what went wrong}} as JSON.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time

from live_loss_scaling import (
    IS_KERAS3,
    RELEASE,
    KerasOwn,
    data,
    dense_model,
    everything,
    families,
    keras,
    kind_of,
    state,
)

from mpdoctor.training import LossScaleOptimizer

EPOCHS, ENDED_AFTER = 3, 2
Backup = getattr(keras.callbacks, "BackupAndRestore", None) or keras.callbacks.experimental.BackupAndRestore


class Killed(Exception):
    pass


class Kill(keras.callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == ENDED_AFTER:
            raise Killed


def compiled(wrapper, family):
    """A scale that grows within an epoch until the gradients of one batch leave float32."""
    return dense_model(wrapper(family.Adam(0.1), initial_scale=2.0**64, dynamic_growth_steps=3))


def batches():
    """The third of four has the largest gradients."""
    inputs, targets = data()
    targets = targets.copy()
    targets[4:6] *= 1e18
    return inputs, targets


def fit(model, epochs=EPOCHS, callbacks=(), first=0):
    model.fit(
        *batches(),
        batch_size=2,
        epochs=epochs,
        initial_epoch=first,
        verbose=0,
        shuffle=False,
        callbacks=list(callbacks),
    )
    return model


def uninterrupted(wrapper, family):
    return everything(fit(compiled(wrapper, family)))


def by_backup(wrapper, family):
    with tempfile.TemporaryDirectory() as place:
        try:
            fit(compiled(wrapper, family), callbacks=[Backup(place), Kill()])
        except Killed:
            return everything(fit(compiled(wrapper, family), callbacks=[Backup(place)]))
    raise AssertionError("it was not ended")


def by_weights(wrapper, family):
    with tempfile.TemporaryDirectory() as place:
        path = os.path.join(place, "at.weights.h5" if IS_KERAS3 else "at")
        saving = keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
        fit(compiled(wrapper, family), ENDED_AFTER, [saving])
        other = fit(compiled(wrapper, family), 1)  # which has other weights, and a scale of its own
        other.load_weights(path)
        return everything(fit(other, first=ENDED_AFTER))


def by_model(suffix):
    def resumed(wrapper, family):
        with tempfile.TemporaryDirectory() as place:
            path = os.path.join(place, "at" + suffix)
            fit(compiled(wrapper, family), ENDED_AFTER, [keras.callbacks.ModelCheckpoint(path)])
            return everything(fit(keras.models.load_model(path), first=ENDED_AFTER))

    return resumed


def scale_of_saved_model(wrapper, family):
    """A SavedModel holds no variables of an optimizer: no training goes on from it as it was (the Adam of TensorFlow
    2.15 begins anew without a wrapper, too). What comes back is the scale."""
    with tempfile.TemporaryDirectory() as place:
        model = fit(compiled(wrapper, family), callbacks=[keras.callbacks.ModelCheckpoint(place)])
        loaded = keras.models.load_model(place)
    assert (state(loaded.optimizer), everything(loaded)[2]) == (state(model.optimizer), everything(model)[2])
    return everything(model)


def ways():
    """{way: function}, of those that this Keras has."""
    found = {"backup": by_backup, "weights": by_weights, ".h5": by_model(".h5")}
    if IS_KERAS3 or RELEASE >= (2, 13):
        found[".keras"] = by_model(".keras")
    if not IS_KERAS3:
        found["SavedModel"] = scale_of_saved_model
    return found


def outcomes(wrapper, names):
    """{way: {kind of optimizers: "" where the training went on bit for bit, or what came out}}"""
    found = {}
    for family in families():
        expected = uninterrupted(wrapper, family)
        for way in names or ways():
            try:
                said = "" if ways()[way](wrapper, family) == expected else "other numbers"
            except Exception as error:
                said = f"{type(error).__name__}: {error}"[:200]
            found.setdefault(way, {})[kind_of(family)] = said
            print(way, kind_of(family), said, file=sys.stderr, flush=True)
    return found


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("ways", nargs="*")
    parser.add_argument("--own", action="store_true", help="of Keras' own wrapper")
    given = parser.parse_args()
    began = time.process_time()
    print("\n" + json.dumps(outcomes(KerasOwn if given.own else LossScaleOptimizer, given.ways)))
    print(f"{time.process_time() - began:6.2f} s", file=sys.stderr)


if __name__ == "__main__":
    main()

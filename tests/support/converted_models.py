"""Models of many kinds, written and compared: `python converted_models.py write FOLDER POLICY`,
`python converted_models.py compare FOLDER`; and sick ones: `python converted_models.py sick FOLDER`.

The Keras at hand: TF_USE_LEGACY_KERAS=1 makes it tf_keras. `compare` reads NAME.old.SUFFIX and NAME.new.SUFFIX and
prints as JSON, by the new file's name, whether all variables are the same bit for bit, how far outputs moved, and the
policies.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

keras, layers = tf.keras, tf.keras.layers
IS_KERAS3 = hasattr(keras, "ops")
register = getattr(keras, "saving", keras.utils).register_keras_serializable


@register(package="converted")
class Doubled(layers.Layer):
    """A layer of the user's, with a weight and a layer that its own code makes for it."""

    def __init__(self, units: int = 4, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.units = units
        self.inside = layers.Dense(units, name="inside", dtype=self.dtype_policy if IS_KERAS3 else self._dtype_policy)

    def build(self, shape: tuple[int | None, ...]) -> None:
        self.gain = self.add_weight(shape=(self.units,), initializer="ones", name="gain")
        self.inside.build(shape)
        super().build(shape)

    def call(self, x: tf.Tensor) -> tf.Tensor:
        return self.inside(x) * tf.cast(self.gain, x.dtype)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "units": self.units}


def functional() -> object:
    given = keras.Input((4,), name="given")
    left, right = layers.Dense(8, activation="relu", name="left")(given), layers.Dense(8, name="right")(given)
    merged = layers.LayerNormalization(name="norm")(layers.Add(name="sum")([left, right]))
    return keras.Model(given, [layers.Dense(3, name="one")(merged), layers.Dense(2, dtype="float32", name="two")(left)])


def sequential() -> object:
    return keras.Sequential(
        [
            keras.Input((8, 8, 3)),
            layers.Conv2D(4, 3, name="conv"),
            layers.BatchNormalization(name="norm"),
            layers.GlobalAveragePooling2D(name="pool"),
            layers.Dropout(0.2, name="drop"),
            layers.Dense(3, activation="softmax", dtype="float32", name="head"),
        ]
    )


def nested() -> object:
    inner = keras.Sequential([keras.Input((6,)), layers.Dense(6, name="a"), layers.Dense(6, name="b")], name="inner")
    given = keras.Input((6,))
    middle = keras.Model(given, inner(layers.Dense(6, name="c")(given)), name="middle")
    start = keras.Input((5, 6))
    return keras.Model(start, layers.Dense(2, name="end")(layers.TimeDistributed(middle, name="each")(start)))


def recurrent() -> object:
    given = keras.Input((5, 4))
    both = layers.Bidirectional(layers.LSTM(4, return_sequences=True, name="lstm"), name="both")(given)
    cells = layers.RNN([layers.GRUCell(4, name="g"), layers.LSTMCell(3, name="l")], name="cells")(both)
    return keras.Model(given, layers.Dense(2, name="end")(cells))


def attention() -> object:
    given = keras.Input((6,), dtype="int32")
    words = layers.Embedding(20, 8, name="words")(given)
    seen = layers.MultiHeadAttention(2, 4, name="attention")(words, words)
    return keras.Model(given, layers.Dense(2, name="end")(layers.Flatten(name="flat")(seen)))


def tied() -> object:
    shared = layers.Dense(4, name="shared")
    given = keras.Input((4,))
    return keras.Model(given, layers.Add(name="sum")([shared(given), shared(shared(given))]))


def own() -> object:
    return keras.Sequential([keras.Input((4,)), Doubled(4, name="doubled"), layers.Dense(2, name="end")])


MODELS = (functional, sequential, nested, recurrent, attention, tied, own)
SUFFIXES = (".keras", ".h5")


def write(folder: Path, policy: str) -> None:
    keras.mixed_precision.set_global_policy(policy)
    keras.utils.set_random_seed(5)
    for make in MODELS:
        model = make()
        for suffix in SUFFIXES:
            model.save(str(folder / f"{make.__name__}.old{suffix}"))


def overflowing() -> object:
    """Two layers have to be float32 in Keras 3: the one that overflows, and the next, which would cast again."""
    huge = keras.initializers.Constant(1e5)
    given = keras.Input((8,))
    x = layers.Dense(8, name="boost", kernel_initializer=huge)(layers.Dense(8, name="first")(given))
    x = layers.LayerNormalization(name="norm")(layers.Dense(8, name="mix")(x))
    return keras.Model(given, layers.Dense(3, name="out", dtype="float32")(layers.Dense(4, name="last")(x)))


def in_a_part() -> object:
    """The same in a nested model, with a head that ought to be float32 as well."""
    huge = keras.initializers.Constant(1e5)
    inner = [keras.Input((8,)), layers.Dense(8, name="boost", kernel_initializer=huge), layers.LayerNormalization()]
    head = layers.Dense(3, activation="softmax", name="head")
    return keras.Sequential([keras.Input((8,)), keras.Sequential(inner, name="inner"), head])


def sick(folder: Path) -> None:
    keras.mixed_precision.set_global_policy("mixed_float16")
    keras.utils.set_random_seed(5)
    for make, loss in ((overflowing, keras.losses.MeanSquaredError()), (in_a_part, "sparse_categorical_crossentropy")):
        model = make()
        model.compile("adam", loss)
        if not IS_KERAS3:  # which loads no file under mixed_float16 whose optimizer has not seen the weights
            model.optimizer.build(model.trainable_variables)
        for suffix in SUFFIXES:
            model.save(str(folder / f"{make.__name__}{suffix}"))


def compare(folder: Path) -> None:
    told = {}
    for new in sorted(folder.glob("*.new.*")):
        before, after = (load(path) for path in (Path(str(new).replace(".new.", ".old.")), new))
        same = [
            np.array_equal(old, moved_value) for old, moved_value in zip(values(before), values(after), strict=True)
        ]
        given = features(before)
        outputs = [
            [np.asarray(value, "float64") for value in tf.nest.flatten(model(given))] for model in (before, after)
        ]
        moved = max(float(np.abs(old - moved_value).max()) for old, moved_value in zip(*outputs, strict=True))
        told[new.name] = {
            "variables": len(same),
            "same": all(same),
            "moved": moved / max(float(np.abs(output).max()) for output in outputs[0]),
            "policies": dict(policies(after)),
            "dtypes": sorted({str(getattr(value.dtype, "name", value.dtype)) for value in after.variables}),
        }
    print(json.dumps(told))


def load(path: Path) -> object:
    return keras.models.load_model(str(path), compile=False)


def values(model: object) -> list[np.ndarray]:
    """Of all variables but the state of random numbers, which HDF5 does not keep."""
    return [variable.numpy() for variable in model.variables if "seed_generator" not in getattr(variable, "path", "")]


def features(model: object) -> tf.Tensor:
    spec = model.inputs[0]
    shape = [16, *list(spec.shape)[1:]]
    if "int" in str(spec.dtype):
        return tf.constant(np.random.default_rng(1).integers(0, 20, shape), tf.int32)
    return tf.constant(np.random.default_rng(1).normal(size=shape), tf.float32)


def policies(model: object, prefix: str = "") -> object:
    for layer in model.layers:
        policy = layer.dtype_policy if hasattr(layer, "dtype_policy") else layer._dtype_policy
        yield prefix + layer.name, policy.name
        if hasattr(layer, "layers"):
            yield from policies(layer, f"{prefix}{layer.name}/")


if __name__ == "__main__":
    {"write": write, "compare": compare, "sick": sick}[sys.argv[1]](Path(sys.argv[2]), *sys.argv[3:])

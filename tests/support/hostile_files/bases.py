"""Writes the SavedModels that hostile ones are made of: `python bases.py KERAS DIRECTORY` by each Keras itself.

Their paths are relative to the folder that the model will lie in. Python 3.8, the standard library and TensorFlow.
"""

import os
import sys

MARKER, CANARY = "../outside/marker", "../outside/canary.weights.h5"
ASSET = "a" * 80  # to be replaced by a path of the same length


def resource_class():
    try:
        from tensorflow.python.trackable.resource import CapturableResource
    except ImportError:
        from tensorflow.python.training.tracking.tracking import CapturableResource
    return CapturableResource


def residual_wrapper(tf, name):
    if name != "tf_keras":
        return tf.nn.RNNCellResidualWrapper
    from tf_keras.src.layers.rnn.cell_wrappers import ResidualWrapper

    return ResidualWrapper


def main(name, directory):
    import tensorflow as tf

    if name == "tf_keras":
        import tf_keras as keras
    else:
        from tensorflow import keras
    capturable = resource_class()
    layers = keras.layers

    class Innocent(layers.Layer):
        def call(self, x):
            return x * 2.0

    class Writes(layers.Layer):
        def call(self, x):
            tf.io.write_file(MARKER, tf.strings.as_string(tf.reduce_sum(x)))
            return x * 2.0

    class Reads(layers.Layer):
        def call(self, x):
            return x + tf.cast(tf.strings.length(tf.io.read_file(CANARY)), "float32")

    class Prints(layers.Layer):
        def call(self, x):
            tf.print(tf.reduce_sum(x), output_stream="file://" + MARKER)
            return x * 2.0

    class WritesInBranch(layers.Layer):
        def call(self, x):
            def write():
                tf.io.write_file(MARKER, "x")
                return x * 3.0

            return tf.cond(tf.reduce_sum(x) > -1e30, write, lambda: x)

    class WritesInLoop(layers.Layer):
        def call(self, x):
            def body(i, y):
                tf.io.write_file(MARKER, "x")
                return i + 1, y * 2.0

            return tf.while_loop(lambda i, y: i < 2, body, (0, x))[1]

    class WritesInDataset(layers.Layer):
        def call(self, x):
            def write(i):
                tf.io.write_file(MARKER, "x")
                return tf.cast(i, "float32")

            return x + tf.data.Dataset.range(2).map(write).reduce(0.0, lambda a, b: a + b)

    class ReadsLines(layers.Layer):
        def call(self, x):
            lines = tf.data.TextLineDataset(CANARY)
            return x + lines.reduce(0.0, lambda n, line: n + tf.cast(tf.strings.length(line), "float32"))

    class Lists(layers.Layer):
        def call(self, x):
            return x + tf.cast(tf.size(tf.io.matching_files("../outside/*")), "float32")

    class Checkpoints(layers.Layer):
        def call(self, x):
            tf.raw_ops.SaveV2(prefix=MARKER, tensor_names=["x"], shape_and_slices=[""], tensors=[x])
            return x * 2.0

    def resource(creates, initialises):
        class Resource(capturable):
            def _create_resource(self):
                if creates:
                    tf.io.write_file(MARKER, "x")
                return tf.raw_ops.MutableHashTableV2(key_dtype=tf.string, value_dtype=tf.int64)

            def _initialize(self):
                if initialises:
                    tf.io.write_file(MARKER, "x")

        return Resource()

    class Holds(layers.Layer):
        def __init__(self, held=None, **more):
            super().__init__(**more)
            self.held = held

        def call(self, x):
            if hasattr(self.held, "resource_handle"):
                size = tf.raw_ops.LookupTableSizeV2(table_handle=self.held.resource_handle)
            else:
                size = self.held.size()
            return x + tf.cast(size, "float32")

    def model(layer):
        made = keras.Sequential([layers.InputLayer(input_shape=(4,)), layer, layers.Dense(1)])
        made.compile("sgd", "mse")
        return made

    def save(made, to):
        keras.models.save_model(made, os.path.join(directory, to), save_format="tf")

    inside = os.path.join(directory, "inside")
    for folder in (inside, os.path.join(directory, "outside")):
        os.makedirs(folder)
    os.chdir(inside)
    with open(CANARY, "w") as file:
        file.write("1\n")
    with open(ASSET, "w") as file:
        file.write("one\ntwo\n")
    simple = (
        Innocent,
        Writes,
        Reads,
        Prints,
        WritesInBranch,
        WritesInLoop,
        WritesInDataset,
        ReadsLines,
        Lists,
        Checkpoints,
    )
    for made in simple:
        save(model(made(name="odd")), made.__name__)
    save(model(Holds(resource(True, False), name="odd")), "CreatesResource")
    save(model(Holds(resource(False, True), name="odd")), "InitialisesResource")
    lines = tf.lookup.TextFileInitializer(
        ASSET, tf.string, tf.lookup.TextFileIndex.WHOLE_LINE, tf.int64, tf.lookup.TextFileIndex.LINE_NUMBER
    )
    save(model(Holds(tf.lookup.StaticHashTable(lines, -1), name="odd")), "Table")
    save(
        model(layers.Lambda(lambda x: (__import__("builtins").open("../outside/marker", "w").close(), x)[1])), "Lambda"
    )
    save(keras.Sequential([layers.InputLayer(input_shape=(4,)), layers.Dense(4, name="dense")]), "Plain")
    opened = lambda i, o: (__import__("builtins").open("../outside/marker", "w").close(), o)[1]  # noqa: E731
    cell = residual_wrapper(tf, name)(layers.SimpleRNNCell(4), residual_fn=opened)
    made = keras.Sequential([layers.InputLayer(input_shape=(3, 4)), layers.RNN(cell), layers.Dense(1)])
    made.compile("sgd", "mse")
    save(made, "Wrapper")
    column = tf.feature_column.categorical_column_with_vocabulary_file("word", CANARY, 1)
    word = {"word": layers.Input((1,), name="word", dtype="string")}
    features = layers.DenseFeatures([tf.feature_column.indicator_column(column)])(word)
    save(keras.Model(word, layers.Dense(1)(features)), "Columns")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])

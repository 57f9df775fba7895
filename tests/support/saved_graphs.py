"""SavedModels whose graphs do more than compute, and others that only seem to: made, and judged, beside any TensorFlow.

    python tests/support/saved_graphs.py DIRECTORY

writes them, and prints why each is refused as JSON, "" for those that are not. Names begin with "bad_" or "good_"; what
a bad one would write lands in DIRECTORY/written.
"""

from __future__ import annotations

import importlib.machinery
import importlib.util
import json
import os
import shutil
import sys
from pathlib import Path
from typing import Any, Callable  # noqa: UP035 - it runs beside Python 3.8

os.environ["TF_USE_LEGACY_KERAS"] = "1" if importlib.util.find_spec("tf_keras") else "0"
os.environ["AUTOGRAPH_VERBOSITY"] = "0"

import tensorflow as tf
from tensorflow.core.protobuf import saved_model_pb2

K, L = tf.keras, tf.keras.layers
RAW, BY_LINE = tf.raw_ops, tf.lookup.TextFileIndex


class Maker:
    """Writes models below a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.written = folder / "written"
        self.secret = folder / "secret.txt"
        self.written.mkdir()
        self.secret.write_text("root\nnobody\n")

    def with_layer(self, name: str, call: Callable[[Any], Any], options: Any = None) -> Path:
        """A model of a layer whose class nobody knows, so that Keras runs the graph of its call."""
        layer = type(name, (L.Layer,), {"call": lambda self, x: tf.ensure_shape(call(x), x.shape)})
        given = L.Input((4,))
        return self.save(name, K.Model(given, L.Dense(1, name="head")(layer(name="odd")(given))), options)

    def with_vocabulary(self, name: str) -> Path:
        words = self.folder / "words.txt"
        words.write_text("a\nb\nc\n")
        table = tf.lookup.StaticHashTable(
            tf.lookup.TextFileInitializer(str(words), tf.string, BY_LINE.WHOLE_LINE, tf.int64, BY_LINE.LINE_NUMBER),
            -1,
        )
        return self.save(name, tabled(table))

    def save(self, name: str, model: Any, options: Any = None) -> Path:
        path = self.folder / name
        model.compile("sgd", "mse")
        model.save(str(path), save_format="tf", options=options)
        K.backend.clear_session()
        return path

    def edit(self, name: str, source: Path, change: Callable[[Any], None]) -> Path:
        """A copy of a model whose protocol buffer was changed by hand."""
        path = self.folder / name
        shutil.copytree(source, path)
        file = path / "saved_model.pb"
        saved = saved_model_pb2.SavedModel.FromString(file.read_bytes())
        change(saved)
        file.write_bytes(saved.SerializeToString())
        return path


class Tabled(L.Layer):
    """Looks up what it is given, and numbers it is given anyway."""

    def __init__(self, table: Any, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.table = table

    def call(self, x: Any) -> Any:
        return x + tf.cast(self.table.lookup(tf.constant(["b"])), x.dtype)

    def get_config(self) -> dict[str, Any]:
        return {"name": self.name}


def tabled(table: Any) -> Any:
    given = L.Input((4,))
    return K.Model(given, L.Dense(1)(Tabled(table, name="tabled")(given)))


class ReadsAnywhere(tf.lookup.TextFileInitializer):
    """Of a file that is no asset of the model."""

    def initialize(self, table: Any) -> Any:
        return RAW.InitializeTableFromTextFileV2(
            table_handle=table.resource_handle,
            filename=tf.constant(self._plain),
            key_index=-2,
            value_index=-1,
            vocab_size=-1,
            delimiter="\t",
        )


class WritesFirst(tf.lookup.KeyValueTensorInitializer):
    """And fills its table then."""

    def initialize(self, table: Any) -> Any:
        with tf.control_dependencies([tf.io.write_file(self.place, "x")]):
            return super().initialize(table)


def make(folder: Path) -> None:
    m = Maker(folder)
    place = lambda name: str(m.written / name)  # noqa: E731

    def then(x: Any, *done: Any) -> Any:
        with tf.control_dependencies(list(done)):
            return tf.identity(x)

    m.save("good_text", text_model())
    plain = m.with_layer("good_layer", lambda x: x * 2)
    m.with_layer("good_loop", loop)
    m.with_layer("good_strings", strings)
    m.with_layer("good_print", lambda x: then(x, tf.print("shape", tf.shape(x), output_stream=sys.stderr)))
    vocabulary = m.with_vocabulary("good_vocabulary")
    again = m.save("good_vocabulary_again", K.models.load_model(str(vocabulary)))
    if not any((again / "assets").iterdir()):  # TensorFlow 2.4 goes on to read the file of the first model
        again.rename(m.folder / "bad_vocabulary_again")

    m.with_layer("bad_write", lambda x: then(x, tf.io.write_file(place("write"), "x")))
    m.with_layer("bad_read", lambda x: x + tf.cast(tf.strings.length(tf.io.read_file(str(m.secret))), x.dtype))
    m.with_layer("bad_matching", lambda x: x + tf.cast(tf.size(tf.io.matching_files("/*")), x.dtype))
    m.with_layer("bad_print", lambda x: then(x, tf.print("x", output_stream="file://" + place("print"))))
    m.with_layer("bad_python", lambda x: tf.reshape(tf.py_function(lambda y: y, [x], x.dtype), tf.shape(x)) + x)
    m.with_layer("bad_numpy", lambda x: tf.reshape(tf.numpy_function(lambda y: y, [x], x.dtype), tf.shape(x)) + x)
    m.with_layer("bad_saver", lambda x: then(x, RAW.SaveV2(
        prefix=place("saved"), tensor_names=["a"], shape_and_slices=[""], tensors=[tf.constant(1.0)])))  # fmt: skip
    m.with_layer("bad_lines", lambda x: x + tf.cast(
        tf.data.TextLineDataset(str(m.secret)).reduce(0, lambda n, _: n + 1), x.dtype))  # fmt: skip
    m.with_layer("bad_branch", lambda x: tf.cond(
        tf.reduce_sum(x) > -1e9, lambda: then(x, tf.io.write_file(place("branch"), "x")), lambda: x))  # fmt: skip
    m.with_layer("bad_case", lambda x: tf.switch_case(
        tf.shape(x)[0] % 2, [lambda: then(x, tf.io.write_file(place("case"), "x")), lambda: x]))  # fmt: skip
    m.with_layer("bad_while", lambda x: tf.while_loop(
        lambda i, y: i < 2, lambda i, y: (i + 1, then(y, tf.io.write_file(place("w"), "x"))), (0, x))[1])  # fmt: skip
    inner = tf.function(lambda x: then(x, tf.io.write_file(place("inner"), "x")))
    m.with_layer("bad_inner", lambda x: tf.function(inner)(x))

    values = tf.constant(["a", "b"]), tf.constant([1, 2], tf.int64)
    writes = WritesFirst(*values)
    writes.place = place("initializer")
    with tf.init_scope():
        m.save("bad_initializer", tabled(tf.lookup.StaticHashTable(writes, -1)))
    reads = ReadsAnywhere(str(m.secret), tf.string, BY_LINE.WHOLE_LINE, tf.int64, BY_LINE.LINE_NUMBER)
    reads._plain = str(m.secret)
    m.save("bad_vocabulary", tabled(tf.lookup.StaticHashTable(reads, -1)))
    edited(m, plain, vocabulary)
    for file in m.written.iterdir():  # what was run while the models were made
        file.unlink()


def text_model() -> Any:
    """With a vocabulary that was learned from data."""
    vectorization = getattr(L, "TextVectorization", None) or L.experimental.preprocessing.TextVectorization
    words = vectorization(max_tokens=20, output_sequence_length=5)
    words.adapt(tf.data.Dataset.from_tensor_slices(["a b c", "b c d!"]).batch(2))
    given = L.Input((1,), dtype="string")
    return K.Model(given, L.Dense(1)(L.Flatten()(L.Embedding(20, 4)(words(given)))))


def loop(x: Any) -> Any:
    kept = tf.TensorArray(tf.float32, 3)
    for number in range(3):
        kept = kept.write(number, tf.reduce_sum(x))

    @tf.custom_gradient
    def halved(given: Any) -> Any:
        return tf.identity(given), lambda upstream: upstream * 0.5

    x = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y)), (0, halved(x)))[1]
    x = tf.cond(tf.reduce_sum(kept.stack()) > 0, lambda: tf.sort(x), lambda: x * 2)
    return tf.map_fn(lambda row: row + tf.random.normal(tf.shape(row)), x)


def strings(x: Any) -> Any:
    words = tf.strings.regex_replace(tf.strings.lower(tf.strings.as_string(x)), "e", "f")
    split = tf.strings.split(tf.reshape(words, (-1,)), ".")
    hashed = tf.strings.to_hash_bucket_fast(split.to_tensor("")[:, 0], 5)
    return x + tf.reshape(tf.cast(hashed, x.dtype), tf.shape(x))


# --- by hand --------------------------------------------------------------------------------------------------------
def edited(m: Maker, plain: Path, vocabulary: Path) -> None:
    bad = saved_model_pb2.SavedModel.FromString((m.folder / "bad_write" / "saved_model.pb").read_bytes())

    def behind(saved: Any) -> None:
        saved.meta_graphs.extend(bad.meta_graphs)

    def in_front(saved: Any) -> None:
        """Keras 2 loads the first one, whatever serves."""
        good = saved_model_pb2.SavedModel()
        good.CopyFrom(saved)
        del saved.meta_graphs[:]
        saved.meta_graphs.extend([bad.meta_graphs[0], good.meta_graphs[0]])
        del saved.meta_graphs[0].meta_info_def.tags[:]

    def never_called(saved: Any) -> None:
        function = saved.meta_graphs[0].graph_def.library.function.add()
        function.signature.name = "__inference_of_nobody"
        function.node_def.add(name="odd", op="WriteFile")

    def unknown(saved: Any) -> None:
        saved.meta_graphs[0].graph_def.library.function[0].node_def.add(name="odd", op="Addons>Unheard")

    def calls_the_saver(saved: Any) -> None:
        graph = saved.meta_graphs[0].graph_def
        saver = next(f.signature.name for f in graph.library.function if any(n.op == "SaveV2" for n in f.node_def))
        other = next(f for f in graph.library.function if "layer_call" in f.signature.name)
        node = other.node_def.add(name="odd", op="StatefulPartitionedCall")
        node.attr["f"].func.name = saver

    def names(text: str) -> Callable[[Any], None]:
        def change(saved: Any) -> None:
            saved.meta_graphs[0].asset_file_def[0].filename = text

        return change

    def bound_to_another(saved: Any) -> None:
        """The file's name is handed in from what is no asset."""
        objects = saved.meta_graphs[0].object_graph_def
        number = next(i for i, node in enumerate(objects.nodes) if node.WhichOneof("kind") == "asset")
        objects.nodes[number].constant.operation = "odd"

    def registered(saved: Any) -> None:
        for node in saved.meta_graphs[0].object_graph_def.nodes:
            if node.WhichOneof("kind") == "asset":
                node.registered_name = "tf.TrackableConstant"

    m.edit("bad_second_graph", plain, behind)
    m.edit("bad_first_graph", plain, in_front)
    m.edit("bad_never_called", plain, never_called)
    m.edit("bad_unknown", plain, unknown)
    m.edit("bad_saver_of_all", plain, calls_the_saver)
    for number, text in enumerate(["../../secret.txt", str(m.secret), "..", "a/../../secret.txt"]):
        m.edit(f"bad_asset_name_{number}", vocabulary, names(text))
    m.edit("bad_asset_object", vocabulary, bound_to_another)
    if hasattr(bad.meta_graphs[0].object_graph_def.nodes[0], "registered_name"):
        m.edit("bad_asset_class", vocabulary, registered)
    linked = m.edit("bad_asset_link", vocabulary, lambda saved: None) / "assets" / "words.txt"
    linked.unlink()
    linked.symlink_to(m.secret)
    folder = m.edit("bad_variables_link", plain, lambda saved: None) / "variables"
    folder.rename(m.folder / "elsewhere")
    folder.symlink_to(m.folder / "elsewhere")
    os.mkfifo(str(m.edit("bad_pipe", vocabulary, lambda saved: None) / "assets" / "pipe"))
    inside = m.edit("good_link", vocabulary, lambda saved: None)
    (inside / "assets" / "words.txt").rename(inside / "kept.txt")
    (inside / "assets" / "words.txt").symlink_to(Path("..") / "kept.txt")


def judge(folder: Path) -> dict[str, str]:
    """Why each of them is refused; "" where it is not."""
    spec = importlib.machinery.ModuleSpec("mpdoctor", None, is_package=True)
    spec.submodule_search_locations = [str(Path(__file__).resolve().parents[2] / "mpdoctor")]
    sys.modules["mpdoctor"] = importlib.util.module_from_spec(spec)
    from mpdoctor.examiner.exceptions import Unusable
    from mpdoctor.examiner.saved.directories import saved_directory_from_path
    from mpdoctor.examiner.saved.refused_operations import refuse_operations

    told = {}
    for path in sorted(folder.glob("*_*")):
        try:
            refuse_operations(saved_directory_from_path(str(path)))
            told[path.name] = ""
        except Unusable as reason:
            told[path.name] = str(reason)
    return told


if __name__ == "__main__":
    directory = Path(sys.argv[1]).resolve()
    make(directory)
    print(json.dumps(judge(directory)))

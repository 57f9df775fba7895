"""What a saved model's configuration may name, and what of it is code, a call, a file, or a name from elsewhere."""

from __future__ import annotations

import importlib
import json
from typing import Any

import pytest
from checking import needs_keras
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.examiner.saved.refused_contents import contents_from_configuration
from mpdoctor.knowledge.allow_lists import loadable_functions, loadable_names

NAMED = {"class_name": "function", "config": "halved", "module": "builtins", "registered_name": "function"}
LEAVES = st.none() | st.booleans() | st.integers() | st.text(max_size=5) | st.sampled_from(["{", '{"class_name": 1}'])
KEYS = st.text(max_size=5) | st.sampled_from(
    ["class_name", "config", "name", "module", "registered_name", "function", "loss", "vocabulary", "spec_name"]
)
CONFIGURATIONS = st.recursive(
    LEAVES | st.sampled_from(["Lambda", "TFOpLambda", "function", "ClassMethod", "__typespec__", "InstanceMethod"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=20,
)
COMPUTING = """
    math.add math.reduce_sum __operators__.add __operators__.getitem nn.relu concat reshape cast shape image.resize
    compat.v1.gather compat.v1.transpose keras.backend.mean keras.activations.relu einsum linalg.matmul one_hot where
    signal.stft strings.lower random.normal
"""
ACTING = """
    io.write_file io.read_file io.matching_files io.gfile.GFile io.decode_raw keras.utils.get_file
    keras.models.model_from_json keras.models.load_model keras.backend.batch_set_value py_function numpy_function
    compat.v1.py_func compat.v1.write_file print compat.v1.Print map_fn while_loop function custom_gradient load_library
    load_op_library saved_model.load raw_ops.WriteFile raw_ops.AddV2 summary.create_file_writer
    nn.fixed_unigram_candidate_sampler train.load_checkpoint debugging.experimental.enable_dump_debug_info
    config.list_physical_devices compat.v1.compat.v1.add tf.math.add os.system math math. .add Math.add
"""
PATHS = st.lists(st.integers(0, 5) | st.text(max_size=5) | st.none(), max_size=12)


def layer(class_name: str = "Dense", **config: Any) -> dict[str, Any]:
    return {"class_name": class_name, "config": config}


def named(module: str | None, name: str, registered: str | None = None, **config: Any) -> dict[str, Any]:
    return {"module": module, "class_name": name, "config": config, "registered_name": registered}


def function(module: str | None, name: str, registered: str | None = "function") -> dict[str, Any]:
    return {"module": module, "class_name": "function", "config": name, "registered_name": registered}


def op_layer(symbol: str, kind: str = "TFOpLambda") -> dict[str, Any]:
    return layer(kind, name="op", function=symbol)


def told(configuration: Any) -> list[str]:
    contents = contents_from_configuration(configuration)
    return [str(text) for texts in vars(contents).values() for text in texts]


def buried(value: Any, path: list[int | str | None]) -> Any:
    """The value below lists (numbers), dictionaries (texts) and texts of JSON (None)."""
    for step in reversed(path):
        if step is None:
            value = json.dumps(value)
        else:
            value = {step: value} if isinstance(step, str) else [None] * (step % 3) + [value]
    return value


@given(CONFIGURATIONS)
def test_no_configuration_breaks_the_search(configuration: Any) -> None:
    assert all(isinstance(text, str) for text in told(configuration))


@given(
    CONFIGURATIONS,
    PATHS.filter(lambda path: path.count(None) < 4),  # each doubles its backslashes
    st.sampled_from(
        [
            (layer("Lambda", name="square", function={"class_name": "__lambda__"}), "Lambda layer square"),
            (op_layer("io.write_file"), "`io.write_file` in the layer op"),
            (function("keras.utils", "get_file"), "keras.utils.get_file"),
            (named("os", "system"), "os.system"),
        ]
    ),
)
def test_what_is_refused_is_found_however_deep_it_lies(
    beside: Any, path: list[int | str | None], hidden: tuple[Any, str]
) -> None:
    configuration, words = hidden
    assert words in told([beside, buried(configuration, path)])


@pytest.mark.parametrize(
    ("configuration", "code"),
    [
        (layer("Lambda", name="a", function={"class_name": "__lambda__"}), ["Lambda layer a", "a lambda function"]),
        ({"class_name": "__lambda__", "config": {"value": "4wAA"}}, ["a lambda function"]),
        ({"class_name": "Lambda", "config": None}, ["Lambda layer"]),
        ({"class_name": "Lambda", "config": ["odd"]}, ["Lambda layer"]),
        ({"class_name": "Custom>Lambda", "config": {}}, ["Lambda layer"]),
        (layer(name="Lambda"), []),
        # Keras 2 keeps the bytecode in a list, and says so beside it
        (layer("Lambda", name="a", function=["4wEA", None, None], function_type="lambda"), ["Lambda layer a"]),
        (layer("Lambda", name="a", function={"class_name": "__tuple__", "items": ["4wEA"]}), ["Lambda layer a"]),
        # a function by its name is no code, and must be known
        (layer("Lambda", name="a", function="relu", function_type="function"), []),
        (layer("Lambda", name="a", function="halved", function_type="function"), ["halved"]),
        (layer("Lambda", name="a", function=NAMED), ["halved"]),
        (layer("Lambda", name="a", function="system", function_type="function", module="os"), ["os.system"]),
        (layer("Lambda", name="a", function=function("keras.src.utils.generic_utils", "os.system")),
         ["keras.src.utils.generic_utils.os.system"]),
        # but its output shape may be code
        (
            layer("Lambda", name="a", function="relu", function_type="function", output_shape_type="lambda"),
            ["Lambda layer a"],
        ),
        (layer("Lambda", name="a", function="relu", output_shape=[2, 3], output_shape_type="raw"), []),
        (layer("Lambda", name="a", function="relu", mask=["4wEA", None, None], mask_type="lambda"), ["Lambda layer a"]),
        (layer("JaxLayer", name="j"), ["JaxLayer j, a pickled JAX function"]),
        (layer("TorchModuleWrapper", name="t"), ["TorchModuleWrapper t, a pickled PyTorch module"]),
        (layer("TFSMLayer", name="t"), ["TFSMLayer t, a graph in another file"]),
        (layer("TensorFlowOpLayer", name="t", node_def="op: WriteFile"),
         ["TensorFlowOpLayer t, an operation of a graph"]),
    ],
)  # fmt: skip
def test_code(configuration: Any, code: list[str]) -> None:
    assert told(configuration) == code


@pytest.mark.parametrize("symbol", COMPUTING.split())
def test_an_op_layer_may_compute(symbol: str) -> None:
    assert told([op_layer(symbol), op_layer(symbol, "SlicingOpLambda")]) == []


@pytest.mark.parametrize("symbol", ACTING.split())
def test_an_op_layer_may_do_nothing_else(symbol: str) -> None:
    for kind in ("TFOpLambda", "SlicingOpLambda"):
        assert told(op_layer(symbol, kind)) == [f"`{symbol}` in the layer op"]
        assert told(layer(kind, function=symbol, name=["op"])) == [f"`{symbol}`"]


@pytest.mark.parametrize(
    ("configuration", "calls"),
    [
        (layer("ClassMethod", cls_symbol="RaggedTensor", method_name="from_row_splits"), []),
        (layer("ClassMethod", cls_symbol="io.gfile.GFile", method_name="write"), ["`io.gfile.GFile.write`"]),
        (layer("ClassMethod", cls_symbol="RaggedTensor", method_name="__init__"), ["`RaggedTensor.__init__`"]),
        (layer("InstanceMethod", attr_name="to_tensor"), []),
        (layer("InstanceMethod", attr_name="__class__"), ["`__class__`"]),
        (layer("InstanceProperty", attr_name="values"), []),
        (layer("InstanceProperty", attr_name="graph"), ["`graph`"]),
        (layer("InstanceProperty", attr_name="to_tensor"), ["`to_tensor`"]),
        (layer("TFOpLambda", function={"class_name": "TFOpLambda"}), ["``"]),
        (named("keras.src.layers.core.tf_op_layer", "TFOpLambda", "TFOpLambda", function="exp"), []),
        (named("os", "TFOpLambda", "TFOpLambda", function="exp"), ["os.TFOpLambda"]),
    ],
)
def test_methods_and_properties_of_tensors(configuration: Any, calls: list[str]) -> None:
    assert told(configuration) == calls


@pytest.mark.parametrize(
    ("configuration", "names"),
    [
        (named("keras.layers", "Dense"), []),
        (named("tf_keras.layers", "Dense"), []),
        (named("keras.src.models.functional", "Functional", "Functional"), []),
        (named("tf_keras.src.engine.functional", "Functional", "Functional"), []),
        (named("keras.engine.functional", "Functional", "Functional"), []),
        (named("keras.src.ops.numpy", "Add", "Add"), []),
        (named("keras.optimizers", "Custom>Adam", "Custom>Adam"), []),
        (named("keras.optimizers.legacy", "Adam"), []),
        (named("keras.mixed_precision", "Policy"), []),
        (named("keras", "DTypePolicy"), []),
        (layer("Custom>Adam"), []),
        (function("builtins", "relu"), []),
        (function("keras.activations", "relu", "relu"), []),
        (function("builtins", "mean_squared_error", "mean_squared_error"), []),
        # none of these is a part of a model, though it lies in Keras
        (named("keras.utils", "get_file"), ["keras.utils.get_file"]),
        (function("keras.utils", "get_file"), ["keras.utils.get_file"]),
        (function("keras.models", "load_model"), ["keras.models.load_model"]),
        (named("keras.saving", "load_model"), ["keras.saving.load_model"]),
        (function("keras.config", "enable_unsafe_deserialization"), ["keras.config.enable_unsafe_deserialization"]),
        (function("builtins", "deserialize"), ["deserialize"]),
        (function("keras.activations", "deserialize", "deserialize"), ["keras.activations.deserialize"]),
        (function("keras.src.utils.generic_utils", "os.system"), ["keras.src.utils.generic_utils.os.system"]),
        (named("keras.src.layers", "Dense"), ["keras.src.layers.Dense"]),
        (named("keras.src.ops.core", "Map", "Map"), ["keras.src.ops.core.Map"]),
        (named("keras.layers", "os.system"), ["keras.layers.os.system"]),
        (named("keras.layers", "Dense", "load_model"), ["keras.layers.Dense"]),
        (function("builtins", "relu", "system"), ["system"]),
        (named("keras.layers", "dense"), ["keras.layers.dense"]),
        (named("keras.layers", "Dense "), ["keras.layers.Dense "]),
        (named("Keras.layers", "Dense"), ["Keras.layers.Dense"]),
        (named("keras.layers.", "Dense"), ["keras.layers..Dense"]),
        (layer("DenseFeatures"), ["DenseFeatures"]),
        # the user's own
        (named("keras_hub.src.models.bert", "BertBackbone", "keras_hub>BertBackbone"),
         ["keras_hub.src.models.bert.BertBackbone"]),
        (named(None, "Scale", "Scale"), ["Scale"]),
        (named(None, "Shift", "mine>Shift"), ["mine>Shift"]),
        (named("mine.layers", "Scale", "Scale"), ["mine.layers.Scale"]),
        (named("kerasish", "X"), ["kerasish.X"]),
        (NAMED, ["halved"]),
        (layer("Scale"), ["Scale"]),
        ([named(None, "Scale"), named(None, "Scale")], ["Scale"]),
        (layer(activation="relu", kernel_initializer="zeros", kernel_regularizer="l2", bias_constraint="non_neg"), []),
        (layer(activation="halved", recurrent_activation="sys"), ["halved", "sys"]),
        ({"loss": {"a": "mse", "b": "mine"}, "metrics": [["accuracy", "theirs"]], "optimizer": "adam"},
         ["mine", "theirs"]),
        (layer("MeanMetricWrapper", fn="mean_absolute_error"), []),
        (layer("ConvLSTM2DCell", filters=2, kernel_size=3), []),
        (named("keras._legacy.layers", "ThresholdedReLU"), []),
        (named("keras._legacy.layers", "Dense"), ["keras._legacy.layers.Dense"]),
        (named("keras.src.layers.preprocessing.feature_space", "TFDConcat"), []),
        (named("keras.src.layers.preprocessing.feature_space", "Feature"),
         ["keras.src.layers.preprocessing.feature_space.Feature"]),
        # what lies in a class of the user's is its own to read; what Keras would deserialise there is not
        (named("mine", "Scale", "Scale", activation="any word", loss="also"), ["mine.Scale"]),
        (named("mine", "Scale", "Scale", inner=function("os", "system")), ["mine.Scale", "os.system"]),
        (named("mine", "Scale", "Scale", inner=layer(activation="halved")), ["mine.Scale", "halved"]),
        # values
        ({"class_name": "__tensor__", "config": {"value": [1.0], "dtype": "float32"}}, []),
        ({"class_name": "__ellipsis__"}, []),
        ({"class_name": "TypeSpec", "type_spec": "tf.RaggedTensorSpec", "serialized": []}, []),
        ({"class_name": "TypeSpec", "type_spec": "tfp.Mine", "serialized": []}, ["tfp.Mine"]),
        ({"class_name": "__typespec__", "spec_name": "TensorSpec", "config": [], "registered_name": None,
          "module": "tensorflow.python.framework.tensor"}, []),
        ({"class_name": "__typespec__", "spec_name": "Popen", "module": "subprocess", "config": []},
         ["subprocess.Popen"]),
    ],
)  # fmt: skip
def test_names_that_are_none_of_keras_own(configuration: Any, names: list[str]) -> None:
    assert told(configuration) == names


@pytest.mark.parametrize("kind", ["StringLookup", "IntegerLookup", "TextVectorization"])
@pytest.mark.parametrize(
    ("settings", "paths"),
    [
        ({"name": "words", "vocabulary": ["a", "b"]}, []),
        ({"name": "words", "vocabulary": None}, []),
        ({"name": "words", "vocabulary": "/etc/passwd"}, ["`/etc/passwd` (vocabulary of words)"]),
        ({"vocabulary": "words.txt"}, ["`words.txt` (vocabulary of a layer)"]),
    ],
)
def test_a_vocabulary_is_in_the_file_or_it_is_a_path(kind: str, settings: dict[str, Any], paths: list[str]) -> None:
    assert told(layer(kind, **settings)) == paths


# --- the lists, against the Keras at hand ---------------------------------------------------------------------------
# Left out on purpose: they hold code, read files, or are no part of a model.
LEFT_OUT = {
    "layers": {"FlaxLayer", "JaxLayer", "Lambda", "TFSMLayer", "TorchModuleWrapper", "Wrapper", "AbstractRNNCell",
               "DenseFeatures"},
    "losses": {"Loss", "Reduction"},
    "metrics": {"Metric"},
    "initializers": {"Initializer"},
    "regularizers": {"Regularizer"},
    "constraints": {"Constraint"},
    "optimizers": {"Optimizer"},
    "optimizers.schedules": {"LearningRateSchedule"},
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "package", [pytest.param("keras", marks=needs_keras("3")), pytest.param("tf_keras", marks=needs_keras("tf_keras"))]
)
@pytest.mark.parametrize("module", LEFT_OUT)
def test_every_public_class_is_on_the_list_or_left_out_on_purpose(package: str, module: str) -> None:
    found = importlib.import_module(package)
    for step in module.split("."):
        found = getattr(found, step)
    public = {name for name, value in vars(found).items() if isinstance(value, type)}
    assert public - loadable_names.CLASSES[module] == public & LEFT_OUT[module]


@pytest.mark.slow
@needs_keras("3")
def test_every_function_on_the_list_is_a_public_one_of_tensorflow() -> None:
    from tensorflow.python.util import tf_export

    unknown = {
        name
        for module, names in loadable_functions.FUNCTIONS.items()
        for name in (f"{module}.{leaf}".lstrip(".") for leaf in names)
        if not module.startswith("keras.") and tf_export.get_symbol_from_name(name) is None
    }
    assert not unknown

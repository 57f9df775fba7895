"""Facts of live models: every layer and function, nested and shared ones, their inputs and outputs; chains of
optimizers."""

from __future__ import annotations

from typing import Any

import pytest
from checking import needs_keras
from live import START, examined

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts

MODELS = """
def widened(tensor):
    return tf.cast(tensor, tf.float32)


class Traced(L.Layer):
    @tf.function
    def call(self, inputs):
        return widened(inputs)

    @property
    def units(self):
        raise RuntimeError("not yet")


class Own(L.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.inner = L.Dense(4, name="inner")

    def call(self, inputs):
        return tf.cast(self.inner(inputs), "float32")

    def get_config(self):
        return {}


class Sub(K.Model):
    def __init__(self):
        super().__init__(name="sub")
        self.blocks = [L.Dense(4, name=f"block{n}") for n in range(2)]
        self.by_name = {"x": L.Dense(2, name="named")}
        self.head = L.Dense(1, name="head")

    def call(self, inputs):
        for block in self.blocks:
            inputs = block(inputs)
        return self.head(self.by_name["x"](inputs))


def nested():
    inputs = L.Input((8,), name="numbers")
    shared = L.Dense(8, name="shared")
    encoder = K.Model(inputs, L.Dense(4, name="ends")(shared(shared(inputs))), name="encoder")
    outer = L.Input((8,), name="outer")
    inside = K.Sequential([L.Input((8,)), L.Dense(3, name="deepest")], name="inside")
    around = K.Sequential([L.Input((8,)), inside], name="around")
    joined = L.Concatenate(name="joined")([encoder(outer), around(outer)])
    result = L.Dense(1, dtype="float32", name="result")(Own(name="own")(joined))
    return K.Model(outer, result, name="nested")


def wrappers():
    inputs = L.Input((5, 8), name="steps")
    each = L.TimeDistributed(L.Dense(4, name="each"), name="every")(inputs)
    return K.Model(inputs, L.Bidirectional(L.LSTM(3, name="lstm"), name="both")(each), name="wrappers")


def functions():
    inputs = L.Input((8,), name="inputs")
    hidden = L.Dense(8, name="hidden")(inputs)
    cast = L.Lambda(lambda t: tf.cast(t, tf.float32) / 255.0, name="casting")(hidden)
    doubled = L.Lambda(lambda t: t * 2, name="doubling")(hidden)
    helped = L.Lambda(lambda t: widened(t), name="helped")(hidden)
    traced = Traced(name="traced")(hidden)
    product = doubled * 2.0
    total = inputs + product if KERAS3 else product
    return K.Model(inputs, [cast, total, helped, traced], name="functions")


def pictures():
    inputs = L.Input((8, 8, 3), name="pixels")
    hidden = L.Rescaling(1 / 65535, dtype="float32", name="rescaling")(inputs)
    hidden = L.Conv2D(4, 3, groups=1, name="convolution")(hidden)
    hidden = L.UpSampling2D(interpolation="bilinear", name="up")(hidden)
    hidden = L.BatchNormalization(epsilon=1e-5, name="norm")(hidden)
    return K.Model(inputs, L.Activation("relu", name="relu")(hidden), name="pictures")


def ids():
    inputs = L.Input((2,), name="ids")
    return K.Model(inputs, L.Embedding(6000, 4, name="rows")(L.Reshape((2, 1), name="column")(inputs)), name="ids")


def cloned():
    K.mixed_precision.set_global_policy("float32")
    plain = K.Sequential([L.Input((8,)), L.Dense(2, name="copied")], name="cloned")
    K.mixed_precision.set_global_policy("mixed_float16")
    return K.models.clone_model(plain)


def quantized():
    layers = [L.Input((8,)), L.Dense(8, dtype="mixed_bfloat16", name="whole"), L.Dense(4, name="low_rank")]
    model = K.Sequential(layers, name="quantized")
    model.layers[0].quantize("int8")
    model.layers[1].enable_lora(2)
    return model


def mapped():
    policies = K.dtype_policies.DTypePolicyMap(default_policy="mixed_float16")
    policies["half"] = K.DTypePolicy("float32")
    inputs = L.Input((8,), name="unmapped")
    hidden = L.Dense(2, dtype=policies, name="half")(inputs)
    return K.Model(inputs, L.Dense(2, dtype=policies, name="mixed")(hidden), name="mapped")


def assigned():
    model = K.Sequential([L.Input((8,)), L.Dense(2, name="left_behind")], name="assigned")
    model.dtype_policy = "mixed_bfloat16"  # set here
    return model


makers = [nested, wrappers, functions, pictures, ids, cloned, Sub]
made = [make() for make in (makers + [quantized, mapped, assigned] if KERAS3 else makers)]
made[6](x)
"""
H, F = ("mixed_float16", "float16"), ("float32", "float32")
KERASES = [
    pytest.param("3", marks=needs_keras("3")),
    pytest.param("tf_keras", marks=[needs_keras("tf_keras"), pytest.mark.slow]),
]


@pytest.fixture(scope="module")
def walked(tmp_path_factory: pytest.TempPathFactory) -> Any:
    done: dict[str, dict[str, ModelFacts]] = {}

    def of(keras: str) -> dict[str, ModelFacts]:
        if keras not in done:
            path = tmp_path_factory.mktemp("walk") / "models.py"
            path.write_text(START + MODELS, encoding="utf-8")
            done[keras] = {model.name: model for model in examined(path, keras, steps=1).models}
        return done[keras]

    return of


def layers_of(model: ModelFacts) -> dict[str, LayerFacts]:
    return {layer.path: layer for layer in model.layers}


def line_of(text: str) -> int:
    [number] = [n for n, line in enumerate((START + MODELS).splitlines(), 1) if text in line]
    return number


@pytest.mark.parametrize("keras", KERASES)
def test_every_layer_is_seen_once_with_its_dtypes(walked: Any, keras: str) -> None:
    """(policy, compute dtype), what is put out."""
    expected = {
        "nested": {
            "encoder": (*H, "float16"),
            "encoder/shared": (*H, "float16"),
            "encoder/ends": (*H, "float16"),
            "around": (*H, "float16"),
            "around/inside": (*H, "float16"),
            "around/inside/deepest": (*H, "float16"),
            "joined": (*H, "float16"),
            "own": (*H, "float32"),
            "own/inner": (*H, "float16"),
            "result": (*F, "float32"),
        },
        "wrappers": {
            "every": (*H, "float16"),
            "every/each": H if keras == "3" else (*H, "float16"),  # Keras 3 goes around its __call__
            "both": (*H, "float16"),
            "both/forward_lstm": (*H, "float16"),
            "both/backward_lstm": (*H, "float16"),
        },
        "functions": {
            "hidden": (*H, "float16"),
            "casting": (*H, "float32"),
            "doubling": (*H, "float16"),
            "helped": (*H, "float32"),
            "traced": (*H, "float32"),
            **({"multiply": ("", "float16", "float16"), "add": ("", "float32", "float32")} if keras == "3" else {}),
            **({} if keras == "3" else {"tf.math.multiply": (*H, "float16")}),
        },
        "pictures": {
            "rescaling": (*F, "float32"),
            "convolution": (*H, "float16"),
            "up": (*H, "float16" if keras == "3" else "float32"),
            "norm": (*H, "float16"),
            "relu": (*H, "float16"),
        },
        "ids": {"column": (*H, "float16"), "rows": (*H, "float16")},
        "cloned": {"copied": (*F, "float32")},
        "sub": dict.fromkeys(("block0", "block1", "named", "head"), (*H, "float16")),
    }
    if keras == "3":
        expected["quantized"] = {
            "whole": ("int8_from_mixed_bfloat16", "bfloat16", "bfloat16"),
            "low_rank": (*H, "float16"),
        }
        expected["mapped"] = {"half": (*F, "float32"), "mixed": (*H, "float16")}
        expected["assigned"] = {"left_behind": (*H, "float16")}
    seen = {
        name: {
            layer.path: (layer.policy, layer.compute_dtype, *layer.output_dtypes[:1])
            for layer in model.layers
            if layer.class_name not in ("InputLayer", "LSTMCell")
        }
        for name, model in walked(keras).items()
    }
    assert seen == expected


@pytest.mark.parametrize("keras", KERASES)
def test_what_a_layer_is_given_and_told(walked: Any, keras: str) -> None:
    models = {name: layers_of(model) for name, model in walked(keras).items()}
    assert models["ids"]["rows"].input_dtypes[:1] == ("float16",)
    assert models["ids"]["rows"].settings.rows == 6000
    assert models["pictures"]["norm"].settings.epsilon == 1e-5
    [(name, largest, smallest)] = models["pictures"]["rescaling"].settings.constants[:1]
    assert (name, round(1 / largest), round(1 / smallest)) == ("scale", 65535, 65535)
    assert models["pictures"]["convolution"].output_shape[1:] == (6, 6, 4)
    told = models["pictures"]["convolution"].settings
    assert (told.width, told.groups) == (4, 1)
    assert {name: layer.names_dtype for name, layer in models["functions"].items() if layer.class_name == "Lambda"} == {
        "casting": True,
        "doubling": False,
        "helped": True,
    }
    assert models["functions"]["traced"].names_dtype
    own = models["nested"]["own"]
    assert own.config is not None and own.config.config_at is not None
    assert (own.config.takes_dtype, own.config.takes_base, own.config.holds_dtype) == (True, True, False)
    assert own.config.config_at.line == line_of("def get_config")
    assert own.class_location is not None and own.class_location.line == line_of("class Own")
    assert (models["cloned"]["copied"].made_by, models["nested"]["own"].made_by) == ("clone_model", "")


@pytest.mark.parametrize("keras", KERASES)
def test_outputs_lead_to_what_computes_them(walked: Any, keras: str) -> None:
    outputs = {name: [layer.path for layer in model.layers if layer.is_output] for name, model in walked(keras).items()}
    function = "add" if keras == "3" else "tf.math.multiply"
    assert outputs["nested"] == ["result"]
    assert sorted(outputs["functions"]) == sorted(["casting", "helped", "traced", function])
    assert (outputs["wrappers"], outputs["sub"]) == (["both"], ["head"])
    ends = {layer.path for layer in walked(keras)["nested"].layers if layer.ends_submodel}
    assert ends == {"encoder/ends", "around/inside/deepest"}


@needs_keras("3")
def test_variables_of_quantized_and_low_rank_layers(walked: Any) -> None:
    layers = layers_of(walked("3")["quantized"])
    assert ("int8", 64, False) in layers["whole"].variables
    assert [size for dtype, size, trains in layers["low_rank"].variables if trains] == [4, 16, 8]


@needs_keras("3")
def test_a_policy_that_a_model_was_given_later(walked: Any) -> None:
    model = walked("3")["assigned"]
    assert (model.policy, model.policy_before) == ("mixed_bfloat16", "mixed_float16")
    assert model.policy_set_at is not None and model.policy_set_at.line == line_of("# set here")


@needs_keras("3")
def test_a_function_is_told_with_its_line(walked: Any) -> None:
    add = layers_of(walked("3")["functions"])["add"]
    assert add.is_operation and sorted(add.input_dtypes) == ["float16", "float32"]
    assert add.made_at is not None and add.made_at.line == line_of("total = inputs + product")

"""What the rules say about hand-written facts of live models: the defect, and the right code that looks like it."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from judging import facts_of, findings_in
from test_rules_source import BODY, FIT, HALF_HEAD, HEAD, LINE, SCALED, layer, model, said, wrapper

from mpdoctor.facts.layer import ConfigFacts, LayerFacts, RawVariableFacts, SettingsFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.model import ArrayFacts, CallFacts, LostCallFacts, ModelFacts, OptimizerFacts, OtherPolicyFacts
from mpdoctor.facts.versions import Keras

pytestmark = pytest.mark.fast

ADAM = OptimizerFacts("Adam", "keras")
CLASS, CALLED, SET = Location("layers.py", 3), Location("train.py", 5), Location("train.py", 2)
FLOAT32 = {"policy": "float32", "global_policy": "float32", "policy_set": False}
BFLOAT16 = {"policy": "mixed_bfloat16", "global_policy": "mixed_bfloat16"}
B_BODY = layer("body", "mixed_bfloat16")
UNTRAINED = {"compiled": False, "call": CallFacts("none")}


def gpu(name: str, *capability: int) -> dict[str, Any]:
    return {"devices": (DeviceFacts("GPU", name, capability), DeviceFacts("CPU"))}


A100, V100, P100 = gpu("A100", 8, 0), gpu("V100", 7, 0), gpu("P100", 6, 0)
GTX1080, GTX1660, CPU = gpu("GTX 1080", 6, 1), gpu("GTX 1660", 7, 5), {"devices": (DeviceFacts("CPU"),)}


def trained(*layers: LayerFacts, **more: Any) -> ModelFacts:
    return model(*layers, **{**SCALED, **more})


def dense(path: str, inputs: int, width: int, policy: str = "mixed_float16", **more: Any) -> LayerFacts:
    size = (("float32", inputs * width, True), ("float32", width, True))
    told = {"settings": SettingsFacts(width=width), "input_dtypes": ("float16",), "output_shape": (None, width)}
    return layer(path, policy, variables=size, **{**told, **more})


LARGE = dense("large", 1024, 4096)
TAIL = dense("tail", 4096, 1, "float32", is_output=True)


def convolution(path: str, width: int = 32, groups: int = 1, **more: Any) -> LayerFacts:
    return layer(path, class_name="Conv2D", settings=SettingsFacts(width=width, groups=groups), **more)


def own(path: str, class_name: str = "Mine", **more: Any) -> LayerFacts:
    facts = {"class_name": class_name, "own_class": True, "class_location": CLASS, "variables": (), **more}
    return layer(path, **facts)


def function(path: str, class_name: str, *inputs: str, output: str = "float32", **more: Any) -> LayerFacts:
    given = {"variables": (), "is_operation": True, "input_dtypes": inputs, "output_dtypes": (output,), **more}
    return layer(path, output, class_name=class_name, **given)


def configured(takes: bool, holds: bool | None, config_at: Location | None = CALLED, **more: Any) -> LayerFacts:
    return own("mine", config=ConfigFacts(takes, holds, CLASS, config_at), **more)


def embedding(rows: int, *inputs: str) -> LayerFacts:
    return layer("embedding", class_name="Embedding", settings=SettingsFacts(rows=rows), input_dtypes=inputs)


def raw(reaches: bool | None, dtype: str = "float32", trainable: bool = True, **more: Any) -> LayerFacts:
    return own("scale", raw_variables=(RawVariableFacts("gamma", dtype, trainable, reaches),), **more)


def fed(largest: float | None, *layers: LayerFacts, **more: Any) -> ModelFacts:
    data = (ArrayFacts("features", "", "numpy array", "float32", (640, 3), largest=largest),)
    return trained(layer("input", class_name="InputLayer", floating=False, variables=()), *layers, data=data, **more)


def labelled(largest: float, head: LayerFacts | None = None, **more: Any) -> ModelFacts:
    data = (ArrayFacts("labels", "", "numpy array", "float32", (640, 1), largest=largest),)
    told = {"loss": "mean_absolute_error", "loss_is_of_keras": True, **more}
    return trained(BODY, HALF_HEAD if head is None else head, data=data, **told)


FIRST = layer("first", input_dtypes=("float32",))
OTHER = OtherPolicyFacts("keras", "mixed_float16", SET, has_models=False)
CLONED = {"made_by": "clone_model"}
NORM = layer("norm", class_name="UnitNormalization", variables=(), settings=SettingsFacts(normalizes=True))
POOL = {"class_name": "GlobalAveragePooling1D", "variables": ()}
LOOKAHEAD = OptimizerFacts("Lookahead", "tfa", made_at=CALLED)
LOOP = {"call": CallFacts("loop", CALLED)}
SOFTMAX = layer("out", is_output=True, settings=SettingsFacts(activation="softmax"))
SIGMOID = layer("out", is_output=True, settings=SettingsFacts(activation="sigmoid"))
OWN_ADAM = OptimizerFacts("Mine", "train", own_class=True, class_location=CLASS, dropped=("warmup", "learning_rate"))
RESCALING = {"class_name": "Rescaling", "variables": ()}
OF_BYTES = layer("bytes", **RESCALING, settings=SettingsFacts(constants=(("scale", 1 / 255, 1 / 255),)))
PROMOTING = {
    "variables": (),
    "input_dtypes": ("float16",),
    "output_dtypes": ("float32",),
    "output_shape": (None, 8),
}
TWO = {"replicas": 2, "strategy": "MirroredStrategy"}


@pytest.mark.parametrize(
    ("code", "words", "location", "facts"),
    [
        ("MP108", "trains on a TPU", None, trained(BODY, HEAD, devices=(DeviceFacts("TPU"),))),
        ("MP309", "has nothing to do", Location("train.py", 7), trained(layer("body", "float32"), policy="float32")),
        ("MP108", "trains on a TPU", None, trained(BODY, HEAD, strategy="TPUStrategyV2", replicas=8)),
        ("MP108", "V100 (compute capability 7.0) does not", None, model(B_BODY, HEAD, **BFLOAT16, **V100)),
        (
            "MP111",
            "mixed_float16 is set in keras, but model is built in tf_keras",
            SET,
            model(
                layer("body", "float32"),
                policy="float32",
                global_policy="float32",
                keras="tf_keras",
                other_policies=(OTHER,),
            ),
        ),
        (
            "MP112",
            "none of its layers",
            SET,
            trained(
                layer("body", "float32"), HEAD, policy_before="float32", policy_set_at=SET, global_policy="float32"
            ),
        ),
        (
            "MP112",
            "none of its layers",
            SET,
            trained(
                layer("base", class_name="Sequential", is_model=True, policy_before="float32", policy_set_at=SET),
                layer("base/dense", "float32"),
                BODY,
                HEAD,
            ),
        ),
        (
            "MP113",
            "`clone_model` made keep the policy of the original: float32",
            LINE,
            trained(layer("body", "float32", **CLONED), layer("head", "float32", is_output=True, **CLONED)),
        ),
        (
            "MP113",
            "The global policy is mixed_float16, but the layers that `clone_model` made keep",
            LINE,
            trained(layer("body", "float32", **CLONED), HEAD),
        ),
        (
            "MP113",
            "The global policy is float32",
            LINE,
            model(layer("body", **CLONED), layer("head", is_output=True, **CLONED), global_policy="float32"),
        ),
        ("MP201", "comes from add (Add) in float16", LINE, trained(
            BODY, function("add", "Add", "float16", output="float16", is_output=True))),
        ("MP203", "`self.gamma` of scale (Mine) is a tf.Variable", CLASS, trained(raw(True), HEAD)),
        ("MP210", "its scale is for values beyond 65504", LINE, trained(
            layer("r", **RESCALING, settings=SettingsFacts(constants=(("scale", 1 / 65535, 1 / 65535),))), HEAD)),
        ("MP210", "its mean is beyond 65504", LINE, trained(
            layer("n", class_name="Normalization", settings=SettingsFacts(constants=(("mean", 1e5, 3.0),))), HEAD)),
        ("MP210", "`adapt()` has learnt NaN", LINE, trained(
            layer("n", class_name="Normalization", settings=SettingsFacts(
                constants=(("mean", 345.0, 345.0), ("variance", float("nan"), 0.0)))), HEAD)),
        ("MP213", "Mine.get_config leaves out the layer's dtype", CALLED, trained(configured(True, False), HEAD)),
        ("MP213", "`Mine.__init__` does not take", CLASS, trained(configured(False, True), HEAD)),
        ("MP215", "norm (UnitNormalization) computes in float16 and squares", LINE, trained(NORM, HEAD)),
        ("MP215", "activation squareplus", LINE, trained(
            layer("body", settings=SettingsFacts(activation="squareplus")), HEAD)),
        ("MP215", "a mask over 4096 steps", LINE, trained(BODY, layer("pool", mask_steps=4096, **POOL), HEAD)),
        ("MP216", "which is exact only up to 2048: of its", LINE, trained(embedding(6000, "float16"), HEAD)),
        ("MP216", "in bfloat16, which is exact only up to 256", LINE, model(embedding(1000, "bfloat16"), HEAD)),
        ("MP218", "`add` gets float16 and float32", LINE, trained(
            layer("input", class_name="InputLayer", floating=False), BODY,
            function("add", "Add", "float32", "float16", given_by=("input", "body")), HEAD)),
        ("MP218", "float16 and a float32 constant", LINE, trained(
            BODY, function("multiply", "Multiply", "float16"), HEAD)),
        ("MP218", "up (UpSampling2D) computes in float16 and returns float32", LINE, trained(
            layer("up", class_name="UpSampling2D", variables=(), input_dtypes=("float16",),
                  output_dtypes=("float32",)), HEAD, keras="tf_keras")),
        ("MP218", "though its code names no dtype", LINE, trained(
            layer("resize", class_name="Lambda", **PROMOTING), HEAD)),
        ("MP218", "returns float32", LINE, trained(own("mine", **PROMOTING), layer("mine/inner"), HEAD)),
        ("MP303", "Adam decays all weights", CALLED, trained(BODY, HEAD, optimizer=wrapper(
            lost_calls=(LostCallFacts("exclude_from_weight_decay", CALLED),)))),
        ("MP308", "Lookahead wraps a LossScaleOptimizer", CALLED, trained(
            BODY, HEAD, optimizer=(LOOKAHEAD, *wrapper()))),
        ("MP308", "Lookahead wraps a LossScaleOptimizer", CALLED, trained(
            BODY, HEAD, optimizer=(*wrapper()[:1], LOOKAHEAD, *wrapper()))),
        ("MP311", "Adam loses its `loss_scale_factor` of 1024.0: the LossScaleOptimizer", CALLED, trained(
            BODY, HEAD, optimizer=wrapper(erased_factor="1024.0", erased_at=CALLED))),
        ("MP311", "compile() wraps it in", CALLED, trained(
            BODY, HEAD, optimizer=wrapper(erased_factor="8.0", erased_at=CALLED, wrapped_by_compile=True))),
        ("MP312", "with the bare Adam, but compile() wrapped it in a LossScaleOptimizer", CALLED, model(
            BODY, HEAD, optimizer=(ADAM,), wrapped_by_compile=True, **LOOP)),
        ("MP314", "Mine does not save `warmup`", CLASS, trained(BODY, HEAD, optimizer=wrapper(OWN_ADAM))),
        ("MP315", "2 replicas train in float16", FIT.location, trained(BODY, HEAD, **TWO)),
        ("MP504", "loss is computed in float16", None, trained(
            BODY, HALF_HEAD, keras="tf_keras", loss="mse", loss_is_of_keras=True)),
        ("MP201", "comes from body (Dense) in float16", LINE, trained(
            layer("body", is_output=True, settings=SettingsFacts(activation="sigmoid")), casts_output=True)),
        ("MP507", "cross-entropy is computed from float16 probabilities", None, trained(
            BODY, SIGMOID, loss_takes_probabilities=True)),
        ("MP507", "is inf below 0.016", None, trained(
            BODY, SOFTMAX, loss_takes_probabilities=True)),
        ("MP507", "is inf below 4.8e-07, and applied", None, trained(
            BODY, SOFTMAX, loss_takes_probabilities=True, optimizer=(ADAM,))),
        ("MP507", "cross-entropy is computed from float16 probabilities", None, trained(
            BODY, SOFTMAX, loss="categorical_focal_crossentropy", loss_takes_probabilities=True)),
        ("MP601", "The input reaches 70,000, and `first` (Dense) casts it", FIT.location, fed(7e4, FIRST, HEAD)),
        ("MP601", "The labels reach 250,000, and the model's output is float16", FIT.location, labelled(2.5e5)),
        ("MP601", "and the labels are cast to it", FIT.location, labelled(2.5e5, keras="tf_keras")),
        ("MP801", "P100 (compute capability 6.0) is no faster in float16", None, trained(LARGE, TAIL, **P100)),
        ("MP801", "GTX 1660 (compute capability 7.5) is no faster", None, trained(LARGE, TAIL, **GTX1660)),
        ("MP801", "GTX 1080 (compute capability 6.1) is slower in float16", None, trained(LARGE, TAIL, **GTX1080)),
        ("MP802", "odd (1001) has a width", None, trained(dense("odd", 4096, 1001), TAIL, **A100)),
        ("MP802", "odd (1001) and convolution (130) have", None, trained(
            dense("odd", 4096, 1001), convolution("convolution", 130), TAIL, **A100)),
        ("MP803", "does 72 multiplications per example", None, trained(dense("small", 8, 8), TAIL, **A100)),
        ("MP803", "2 layers get another dtype", None, trained(
            LARGE, layer("norm", "float32", class_name="BatchNormalization", input_dtypes=("float16",)),
            dense("tail", 9, 1, "float32", is_output=True), **A100)),
        ("MP804", "depthwise is a grouped or depthwise convolution", None, trained(
            LARGE, layer("depthwise", class_name="DepthwiseConv2D"), TAIL, **A100)),
        ("MP804", "grouped is a grouped", None, trained(LARGE, convolution("grouped", groups=4), TAIL, **A100)),
    ],
)  # fmt: skip
def test_a_defect_is_named(code: str, words: str, location: Location | None, facts: ModelFacts) -> None:
    found = [finding for finding in said(facts) if finding.code == code]
    assert [words in finding.message for finding in found] == [True], [finding.message for finding in said(facts)]
    assert found[0].location == location
    assert found[0].help


@pytest.mark.parametrize("takes_base", [True, False])
def test_a_constructor_must_take_what_the_configuration_gives(takes_base: bool) -> None:
    config = ConfigFacts(True, False, CLASS, CALLED, takes_base)
    [finding] = [f for f in said(trained(own("mine", config=config), HEAD)) if f.code == "MP213"]
    assert finding.help.startswith("Start from the base configuration")
    assert ("Take `**kwargs`" in finding.help) is not takes_base


@pytest.mark.parametrize(
    ("code", "facts"),
    [
        ("MP108", trained(B_BODY, HEAD, **BFLOAT16, strategy="TPUStrategy")),
        ("MP309", trained(layer("body", "float32"), policy="float32", graphs_rewritten=True)),
        ("MP108", model(B_BODY, HEAD, **BFLOAT16, **A100)),
        ("MP108", model(B_BODY, HEAD, **BFLOAT16, **CPU)),
        ("MP108", model(layer("body", "float32"), **FLOAT32, **V100)),
        ("MP111", model(layer("body", "float32"), keras="tf_keras", **FLOAT32,
                        other_policies=(OtherPolicyFacts("keras", "mixed_float16", SET, has_models=True),))),
        ("MP111", trained(BODY, HEAD, keras="tf_keras", other_policies=(OTHER,))),
        ("MP111", model(layer("body", "float32"), keras="tf_keras", **FLOAT32,
                        other_policies=(OtherPolicyFacts("keras", "float32", SET, has_models=False),))),
        ("MP112", trained(BODY, HEAD, policy_before="float32", policy_set_at=SET)),
        ("MP112", trained(BODY, HEAD, policy_before="mixed_float16", policy_set_at=SET)),
        ("MP113", trained(layer("body", **CLONED), layer("head", "float32", is_output=True, **CLONED))),
        ("MP113", trained(layer("teacher", "float32", **CLONED), BODY, HEAD)),
        ("MP113", trained(layer("body", "float32", **CLONED), **UNTRAINED)),
        ("MP203", trained(raw(False), HEAD)),
        ("MP203", trained(raw(None), HEAD)),
        ("MP203", trained(raw(True, trainable=False), HEAD)),
        ("MP203", trained(raw(True, "int32"), HEAD)),
        ("MP203", trained(raw(True), HEAD, keras="tf_keras")),
        ("MP203", model(raw(True, policy="float32"), **FLOAT32)),
        ("MP213", trained(configured(True, True), HEAD)),
        ("MP213", trained(configured(True, None), HEAD)),
        ("MP213", trained(configured(False, None, None), HEAD)),
        ("MP213", model(configured(True, False, policy="float32"), **FLOAT32)),
        ("MP213", trained(configured(False, False, policy="mixed_bfloat16"), HEAD)),  # it gives itself its dtype
        ("MP215", trained(layer("norm", "float32", settings=SettingsFacts(normalizes=True)), HEAD)),
        ("MP215", model(layer("norm", "mixed_bfloat16", class_name="UnitNormalization",
                              settings=SettingsFacts(normalizes=True)), HEAD, **BFLOAT16)),
        ("MP215", trained(own("norm", "UnitNormalization", settings=SettingsFacts(normalizes=True)), HEAD)),
        ("MP215", trained(layer("pool", mask_steps=2048, **POOL), HEAD)),
        ("MP215", trained(layer("pool", **POOL), HEAD)),
        ("MP216", trained(embedding(6000, "float32"), HEAD)),
        ("MP216", trained(embedding(6000, "int32"), HEAD)),
        ("MP216", trained(embedding(2048, "float16"), HEAD)),
        ("MP218", trained(BODY, function("add", "Add", "float16", "float16", output="float16"), HEAD)),
        ("MP218", trained(BODY, function("cast", "Cast", "float16"), HEAD)),
        ("MP218", trained(BODY, function("add", "Add", "float32", "float16", made_at=None), HEAD)),
        ("MP218", trained(BODY, layer("l", class_name="Lambda", **PROMOTING, made_by="from_preset"), HEAD)),
        ("MP218", trained(layer("stream", "float32"), BODY, function(
            "add", "Add", "float32", "float16", given_by=("stream", "body")), HEAD)),
        ("MP218", trained(BODY, function("softmax", "Softmax", "float16"), HEAD)),
        ("MP218", trained(BODY, function("add", "Add", "float32", "float16", is_output=True))),
        ("MP218", trained(own("mine", **PROMOTING, names_dtype=True), HEAD)),
        ("MP218", trained(own("mine", **{**PROMOTING, "output_shape": (None,)}), HEAD)),
        ("MP218", trained(own("mine", **PROMOTING), layer("mine/head", "float32"), HEAD)),
        ("MP218", trained(own("mine", "Mine", policy="float32", input_dtypes=("float16",)), HEAD)),
        ("MP218", trained(own("mine", **PROMOTING, autocast=False), HEAD)),
        ("MP218", trained(layer("up", class_name="UpSampling2D", input_dtypes=("float16",)), HEAD)),
        ("MP210", trained(layer("r", made_by="EfficientNetB0", **RESCALING), HEAD)),
        ("MP210", trained(layer("flip", class_name="RandomFlip", variables=()), OF_BYTES, HEAD)),
        ("MP303", trained(BODY, HEAD)),
        ("MP306", trained(BODY, HEAD, optimizer=(*wrapper()[:1], LOOKAHEAD, *wrapper()))),
        ("MP308", trained(BODY, HEAD, optimizer=wrapper(LOOKAHEAD, ADAM))),
        ("MP308", trained(BODY, HEAD, optimizer=(
            OptimizerFacts("Mine", "train", own_class=True, overridden=("scale_loss",)), *wrapper()))),
        ("MP311", trained(BODY, HEAD)),
        ("MP312", model(BODY, HEAD, optimizer=(ADAM,), **LOOP)),
        ("MP314", trained(BODY, HEAD, optimizer=wrapper(
            OptimizerFacts("Mine", "train", own_class=True, class_location=CLASS, dropped=("learning_rate", "name"))))),
        ("MP314", model(layer("body", "float32"), optimizer=(OWN_ADAM,), **FLOAT32)),
        ("MP315", trained(BODY, HEAD)),
        ("MP315", trained(BODY, HEAD, keras="tf_keras", **TWO)),
        ("MP315", model(B_BODY, HEAD, optimizer=(ADAM,), **BFLOAT16, **TWO)),
        ("MP504", trained(BODY, HALF_HEAD, loss="mse", loss_is_of_keras=True)),
        ("MP504", trained(BODY, HALF_HEAD, keras="tf_keras", loss="mine")),
        ("MP504", trained(BODY, HEAD, keras="tf_keras", loss="mse", loss_is_of_keras=True)),
        ("MP507", trained(BODY, HALF_HEAD, loss_takes_probabilities=True)),  # logits, or nobody knows
        ("MP201", trained(BODY, HALF_HEAD, casts_output=True)),
        ("MP507", trained(BODY, SOFTMAX)),
        ("MP507", trained(BODY, SOFTMAX, keras="tf_keras", loss_takes_probabilities=True)),
        ("MP507", trained(BODY, SIGMOID, keras="tf_keras", loss_takes_probabilities=True)),
        ("MP507", model(layer("body", "mixed_bfloat16"), layer("out", "mixed_bfloat16", is_output=True,
            settings=SettingsFacts(activation="softmax")), **BFLOAT16, loss_takes_probabilities=True, compiled=True)),
        ("MP507", trained(BODY, SOFTMAX, loss_takes_probabilities=True, **LOOP)),
        ("MP601", fed(65504.0, FIRST, HEAD)),
        ("MP601", labelled(65504.0)),
        ("MP601", labelled(2.5e5, HEAD)),
        ("MP601", labelled(2.5e5, loss="sparse_categorical_crossentropy")),  # numbers of classes
        ("MP601", labelled(2.5e5, loss_is_of_keras=False)),  # which may divide them
        ("MP601", fed(None, FIRST, HEAD)),
        ("MP601", fed(7e4, layer("sizes", class_name="InputLayer", floating=False, variables=()), FIRST, HEAD)),
        ("MP601", fed(7e4, layer("r", "float32", input_dtypes=("float32",), **RESCALING), BODY, HEAD)),
        ("MP601", fed(7e4, embedding(10**6, "float32"), BODY, HEAD)),
        ("MP601", fed(7e4, own("first", autocast=False, input_dtypes=("float32",)), HEAD)),
        ("MP601", fed(7e4, layer("first", "mixed_bfloat16", input_dtypes=("float32",)), HEAD)),
        ("MP801", trained(LARGE, TAIL, **A100)),
        ("MP801", trained(LARGE, TAIL, **CPU)),
        ("MP801", trained(LARGE, TAIL)),
        ("MP801", model(dense("large", 1024, 4096, "mixed_bfloat16"), **BFLOAT16, **V100)),
        ("MP801", model(layer("body", "float32"), **FLOAT32, **GTX1080)),
        ("MP801", trained(LARGE, devices=(DeviceFacts("GPU", "Radeon"),))),
        ("MP802", trained(LARGE, dense("last", 4096, 1001, is_output=True), **A100)),
        ("MP802", trained(dense("narrow", 4096, 20), TAIL, **A100)),
        ("MP802", trained(dense("odd", 4096, 1001), TAIL, **GTX1660)),
        ("MP802", trained(dense("odd", 4096, 1001), TAIL, **CPU)),
        ("MP802", trained(dense("odd", 4096, 1001, "float32"), LARGE, TAIL, **A100)),
        ("MP803", trained(LARGE, TAIL, **A100)),
        ("MP803", trained(dense("small", 8, 8), TAIL, **CPU)),
        ("MP803", trained(convolution("image"), TAIL, **A100)),  # of an output whose size is not known
        ("MP803", trained(dense("small", 8, 8, output_shape=(None, 512, 512, 8)), TAIL, **A100)),
        ("MP803", trained(dense("cell", 8, 8, class_name="LSTMCell"), TAIL, **A100)),
        ("MP803", trained(convolution("image", output_shape=(None, 224, 224, 32)), TAIL, **A100)),
        ("MP804", trained(LARGE, convolution("plain"), TAIL, **A100)),
        ("MP804", trained(LARGE, convolution("grouped", groups=4), TAIL, **CPU)),
        ("MP804", trained(layer("depthwise", "float32", class_name="DepthwiseConv2D"), LARGE, TAIL, **A100)),
    ],
)  # fmt: skip
def test_right_code_that_looks_like_it_gives_nothing(code: str, facts: ModelFacts) -> None:
    assert [finding.message for finding in said(facts) if finding.code == code] == []


@pytest.mark.parametrize("name", ["MP801", "MP802", "MP803", "MP804"])
def test_a_run_on_a_cpu_is_not_told_about_devices(name: str) -> None:
    facts = trained(dense("odd", 8, 1001), convolution("grouped", groups=2), TAIL, **CPU)
    assert name not in {finding.code for finding in said(facts)}


@pytest.mark.parametrize(
    ("head", "help"),
    [
        (HALF_HEAD, 'Give head `dtype="float32"`, or put `Activation("linear", dtype="float32")` after it.'),
        (
            SIGMOID,
            'Give out itself `dtype="float32"`: a cast after it cannot restore the digits that its sigmoid has '
            "rounded away.",
        ),
        (
            SOFTMAX,
            'Give out itself `dtype="float32"`: a cast after it cannot restore the digits that its softmax has '
            "rounded away.",
        ),
        (
            dataclasses.replace(SOFTMAX, made_by="MobileNetV2", activation_argument="classifier_activation"),
            "`MobileNetV2` makes out: pass it `classifier_activation=None`, and put "
            '`Activation("softmax", dtype="float32")` after the model. A cast after it cannot restore the digits '
            "that the softmax has rounded away.",
        ),
        (
            dataclasses.replace(SIGMOID, made_by="__init__"),
            "The library makes out: if it can leave out its sigmoid, have it do so, and put "
            '`Activation("sigmoid", dtype="float32")` after the model. A cast after it cannot restore the digits '
            "that the sigmoid has rounded away.",
        ),
        (
            dataclasses.replace(HALF_HEAD, made_by="backbone"),
            'Put `Activation("linear", dtype="float32")` after the model.',
        ),
        (
            function("softmax", "Softmax", "float16", output="float16", is_output=True),
            "Cast the input of `softmax` rather than its result: `tf.cast(…, tf.float32)`.",
        ),
        (
            layer("head", "float32", class_name="Head", output_dtypes=("float16",), is_output=True),
            "head is float32 itself: make float32 what its `call()` returns.",
        ),
        (
            layer("out", class_name="Reshape", variables=(), output_dtypes=("float16",), is_output=True),
            'Give `dtype="float32"` to out and to the layers before it, back to the layer that computes these numbers: '
            "no later cast restores the digits that it rounds away.",
        ),
        (
            layer("out", class_name="Average", variables=(), output_dtypes=("float16",), is_output=True),
            'Give `dtype="float32"` to out and to the layers before it, back to the layer that computes these numbers: '
            "no later cast restores the digits that it rounds away.",
        ),
        (
            own("out", output_dtypes=("float16",), is_output=True),
            'Give out `dtype="float32"`, and if it hands on what it is given, the layer that computes that as well: '
            "no later cast restores the digits that it rounds away.",
        ),
    ],
)
def test_what_has_lost_its_digits_is_not_cast_behind(head: LayerFacts, help: str) -> None:
    [found] = [finding for finding in said(trained(BODY, head)) if finding.code == "MP201"]
    assert found.help == help


OWN_OUTPUT = """\
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Scaled(keras.layers.Layer):
    def call(self, x):
        return keras.ops.tanh(x) * 2.0


inputs = keras.Input((4,))
model = keras.Model(inputs, Scaled()(keras.layers.Dense(8)(inputs)))
model.compile("adam", "mse")
model.fit(x, y)
"""


def test_an_output_of_an_own_layer_is_told_with_its_class_in_the_source_and_live() -> None:
    live = said(trained(BODY, own("out", "Scaled", output_dtypes=("float16",), is_output=True)))
    [in_model] = [finding for finding in live if finding.code == "MP201"]
    [in_source] = findings_in(facts_of(OWN_OUTPUT, "3"))
    assert in_source.location is not None
    assert in_source.location.line == 8
    assert in_model.evidence["layer_class"] == in_source.evidence["layer_class"] == "Scaled"


def test_the_output_of_a_librarys_model_or_layer() -> None:
    inner = layer("head/dense", variables=(("float32", 40, True),), made_by="__init__")
    made = dataclasses.replace(HALF_HEAD, made_by="__init__")
    (crf, *_), given = helps(trained(BODY, HALF_HEAD, inner)), dataclasses.replace(inner, given_dtype=True)
    assert '`dtype="float32"` does not reach the layers in it' in crf
    own = dataclasses.replace(inner, made_by="")
    assert 'Give head `dtype="float32"`' in helps(trained(BODY, HALF_HEAD, own))[0]
    assert 'Give head `dtype="float32"`' in helps(trained(BODY, HALF_HEAD, given))[0]
    keras2 = dataclasses.replace(trained(BODY, made), class_name="Bert", keras=Keras("tf_keras", "2.21.0", "2.21.0"))
    assert '`model.head = Dense(…, dtype="float32")`, or put `Activation' in helps(keras2)[0]
    assert helps(dataclasses.replace(keras2, class_name="Functional"))[0].startswith("Put `Activation")


def helps(facts: ModelFacts) -> list[str]:
    return [finding.help for finding in said(facts) if finding.code == "MP201"]

"""Models that came from files and graphs that were saved: what the rules say about hand-written facts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from judging import KERASES, facts_of, findings_in
from test_fixes_of_rules import fixed
from test_rules_source import BODY, HEAD, LINE, layer, model, said, wrapper

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts, ModelFacts, OptimizerFacts
from mpdoctor.facts.saved.file import LoadFacts, SavedFileFacts
from mpdoctor.facts.saved.graph import OpFacts, SavedGraphFacts, SavedVariableFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.judging.precedence import merged_findings
from mpdoctor.knowledge.op_lists import ALLOW, DENY
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.semantics.live.errors.saved_model_errors import headline_from_loading_error, remedy_from_loading_error

pytestmark = pytest.mark.fast

ADAM = (OptimizerFacts("Adam", "keras"),)
FLOAT32 = (layer("body", "float32"), layer("head", "float32", is_output=True))
NESTED = (layer("back", is_model=True, variables=()), layer("back/body"), layer("new", "float32"), HEAD)


def load(policy: str = "float32", part: str = "") -> dict[str, Any]:
    return {"loads": (LoadFacts(part, "m.keras", policy, LINE),), "global_policy": policy}


# --- models that were loaded ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("codes", "facts"),
    [
        (["MP701"], model(BODY, HEAD, optimizer=ADAM, **load())),
        (["MP701"], model(BODY, HEAD, optimizer=ADAM, keras="tf_keras", **load())),
        (["MP701"], model(BODY, HEAD, optimizer=ADAM, call=CallFacts("loop"), **load("mixed_bfloat16"))),
        (["MP701"], model(*NESTED, optimizer=ADAM, **load(part="back"))),
        ([], model(BODY, HEAD, optimizer=wrapper(), **load())),
        ([], model(BODY, HEAD, optimizer=(OptimizerFacts("Adam", "k", loss_scale_factor="8.0"),), **load())),
        ([], model(BODY, HEAD, optimizer=ADAM, call=CallFacts("none"), **load())),  # loaded and never trained
        ([], model(layer("body", variables=(("float32", 40, False),)), HEAD, optimizer=ADAM, **load())),  # frozen
        ([], model(layer("body", "mixed_bfloat16"), HEAD, optimizer=ADAM, **load())),
        ([], model(*FLOAT32, optimizer=ADAM, policy="float32", **load())),
        ([], model(layer("new"), layer("back", "float32"), layer("back/body", "float32"), **load(part="back"))),
        (["MP702"], model(*FLOAT32, optimizer=wrapper(), **load("mixed_float16"))),
        (["MP702"], model(*FLOAT32, optimizer=ADAM, policy="float32", **load("mixed_bfloat16"))),
        (
            ["MP702"],
            model(BODY, layer("back", "float32", is_model=True), layer("back/a", "float32"), HEAD, optimizer=wrapper(),
                  **load("mixed_float16", "back")),
        ),
        ([], model(*FLOAT32, optimizer=ADAM, policy="float32", call=CallFacts("none"), **load("mixed_float16"))),
        ([], model(BODY, HEAD, optimizer=wrapper(), **load("mixed_float16"))),
        ([], model(layer("rescale", "float32", variables=()), optimizer=wrapper(), **load("mixed_float16"))),
    ],
)  # fmt: skip
def test_a_loaded_model(codes: list[str], facts: ModelFacts) -> None:
    spoken = [finding for finding in said(facts) if finding.code in ("MP701", "MP702")]
    assert [finding.code for finding in spoken] == codes
    assert all(finding.location == LINE and "`m.keras`" in finding.message for finding in spoken)


def test_what_a_load_explains_is_not_listed() -> None:
    lost = merged_findings(said(model(BODY, HEAD, optimizer=ADAM, policy="float32", **load())))
    assert [finding.code for finding in lost] == ["MP701"]
    ignored = merged_findings(said(model(*FLOAT32, optimizer=wrapper(), **load("mixed_float16"))))
    assert [finding.code for finding in ignored] == ["MP702"]


# --- files that could not be loaded ---------------------------------------------------------------------------------
OLD = SavedFileFacts("m.h5", "hdf5", "2.10.0", ("Policy",), ("mixed_float16",))
NEW = SavedFileFacts("m.keras", "keras", "3.15.1", ("DTypePolicy",), ("float32", "mixed_float16"))
PLAIN = SavedFileFacts("m.h5", "hdf5", "2.10.0")
NEWER = SavedFileFacts("m", "saved-model", "2.15.1")
BATCH_SHAPE = "Error when deserializing class 'InputLayer' using config={}. Unrecognized keyword: ['batch_shape']"


@pytest.mark.parametrize(
    ("code", "words", "keras", "saved", "message"),
    [
        ("MP703", "Keras 2.10.0 under mixed_float16", "3", OLD, "'str' object has no attribute 'quantization_mode'"),
        ("MP703", "`Policy`", "3", OLD, "'str' object has no attribute 'convert_input'"),
        ("MP703", "`Policy`", "3", OLD, "'str' object has no attribute 'variable_dtype'"),
        ("MP703", "tf_keras", "3", OLD, "Could not locate class 'Policy'. Make sure custom classes are decorated"),
        ("MP703", "`DTypePolicy`", "tf_keras", NEW, BATCH_SHAPE),
        ("MP703", "--python", "2.15", NEW, BATCH_SHAPE),
        ("MP002", "`Scale` is not part of Keras", "tf_keras", NEW, "Unknown layer: 'Scale'. Please ensure"),
        ("MP002", "`mine>Shift` is not part", "3", OLD, "Unknown layer: 'mine>Shift'. Please ensure"),
        ("MP002", "`closs` is not part", "3", PLAIN, "Could not locate function 'closs'. Make sure custom classes"),
        ("MP002", "`Scale` is not part", "2.15", PLAIN, "Cannot deserialize object of type `Scale`. If `Scale` is a"),
        ("MP002", "another version of Python", "2.15", PLAIN, "bad marshal data (unknown type code)"),
        ("MP002", "never trained", "tf_keras", PLAIN, "'LossScaleOptimizerV3' object has no attribute 'name'"),
        ("MP002", "It was saved by Keras 2.10.0, and this is tf.keras 2.4.4", "2.4", PLAIN, "Unknown argument"),
        ("MP002", "saved by Keras 2.15.1, and this is tf.keras 2.10.1", "2.10", NEWER, "(file signature not found)"),
        ("MP002", "saved by Keras 2.15.1, and this is tf.keras 2.4.4", "2.4", NEWER, "SavedModel file does not exist"),
        ("MP002", "saved by Keras 2.15.1, and this", "2.4", NEWER, "Expecting value: line 1 column 1 (char 0)"),
        ("MP002", "--custom-objects", "2.15", PLAIN, "weight_decay is not a valid argument"),
        ("MP002", "missing or damaged", "3", PLAIN, "Unable to synchronously open file (truncated file: eof = 96"),
        ("MP002", "missing or damaged", "2.15", None, "Unsuccessful TensorSliceReader constructor: Failed to find"),
        ("MP002", "missing or damaged", "2.10", NEWER, "file is too short to be an sstable"),
        ("MP002", "missing or damaged", "2.10", NEWER, "Perhaps the file is corrupt: block checksum mismatch"),
        ("MP002", "missing or damaged", "2.10", NEWER, "shard 0 (3116 bytes): Checksum does not match: stored 1"),
        ("MP002", "missing or damaged", "2.15", None, "Read less bytes than requested"),
    ],
)  # fmt: skip
def test_a_file_that_cannot_be_loaded(
    code: str, words: str, keras: str, saved: SavedFileFacts | None, message: str
) -> None:
    failure = FailureFacts(
        "raised", "loading", "ValueError", message, keras=KERASES[keras], saved_file=saved, seconds=3.0
    )
    found = list(findings_from_facts("in_failure", failure, failure.keras, lambda rule: True))
    assert all(isinstance(finding, Finding) for finding in found), found
    (spoken,) = merged_findings(finding for finding in found if isinstance(finding, Finding))
    assert spoken.code == code
    assert words in spoken.message + spoken.help


def test_a_later_patch_of_tensorflow_is_no_newer_keras() -> None:
    failure = FailureFacts("raised", "loading", "ValueError", "weight_decay is not a valid argument", saved_file=NEWER)
    for version, is_newer in (("2.15.0", False), ("2.14.0", True)):
        remedy = remedy_from_loading_error(replace(failure, keras=Keras("tf.keras", version, version)))
        assert ("Update Keras" in remedy) == is_newer


@pytest.mark.parametrize(
    ("message", "headline"),
    [
        (BATCH_SHAPE, "TypeError: Error when deserializing class 'InputLayer' using config={}. Unrecognized keyword"),
        (
            "<class 'keras.src.models.sequential.Sequential'> could not be deserialized properly. Please ensure that "
            "components … are explicitly deserialized.\n\nconfig={'module': 'keras', 'config': {}}.\n\nException "
            "encountered: Unrecognized keyword arguments passed to Dense: {'quantization_config': None}",
            "TypeError: Unrecognized keyword arguments passed to Dense: {'quantization_config': None}",
        ),
        (
            "Unknown layer: 'Scale'. Please ensure you are using a `keras.utils.custom_object_scope` and that …",
            "TypeError: Unknown layer: 'Scale'",
        ),
        (
            "Could not locate class 'Sub'. Make sure custom classes are decorated with `@keras.saving.register…`",
            "TypeError: Could not locate class 'Sub'",
        ),
        (
            "<class 'S'> could not be deserialized.\n\nconfig={}.\n\nException encountered: Could not locate class "
            "'Sub'. Make sure custom classes and functions are decorated with `@keras.saving.register…`",
            "TypeError: Could not locate class 'Sub'",
        ),
        (
            "Cannot deserialize object of type `Scale`. If `Scale` is a custom class, please register it using …",
            "TypeError: Cannot deserialize object of type `Scale`",
        ),
    ],
)
def test_the_error_of_a_file_in_one_line(message: str, headline: str) -> None:
    failure = FailureFacts("raised", "loading", "TypeError", message)
    told = headline_from_loading_error(failure)
    assert told.startswith(headline) and "Make sure" not in told and "Please" not in told


def test_a_program_is_told_to_hand_over_its_classes() -> None:
    message = "Unknown layer: 'mine>Scale'. Please ensure you are using a `keras.utils.custom_object_scope`"
    failure = FailureFacts("raised", "script", "ValueError", message, LINE, keras=KERASES["3"], saved_file=PLAIN)
    (told,) = (
        finding for finding in findings_from_facts("in_failure", failure, failure.keras, lambda r: r.code == "MP002")
    )
    assert isinstance(told, Finding) and 'custom_objects={"Scale": Scale}' in told.help


def test_a_file_that_this_keras_cannot_even_try() -> None:
    failure = FailureFacts(
        "unusable", "loading", "WrongKeras", "m.keras was saved by Keras 3.15.1. Name another.", saved_file=NEW,
        keras=KERASES["2.15"],
    )  # fmt: skip
    found = list(findings_from_facts("in_failure", failure, failure.keras, lambda rule: True))
    assert [
        finding.code for finding in merged_findings(finding for finding in found if isinstance(finding, Finding))
    ] == ["MP703"]


# --- graphs ---------------------------------------------------------------------------------------------------------
def graph(*ops: OpFacts, variables: tuple[SavedVariableFacts, ...] = ()) -> SavedGraphFacts:
    return SavedGraphFacts("exported", "it was exported", ops=ops, variables=variables)


def op(name: str, dtype: str = "float16", count: int = 1, **more: Any) -> OpFacts:
    return OpFacts(name, dtype, count, **{"examples": (f"net/{name}",), **more})


def variable(dtype: str, size: int = 8) -> SavedVariableFacts:
    return SavedVariableFacts(f"kernel_{dtype}", dtype, size)


HALF_MATMUL = op("MatMul", count=4, inner=3)


@pytest.mark.parametrize(
    ("expected", "facts"),
    [
        ([], graph()),
        ([], graph(HALF_MATMUL, op("Softmax"), op("Relu"), op("BiasAdd"))),
        ([], graph(op("Exp", "float32"), op("Sum", "float32"), op("MatMul", "float32", inner=1))),
        # variables
        ([], graph(variables=(variable("float32"), variable("int64")))),
        (["MP705 info"], graph(variables=(variable("float32"), variable("float16")))),
        (["MP705 info"], graph(variables=(variable("bfloat16"),))),
        # the deny list
        (["MP706 warning"], graph(op("Exp"))),
        (["MP706 warning"], graph(op("Sum", count=3, widened=1, limited=1))),
        (["MP706 warning"], graph(op("Pow"), op("L2Loss"), op("Expm1"))),
        (["MP706 warning"], graph(op("Exp", "bfloat16"))),
        (["MP706 info"], graph(op("Exp", widened=1))),
        (["MP706 info"], graph(op("Sum", limited=2, count=2))),
        (["MP706 info"], graph(op("Mean", count=9))),
        (["MP706 info"], graph(op("SparseSoftmaxCrossEntropyWithLogits"))),
        (["MP706 info", "MP706 warning"], graph(op("Exp"), op("Mean"))),
        ([], graph(op("Sum", "bfloat16"), op("Mean", "bfloat16"))),  # the rewrite lets bfloat16 add up
        ([], graph(op("SaveV2"))),
        ([], graph(op("Log"), op("Softmax"), op("LogSoftmax"))),
        # the allow list
        (["MP707 info"], graph(HALF_MATMUL, op("Conv2D", "float32", count=2, inner=2))),
        (["MP707 info"], graph(op("Einsum", "bfloat16", inner=1), op("MatMul", "float32", inner=1))),
        ([], graph(HALF_MATMUL, op("MatMul", "float32"))),  # the last one before an output
        ([], graph(op("MatMul", "float32", count=6, inner=5))),
        ([], graph(HALF_MATMUL, op("Softmax", "float32", inner=1))),
        ([], graph(HALF_MATMUL, op("MatMul", "float64", inner=1))),
    ],
)
def test_what_is_said_of_a_saved_graph(expected: list[str], facts: SavedGraphFacts) -> None:
    found = list(findings_from_facts("in_saved_graph", facts, None, lambda rule: True))
    assert all(isinstance(finding, Finding) and finding.message and finding.help for finding in found), found
    assert (
        sorted(f"{finding.code} {finding.severity.value}" for finding in found if isinstance(finding, Finding))
        == expected
    )  # type: ignore[union-attr]


def test_a_graph_finding_names_operations_and_numbers() -> None:
    exponential = op("Exp", count=3, limited=1, examples=("encoder/exp", "encoder/exp_1"))
    facts = graph(exponential, variables=(variable("float16"),))
    half, unsafe = (finding for finding in findings_from_facts("in_saved_graph", facts, None, lambda rule: True))
    assert isinstance(half, Finding) and isinstance(unsafe, Finding)
    assert "1 of 1 variables of this graph is float16 (`kernel_float16`): 8 numbers" in half.message
    assert "Exp (2: `encoder/exp`, `encoder/exp_1`)" in unsafe.message
    assert "11.09" in unsafe.message
    assert unsafe.severity is Severity.WARNING


def test_no_operation_is_on_both_lists() -> None:
    for dtype, allowed in ALLOW.items():
        assert not allowed & DENY[dtype]
    assert DENY["bfloat16"] < DENY["float16"]


PHASES = """import keras

keras.config.set_dtype_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
model.fit(f(), g())
model.save("model.keras")


def finetune():
    keras.config.set_dtype_policy({policy})
{between}    model = keras.models.load_model("model.keras", compile=False)
    model.compile("adam", "mse")
    model.fit(f(), g())


finetune()
"""
PUT_IN = '    keras.mixed_precision.set_global_policy("mixed_float16")\n'


@pytest.mark.parametrize(
    ("policy", "between", "policy_after", "after"),
    [
        ('"float32"', "", '"mixed_float16"', ""),
        ("'float32'", "    # tuned\n", "'mixed_float16'", "    # tuned\n"),
        ('"float32"', "    f()\n", '"float32"', f"    f()\n{PUT_IN}"),  # what else is made may be meant to be float32
    ],
)
def test_no_policy_is_set_to_be_replaced_on_the_next_line(
    policy: str, between: str, policy_after: str, after: str
) -> None:
    text = PHASES.format(policy=policy, between=between)
    (finding,) = findings_in(facts_of(text, "3"))
    assert finding.fix is not None
    done = fixed(text, finding.fix)
    assert (finding.code, done) == ("MP701", PHASES.format(policy=policy_after, between=after))


OPTIMIZER = """import keras


class Mine(keras.optimizers.SGD):
    def __init__(self, power=1.0, floor=0.0, **kwargs):
        super().__init__(**kwargs)
        self.power = {power}
        self._floor = floor
{config}

keras.config.set_dtype_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(Mine(power=3.0, floor=1.0), "mse")
model.fit(f(), g())
model.save("model.keras")
"""
HEAD_OF_BOTH = "from tensorflow import keras"
METHOD = "\n    def get_config(self):\n"
BOTH = '"power": self.power, "floor": self._floor'


@pytest.mark.parametrize(
    ("power", "config", "after"),
    [
        ("power", "", f"{METHOD}        return {{**super().get_config(), {BOTH}}}\n"),
        (
            "power",
            f"{METHOD}        return super().get_config()  # all\n",
            f"{METHOD}        return {{**super().get_config(), {BOTH}}}  # all\n",
        ),
        (
            "power",
            f'{METHOD}        return {{**super().get_config(), "power": self.power}}\n',
            f"{METHOD}        return {{**super().get_config(), {BOTH}}}\n",
        ),
        ("float(power)", "", None),  # what loads it would be given another thing
    ],
)
def test_what_an_optimizer_keeps_is_saved(power: str, config: str, after: str | None) -> None:
    text = OPTIMIZER.format(power=power, config=config)
    (finding,) = findings_in(facts_of(text, "3"))
    done = fixed(text, finding.fix) if finding.fix else None
    assert (finding.code, done) == ("MP314", None if after is None else OPTIMIZER.format(power=power, config=after))


def test_where_the_advice_names_some_entries_alone_it_shows_that_there_are_more() -> None:
    several = "self.a, self.b, self._floor = a, b, floor"
    text = OPTIMIZER.format(power="power", config="").replace("self._floor = floor", several)
    text = text.replace("power=1.0,", "power=1.0, a=1, b=2,")
    (finding,) = findings_in(facts_of(text, "3"))
    assert finding.help.endswith('"power": self.power, "a": self.a, "b": self.b, …}`.')
    assert finding.fix is not None and finding.fix.title == "Save `power`, `a`, `b` and `floor` in get_config"


def test_an_older_name_is_saved_by_keras_2_alone() -> None:
    text = OPTIMIZER.format(power="power", config="").replace("floor", "decay").replace("import keras", HEAD_OF_BOTH)
    text = text.replace("keras.config.set_dtype_policy", "keras.mixed_precision.set_global_policy")
    told = {keras: findings_in(facts_of(text, keras))[0].message for keras in ("3", "2.15")}
    assert {keras: "`decay`" in message for keras, message in told.items()} == {"3": True, "2.15": False}

"""Rules over failed programs, with hand-written facts and the error messages of Keras and TensorFlow."""

from __future__ import annotations

import dataclasses
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import CaughtFacts, FailureFacts, Frame, OperandFacts, PartFacts
from mpdoctor.facts.layer import BatchFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding
from mpdoctor.judging.what_if import as_run
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.semantics.live.errors.error_texts import essence_of_message, headline_from_failure
from mpdoctor.semantics.live.errors.shape_errors import shape_error_from_message

pytestmark = pytest.mark.fast

MESSAGES = Path(__file__).parent / "messages"
HERE = Location("train.py", 7)
MIXED = "Input 'y' of 'AddV2' Op has type float32 that does not match type float16 of argument 'x'."
HALF_AND_FLOAT = "cannot compute AddV2 as input #1(zero-based) was expected to be a half tensor but is a float tensor"
WRAPPED = '"inner_optimizer" is already wrapped by a LossScaleOptimizer. An optimizer can only be wrapped by a single'
LACKS = "'LossScaleOptimizer' object has no attribute "
TOP_K = "Input 'predictions' of 'InTopKV2' Op has type float16 that does not match expected type of float32."
TOP_K_EAGERLY = "cannot compute InTopKV2 as input #0(zero-based) was expected to be a float tensor but is a half tensor"
OF_ARRAY = "Expected list with element dtype half but got list with element dtype float for '{{node gradient_tape/while"
NO_REPLICA = "apply_gradients() must be called in a replica context."
NO_KERNEL = "Value for attr 'T' of half is not in the list of allowed values: double, complex64"
INDEX = "Value passed to parameter 'indices' has DataType float16 not in list of allowed values: int16, int32, int64"
INDEX_EAGERLY = "Value for attr 'Tindices' of half is not in the list of allowed values: int32, int64\n\tOp<name=Gather"
NO_KERNELS = [  # TensorFlow 2.10, 2.15 and 2.21
    (
        "Could not find device for node: {{node Svd}} = Svd[T=DT_HALF, compute_uv=true]\nAll kernels …",
        ("`Svd` does not take 16-bit numbers on this device",),
    ),
    (
        "No OpKernel was registered to support Op 'Cholesky' used by {{node Cholesky}} with these attrs: [T=DT_HALF]",
        ("`Cholesky`",),
    ),
    (
        "RFFT requires tf.float32 or tf.float64 inputs, got: <tf.Tensor: shape=(4,), dtype=float16>",
        ("`RFFT` does not take 16-bit numbers:",),
    ),
    (
        "The `real` and `imag` components have incorrect types: float16 float16. They must be consistent",
        ("An operation does not take 16-bit numbers",),
    ),
    ("Unsupported dtype19 for '{{node range}} = Range[Tidx=DT_HALF](range/start, range/limit)'", ("`range`",)),
]
ASSIGNED = "Tensor conversion requested dtype float32 for Tensor with dtype float16: <tf.Tensor: shape=(4,)>"
TO_HALF = "Tensor conversion requested dtype float16 for Tensor with dtype float32: <tf.Tensor: shape=(4,)>"
PER_REPLICA = "Type PerReplica is not supported as a gradient source or gradient target."
RESHAPE = "cannot reshape array of size 3200 into shape (28,28,1)"

ARGPARSE = """\
usage: a.py [-h] [--epochs EPOCHS] -d DATA --kind {a,b} corpus [corpus ...]
a.py: error: the following arguments are required: -d/--data, --kind, corpus
"""
ONE_OF = """\
usage: a.py [-h] (--x X | --y)
a.py: error: one of the arguments --x --y is required
"""
CLICK = """\
Usage: a.py [OPTIONS] CORPUS
Try 'a.py --help' for help.

Error: Missing option '--data' / '-d'.
"""
TYPER = """\
Usage: a.py [OPTIONS] {corpus}
Try 'a.py --help' for help.
╭─ Error ──────────────────────╮
│ Missing argument 'CORPUS'.   │
╰──────────────────────────────╯
"""
ABSL = """\
FATAL Flags parsing error:
  flag --data=None: Flag --data must have a value other than None.
  flag --out=None: Flag --out must have a value other than None.
Pass --helpshort or --helpfull to see help on flags.
"""


def messages(name: str) -> list[tuple[str, str, str]]:
    """(what was done and where, message, what is expected of it) of every block in a file."""
    text = (MESSAGES / name).read_text(encoding="utf-8").partition("\n# ")[2]
    blocks = [block.partition("\n") for block in re.split(r"^# ", text, flags=re.MULTILINE)]
    parted = [(title, *body.rpartition("\n=> ")) for title, _, body in blocks]
    return [(title, message.replace("\\x1b", "\x1b"), said.strip()) for title, message, _, said in parted]


LINES, WHOLE = messages("lines.txt"), messages("whole.txt")


def titles(told: list[tuple[str, str, str]]) -> list[str]:
    return [title for title, _, _ in told]


# --- the words of others ----------------------------------------------------------------------------------------
@pytest.mark.parametrize(("message", "words"), [row[1:] for row in LINES], ids=titles(LINES))
def test_an_error_about_shapes_is_told_with_both(message: str, words: str) -> None:
    error = shape_error_from_message(message)
    assert (error.words if error else "-") == words
    if error is not None:
        assert error.remedy.endswith(".")
        assert "{" not in error.words
        assert error.actual in words
        assert error.expected in words


@pytest.mark.parametrize(("message", "essence"), [row[1:] for row in WHOLE], ids=titles(WHOLE))
def test_the_essence_of_a_message_is_one_line_of_it(message: str, essence: str) -> None:
    assert essence_of_message(message) == essence
    assert "\x1b" not in essence
    assert "{{node" not in essence


def test_there_are_enough_of_both_kinds() -> None:
    assert sum(words != "-" for _, _, words in LINES) >= 50
    assert sum(words == "-" for _, _, words in LINES) >= 15
    for keras in ("Keras 3.15", "tf_keras 2.21"):
        assert sum(keras in title for title in titles(LINES)) >= 25


@given(st.text())
def test_no_message_breaks_it(message: str) -> None:
    essence = essence_of_message(message)
    assert len(essence.splitlines()) <= 1
    assert len(essence) <= 302
    shape_error_from_message(message)


@pytest.mark.parametrize(
    ("exception", "message", "headline"),
    [
        ("KeyError", "'width'", "KeyError: 'width'"),
        ("AssertionError", "", "AssertionError"),
        ("MyError", "\n\n  \n", "MyError"),
        ("RuntimeError", "first\nsecond", "RuntimeError: first"),
        (
            "RuntimeError",
            "\n    A thing\n    cannot be kept.\n\n    For example:",
            "RuntimeError: A thing cannot be kept.",
        ),
        ("TypeError", NO_KERNELS[-1][0], "TypeError: Unsupported dtype19 (half)"),
        ("ValueError", "x" * 200 + " " + "y" * 200, "ValueError: " + "x" * 200 + " …"),
    ],
)
def test_a_headline_is_one_line(exception: str, message: str, headline: str) -> None:
    assert headline_from_failure(FailureFacts("raised", "script", exception, message)) == headline


# --- the rules --------------------------------------------------------------------------------------------------
def said(failure: FailureFacts) -> dict[str, Finding]:
    found = list(findings_from_facts("in_failure", failure, failure.keras, lambda rule: True))
    assert all(isinstance(finding, Finding) for finding in found), found
    return {finding.code: finding for finding in found if isinstance(finding, Finding)}


def failure(kind: str, during: str = "script", **more: Any) -> FailureFacts:
    return FailureFacts(kind, during, **{"location": HERE, **more})


def raised(exception: str, message: str, during: str = "script", **more: Any) -> FailureFacts:
    return failure("raised", during, exception=exception, message=message, **more)


def test_an_update_of_a_variable_is_not_cast_to_16_bits_but_taken_out_of_call() -> None:
    line = "target.assign(target * tau + online * (1.0 - tau))"
    mixed = "Input 'y' of 'Mul' Op has type float32 that does not match type float16 of argument 'x'."
    found = said(
        raised(
            *("TypeError", mixed, "training"),
            frames=(Frame("train.py", 7, "momentum_update", line, True),),
            inside="layer",
            layer="byol",
            layer_class="BYOL",
            layer_dtype="float16",
            own_layer_location=HERE,
            computes_in_half=True,
            operands=(OperandFacts("tau", "tensor", "float32"),),
        )
    )
    assert "`train_step`" in found["MP202"].help
    assert "tf.cast" not in found["MP202"].help


ALIEN = "module 'x' has no attribute '_register_wrapper_optimizer_cls'"


CHECKED = (
    "{{function_node __wrapped__CheckNumericsV2_device_CPU:0}} \n\n!!! Detected Infinity or NaN in output 0 of {op} "
    "(# of outputs: 1) !!!\n  dtype: <dtype: 'float16'>\n  shape: ()\n\n : Tensor had {values} values "
    "[Op:CheckNumericsV2]"
)


@pytest.mark.parametrize(
    ("op", "values", "found"),
    [
        ('graph op "Const"', "-Inf", "-Inf in the output of `Const`"),
        ('eagerly-executing op "MatMul"', "NaN", "NaN in the output of `MatMul`"),
    ],
)
def test_what_check_numerics_stopped_at_is_named(op: str, values: str, found: str) -> None:
    message = CHECKED.replace("{op}", op).replace("{values}", values)
    in_half = said(raised("InvalidArgumentError", message, "training", computes_in_half=True))
    assert in_half["MP412"].message == f"The training stopped: check_numerics found {found}."
    assert "MP412" not in said(raised("InvalidArgumentError", message, "training"))


@pytest.mark.parametrize(
    ("keras", "words", "is_wrapper_meant"),
    [
        ("tf_keras", "'Adam' object has no attribute 'get_scaled_loss'", True),
        ("tf_keras", "in user code:\n\n    AttributeError: 'SGD' object has no attribute 'loss_scale'", True),
        ("keras", "'AdamW' object has no attribute 'dynamic_scale'", True),
        ("keras", "'Adam' object has no attribute 'get_scaled_loss'", False),  # nor has Keras 3's wrapper
        ("keras", "'LossScaleOptimizer' object has no attribute 'loss_scale'", False),
        ("tf_keras", "'Trainer' object has no attribute 'loss_scale'", False),
    ],
)
def test_a_bare_optimizer_that_is_asked_for_what_a_wrapper_has(keras: str, words: str, is_wrapper_meant: bool) -> None:
    version = "3.15.1" if keras == "keras" else "2.21.0"
    ended = raised("AttributeError", words, "training", keras=Keras(keras, version, "2.21.0"))
    assert ("Wrap the optimizer where it is made" in said(ended)["MP901"].help) is is_wrapper_meant


@pytest.mark.parametrize(
    ("keras", "help"),
    [
        (Keras("tf.keras", "2.11.0", "2.10.1"), "keras 2.11 is made for another TensorFlow than 2.10: `pip install"),
        (Keras("tf.keras", "2.10.0", "2.10.1"), "the program ran with its own policy and data"),
        (Keras("keras", "3.15.1", "2.21.0"), "the program ran with its own policy and data"),
    ],
)
def test_a_keras_that_fits_is_not_installed_again(keras: Keras, help: str) -> None:
    assert help in said(raised("AttributeError", ALIEN, keras=keras))["MP002"].help


@pytest.mark.parametrize(
    ("name", "line", "help"),
    [
        ("name", "print('x.dtype: %s' % x.dtype.name)", "`x.dtype` is a text here, such as"),
        ("max", "y = x * self.compute_dtype.max", "write `tf.as_dtype(self.compute_dtype).max`."),
        ("is_floating", "if w[0].variable_dtype.is_floating:", "write `tf.as_dtype(w[0].variable_dtype).is_floating`."),
        ("name", "print(model.title.name)", "Fix this line first"),  # another text
        ("upper_case", "x.dtype.upper_case()", "Fix this line first"),  # which a DType has not either
    ],
)
def test_a_text_that_names_a_dtype_is_none(name: str, line: str, help: str) -> None:
    frames = (Frame("train.py", 7, "<module>", line, True),)
    error = raised("AttributeError", f"'str' object has no attribute '{name}'", "script", frames=frames)
    assert help in said(error)["MP002"].help


@pytest.mark.parametrize(
    ("exception", "message", "help"),
    [
        ("NameError", "name 'make' is not defined", "the program ran without `%run helpers.py`."),
        ("FileNotFoundError", "No such file: 'x.npy'", "its cells run in its own folder. The cells ran without `%run"),
        ("ModuleNotFoundError", "No module named 'google.colab'", "`google.colab` is in Colab alone"),
    ],
)
def test_what_a_notebook_ran_without_is_told(exception: str, message: str, help: str) -> None:
    error = raised(exception, message, "script", command_line=("n.ipynb",), left_out="`%run helpers.py`")
    assert help in said(error)["MP002"].help


@pytest.mark.parametrize(
    ("line", "operation", "blamed"),
    [
        ("return (x - self.mean) * self.gamma", "-", "self.mean"),
        ("return self.gamma * (x - self.mean)", "-", "self.mean"),
        ("return (x - tf.cast(self.mean, x.dtype)) * self.gamma", "*", "self.gamma"),
        ("return tf.multiply(x - tf.cast(self.mean, x.dtype), self.gamma)", "*", "self.gamma"),
        ("x *= self.gamma if self.mean else 1.0", "*", "self.gamma"),  # neither stands beside it
        ("return (x - tf.cast(self.mean,", "*", "self.mean"),  # the rest of it is on another line
    ],
)
def test_the_variable_of_the_failing_operation_is_blamed(line: str, operation: str, blamed: str) -> None:
    names = sorted(("self.mean", "self.gamma"), key=line.find)
    names = [name for name in names if name in line]
    signs = {"-": "Sub", "*": "Mul"}
    message = f"Input 'y' of '{signs[operation]}' Op has type float32 that does not match type float16 of argument 'x'."
    found = said(
        raised(
            "TypeError",
            message,
            computes_in_half=True,
            inside="layer",
            layer="scale",
            layer_class="Scale",
            layer_dtype="float16",
            own_layer_location=HERE,
            frames=(Frame("train.py", 7, "call", line, True),),
            operands=tuple(OperandFacts(name, "variable", "float32") for name in names),
        )
    )["MP203"]
    assert f"`{blamed}` is a `tf.Variable`" in found.message


STOPPED = raised("KeyError", "'width'", "training")
FACTORY = ModelFacts("m", "m", "Net", "mixed_float16", Keras(), call=CallFacts("none"))
SCRIPT = dataclasses.replace(FACTORY, call=CallFacts("fit"))


@pytest.mark.parametrize(
    ("run", "help"),
    [
        (ExaminationFacts(models=(SCRIPT,)), "with its own policy and data"),
        (
            ExaminationFacts(models=(SCRIPT,), forced_policy="mixed_float16"),
            "under mixed_float16, which was forced on it",
        ),
        (ExaminationFacts(models=(SCRIPT,), stand_ins=("mnist", "cifar10")), "with stand-ins for mnist, cifar10"),
        (ExaminationFacts(models=(FACTORY,)), "with stand-ins for its data"),
        (
            ExaminationFacts(models=(FACTORY,), forced_policy="mixed_float16"),
            "with stand-ins for its data and under mixed_float16, which was forced on it",
        ),
    ],
)
def test_it_is_told_what_the_examination_had_changed(run: ExaminationFacts, help: str) -> None:
    assert said(as_run(STOPPED, run))["MP901"].help == f"Fix this line; the program ran {help}."


@pytest.mark.parametrize(
    ("during", "words"),
    [
        ("training", "The training step stops: "),
        ("ending", "The end of fit(), after its last step, stops: "),
        ("behind", "The program, behind its training loop, stops: "),
    ],
)
def test_what_stops_is_named(during: str, words: str) -> None:
    assert said(raised("KeyError", "'loss'", during))["MP901"].message.startswith(words)


def test_nobody_is_told_to_fix_a_line_of_a_library() -> None:
    mine, theirs = Frame("train.py", 7, "step", "opt.apply(g, v)", True), Frame("rmsprop.py", 9, "build", "x()", False)
    error = ("AttributeError", "'IndexedSlices' object has no attribute 'shape'", "training")
    assert said(raised(*error, frames=(mine, theirs)))["MP901"].help.startswith("The library raises it: change what")
    assert said(raised(*error, frames=(theirs, mine)))["MP901"].help.startswith("Fix this line")


GOT = """Could not find matching concrete function to call loaded from the SavedModel. Got:
  Positional arguments (1 total):
    * <tf.Tensor 'inputs:0' shape=(None, 8) dtype=float16>"""

IN_LIBRARY: dict[str, Any] = {
    "computes_in_half": True,
    "inside": "layer",
    "layer": "fancy",
    "layer_class": "Fancy",
    "layer_dtype": "float16",
    "layer_inputs": (("inputs", "float16"),),
    "layer_in_library": True,
    "layer_made_at": Location("train.py", 3),
    "keras": Keras("tf_keras", "2.21.0", "2.21.0"),
}


@pytest.mark.parametrize(
    ("message", "more", "said_of_it"),
    [
        (MIXED, {}, 'with a dtype, `Fancy(…, dtype="float32")`; where it takes none, write'),
        (MIXED, {}, "(Not tried.)"),
        (MIXED, {"ran_in_float32": True}, "on float16 input, and none in float32 (tried): TypeError: Input 'y'"),
        (NO_KERNELS[2][0], {}, "on float16 input: TypeError: RFFT requires"),
        ("Can not cast TensorSpec(dtype=tf.float16)", {"ran_in_float32": True}, "and none in float32 (tried)"),
        (MIXED, {"layer_made_by": "from_preset"}, "Here `from_preset` makes `Fancy`: write"),
        (MIXED, {"layer_made_by": "__init__"}, "Here the library makes `Fancy`: write"),
        (
            MIXED,
            {"layer_made_by": "call"},
            "to compute in 16 bits, and compile with a LossScaleOptimizer. (Not tried.)",
        ),
        (
            MIXED,
            {"layer_made_by": "call", "layer_dtype": "bfloat16"},
            'leave that at float32, give `dtype="mixed_bfloat16"` to the layers that are to compute in 16 bits. (Not',
        ),
        (MIXED, {"layer_made_by": "build"}, "All that this line makes then computes in float32. (Not tried.)"),
        (GOT, {"ran_in_float32": True}, "to call loaded from the SavedModel. Make it with"),
        (MIXED, {"layer_takes_dtype": False}, "`Fancy` takes no dtype: write"),
        (
            MIXED,
            {"ran_in_float32": True, "float32_with_layers_inside": True},
            'the layers in it with `dtype="float32"`;',
        ),
        (MIXED, {"layer_takes_dtype": True, "ran_in_float32": True}, '`Fancy(…, dtype="float32")`.'),
        (MIXED, {"ran_in_float32": True, "layer_dtype": ""}, "on 16-bit input, and none"),  # it casts nothing
        (MIXED, {"ran_in_float32": False}, ""),
        (MIXED, {"layer_in_library": False}, ""),
        (MIXED, {"layer_dtype": ""}, ""),
        (MIXED, {"layer": None}, ""),
        (MIXED, {"layer_inputs": (("inputs", "float16"), ("mask", "float32"))}, ""),  # the caller's to cast
        ("Can not cast TensorSpec(dtype=tf.float16)", {}, ""),
        ("HTTP request failed", {"ran_in_float32": True}, ""),  # by another attempt, not by another dtype
        ("cannot reshape 12 values", {}, ""),
    ],
)
def test_a_librarys_layer_that_refuses_16_bits(message: str, more: dict[str, Any], said_of_it: str) -> None:
    found = said(raised("TypeError", message, "training", **{**IN_LIBRARY, **more})).get("MP219")
    assert (found is not None) == bool(said_of_it)
    if found is not None:
        assert said_of_it in f"{found.message} {found.help}"
        assert found.location == Location("train.py", 3)


@pytest.mark.parametrize(
    ("during", "made_by", "help"),
    [
        ("training", "", "Give the data the shape of the model's Input"),
        ("script", "", "Check what the layer is called on"),
        ("script", "__init__", "The library makes this layer: check the arguments"),
    ],
)
def test_while_a_model_is_made_no_data_have_another_shape(during: str, made_by: str, help: str) -> None:
    message = "Input 0 is incompatible: expected ndim=4, found ndim=3. Full shape received: (None, 17, 32)"
    ended = raised("ValueError", message, during, layer="pool", layer_class="Pool", layer_made_by=made_by)
    assert said(ended)["MP605"].help.startswith(help)


TWO_INPUTS = (("queries", "float32"), ("keys", "float32"))


@pytest.mark.parametrize(
    ("more", "said_of_it"),
    [
        ({}, "`keys` stays float32, because Keras 2 casts only the first input, `queries`, to float16: TypeError"),
        ({"layer_inputs": (*TWO_INPUTS, ("values", "float32"))}, "`keys` and `values` stay float32"),
        ({"layer_inputs": (("queries", "float16"), ("keys", "float32"), ("mask", "bool"))}, "`keys` stays float32"),
        ({"layer_inputs": (("queries", "float32"), ("keys", "float16"))}, ""),
        ({"layer_dtype": "float32"}, ""),
        ({"keras": Keras("keras", "3.15.1", "2.21.0")}, ""),  # which casts them all
        ({"layer_is_recurrent": True}, ""),  # MP212
    ],
)
def test_inputs_of_a_librarys_layer_that_nothing_casts(more: dict[str, Any], said_of_it: str) -> None:
    given = {**IN_LIBRARY, "layer_inputs": TWO_INPUTS, "location": Location("train.py", 9), **more}
    finding = said(raised("TypeError", MIXED, "training", **given)).get("MP217")
    assert (finding is not None) == bool(said_of_it)
    if finding is not None:
        assert said_of_it in finding.message
        assert (finding.location, [also.line for also in finding.also_seen]) == (Location("train.py", 3), [9])


IMAGE = OperandFacts("image", "variable", "float32")


@pytest.mark.parametrize(
    ("inputs", "operands", "said_of_it"),
    [
        ("float32", (IMAGE,), "`fancy` (Fancy) is given `image`, a float32 tf.Variable"),
        ("float32", (IMAGE,), "`tf.identity(image)`"),
        ("float16", (IMAGE,), "raises an error on float16 input"),  # it stands beside the call
        ("float32", (IMAGE, OperandFacts("style", "variable", "float32")), "raises an error on"),  # nobody knows which
        ("float32", (OperandFacts("image", "tensor", "float32"),), "raises an error on"),
    ],
)
def test_a_variable_that_keras_2_does_not_cast(
    inputs: str, operands: tuple[OperandFacts, ...], said_of_it: str
) -> None:
    more = {**IN_LIBRARY, "layer_inputs": (("inputs", inputs),), "operands": operands, "ran_in_float32": True}
    found = said(raised("TypeError", MIXED, "training", **more))["MP219"]
    assert said_of_it in f"{found.message} {found.help}"


def test_what_a_library_lacks_is_told_once() -> None:
    for message in (NO_KERNELS[2][0], MIXED):
        codes = set(said(raised("TypeError", message, "training", **IN_LIBRARY)))
        assert codes == {"MP219", "MP901"}


BETWEEN = (
    "Dimensions must be equal, but are 32 and 64 for '{{node compile_loss/mse/sub}} = Sub[T=DT_FLOAT](data, out)' "
)
BETWEEN += "with input shapes: [32,1], [64,1]."
PATCHES = BatchFacts("patches", "Patches", 32, 64, Location("train.py", 3))


@pytest.mark.parametrize(
    ("batches", "layer", "told"),
    [
        ((PATCHES,), None, True),
        ((dataclasses.replace(PATCHES, given=64, returned=32),), None, True),
        ((dataclasses.replace(PATCHES, returned=128),), None, False),  # which is not what the loss was given
        ((dataclasses.replace(PATCHES, returned=128), PATCHES), None, True),
        ((PATCHES,), "head", False),  # a layer raised, and no loss
        ((), None, False),
    ],
)
def test_a_layer_that_changes_the_number_of_samples_is_named(
    batches: tuple[BatchFacts, ...], layer: str | None, told: bool
) -> None:
    more = {"layer": layer, "layer_class": "Dense"} if layer else {}
    found = said(raised("ValueError", BETWEEN, "training", batches=batches, **more))["MP605"]
    assert ("Layer `patches` (Patches) gets" in found.message) == told
    assert found.location == (Location("train.py", 3) if told else HERE)


LEFT = CaughtFacts("FileNotFoundError", "no a.npy", Location("train.py", 3), Location("train.py", 9), True)
LACKED = CaughtFacts("ImportError", "no wandb", Location("train.py", 1), Location("train.py", 2), False)
PASSED = CaughtFacts("ValueError", "no", Location("train.py", 4), Location("train.py", 5), False)


@pytest.mark.parametrize(
    ("caught", "exit_code", "said_of_it", "line"),
    [
        ((LEFT,), 0, "ended without a training call: it caught FileNotFoundError: no a.npy, in the `except` on", 3),
        ((LEFT,), 1, "ended itself with exit code 1 without a training call: it caught FileNotFoundError", 3),
        ((LACKED, LEFT, PASSED), 0, "line 9", 3),
        ((LACKED, PASSED), 0, "it caught ValueError: no, in the `except` on line 5", 4),
        ((LACKED,), 0, "ended without a Keras model", None),
        ((), 0, "ended without a Keras model", None),
    ],
)
def test_what_a_script_catches_itself_is_told_where_it_never_trained(
    caught: tuple[CaughtFacts, ...], exit_code: int, said_of_it: str, line: int | None
) -> None:
    found = said(FailureFacts("exited", "script", exit_code=exit_code, caught=caught))["MP002"]
    assert said_of_it in found.message
    assert (found.location and found.location.line) == line


DICE = PartFacts("metric", "Dice", "update_state", own=False, made_at=Location("train.py", 3))
UNIT = PartFacts("constraint", "Unit", "__call__", own=False, made_at=Location("train.py", 3))
REFUSED = PartFacts("constraint", "Unit", made_at=Location("train.py", 3), result_refused=True)
CALLED = PartFacts("configuration", "Scale", "get_config", asked_by="save")
SIGNED = "Can not cast TensorSpec(shape=(8,), dtype=tf.float16) to TensorSpec(shape=(None,), dtype=tf.float32)"
SAVED = PartFacts("saved-model", "Embedding", own=False, made_at=Location("train.py", 3))


@pytest.mark.parametrize(
    ("code", "message", "more", "said_of_it"),
    [
        ("MP901", "no", {"callback": "Loud.on_epoch_end"}, "The callback `Loud` raises in on_epoch_end: KeyError"),
        ("MP901", "no", {"callback": "Saves.on_epoch_end", "part": CALLED}, "on_epoch_end, in `Scale.get_config`: "),
        ("MP901", "no", {"part": CALLED}, "`Scale.get_config`, which `save` calls, raises: KeyError"),
        ("MP901", "no", {"part": PartFacts("metric", "gap")}, "The metric `gap` raises: KeyError"),
        ("MP901", "no", {"part": PartFacts("metric", "M", "result")}, "The metric `M` raises in result: KeyError"),
        ("MP901", "no", {"part": REFUSED}, "The result of the constraint `Unit` cannot be assigned to its weight: "),
        ("MP901", "no", {"part": PartFacts("loss", "Loss", "call")}, "The loss `Loss` raises in call: KeyError"),
        ("MP901", "no", {"part": PartFacts("pipeline", "parse")}, "The input pipeline's function `parse` raises: "),
        ("MP901", "no", {"part": PartFacts("pipeline", "")}, "The input pipeline raises: KeyError"),
        ("MP901", "no", {"part": PartFacts("generator", "g")}, "The generator `g`, which yields the training data,"),
        ("MP901", "no", {"part": PartFacts("data", "D", "__getitem__")}, "`D.__getitem__`, which yields the training"),
        ("MP901", "no", {"part": SAVED}, "The training step stops: KeyError"),
        ("MP508", MIXED, {"part": DICE}, "In the metric `Dice.update_state`, which is not your code, "),
        ("MP508", MIXED, {"part": PartFacts("metric", "M", "result")}, "In `M.result` "),
        ("MP219", MIXED, {"part": UNIT}, "it makes 16-bit numbers itself"),
        ("MP219", ASSIGNED, {"part": UNIT}, "a float16 value comes back from it"),
        ("MP219", "no", {"part": UNIT}, ""),
        ("MP219", MIXED, {"part": dataclasses.replace(UNIT, own=True)}, ""),
        ("MP219", SIGNED, {}, "A function with a float32 signature"),
        ("MP219", SIGNED, {"computes_in_half": False}, ""),
        ("MP219", MIXED, {"part": SAVED}, "`Embedding` calls a SavedModel's function"),
        ("MP219", "no", {"part": SAVED}, ""),
    ],
)
def test_what_is_no_layer_is_named_as_what_it_is(
    code: str, message: str, more: dict[str, Any], said_of_it: str
) -> None:
    found = said(raised("KeyError", message, "training", **{"computes_in_half": True, **more})).get(code)
    assert (found is not None) == bool(said_of_it)
    if found is not None:
        assert said_of_it in found.message
        part = more.get("part")
        assert found.location == (part.made_at if part is not None and part.made_at else Location("train.py", 7))


@pytest.mark.parametrize(
    ("names", "line", "help"),
    [
        (("p",), "loss = y - p", "Cast `p` first, `tf.cast(p, tf.float32)`"),
        (("labels",), "loss = labels - p", "Cast `labels` first, `tf.cast(labels, tf.float32)`"),
        (("y", "p"), "loss = y * log(p) * w", "Cast `y` and `p` first, each with `tf.cast(…, tf.float32)`"),
        ((), "loss = tf.cast(y, tf.float16) - p", "Cast to float32 instead of float16: a loss"),
        ((), "loss = compute(y)", "Cast the prediction first"),
    ],
)
def test_a_loss_names_what_is_to_be_cast(names: tuple[str, ...], line: str, help: str) -> None:
    operands = tuple(OperandFacts(name, "tensor", "float16") for name in names)
    frames = (Frame("train.py", 7, "loss", line, True),)
    error = raised("TypeError", MIXED, computes_in_half=True, inside="loss", operands=operands, frames=frames)
    assert help in said(error)["MP505"].help


REMEDIES = [
    ("ResourceExhaustedError", "OOM when allocating tensor with shape[64,9] and type half on /gpu:0", "smaller batch"),
    ("MemoryError", "", "not enough memory"),
    ("URLError", "<urlopen error [Errno -2] Name or service not known>", "network"),
    ("OSError", "We couldn't connect to 'https://huggingface.co': Network is unreachable", "Download it on a machine"),
    ("InvalidArgumentError", "Trying to access resource w (defined @ a) located in device /gpu:1 from device /gpu:0",
     "`jit_compile=False` in compile()"),
    ("RuntimeError", "merge_call called while defining a new graph or a tf.function. This can often …", "XLA"),
    ("ValueError", "Your currently installed version of Keras is Keras 3, but this is not yet supported in X.",
     "tf_keras and set TF_USE_LEGACY_KERAS=1"),
    ("ImportError", "`keras.optimizers.legacy` is not supported in Keras 3.", "tf_keras"),
    ("AttributeError", "module 'x' has no attribute '_register_wrapper_optimizer_cls'", "installed keras"),
    ("ValueError", "File not found: filepath=a.keras. Please ensure the file is an accessible `.keras`", "folder"),
    ("InvalidArgumentError", "0-th value returned by pyfunc_0 is half, but expects float\n\t [[{{node PyFunc}}]]",
     "returns float16, where its `Tout` says float32: return `….astype(np.float32)`"),
    ("TypeError", "array type float16 is unsupported in linalg", 'give it float32, `np.asarray(…, "float32")`'),
    ("ValueError", "data type <class 'ml_dtypes.bfloat16'> not inexact", "`ml_dtypes.finfo(…)`"),
    ("TypeError", "Unsupported dtype dtype('float16') for standard_normal", "draw float32 and cast"),
    ("NotFoundError", "train.tfrecord; No such file or directory [Op:IteratorGetNext]", "give it the path"),
    ("KeyError", "'No such file'", "its own policy and data"),
]  # fmt: skip
IN_CALL = {"inside": "layer", "computes_in_half": True}


def frame(text: str) -> Frame:
    return Frame("train.py", 7, "call", text, True)


LAYER = {"layer": "to_picture", "layer_class": "ToPicture"}
# (id, failure, codes, what the first of them says or advises)
TABLE: list[tuple[str, FailureFacts, list[str], tuple[str, ...]]] = [
    (
        "top-k",
        raised("TypeError", TOP_K, "training", inside="metric", computes_in_half=True),
        ["MP508", "MP901"],
        ("accepts only float32 predictions", 'last layer `dtype="float32"`'),
    ),
    (
        "top-k-eagerly",
        raised("InvalidArgumentError", TOP_K_EAGERLY, "training", inside="metric", computes_in_half=True),
        ["MP508", "MP901"],
        ("top-k accuracy",),
    ),
    (
        "raised",
        raised("KeyError", "'width'"),
        ["MP002"],
        ("stopped here, before any training step: KeyError: 'width'", "its own policy and data"),
    ),
    ("no-module", raised("ModuleNotFoundError", "No module named 'cv2'"), ["MP002"], ("cv2", "--python")),
    ("no-file", raised("FileNotFoundError", "[Errno 2] No such file: 'a.csv'"), ["MP002"], ("a.csv", "folder")),
    ("raised-in-a-layer", raised("ValueError", "no", **LAYER), ["MP002"], ("in layer `to_picture` (ToPicture)",)),
    (
        "loading",
        raised("TypeError", "Could not locate class 'Nope'", "loading"),
        ["MP002"],
        ("saved model cannot be loaded", "--custom-objects"),
    ),
    (
        "confined",
        raised("PermissionError", "[Errno 13] Permission denied: 'log.txt'", "loading"),
        ["MP002"],
        ("log.txt", "no code may write outside", "tempfile.gettempdir()"),
    ),
    (
        "unusable",
        failure("unusable", "start", message="No TensorFlow in python."),
        ["MP002"],
        ("No TensorFlow in python.",),
    ),
    (
        "exited-with-a-code",
        failure("exited", exit_code=3, message="3"),
        ["MP002"],
        ("exit code 3 before any training call", "`--`"),
    ),
    (
        "exited-with-words",
        failure("exited", exit_code=1, message="data is missing"),
        ["MP002"],
        ("saying 'data is missing'",),
    ),
    (
        "exited-by-argparse",
        failure("exited", exit_code=2, message="2", last_words="usage: a.py --data D\na.py: error: give --data\n"),
        ["MP002"],
        ("exit code 2 before any training call. The last line it printed was 'a.py: error: give --data'",),
    ),
    (
        "exited-for-arguments-of-argparse",
        failure("exited", exit_code=2, message="2", last_words=ARGPARSE, command_line=("a.py", "--epochs", "2")),
        ["MP002"],
        (
            "because it was not given `--data`, `--kind` and `corpus`.",
            "Give them after `--`: `mpdoctor check a.py -- --epochs 2 --data DATA --kind a CORPUS`",
        ),
    ),
    (
        "raised-for-an-argument",
        raised(
            "IndexError",
            "list index out of range",
            frames=(Frame(HERE.path, HERE.line, "<module>", "out = sys.argv[2]", True),),
            command_line=("a.py", "data"),
        ),
        ["MP002"],
        (
            "IndexError: list index out of range",
            "The script needs arguments, which go after `--`: `mpdoctor check a.py -- data …`",
        ),
    ),
    (
        "exited-for-one-of-a-group",
        failure("exited", exit_code=2, message="2", last_words=ONE_OF, command_line=("a.py",)),
        ["MP002"],
        ("not given `--x or --y`.", "Give it after `--`: `mpdoctor check a.py -- --x X`"),
    ),
    (
        "exited-for-an-option-of-click",
        failure("exited", exit_code=2, message="2", last_words=CLICK, command_line=("my file.py",)),
        ["MP002"],
        ("not given `--data`.", "`mpdoctor check 'my file.py' -- --data …`"),
    ),
    (
        "exited-for-an-argument-of-typer",
        failure("exited", exit_code=2, message="2", last_words=TYPER, command_line=("a.py",)),
        ["MP002"],
        ("not given `CORPUS`.", "`mpdoctor check a.py -- CORPUS`"),
    ),
    (
        "exited-for-flags-of-absl",
        failure("exited", exit_code=1, message="1", last_words=ABSL, command_line=("a.py",)),
        ["MP002"],
        ("not given `--data` and `--out`.", "`mpdoctor check a.py -- --data=… --out=…`"),
    ),
    (
        "exited-saying-something-else-about-arguments",
        failure("exited", exit_code=2, message="2", last_words="loading\nMissing option: none of the data is there\n"),
        ["MP002"],
        ("The last line it printed was 'Missing option: none of the data is there'",),
    ),
    ("exited-without", failure("exited", exit_code=0), ["MP002"], ("without a Keras model", "build_model")),
    (
        "timed-out",
        failure("timed-out", seconds=600.4),
        ["MP003"],
        ("No training step was reached within 600 seconds", "--timeout"),
    ),
    (
        "timed-out-in-a-step",
        failure("timed-out", "training", seconds=61.0),
        ["MP003"],
        ("did not return within 61 seconds",),
    ),
    (
        "killed",
        failure("died", signal=signal.SIGKILL),
        ["MP004"],
        ("before its training call: SIGKILL", "memory", "smaller batch"),
    ),
    (
        "segmentation-fault",
        failure("died", "training", signal=signal.SIGSEGV, last_words="a\nb\n"),
        ["MP004"],
        ("while it trained: SIGSEGV, a crash in native code", "last output: b"),
    ),
    ("unknown-signal", failure("died", signal=63), ["MP004"], ("signal 63",)),
    ("os._exit", failure("died", exit_code=0), ["MP004"], ("os._exit with exit code 0", "without mpdoctor")),
    (
        "step-raised",
        raised("KeyError", "'loss'", "training"),
        ["MP901"],
        ("training step stops: KeyError: 'loss'", "Fix this line"),
    ),
    (
        "step-raised-in-a-layer",
        raised("ValueError", "no", "training", **LAYER),
        ["MP901"],
        ("stops in layer `to_picture` (ToPicture): ValueError: no",),
    ),
    (
        "two-dtypes",
        raised("TypeError", MIXED, "training"),
        ["MP901"],
        ("Two dtypes are combined: `+` is given", "other.dtype"),
    ),
    (
        "two-dtypes-eagerly",
        raised("InvalidArgumentError", HALF_AND_FLOAT, "training"),
        ["MP901"],
        ("Two dtypes are combined",),
    ),
    (
        "two-dtypes-in-the-optimizer",  # Nadam of Keras 2, with a float16 weight among float32 ones
        raised(
            "InvalidArgumentError",
            HALF_AND_FLOAT,
            "training",
            inside="optimizer",
            computes_in_half=True,
            frames=(frame("optimizer.apply_gradients(zip(grads, weights))"),),
        ),
        ["MP901"],
        ("The optimizer combines two dtypes itself", "Keep all weights in float32"),
    ),
    (
        "nothing-is-trainable",
        raised("ValueError", "not enough values to unpack (expected 2, got 0)", "training", inside="optimizer"),
        ["MP901"],
        ("no weight of the model is trainable", "before compile()"),
    ),
    (
        "nothing-to-unpack-elsewhere",
        raised("ValueError", "not enough values to unpack (expected 2, got 0)", "training", inside="data"),
        ["MP901"],
        ("Fix this line",),
    ),
    (
        "two-dtypes-in-an-optimizer-of-the-program",
        raised(
            "InvalidArgumentError",
            HALF_AND_FLOAT,
            "training",
            inside="optimizer",
            computes_in_half=True,
            frames=(frame("momentum = self.beta * momentum + gradient"),),
        ),
        ["MP901"],
        ("Two dtypes are combined",),
    ),
    (
        "float32-assigned-to-a-half",
        raised("ValueError", TO_HALF, "training", computes_in_half=True, frames=(frame("a.assign_add(g / n)"),)),
        ["MP901"],
        ("The variable is float16", "make it a float32 variable"),
    ),
    (
        "float32-where-a-half-is-wanted",
        raised("ValueError", TO_HALF, "training", computes_in_half=True),
        ["MP901"],
        ("stands where float16 is wanted", "tf.cast(value, tf.float16)"),
    ),
    (
        "float32-assigned-without-mixed-precision",
        raised("ValueError", TO_HALF, "training", frames=(frame("a.assign_add(g / n)"),)),
        ["MP901"],
        ("Fix this line",),
    ),
    (
        "no-kernel",
        raised("InvalidArgumentError", NO_KERNEL, "training", **LAYER),
        ["MP211", "MP901"],
        ('`to_picture` `dtype="float32"`',),
    ),
    ("half-as-an-index", raised("TypeError", INDEX, "training", **LAYER), ["MP901"], ()),
    ("half-as-an-index-eagerly", raised("InvalidArgumentError", INDEX_EAGERLY, **LAYER), ["MP002"], ()),
    *(
        (f"no-kernel-{number}", raised("NotFoundError", message), ["MP211", "MP002"], words)
        for number, (message, words) in enumerate(NO_KERNELS)
    ),
    (
        "assigned",
        raised("ValueError", ASSIGNED, "training", **IN_CALL, frames=(frame("self.mean.assign(m)"),)),
        ["MP205", "MP901"],
        ("`self.mean.assign(m)` assigns a 16-bit value", "tf.float32"),
    ),
    (
        "converted-elsewhere",
        raised("ValueError", ASSIGNED, "training", **IN_CALL, frames=(frame("return x + y"),)),
        ["MP901"],
        (),
    ),
    (
        "shapes-in-the-script",
        raised("ValueError", RESHAPE),
        ["MP605", "MP002"],
        ("Shapes do not fit: 3200 values", "(28,28,1)"),
    ),
    (
        "shapes-in-a-step",
        raised("ValueError", RESHAPE, "training", **LAYER),
        ["MP605", "MP901"],
        ("in layer `to_picture` (ToPicture): 3200 values",),
    ),
    (
        "missing",
        raised("AttributeError", LACKS + "'epsilon'", frames=(frame("x = opt.epsilon"),)),
        ["MP301", "MP002"],
        ("no `epsilon`", "inner_optimizer"),
    ),
    (
        "missing-on-the-wrapper-of-2.4",
        raised(
            "AttributeError",
            LACKS + "'build'",
            inside="loss scaling",
            frames=(frame("optimizer.build(variables)"),),
            keras=Keras("tf.keras", "2.4.0", "2.4.4"),
        ),
        ["MP301", "MP002"],
        ("no `build`",),
    ),
    (
        "missing-by-a-name-put-together",
        raised("AttributeError", LACKS + "'beta_1'", frames=(frame("print(getattr(opt, name))"),)),
        ["MP301", "MP002"],
        ("no `beta_1`", "inner_optimizer.beta_1"),
    ),
    ("missing-to-keras", raised("AttributeError", LACKS + "'name'", frames=(frame("load(path)"),)), ["MP002"], ()),
    (
        "keras2-loop",
        raised("AttributeError", LACKS + "'get_scaled_loss'", "training"),
        ["MP407", "MP901"],
        ("exists only in Keras 2", "`optimizer.scale_loss(loss)`"),
    ),
    ("wrapped-twice", raised("ValueError", WRAPPED), ["MP307", "MP002"], ("Two LossScaleOptimizers", "for each")),
    (
        "gradient-of-a-tensor-array",
        raised("ValueError", OF_ARRAY, "training", computes_in_half=True),
        ["MP214", "MP901"],
        ("TensorArray of float32 is given a float16 tensor", "`tf.TensorArray(self.compute_dtype, …)`"),
    ),
    (
        "gradient-of-a-tensor-array-in-float32",
        raised("ValueError", OF_ARRAY, "training"),
        ["MP901"],
        ("Fix this line",),
    ),
    (
        "no-replica",
        raised("ValueError", NO_REPLICA, "training"),
        ["MP415", "MP901"],
        ("so not on a replica", "strategy.run(step"),
    ),
    (
        "values-of-all-replicas-applied",
        raised("ValueError", PER_REPLICA, "training", frames=(frame("opt.apply_gradients(zip(g, v))"),)),
        ["MP415", "MP901"],
        ("so not on a replica", "strategy.run(step"),
    ),
    (
        "values-of-all-replicas-elsewhere",
        raised("ValueError", PER_REPLICA, "training", frames=(frame("tape.gradient(loss, v)"),)),
        ["MP901"],
        ("Fix this line",),
    ),
    *(
        (f"nothing-fits-{words.split()[0]}", raised(exception, text), ["MP002"], (words,))
        for exception, text, words in REMEDIES
    ),
    ("shapes-in-last-words", failure("died", message=RESHAPE, signal=6), ["MP004"], ("SIGABRT",)),
    (
        "step-exited",
        failure("exited", "training", exit_code=2, exception="SystemExit", message="2"),
        ["MP901"],
        ("SystemExit",),
    ),
]


@pytest.mark.parametrize(
    ("module", "folder", "help"),
    [
        ("shop", "src", "`shop` is in `src`, where Python does not look"),
        ("shop.models", ".", "`shop` is in the working directory"),
        ("shop.models", "/home/a", "PYTHONPATH=/home/a,"),
        ("cv2", "", "Install the missing module"),
    ],
)
def test_a_script_that_imports_a_package_of_its_project(module: str, folder: str, help: str) -> None:
    ended = raised("ModuleNotFoundError", f"No module named '{module}'", missing_module_in=folder)
    assert help in said(ended)["MP002"].help


LIBRARY = Frame("/v/lib/python3.11/site-packages/keras_cv/models/utils.py", 3, "<module>", "import a", own=False)
SINGLE_FILE = Frame("C:\\v\\Lib\\site-packages\\tabulating.py", 3, "<module>", "import a", own=False)


@pytest.mark.parametrize(
    ("module", "frame", "help"),
    [
        ("keras.engine'", LIBRARY, "`keras_cv` imports `keras.engine`, which the installed `keras` does not have:"),
        ("keras.engine'", None, "`keras` is there, and has no `keras.engine`: import it from where"),
        ("keras.engine'; 'keras' is not a package", None, "`keras` is a file here, and no package: rename it"),
        ("deprecated'", LIBRARY, "Install `deprecated`, which `keras_cv` imports, for the Python that"),
        ("deprecated'", SINGLE_FILE, "Install `deprecated`, which `tabulating` imports, for"),
        (
            "deprecated'",
            dataclasses.replace(LIBRARY, path="/opt/libs/b.py"),
            "Install `deprecated`, which `b.py` imports",
        ),
        ("deprecated'", dataclasses.replace(LIBRARY, own=True), "Install the missing module for the Python"),
    ],
)
def test_a_module_that_is_not_there(module: str, frame: Frame | None, help: str) -> None:
    frames = () if frame is None else (frame,)
    ended = raised("ModuleNotFoundError", f"No module named '{module}", frames=frames)
    assert said(ended)["MP002"].help.startswith(help)


CIRCULAR = "(most likely due to a circular import)"


@pytest.mark.parametrize(
    ("error", "at", "help"),
    [
        (
            "'Foo' from 'tensorflow.keras' (/v/lib/python3.11/site-packages/keras/__init__.py)",
            "train.py",
            "`tensorflow.keras` is installed, and has no `Foo`: import it from where this release has it",
        ),
        ("'loss' from 'parts.sizes' (/home/a/parts/sizes.py)", "train.py", "`sizes.py` defines no `loss`: correct"),
        (
            f"'app' from partially initialized module 'absl' {CIRCULAR} (/home/a/absl.py)",
            "absl.py",
            "`absl.py` imports itself, because it has the name of the package `absl`: rename the file.",
        ),
        (
            "'app' from 'absl' (consider renaming '/home/a/absl.py' since it has the same name as the library)",
            "a/absl.py",
            "`absl.py` imports itself",
        ),
        (
            f"'thing' from partially initialized module 'b' {CIRCULAR} (/home/a/b.py)",
            "c.py",
            "`c.py` and `b.py` import each other, and `b.py` has not come to `thing` yet",
        ),
        ("'thing' from 'b' (unknown location)", "c.py", "`b` is a folder"),
        (
            "Keras cannot be imported. Check that it is installed.",
            "c.py",
            "Install the Keras that TensorFlow looks for",
        ),
        ("libcublas.so.11: cannot open shared object file", "c.py", "A compiled module cannot be loaded"),
        ("C extension: None not built. If you want", "c.py", "A compiled module cannot be loaded"),
        ("`plot_model` needs pydot: `pip install pydot`", "c.py", "Install the missing module"),
    ],
)
def test_a_name_that_a_module_does_not_have(error: str, at: str, help: str) -> None:
    text = f"cannot import name {error}" if error.startswith("'") else error
    ended = raised("ImportError", text, location=Location(at, 1, 1))
    assert said(ended)["MP002"].help.startswith(help)


@pytest.mark.parametrize(("ended", "codes", "words"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_an_end_is_told_by_its_rule(ended: FailureFacts, codes: list[str], words: tuple[str, ...]) -> None:
    found = said(ended)
    assert set(found) == set(codes)
    first = found[codes[0]]
    text = f"{first.message} {first.help}"
    assert [word for word in words if word not in text] == [], text
    assert "None" not in text
    if codes[0] in ("MP002", "MP605", "MP901") and ended.kind != "unusable":
        assert first.location == HERE


@pytest.mark.parametrize("during", ["script", "training"])
def test_a_finding_belongs_to_the_stage_that_ended(during: str) -> None:
    stage = "training" if during == "training" else "model"
    assert {finding.stage for finding in said(raised("ValueError", RESHAPE, during)).values()} == {stage}


FAILURES = st.builds(
    FailureFacts,
    st.sampled_from(["raised", "exited", "timed-out", "died", "unusable"]),
    st.sampled_from(["start", "script", "loading", "training"]),
    exception=st.sampled_from(["", "ValueError", "ModuleNotFoundError", "FileNotFoundError"]),
    message=st.text() | st.sampled_from([row[1] for row in WHOLE]),
    location=st.none() | st.just(HERE),
    layer=st.none() | st.just("dense"),
    layer_class=st.none() | st.just("Dense"),
    signal=st.none() | st.integers(1, 64),
    exit_code=st.none() | st.integers(0, 255),
    seconds=st.floats(0, 1e6),
    last_words=st.text(),
)


@given(FAILURES)
def test_every_end_is_told_by_at_least_one_rule_and_none_breaks(ended: FailureFacts) -> None:
    found = said(ended)
    main = {"timed-out": "MP003", "died": "MP004"}.get(ended.kind)
    if main:
        assert set(found) == {main}
    elif ended.kind == "unusable":
        assert set(found) <= {"MP002"}
        assert found or ended.during == "training"
    else:
        assert ("MP901" if ended.during == "training" else "MP002") in found


NO_ROW = "{{function_node __wrapped__GatherV2}} indices[39,0] = 5000 is not in [0, 5000) [Op:GatherV2]"
OF_EMBEDDING: dict[str, Any] = {"layer": "items", "layer_class": "Embedding", "layer_inputs": (("inputs", "float16"),)}


def test_an_id_that_was_rounded_behind_the_last_row() -> None:
    found = said(
        raised("InvalidArgumentError", NO_ROW, "training", layer_made_at=Location("train.py", 3), **OF_EMBEDDING)
    )
    assert found["MP216"].location == Location("train.py", 3)
    assert "as to 5000, for which it has no row" in found["MP216"].message


@pytest.mark.parametrize(
    ("message", "changed"),
    [
        (NO_ROW, {"layer_inputs": (("inputs", "float32"),)}),
        (NO_ROW.replace("5000", "700"), {}),  # which float16 holds
        (NO_ROW, {"layer_class": "Gather"}),
        ("Shapes (None, 1) and (None, 10) are incompatible", {}),
    ],
)
def test_an_id_that_was_not_rounded(message: str, changed: dict[str, Any]) -> None:
    assert "MP216" not in said(raised("InvalidArgumentError", message, "training", **{**OF_EMBEDDING, **changed}))

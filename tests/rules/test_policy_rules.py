"""Rules about dtype policies, with hand-written facts of live models and failures."""

from __future__ import annotations

from pathlib import Path

import pytest
from judging import KERASES, facts_of, findings_in
from test_fixes_of_rules import fixed, in_rounds
from test_rules_source import BODY, HEAD, layer, model, said, wrapper

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts, ModelFacts, OptimizerFacts
from mpdoctor.facts.saved.file import LoadFacts
from mpdoctor.finding import Finding
from mpdoctor.knowledge.policy_names import is_policy_name, meant_by
from mpdoctor.rules.registry import findings_from_facts
from mpdoctor.source import facts_from_file, facts_from_text

pytestmark = pytest.mark.fast

ADAM = (OptimizerFacts("Adam", "keras"),)
FLOAT32_BODY = layer("body", "float32")
FLOAT32_NORM = layer("norm", "float32", class_name="LayerNormalization")
SCALED = (OptimizerFacts("Adam", "keras", loss_scale_factor="1024.0"),)
UNTRAINED = {"compiled": False, "call": CallFacts("none")}


def _base(policy: str = "float32", class_name: str = "Conv2D", before_policy: bool = True) -> tuple[LayerFacts, ...]:
    """A frozen network and the one layer in it."""
    frozen = {"variables": (("float32", 40, False),), "before_policy": before_policy}
    outer = layer("base of body", policy, **{**frozen, "variables": (), "class_name": "Functional", "is_model": True})
    return outer, layer("base of body/convolution", policy, class_name=class_name, **frozen)


EARLY = _base()
PRIVATE = "from keras.src.mixed_precision import policy\nfrom tensorflow.python.keras.mixed_precision import policy\n"


@pytest.mark.parametrize(
    ("codes", "facts"),
    [
        (["MP105"], model(FLOAT32_BODY, HEAD, policy="float32", optimizer=ADAM)),
        (["MP105"], model(FLOAT32_BODY, FLOAT32_NORM, HEAD, policy="float32", optimizer=ADAM)),
        ([], model(FLOAT32_NORM, policy="float32", optimizer=ADAM)),
        ([], model(FLOAT32_BODY, HEAD, policy="float32", optimizer=ADAM, policy_set=False)),
        ([], model(FLOAT32_BODY, HEAD, policy="float32", optimizer=ADAM, global_policy="float32")),
        ([], model(FLOAT32_BODY, HEAD, policy="float32", **UNTRAINED)),
        ([], model(FLOAT32_BODY, HEAD, policy="mixed_float16", optimizer=wrapper())),  # layers that were given a dtype
        (["MP105"], model(*EARLY, BODY, HEAD, optimizer=wrapper())),
        ([], model(*EARLY, BODY, HEAD, optimizer=wrapper(), policy_set=False)),
        ([], model(*EARLY, BODY, HEAD, optimizer=wrapper(), class_name="Distiller")),  # it may be a teacher
        ([], model(*EARLY, BODY, HEAD, optimizer=wrapper(), **UNTRAINED)),
        (
            [],
            model(*EARLY, BODY, HEAD, optimizer=wrapper(), loads=(LoadFacts("base of body", "a.keras", "float32"),)),
        ),
        ([], model(*_base(before_policy=False), BODY, HEAD, optimizer=wrapper())),  # float32 was set before it
        ([], model(*_base("mixed_float16"), BODY, HEAD, optimizer=wrapper())),
        ([], model(*_base(class_name="BatchNormalization"), BODY, HEAD, optimizer=wrapper())),
        (["MP106"], model(BODY, HEAD, policy="float32", global_policy="float32", optimizer=ADAM)),
        (["MP106"], model(BODY, HEAD, policy="float32", global_policy="float32", optimizer=ADAM, keras="tf_keras")),
        (["MP106"], model(BODY, HEAD, policy="mixed_float16", optimizer=ADAM)),  # auto_scale_loss=False
        ([], model(BODY, HEAD, policy="float32", global_policy="float32", optimizer=SCALED)),
        ([], model(BODY, HEAD, policy="float32", global_policy="float32", optimizer=wrapper())),
        ([], model(BODY, HEAD, policy="float32", optimizer=ADAM, call=CallFacts("loop"))),
        ([], model(layer("body", "mixed_bfloat16"), HEAD, policy="mixed_bfloat16", optimizer=ADAM)),
        ([], model(BODY, HEAD, policy="float32", global_policy="float32", optimizer=ADAM, **UNTRAINED)),
    ],
)
def test_what_is_said_of_a_live_model(codes: list[str], facts: ModelFacts) -> None:
    findings = said(facts)
    assert [finding.code for finding in findings if finding.code in ("MP105", "MP106")] == codes
    assert all("body" in finding.message for finding in findings if finding.code in codes)


@pytest.mark.parametrize(("policy", "blamed"), [("float32", True), ("mixed_float16", False)])
def test_a_policy_is_blamed_only_where_compile_wraps_under_another_one(policy: str, blamed: bool) -> None:
    (finding,) = [f for f in said(model(BODY, HEAD, policy=policy, optimizer=ADAM)) if f.code == "MP106"]
    assert ("compile() did not wrap it" in finding.message) is blamed


@pytest.mark.parametrize(
    ("message", "name"),
    [
        (
            "Cannot convert 'mixed_fp16' to a mixed precision DTypePolicy. Valid policies include 'mixed_float16', "
            "'mixed_bfloat16', and the name of any float dtype such as 'float32'.",
            "mixed_fp16",
        ),
        (
            "Cannot convert value mixed_fp16 to a mixed precision Policy. Valid policies include 'mixed_float16', "
            "'mixed_bfloat16', and the name of any dtype such as 'float32'.",
            "mixed_fp16",
        ),
        ("Cannot convert a string to a number", None),
    ],
)
def test_an_unknown_policy_that_was_raised_is_named(message: str, name: str | None) -> None:
    failure = FailureFacts("raised", "script", "ValueError", message, Location("train.py", 3), keras=KERASES["3"])
    found = list(findings_from_facts("in_failure", failure, failure.keras, lambda rule: rule.code == "MP104"))
    assert [
        isinstance(finding, Finding) and f'"{name}" is no dtype policy' in finding.message for finding in found
    ] == ([True] if name else [])


@pytest.mark.parametrize(
    ("message", "code", "begins"),
    [  # TensorFlow 2.15 and Keras 3.15
        (
            "Cannot convert the argument `type_value`: 'mixed_float16' to a TensorFlow DType.",
            "MP119",
            '"mixed_float16" is a dtype policy, and a dtype is asked for',
        ),
        (
            'Cannot convert the argument `type_value`: <Policy "mixed_bfloat16"> to a TensorFlow DType.',
            "MP119",
            '"mixed_bfloat16" is a dtype policy, and a dtype is asked for',
        ),
        (
            'Cannot convert the argument `type_value`: <DTypePolicy "float32"> to a TensorFlow DType.',
            "MP119",
            "This is a dtype policy, and a dtype is asked for",
        ),
        ("Invalid dtype: mixed_float16", "MP119", '"mixed_float16" is a dtype policy, and a dtype is asked for'),
        ("unhashable type: 'DTypePolicy'", "MP119", "This is a dtype policy, and a dtype is asked for"),
        (
            "Cannot convert the argument `type_value`: 'mixed_fp16' to a TensorFlow DType.",
            "MP104",
            '"mixed_fp16" is no dtype policy',
        ),
    ],
)
def test_a_policy_in_the_place_of_a_dtype_is_told_from_an_unknown_one(message: str, code: str, begins: str) -> None:
    failure = FailureFacts("raised", "script", "TypeError", message, Location("train.py", 3), keras=KERASES["3"])
    (found,) = findings_from_facts("in_failure", failure, failure.keras, lambda rule: rule.code in ("MP104", "MP119"))
    assert isinstance(found, Finding)
    assert (found.code, found.message.startswith(begins)) == (code, True), found.message


@pytest.mark.parametrize(
    ("message", "given", "help"),
    [  # TensorFlow 2.15 and 2.4
        (
            "Unknown `floatx` value: mixed_float16. Expected one of {'float64', 'float32', 'float16'}",
            "mixed_float16",
            'Set the policy instead: `set_global_policy("mixed_float16")`.',
        ),
        (
            "Unknown `floatx` value: <dtype: 'float16'>. Expected one of {'float64', 'float32', 'float16'}",
            "<dtype: 'float16'>",
            'Set the policy instead: `set_global_policy("mixed_float16")`.',
        ),
        (
            "Unknown `floatx` value: <class 'numpy.float32'>. Expected one of {'float64', 'float32', 'float16'}",
            "<class 'numpy.float32'>",
            'Write `"float32"`.',
        ),
        ("Unknown floatx type: bfloat16", "bfloat16", 'Set the policy instead: `set_global_policy("mixed_bfloat16")`.'),
    ],
)
def test_a_floatx_that_was_refused_is_named(message: str, given: str, help: str) -> None:
    failure = FailureFacts("raised", "script", "ValueError", message, Location("train.py", 3), keras=KERASES["2.15"])
    (found,) = findings_from_facts("in_failure", failure, failure.keras, lambda rule: rule.code == "MP104")
    assert isinstance(found, Finding)
    assert (found.message, found.help) == (f"set_floatx does not take {given}, and the program stops there.", help)


@pytest.mark.parametrize(
    ("name", "kerases", "meant"),
    [
        ("mixed_float16", ("3", "tf_keras", "2.15"), "mixed_float16"),
        ("float64", ("3", "tf_keras", "2.15"), "float64"),
        ("half", ("tf_keras", "2.15"), "mixed_float16"),
        ("double", ("tf_keras", "2.15"), "float64"),
        ("single", (), "float32"),
        ("mixed_fp16", (), "mixed_float16"),
        ("bf16", (), "mixed_bfloat16"),
        ("mixed-bfloat16", (), "mixed_bfloat16"),
        ("Mixed_Float16", (), "mixed_float16"),
        ("fp32", (), "float32"),
        ("amp", (), "mixed_float16"),
        ("int8_from_mixed_bfloat16", ("3",), "mixed_bfloat16"),
    ],
)
def test_the_names_of_policies(name: str, kerases: tuple[str, ...], meant: str) -> None:
    assert tuple(keras for keras in ("3", "tf_keras", "2.15") if is_policy_name(name, KERASES[keras])) == kerases
    assert meant_by(name) == meant


@pytest.mark.parametrize(
    ("path", "speaks"),
    [
        ("keras/src/trainers/trainer.py", False),
        ("tensorflow/python/framework/config.py", False),
        ("tf_keras/src/mixed_precision/policy.py", False),
        ("mylib/keras/callbacks.py", True),
        ("train.py", True),
    ],
)
def test_keras_may_use_its_own_private_parts(path: str, speaks: bool, tmp_path: Path) -> None:
    file = tmp_path / path
    file.parent.mkdir(parents=True, exist_ok=True)
    for folder in file.relative_to(tmp_path).parents[:-1]:
        (tmp_path / folder / "__init__.py").touch()
    file.write_text(PRIVATE, encoding="utf-8")
    assert ("MP103" in {finding.code for finding in findings_in(facts_from_file(file, path))}) is speaks


@pytest.mark.parametrize(
    ("handler", "hides"),
    [
        ("except Exception: pass", True),
        ("except: print('off')", True),
        ("except ValueError as error:\n    logger.error('off %s', error)", True),
        ("except AttributeError: self.parser.error('no')", False),
        ("except Exception: raise", False),
        ("except Exception: amp = False", False),
        ("except Exception: fall_back()", False),
        ("except (ImportError, ModuleNotFoundError): pass", False),
        ("except RuntimeError: pass", False),
        ("finally: pass", False),
    ],
)
def test_which_except_hides_a_failure(handler: str, hides: bool) -> None:
    facts = facts_from_text(f"try:\n    run()\n{handler}\n", "train.py")
    [call] = (call for call in facts.calls if call.location.line == 2)
    assert (call.context.swallowed is not None) is hides


@pytest.mark.parametrize(
    ("text", "hides"),
    [
        ("def tell(e): print(e)\ntry: run()\nexcept Exception as e: tell(e)", True),
        ("def tell(e):\n  if e.args: return print(e)\ntry: run()\nexcept Exception as e: tell(e)", True),
        ("def tell(e): raise e\ntry: run()\nexcept Exception as e: tell(e)", False),
        ("def tell(e): tell(e)\ntry: run()\nexcept Exception as e: tell(e)", False),
        ("def f():\n  try: run()\n  except Exception: return False\nf()", True),
        ("def f():\n  try: run()\n  except Exception: return False\nx = f()", False),
        ("while True:\n  try:\n    run()\n    break\n  except Exception: print('again')", False),
        ("for x in y:\n  try: run()\n  except Exception: print('next')", True),
    ],
)
def test_a_handler_that_calls_or_tries_again(text: str, hides: bool) -> None:
    facts = facts_from_text(text, "train.py")
    line = next(number for number, line in enumerate(text.splitlines(), 1) if "run()" in line)
    call = next(call for call in facts.calls if call.location.line == line)
    assert (call.context.swallowed is not None) is hides


def test_one_policy_for_each_of_two_kerases() -> None:
    """A policy set in keras is none in tf_keras, whatever asks for it."""
    text = "import keras, tf_keras\nkeras.config.set_dtype_policy('mixed_float16')\n{}.layers.Dense(1)\n"
    for package, policy in (("keras", "mixed_float16"), ("tf_keras", None)):
        facts = facts_of(text.format(package), "3")
        [layer_call] = facts.calls_of("keras.layers.Dense")
        assert facts.policies_at(layer_call) == (policy,)


BUILT = "net = keras.Sequential([keras.Input((8,)), keras.layers.Dense(1, dtype=DTYPE)])"
SET = 'keras.mixed_precision.set_global_policy("mixed_float16")'


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"    {BUILT}\n    if fp16:\n        {SET}\n", f"    if fp16:\n        {SET}\n    {BUILT}\n"),
        (
            f"    print(fp16)\n\n    # the net\n    {BUILT}\n    net.summary()\n\n    # half\n    {SET}  # fast\n\n",
            f"    print(fp16)\n\n    # half\n    {SET}  # fast\n\n    # the net\n    {BUILT}\n    net.summary()\n\n",
        ),
        (f"    {BUILT}\n    fp16 = net.count_params() > 9\n    if fp16:\n        {SET}\n", None),
        (f"    {BUILT}\n    if fp16:\n        print(9)\n        {SET}\n", None),
        (f"    {BUILT}\n    if fp16:\n        {SET}\n    else:\n        print(9)\n", None),
    ],
)
def test_a_policy_moves_ahead_of_the_layers_with_the_option_that_asks_for_it(before: str, after: str | None) -> None:
    head = "import keras\n\nDTYPE = None\n\n\ndef main(fp16=True):\n"
    foot = "    net.compile('adam', 'mse')\n    net.fit(f())\n\n\nmain()\n"
    (finding,) = findings_in(facts_of(head + before + foot, "3"))
    done = fixed(head + before + foot, finding.fix) if finding.fix else None
    assert (finding.code, done) == ("MP105", after and head + after + foot)


SETTER = "mixed_precision.set_global_policy"
FLOATX = 'set_floatx("float16")'


@pytest.mark.parametrize(
    ("keras", "before", "after"),
    [
        ("3", f"import keras\nkeras.config.{FLOATX}", f'import keras\nkeras.{SETTER}("mixed_float16")'),
        ("3", "import keras\nkeras.config.set_floatx('bfloat16')", f'import keras\nkeras.{SETTER}("mixed_bfloat16")'),
        (
            "2.15",
            f"from tensorflow.keras import backend as K\nif f():\n    K.{FLOATX}  # half",
            f"import tensorflow as tf\nfrom tensorflow.keras import backend as K\nif f():\n"
            f'    tf.keras.{SETTER}("mixed_float16")  # half',
        ),
        (  # a policy says what to compute in
            "2.15",
            f'import tensorflow as tf\ntf.keras.backend.{FLOATX}\ntf.keras.{SETTER}("mixed_float16")',
            f'import tensorflow as tf\ntf.keras.{SETTER}("mixed_float16")',
        ),
        (  # without it the program would compute in float32, and what else it may be given is float32
            "3",
            "import keras\nimport argparse\nparser = argparse.ArgumentParser()\n"
            "parser.add_argument('--dtype', default='float16')\n"
            "keras.config.set_floatx(parser.parse_args().dtype)",
            None,
        ),
    ],
)
def test_a_policy_in_the_place_of_floatx(keras: str, before: str, after: str | None) -> None:
    trained = (
        "\nx = {0}.Input((8,))\nimport numpy\nmodel = {0}.Model(x, {0}.layers.Dense(1, dtype='float32')(x))\n"
        "model.fit(numpy.ones((8, 8)), numpy.ones((8, 1)))\n"
    )
    trained = trained.format("keras" if keras == "3" else "tf.keras") if "as K" not in before else "\n"
    assert [finding.code for finding in findings_in(facts_of(before + trained, keras))] == ["MP107"]
    assert in_rounds(before + trained, keras, unsafe=True) == (after or before) + trained


@pytest.mark.parametrize(
    ("used", "told"),
    [
        ("old.set_policy('mixed_float16')", ["`set_policy` is called `set_global_policy` there"]),
        ("old.global_policy().compute_dtype", []),
        ("old.LossScaleOptimizer(f(), 'dynamic')", ["`LossScaleOptimizer` is given no `loss_scale` there"]),
        ("old.get_layer_policy(f())", ["`get_layer_policy(layer)` is `layer.dtype_policy`"]),
    ],
)
def test_of_the_old_module_that_is_told_which_changes_in_what_is_used(used: str, told: list[str]) -> None:
    facts = facts_of(
        f"from tensorflow.keras.mixed_precision import experimental as old\n\n\ndef g(f):\n    {used}\n", "3"
    )
    (finding,) = findings_in(facts)
    assert finding.help == "; ".join(["Use `mixed_precision` itself, without `experimental`", *told]) + "."


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("tf.cast(x, tf.float16), y", "The features are cast to float16 by hand: Keras itself"),
        ("x, tf.cast(y, tf.float16)", "The labels are cast to float16 by hand: labels lose"),
        ("[tf.cast(x, tf.float16)]", "The data is cast to float16 by hand: Keras itself"),
    ],
)
def test_of_what_a_map_casts_it_is_told_whether_it_is_the_features_or_the_labels(given: str, told: str) -> None:
    text = (
        "import tensorflow as tf\n\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "model = tf.keras.Sequential([tf.keras.layers.Dense(1, dtype='float32')])\nmodel.compile('adam', 'mse')\n"
        f"data = tf.data.Dataset.from_tensor_slices((f(), g())).map(lambda x, y: ({given}))\nmodel.fit(data.batch(4))\n"
    )
    assert [finding.message[: len(told)] for finding in findings_in(facts_of(text, "3"))] == [told]


@pytest.mark.parametrize(("loss", "told"), [("binary", "sigmoid"), ("categorical", "softmax")])
def test_what_a_cross_entropy_is_usually_taken_of_is_named_where_nobody_sees_it(loss: str, told: str) -> None:
    text = (
        "import keras\n\nkeras.mixed_precision.set_global_policy('mixed_float16')\n\n\n"
        "class Head(keras.layers.Layer):\n    def call(self, inputs):\n        score, label = inputs\n"
        f"        loss = keras.losses.{loss}_crossentropy(label, score * 2.0)\n"
        "        return keras.ops.cast(loss, 'float32')\n"
    )
    (finding,) = findings_in(facts_of(text, "3"))
    assert (finding.code, f"Compute the {told} in float32" in finding.help) == ("MP507", True)


@pytest.mark.parametrize(("keras", "told"), [("3", ["", "MP507"]), ("2.15", ["", ""]), ("2.4", ["", ""])])
def test_a_cross_entropy_is_of_the_output_that_it_fits(keras: str, told: list[str]) -> None:
    """The price has nothing to do with it, and Keras 2 finds the logits behind the softmax."""
    text = (
        "import tensorflow as tf\n\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
        "x = tf.keras.Input((8,))\nprice = tf.keras.layers.Dense(1, name='price')(x)\n"
        "kind = tf.keras.layers.Dense(4, activation='softmax', name='kind')(x)\n"
        "model = tf.keras.Model(x, {'price': price, 'kind': kind})\n"
        "model.compile('adam', loss={'price': 'mae', 'kind': 'sparse_categorical_crossentropy'})\n"
        "model.fit(f(), g())\n"
    )
    found = findings_in(facts_of(text, keras))
    assert [finding.code for finding in found] == ["MP201", "MP201"]
    assert ["".join(also.code for also in finding.also_seen if also.code == "MP507") for finding in found] == told


DROPPED = (
    "import tensorflow as tf\n\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n"
    "model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype='float32')])\n"
    "optimizer = tf.keras.optimizers.Adam()\ntf.keras.mixed_precision.LossScaleOptimizer(optimizer)\n"
)


@pytest.mark.parametrize(
    ("keras", "line", "severity", "follows"),
    [
        ("3", "model.compile(optimizer, 'mse')", "warning", "compile() makes one of its own, and this one has no"),
        ("2.10", "model.compile(optimizer, 'mse')", "error", "compile() wraps the bare optimizer again, which raises"),
        ("2.10", "optimizer.apply_gradients(f())", "error", "training goes on with the bare optimizer, without"),
        ("3", "optimizer.apply_gradients(f())", "error", "training goes on with the bare optimizer, without"),
        ("3", "train(model, optimizer)", "error", "the optimizer itself stays bare"),
    ],
)
def test_what_follows_where_a_wrapper_is_dropped(keras: str, line: str, severity: str, follows: str) -> None:
    """Measured in Keras 3.15, tf_keras 2.21, TensorFlow 2.15, 2.10 and 2.4."""
    found = [finding for finding in findings_in(facts_of(f"{DROPPED}{line}\n", keras)) if finding.code == "MP116"]
    assert [finding.severity for finding in found] == [severity]
    assert follows in found[0].message


CAST = "tf.cast({}, {}.gru.compute_dtype)"


@pytest.mark.parametrize(
    ("given", "cast"),
    [
        ("[s]", "[" + CAST.format("s", "self") + "]"),
        ("s", CAST.format("s", "self")),
        ("[f(s)]", "[" + CAST.format("f(s)", "self") + "]"),
    ],
)
def test_each_of_the_states_that_are_written_out_is_cast(given: str, cast: str) -> None:
    text = (
        "import tensorflow as tf\n\ntf.keras.mixed_precision.set_global_policy('mixed_float16')\n\n\n"
        "class Net(tf.keras.Model):\n    def __init__(self):\n        super().__init__()\n"
        "        self.start = tf.keras.layers.Dense(8, dtype='float32')\n        self.gru = tf.keras.layers.GRU(8)\n\n"
        "    def call(self, x):\n        s = self.start(x[0])\n        return self.gru(x[1], initial_state={})\n\n\n"
        "net = Net()\nnet.compile('adam', 'mse')\nnet.fit(f(), g())\n"
    )
    fixes = [f.fix for f in findings_in(facts_of(text.format(given), "2.15")) if f.code == "MP212" and f.fix]
    assert [fixed(text.format(given), fix) for fix in fixes] == [text.format(cast)] * ("f(" not in given)

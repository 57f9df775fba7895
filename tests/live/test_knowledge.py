"""The tables of `mpdoctor/knowledge`, each compared with what the installed Keras does."""

from __future__ import annotations

import functools
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checking import needs_keras

from mpdoctor.facts.half_dtypes import HALF, HALF_POLICIES
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_history import KERAS3_ONLY, NEVER_EXISTED, PRIVATE, REMOVED
from mpdoctor.knowledge.api_names import KERAS_OPS, SYNONYMS
from mpdoctor.knowledge.layer_kinds import (
    NORMALIZATION,
    NOT_FLOATING,
    OF_BASE_CONFIG,
    OUTPUT_IN_COMPUTE_DTYPE,
    PREPROCESSING,
    TEXT,
    WEIGHTLESS,
)
from mpdoctor.knowledge.metrics_of_float32 import CLASSES, FUNCTIONS, REFUSES
from mpdoctor.knowledge.missing_kernels import ON_GPU_ONLY, WITHOUT_HALF, operation_without_kernel
from mpdoctor.knowledge.op_lists import ALLOW, DENY
from mpdoctor.knowledge.policy_names import DTYPES, KERAS2_DTYPES, MIXED, SMALL_DTYPES, is_policy_name
from mpdoctor.knowledge.unsafe_layers import MASK_PASSING
from mpdoctor.knowledge.wrapper_api import APPLYING, KERAS2_LOOP, WRAPPER_LACKS

SUPPORT = Path(__file__).parents[1] / "support"
KERASES = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")]
MEASURED = sorted(WEIGHTLESS | OUTPUT_IN_COMPUTE_DTYPE)
# What takes no floating-point tensor, and what has no float16 kernel on a CPU.
NOT_CALLED = NOT_FLOATING | {f"{kind}3D" for kind in ("AveragePooling", "AvgPool", "MaxPooling", "MaxPool")}
# Errors in which TensorFlow does not say that it is the dtype: their own defects, and one that reads like a mismatch.
SAYS_SOMETHING_ELSE = ("not inexact", "UnboundLocalError", "expected to be a float tensor")

NAMED_POLICIES = sorted({*MIXED, *DTYPES, *KERAS2_DTYPES, *HALF_POLICIES, "mixed_half", "float8", "amp"})
ASKED = {
    "layers": MEASURED,
    "policies": NAMED_POLICIES,
    "names": [
        *(*SYNONYMS, *SYNONYMS.values(), *NEVER_EXISTED, *(name for name, _, _ in REMOVED)),
        *(f"keras.ops.{name}" for name in KERAS_OPS.values()),
        *(f"tensorflow.{name}" for name in KERAS_OPS),
    ],
    "private": [path for path, _, _, _ in PRIVATE],
    "metrics": [name.rpartition(".")[2] for name in (*CLASSES, *FUNCTIONS)],
}

every_keras = pytest.mark.parametrize("keras", KERASES)


@functools.cache
def live(keras: str) -> dict[str, Any]:
    done = subprocess.run(
        [sys.executable, str(SUPPORT / "live_knowledge.py")],
        input=json.dumps(ASKED),
        env={**os.environ, "TF_USE_LEGACY_KERAS": "1" if keras == "tf_keras" else "0"},
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@every_keras
def test_weightless_layers_learn_nothing_and_the_others_answer_in_their_compute_dtype(keras: str) -> None:
    measured = live(keras)["layers"]
    assert len(measured) > 90
    assert {name for name, (learned, _) in measured.items() if learned} & WEIGHTLESS == set()
    dtypes = {name: dtype for name, (_, dtype) in measured.items() if name in OUTPUT_IN_COMPUTE_DTYPE}
    assert {name for name, dtype in dtypes.items() if "float16" not in dtype} == set()
    gone = {"LocallyConnected1D", "LocallyConnected2D"} if keras == "3" else {"RandomContrast", "RMSNormalization"}
    assert set(MEASURED) - set(measured) - gone - NOT_CALLED <= {"ThresholdedReLU", "RandomHeight", "RandomWidth"}


@pytest.mark.parametrize("kinds", [NORMALIZATION, PREPROCESSING, TEXT - {"KerasLayer"}, MASK_PASSING, WEIGHTLESS])
@needs_keras("3")
@needs_keras("tf_keras")
def test_every_kind_of_layer_is_one_of_a_keras(kinds: frozenset[str]) -> None:
    import keras
    import tf_keras

    known = {*dir(keras.layers), *dir(tf_keras.layers), *dir(tf_keras.layers.experimental), "Input"}
    assert kinds - known == set()


@needs_keras("3")
@needs_keras("tf_keras")
def test_what_the_configuration_of_a_layer_of_ones_own_holds() -> None:
    import keras
    import tf_keras

    for layer in (keras.layers.Layer, tf_keras.layers.Layer):
        own = type("Own", (layer,), {"get_config": lambda self, base=layer: base.get_config(self)})
        assert set(own().get_config()) == OF_BASE_CONFIG


@every_keras
def test_functions_without_16_bit_kernels_raise_in_16_bits_and_not_in_float32(keras: str) -> None:
    calls = live(keras)["calls"]
    assert len(calls) >= (53 if keras == "3" else 35)
    said = {name: {dtype for dtype in HALF if errors[dtype]} for name, errors in calls.items()}
    assert said == {name: set(table_of_function(name)) for name in calls}
    assert {name: errors["float32"] for name, errors in calls.items() if errors["float32"]} == {}


def table_of_function(name: str) -> frozenset[str]:
    """`tf.linalg.svd` stands in the table by the name that rules compare, `tensorflow.svd`."""
    place, _, function = name.rpartition(".")
    known = WITHOUT_HALF.get(name) or WITHOUT_HALF.get(f"tensorflow.{function}") if "tensorflow" in place else None
    return known or WITHOUT_HALF.get(name) or frozenset()


@every_keras
def test_what_they_raise_is_read_as_a_missing_kernel(keras: str) -> None:
    texts = [errors[dtype] for errors in live(keras)["calls"].values() for dtype in HALF if errors[dtype]]
    unread = [text for text in texts if operation_without_kernel(text) is None]
    assert [text for text in unread if not any(words in text for words in SAYS_SOMETHING_ELSE)] == []
    assert len(unread) <= 10


def test_no_function_lacks_its_kernel_on_a_cpu_only_and_anywhere() -> None:
    assert not ON_GPU_ONLY & set(WITHOUT_HALF)


@every_keras
def test_the_wrapper_has_the_calls_of_its_generation(keras: str) -> None:
    wrapper = live(keras)["wrapper"]
    assert ("apply" in wrapper["has"]) == (keras == "3")
    assert set(wrapper["has"]) & set(KERAS2_LOOP) == (set() if keras == "3" else set(KERAS2_LOOP))
    assert set(APPLYING) & set(wrapper["has"])
    found = re.search(WRAPPER_LACKS, wrapper["lacks"])
    assert found is not None and found[1] == "no_such_name"


@every_keras
def test_policies_that_compute_in_16_bits_are_policies(keras: str) -> None:
    accepted = set(live(keras)["policies"]) & {*HALF_POLICIES, "mixed_half"}
    assert accepted == set(HALF_POLICIES) - ({"half"} if keras == "3" else set())
    assert set(HALF) < accepted


@every_keras
def test_names_of_policies_are_those_that_keras_takes(keras: str) -> None:
    judged = Keras("keras", "3.15.1") if keras == "3" else Keras("tf_keras", "2.21.0")
    assert set(live(keras)["policies"]) == {name for name in NAMED_POLICIES if is_policy_name(name, judged)}
    assert not SMALL_DTYPES & {*NAMED_POLICIES}  # releases of one Keras differ


@every_keras
def test_names_that_rules_take_for_one_thing_are_one_thing(keras: str) -> None:
    names = live(keras)["names"]
    both = [(name, public) for name, public in SYNONYMS.items() if name in names and public in names]
    assert len(both) >= (26 if keras == "3" else 10)
    assert [pair for pair in both if names[pair[1]][0] not in names[pair[0]]] == []


@needs_keras("3")
def test_advice_names_functions_that_both_have() -> None:
    names = live("3")["names"]
    assert [tf for tf, ops in KERAS_OPS.items() if not {f"tensorflow.{tf}", f"keras.ops.{ops}"} <= names.keys()] == []


@every_keras
def test_names_that_never_existed_or_are_gone_are_not_there(keras: str) -> None:
    names = live(keras)["names"]
    assert [name for name in NEVER_EXISTED if name.rstrip(".") in names] == []
    gone = [name for name, release, _ in REMOVED if keras == "3" or release != KERAS3_ONLY]
    assert [name for name in gone if not name.endswith(".") and name in names] == []


@needs_keras("3")
def test_private_names_are_there_or_gone() -> None:
    import tensorflow as tf

    release = tuple(map(int, tf.__version__.split(".")[:2]))
    there = [path for path, since, until, _ in PRIVATE if since <= release and (not until or release < until)]
    assert live("3")["private"] == there


@every_keras
def test_top_k_metrics_refuse_16_bit_predictions(keras: str) -> None:
    said = live(keras)["metrics"]
    refusing = {name for name, text in said.items() if text and any(re.search(words, text) for words in REFUSES)}
    functions = {name.rpartition(".")[2] for name in FUNCTIONS}
    assert refusing == (set(said) if keras == "3" else functions)
    assert {text for name, text in said.items() if name not in refusing} <= {None}


@needs_keras("3")
@pytest.mark.parametrize(("dtype", "kind"), [("float16", "Fp16"), ("bfloat16", "Mkl")])
def test_lists_of_operations_are_those_of_tensorflows_header(dtype: str, kind: str) -> None:
    import tensorflow as tf

    include = Path(tf.sysconfig.get_include()) / "tensorflow" / "core" / "grappler" / "optimizers"
    header = (include / "auto_mixed_precision_lists.h").read_text(encoding="utf-8")
    of_kind = header[header.index(f"class AutoMixedPrecisionLists{kind} ") :]
    for method, table in (("AllowList", ALLOW), ("DenyList", DENY)):
        body = of_kind[of_kind.index(f"{method}() override") :]
        body = body[: body.index("return list;")]
        assert set(re.findall(r'"(\w+)"', body)) - set(re.findall(r'UpdateList\("(\w+)"', body)) == table[dtype]

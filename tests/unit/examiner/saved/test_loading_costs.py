"""What a configuration would have computed while it is loaded, and names in it that are none."""

from __future__ import annotations

from typing import Any

import pytest

from mpdoctor.examiner.saved.refused_contents import Contents, contents_from_configuration

pytestmark = pytest.mark.fast
TENSOR = {"class_name": "__keras_tensor__", "config": {"shape": [None, 4], "keras_history": ["given", 0, 0]}}


def told(configuration: Any) -> Contents:
    return contents_from_configuration(configuration)


def called(*nodes: Any) -> dict[str, Any]:
    config = {"name": "op", "function": "zeros"}
    return {"class_name": "TFOpLambda", "name": "op", "config": config, "inbound_nodes": list(nodes)}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


# --- calls with constants -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    "node",
    [
        [["_CONSTANT_VALUE", -1, [1024, 1024], {}]],
        [["_CONSTANT_VALUE", -1, [["given", 0, 0]], {}]],  # a constant that looks like a tensor
        [["_CONSTANT_VALUE", -1, 3, {"name": ["_CONSTANT_VALUE", -1, 5]}]],
        [["given", -1, 4, {}]],
        {"x": ["_CONSTANT_VALUE", -1, 3]},
        [["_CONSTANT_VALUE", -1, nested(900), {}]],
        {"args": [0, 10**9], "kwargs": {}},
        {"args": [], "kwargs": {"shape": [10**9]}},
    ],
)
def test_a_layer_that_is_given_constants_only_is_told(node: Any) -> None:
    assert told(called(node)).eager == ["op (TFOpLambda)"]
    assert told({"config": {"layers": [called([["given", 0, 0, {}]], node)]}}).eager == ["op (TFOpLambda)"]


@pytest.mark.parametrize(
    "node",
    [
        [["given", 0, 0, {}]],
        [["given", 0, 0]],
        ["given", 0, 0, {"axis": -1}],
        [["given", 0, 0, {"shape": [3, -1, 2]}]],
        [["_CONSTANT_VALUE", -1, 2.0, {"y": ["given", 0, 0]}]],
        [["_CONSTANT_VALUE", -1, 2.0, {}], ["given", 1, 0, {}]],
        [["_CONSTANT_VALUE", -1, "abc,acd->abd", {}]],  # all that Keras 2 keeps of a call of einsum
        {"a": ["given", 0, 0], "b": ["_CONSTANT_VALUE", -1, 3]},
        {"args": [TENSOR], "kwargs": {}},
        {"args": [[2, [TENSOR]]], "kwargs": {"axis": 1}},
        {"args": [2.0], "kwargs": {"other": TENSOR}},
        {"args": [], "kwargs": {}},
        [],
        None,
        7,
    ],
)
def test_one_that_is_given_a_tensor_or_nothing_is_not(node: Any) -> None:
    assert not told(called(node)).eager


def test_a_class_of_the_users_may_keep_nodes_of_its_own() -> None:
    inner = {"inbound_nodes": [[["_CONSTANT_VALUE", -1, 4, {}]]]}
    assert not told({"class_name": "Mine", "config": inner}).eager


# --- metrics, vocabularies, arrays ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("class_name", "config", "words"),
    [
        ("AUC", {"name": "m", "num_thresholds": 10**9}, ["num_thresholds=1,000,000,000 of the metric AUC"]),
        ("MeanIoU", {"num_classes": 2**30}, ["num_classes=1,073,741,824 of the metric MeanIoU"]),
        ("AUC", {"num_thresholds": 10**40}, ["num_thresholds of more than 30 digits of the metric AUC"]),
        ("StringLookup", {"num_oov_indices": 10**9}, ["num_oov_indices=1,000,000,000 of the layer StringLookup"]),
        ("IntegerLookup", {"num_oov_indices": 10**9}, ["num_oov_indices=1,000,000,000 of the layer IntegerLookup"]),
        ("TextVectorization", {"ngrams": 10**9}, ["ngrams=1,000,000,000 of the layer TextVectorization"]),
        ("TextVectorization", {"ngrams": [1, 2], "max_tokens": 2 * 10**6, "output_sequence_length": 512}, []),
        ("StringLookup", {"num_oov_indices": 1000, "max_tokens": 10**7}, []),
        ("Hashing", {"num_bins": 10**7}, []),
        ("AUC", {"num_thresholds": 200}, []),
        ("Precision", {"class_id": 250_000, "top_k": None, "thresholds": [0.5]}, []),
        ("Dense", {"units": 4, "seed": 2**40}, []),
        ("AUC", None, []),
    ],
)
def test_numbers_that_lists_are_made_of(class_name: str, config: Any, words: list[str]) -> None:
    assert told([{"class_name": class_name, "config": config}]).large == words


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ("float32", []),
        ("bfloat16", []),
        ("bool", []),
        ("object", []),
        (None, []),
        ("S2000000000", ["`S2000000000`"]),
        ("<U500000000", ["`<U500000000`"]),
        ("(500000000,)f4", ["`(500000000,)f4`"]),
        (["f4", 5], ["a list"]),
        ({"names": ["a"]}, ["an object"]),
    ],
)
def test_dtypes_of_arrays(dtype: Any, words: list[str]) -> None:
    """NumPy makes each text of an array as long as its dtype says."""
    array = {"class_name": "__numpy__", "config": {"value": ["a"], "dtype": dtype}}
    assert told({"class_name": "Rescaling", "config": {"scale": array}}).dtypes == words


# --- names that are none --------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"class_name": 5}, ["a number as class_name"]),
        ({"class_name": None}, ["null as class_name"]),
        ({"class_name": True}, ["true as class_name"]),
        ({"class_name": ["Dense"]}, ["a list as class_name"]),
        ({"class_name": {}}, ["an object as class_name"]),
        ({"class_name": ""}, ["an empty text as class_name"]),
        ({"class_name": "Dense", "module": 5}, ["a number as module"]),
        ({"class_name": "Dense", "registered_name": ["x"]}, ["a list as registered_name"]),
        ({"class_name": "function", "config": 5}, ["a number as the name of a function"]),
        ({"class_name": "Dense", "module": None, "registered_name": None}, []),
        ({"class_name": "Mine", "config": {"class_name": None, "module": 3}}, []),
    ],
)
def test_what_stands_in_the_place_of_a_name_and_is_no_text_is_told(part: Any, words: list[str]) -> None:
    found = told({"class_name": "Sequential", "config": {"layers": [part]}})
    assert found.nameless == words
    assert "" not in map(str, found.foreign)


@pytest.mark.parametrize(
    ("key", "is_slow"),
    [
        ("encoder/.*", False),
        (r"(encoder|decoder)/block_\d+/dense.*", False),
        ("dense_[0-9]{1,2}", False),
        ("block/dense", False),
        ("(a+)+$", True),
        ("(a|a)*b", True),
        ("(?:a{1,9}){9}", True),
        (".*.*.*.*b", True),
    ],
)
def test_a_pattern_of_paths_that_may_take_for_ever(key: str, is_slow: bool) -> None:
    config = {"default_policy": "float32", "policy_map": {key: "mixed_float16"}}
    found = told([{"class_name": "DTypePolicyMap", "config": config}])
    assert found.patterns == ([f"`{key}`"] if is_slow else [])

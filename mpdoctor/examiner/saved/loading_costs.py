"""What loading a configuration would compute, known before it is loaded: layers called with constants, metrics of a
billion parts, arrays of endless texts, and patterns that take for ever to match."""

from __future__ import annotations

import json
import re
from typing import Any, Iterator

from mpdoctor.knowledge.allow_lists.loadable_names import CLASSES, DTYPES_OF_ARRAYS

CONSTANT = "_CONSTANT_VALUE"  # what a node of Keras 2 is given that is no tensor of the model
TENSOR = "__keras_tensor__"  # of Keras 3
MOST_REPEATS = 3  # in a pattern of paths: "encoder/.*" has one
_REPEAT = re.compile(r"[*+?{]")
_REPEATED_GROUP = re.compile(r"\)[*+?{]")
MOST_PARTS = 1_000_000  # thresholds, classes: a number that a metric is made with
# Layers that make a list as long as this number says.
LISTS = {"IntegerLookup": "num_oov_indices", "StringLookup": "num_oov_indices", "TextVectorization": "ngrams"}
ARRAY = "__numpy__"


def calls_with_constants(serialized: dict[str, Any]) -> bool:
    """Whether one of a layer's nodes is given no tensor of the model. Keras computes what such a node gives as soon as
    it reads it, and writes none itself: it records the calls with symbolic tensors."""
    nodes = serialized.get("inbound_nodes")
    return isinstance(nodes, list) and any(_is_of_constants(node) for node in nodes)


def _is_of_constants(node: Any) -> bool:
    if isinstance(node, dict) and ("args" in node or "kwargs" in node):  # Keras 3
        given = [node.get("args"), node.get("kwargs")]
        return any(given) and not any(value.get("class_name") == TENSOR for value in _dictionaries(given))
    return _holds_constant(node) and not _holds_reference(node)


def _dictionaries(value: Any) -> Iterator[dict[str, Any]]:
    left = [value]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield value
            left.extend(value.values())
        elif isinstance(value, list):
            left.extend(value)


def _holds_constant(node: Any) -> bool:
    """Whether a node of the configuration has a constant with a number in it. (Of einsum Keras 2 keeps the equation
    alone, and not the tensors.)"""
    return any((value[0] == CONSTANT or value[1] == -1) and _holds_number(value[2:]) for value in _entries(node))


def _holds_number(values: list[Any]) -> bool:
    left = [*values]
    for value in left:  # which grows
        if isinstance(value, (int, float)):
            return True
        left += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return False


def _holds_reference(node: Any) -> bool:
    return any(value[0] != CONSTANT and value[1] >= 0 for value in _entries(node))


def _entries(node: Any) -> Iterator[list[Any]]:
    """The inputs of a node of Keras 2: [layer, node, tensor], perhaps with the call's other arguments behind it, and
    those among these arguments."""
    left = [node]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            left.extend(value.values())
        elif isinstance(value, list) and len(value) >= 3 and isinstance(value[0], str) and isinstance(value[1], int):
            yield value
            left.extend(value[3:])  # a constant itself may look like anything
        elif isinstance(value, list):
            left.extend(value)


def large_numbers(class_name: str, config: Any) -> Iterator[str]:
    """The too large settings of a metric, or of a layer that makes a list of such a length, in words:
    `num_thresholds=1,000,000,000 of the metric AUC`."""
    is_metric = class_name in CLASSES["metrics"]
    if isinstance(config, dict) and (is_metric or class_name in LISTS):
        for key, value in config.items():
            if (is_metric or key == LISTS[class_name]) and isinstance(value, int) and value > MOST_PARTS:
                number = f"{key}={value:,}" if value < 10**30 else f"{key} of more than 30 digits"
                yield f"{number} of the {'metric' if is_metric else 'layer'} {class_name}"


def unknown_dtypes(class_name: str, config: Any) -> Iterator[str]:
    """The dtype of an array of NumPy that is none of numbers."""
    dtype = config.get("dtype") if class_name == ARRAY and isinstance(config, dict) else None
    if dtype is not None and not (isinstance(dtype, str) and dtype in DTYPES_OF_ARRAYS):
        yield f"`{dtype}`" if isinstance(dtype, str) else kind_text(dtype)


def kind_text(value: Any) -> str:
    """What a value of JSON that ought to be a text is."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a number"


def slow_patterns(class_name: str, config: Any) -> Iterator[str]:
    """The patterns of a DTypePolicyMap whose matching may take more than the cube of a path's length, as `(a+)+`
    may."""
    keys = config.get("policy_map") if class_name == "DTypePolicyMap" and isinstance(config, dict) else None
    for key in keys if isinstance(keys, dict) else ():
        if len(_REPEAT.findall(key)) > MOST_REPEATS or _REPEATED_GROUP.search(key):
            yield f"`{key}`"

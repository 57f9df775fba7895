"""What a saved model's configuration holds beyond the building blocks of Keras that are known to compute and no more:
Python code, calls of other functions, files that it would read, classes and functions from elsewhere.

A configuration is searched whole: in lists, in dictionaries, and in texts that hold JSON again. What is on the lists of
`saved_names` and `saved_symbols` passes; whatever else it names is reported.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Iterator, NamedTuple

from mpdoctor.examiner.saved.loading_costs import calls_with_constants, large_numbers, slow_patterns
from mpdoctor.knowledge.allow_lists import loadable_functions
from mpdoctor.knowledge.allow_lists.loadable_names import (
    BY_TEXT,
    TYPE_SPEC_MODULES,
    TYPE_SPECS,
    VALUES,
    is_class_of_keras,
    is_function_of_keras,
)

# Layers whose saved form holds code, or leads to it, and what it is.
CODE_LAYERS = {
    "TFSMLayer": "a graph in another file",
    "TensorFlowOpLayer": "an operation of a graph",
    "TorchModuleWrapper": "a pickled PyTorch module",
    "JaxLayer": "a pickled JAX function",
    "FlaxLayer": "a pickled Flax module",
}
OP_LAYERS = frozenset({"ClassMethod", "InstanceMethod", "InstanceProperty", "SlicingOpLambda", "TFOpLambda"})
# What stands here by its name alone is looked up by Keras among its functions and classes.
NAMED = frozenset(
    ["activation", "constraint", "fn", "initializer", "loss", "metrics", "optimizer", "regularizer", "weighted_metrics"]
)
NAMED_ENDINGS = ("_activation", "_constraint", "_initializer", "_regularizer")
# A text here is the path of a file that a layer reads when it is made.
PATHS = ("merges", "proto", "vocabulary", "vocabulary_file")
MOST_HIDDEN = 20_000  # texts that are tried as JSON
LAMBDA_PARTS = ("function", "output_shape", "mask")


class ForeignName(NamedTuple):
    """A class or function that a configuration names and that is not on the list of Keras' own.

    module
        "" where the configuration names none.
    registered
        The name that it is registered under with Keras; "" for none.
    """

    module: str
    name: str
    registered: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.registered or self.name


@dataclass
class Contents:
    """Each in words for a message, in the order in which they stand, without repetition.

    code
        Layers and functions that hold Python code.
    calls
        Functions of TensorFlow that an op layer would call and that do more than compute.
    files
        Paths of files that a layer would read.
    foreign
        Classes and functions that are not on the list of Keras' own.
    nameless
        What stands where the name of a class, or of its module, does, and is no text.
    eager
        Layers that would compute while the file is loaded.
    large
        Numbers by which a metric would grow past any use.
    patterns
        Of paths of layers, that may take for ever to match.
    """

    code: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    foreign: list[ForeignName] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    eager: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)


class _Part(NamedTuple):
    """A value of the configuration, and where it stands.

    in_own_class
        In the configuration of a class of the user's, which is for that class to read.
    is_name
        Where a text is the name of a function or class: `activation`, `loss`; in nested lists, and in a dictionary
        that gives some to each output.
    """

    value: Any
    in_own_class: bool = False
    is_name: bool = False

    def member(self, key: Any, value: Any) -> _Part:
        named = key in NAMED or (isinstance(key, str) and key.endswith(NAMED_ENDINGS))
        is_object = isinstance(self.value, dict) and "class_name" in self.value
        is_name = not self.in_own_class and (named or (self.is_name and not is_object))
        return _Part(value, self.in_own_class, is_name)


def contents_from_configuration(configuration: Any) -> Contents:
    """What a configuration holds beyond harmless building blocks. Raises ValueError where more texts than in any model
    look like JSON."""
    contents = Contents()
    left = [_Part(configuration)]
    hidden = 0
    while left:
        part = left.pop()
        value = part.value
        if isinstance(value, dict):
            if _is_object(value, part, contents):
                part = _Part(value, in_own_class=_take_object(value, contents))
            left.extend(part.member(key, inner) for key, inner in reversed(list(value.items())))
            if not part.in_own_class:
                _take_paths(value, contents)
        elif isinstance(value, (list, tuple)):
            left.extend(part._replace(value=inner) for inner in reversed(value))
        elif isinstance(value, str):
            if part.is_name and value not in BY_TEXT:
                contents.foreign.append(ForeignName("", value, ""))
            if _may_hold_an_object(value):
                hidden += 1
                if hidden > MOST_HIDDEN:
                    raise ValueError(f"more than {MOST_HIDDEN:,} texts that look like JSON")
                left.append(_Part(_unpacked(value), part.in_own_class))
    return Contents(*(list(dict.fromkeys(texts)) for texts in vars(contents).values()))


def _may_hold_an_object(text: str) -> bool:
    """Whether a text looks like JSON with a class_name in it, which escapes may spell."""
    return text.lstrip()[:1] in ("{", "[", '"') and ("class_name" in text or "\\" in text)


def _unpacked(text: str) -> Any:
    """The JSON in a text; None where it holds none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


# --- objects: dictionaries with a class_name ------------------------------------------------------------------------
def _is_object(value: dict[str, Any], part: _Part, contents: Contents) -> bool:
    """A class of the user's may keep what it likes under the name of `class_name`."""
    if "class_name" not in value or (part.in_own_class and not isinstance(value["class_name"], str)):
        return False
    for key in ("class_name", "module", "registered_name"):
        named = value.get(key)
        is_left_out = named is None and key != "class_name"
        if not isinstance(named, str) and not is_left_out:
            contents.nameless.append(f"{_kind_text(named)} as {key}")
    if value["class_name"] == "":
        contents.nameless.append("an empty text as class_name")
    return True


def _kind_text(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    return "a list" if isinstance(value, list) else "an object" if isinstance(value, dict) else "a number"


def _take_object(serialized: dict[str, Any], contents: Contents) -> bool:
    """Record what a serialised object is; returns whether its class is none of Keras'."""
    name, module, registered = (_text(serialized.get(key)) for key in ("class_name", "module", "registered_name"))
    config = serialized.get("config")
    plain = name.rpartition(">")[2]
    where = _layer_text(config)
    contents.large.extend(f"{number} of the metric {plain}" for number in large_numbers(plain, config))
    contents.patterns.extend(slow_patterns(plain, config))
    if calls_with_constants(serialized):
        contents.eager.append(f"{where or 'a layer'} ({plain})")
    if name == "__lambda__":
        contents.code.append("a lambda function")
    elif name == "function" and not isinstance(config, str):
        contents.nameless.append(f"{_kind_text(config)} as the name of a function")
    elif name == "function":
        _take_function(_text(config), module, registered, contents)
    elif name == "__typespec__":
        _take_type_spec(_text(serialized.get("spec_name")), module, registered, contents)
    elif name == "TypeSpec":
        _take_type_spec(_text(serialized.get("type_spec")), "", "", contents)
    elif name in VALUES:
        pass
    elif plain == "Lambda":
        _take_lambda(config, contents)
    elif plain in CODE_LAYERS:
        contents.code.append(f"{plain} {where}".strip() + f", {CODE_LAYERS[plain]}")
    elif plain in OP_LAYERS:
        contents.calls.extend(_calls(plain, config if isinstance(config, dict) else {}, where))
        return _take_class(name, module, registered, contents)
    else:
        return _take_class(name, module, registered, contents)
    return False


def _take_class(name: str, module: str, registered: str, contents: Contents) -> bool:
    if not name:  # no text: told as that
        return False
    if is_class_of_keras(name, module, registered):
        return False
    contents.foreign.append(ForeignName(module, name, registered))
    return True


def _take_function(name: str, module: str, registered: str, contents: Contents) -> None:
    if not is_function_of_keras(name, module, registered):
        other = "" if registered in ("function", name) else registered
        contents.foreign.append(ForeignName("" if module == "builtins" else module, name, other))


def _take_type_spec(name: str, module: str, registered: str, contents: Contents) -> None:
    if name not in TYPE_SPECS or registered or (module and module not in TYPE_SPEC_MODULES):
        contents.foreign.append(ForeignName(module, name, registered))


def _take_lambda(config: Any, contents: Contents) -> None:
    """A Lambda layer holds code, or the names of functions that are defined elsewhere."""
    config = config if isinstance(config, dict) else {"function": None}
    for key in LAMBDA_PARTS:
        value, kind = config.get(key), config.get(f"{key}_type")
        is_function = isinstance(value, dict) and value.get("class_name") == "function"  # judged where it stands
        is_shape = key != "function" and (value is None or isinstance(value, (list, tuple, int)))
        if kind == "lambda" or not (is_function or isinstance(value, str) or (is_shape and kind in (None, "raw"))):
            contents.code.append(f"Lambda layer {_text(config.get('name'))}".strip())
            return
        if isinstance(value, str) and value not in BY_TEXT:
            module = config.get("module" if key == "function" else f"{key}_module")
            contents.foreign.append(ForeignName(_text(module).replace("__main__", ""), value, ""))


def _calls(kind: str, config: dict[str, Any], where: str) -> Iterator[str]:
    """What an op layer calls, unless it is known to compute and no more."""
    if kind in ("TFOpLambda", "SlicingOpLambda"):
        called = _text(config.get("function"))
        harmless = loadable_functions.computes(called)
    elif kind == "ClassMethod":
        owner, method = _text(config.get("cls_symbol")), _text(config.get("method_name"))
        called = f"{owner}.{method}"
        harmless = method in loadable_functions.CLASS_METHODS.get(owner, ())
    else:
        called = _text(config.get("attr_name"))
        harmless = called in (loadable_functions.METHODS if kind == "InstanceMethod" else loadable_functions.PROPERTIES)
    if not harmless:
        yield f"`{called}`" + (f" in the layer {where}" if where else "")


# --- paths ----------------------------------------------------------------------------------------------------------
def _take_paths(serialized: dict[str, Any], contents: Contents) -> None:
    for key in PATHS:
        if isinstance(serialized.get(key), str):
            contents.files.append(f"`{serialized[key]}` ({key} of {_layer_text(serialized) or 'a layer'})")


def _layer_text(config: Any) -> str:
    return _text(config.get("name")) if isinstance(config, dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

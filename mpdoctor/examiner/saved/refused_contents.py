"""What a saved model's configuration holds beyond the building blocks of Keras that are known to compute and no more:
Python code, calls of other functions, files that it would read, classes and functions from elsewhere.

A configuration is searched whole: in lists, in dictionaries, and in texts that hold JSON again. What is on the lists of
`saved_names` and `saved_symbols` passes; whatever else it names is reported.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Callable, Iterator, NamedTuple, Optional

from mpdoctor.examiner.saved import loading_costs
from mpdoctor.examiner.saved.loading_costs import kind_text
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
        Numbers by which a metric or a layer would grow past any use.
    patterns
        Of paths of layers, that may take for ever to match.
    dtypes
        Of arrays, that are none of numbers.
    """

    code: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)
    files: list[str] = field(default_factory=list)
    foreign: list[ForeignName] = field(default_factory=list)
    nameless: list[str] = field(default_factory=list)
    eager: list[str] = field(default_factory=list)
    large: list[str] = field(default_factory=list)
    patterns: list[str] = field(default_factory=list)
    dtypes: list[str] = field(default_factory=list)


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


def _is_object(value: dict[str, Any], part: _Part, contents: Contents) -> bool:
    """Whether it describes an object. A class of the user's may keep what it likes under the name of `class_name`."""
    if "class_name" not in value or (part.in_own_class and not isinstance(value["class_name"], str)):
        return False
    for key in ("class_name", "module", "registered_name"):
        named = value.get(key)
        is_left_out = named is None and key != "class_name"
        if not isinstance(named, str) and not is_left_out:
            contents.nameless.append(f"{kind_text(named)} as {key}")
    if value["class_name"] == "":
        contents.nameless.append("an empty text as class_name")
    return True


class _Serialized(NamedTuple):
    """A serialised object: a class, a function or a value."""

    name: str
    module: str
    registered: str
    config: Any
    type_spec: str

    @property
    def plain(self) -> str:  # "Lambda" of "mine>Lambda", as it is registered
        return self.name.rpartition(">")[2]

    @property
    def layer(self) -> str:  # its name, if it is one
        return _layer_text(self.config)


def _take_object(serialized: dict[str, Any], contents: Contents) -> bool:
    """Record what a serialised object is; returns whether its class is none of Keras'."""
    name, module, registered = (_text(serialized.get(key)) for key in ("class_name", "module", "registered_name"))
    type_spec = _text(serialized.get("type_spec" if name == "TypeSpec" else "spec_name"))
    of = _Serialized(name, module, registered, serialized.get("config"), type_spec)
    contents.large.extend(loading_costs.large_numbers(of.plain, of.config))
    contents.patterns.extend(loading_costs.slow_patterns(of.plain, of.config))
    contents.dtypes.extend(loading_costs.unknown_dtypes(of.name, of.config))
    if loading_costs.calls_with_constants(serialized):
        contents.eager.append(f"{of.layer or 'a layer'} ({of.plain})")
    take = _BY_NAME.get(of.name) or (None if of.name in VALUES else _BY_CLASS.get(of.plain, _take_class))
    return take is not None and bool(take(of, contents))


def _take_class(of: _Serialized, contents: Contents) -> bool:
    # What has no name is no text, and reported as that.
    if not of.name or is_class_of_keras(of.name, of.module, of.registered):
        return False
    contents.foreign.append(ForeignName(of.module, of.name, of.registered))
    return True


def _take_op_layer(of: _Serialized, contents: Contents) -> bool:
    contents.calls.extend(_calls(of.plain, of.config if isinstance(of.config, dict) else {}, of.layer))
    return _take_class(of, contents)


def _take_code_layer(of: _Serialized, contents: Contents) -> None:
    contents.code.append(f"{of.plain} {of.layer}".strip() + f", {CODE_LAYERS[of.plain]}")


def _take_function(of: _Serialized, contents: Contents) -> None:
    if not isinstance(of.config, str):
        contents.nameless.append(f"{kind_text(of.config)} as the name of a function")
    elif not is_function_of_keras(of.config, of.module, of.registered):
        registered = "" if of.registered in ("function", of.config) else of.registered
        contents.foreign.append(ForeignName("" if of.module == "builtins" else of.module, of.config, registered))


def _take_type_spec(of: _Serialized, contents: Contents) -> None:
    is_known = of.type_spec in TYPE_SPECS and (not of.module or of.module in TYPE_SPEC_MODULES)
    if not is_known or of.registered:
        contents.foreign.append(ForeignName(of.module, of.type_spec, of.registered))


def _take_type_spec_of_value(of: _Serialized, contents: Contents) -> None:
    _take_type_spec(of._replace(module="", registered=""), contents)


def _take_lambda(of: _Serialized, contents: Contents) -> None:
    """A Lambda layer holds code, or the names of functions that are defined elsewhere."""
    config = of.config if isinstance(of.config, dict) else {"function": None}
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


_Take = Callable[[_Serialized, Contents], Optional[bool]]
_BY_NAME: dict[str, _Take] = {
    "__lambda__": lambda _, contents: contents.code.append("a lambda function"),
    "function": _take_function,
    "__typespec__": _take_type_spec,
    "TypeSpec": _take_type_spec_of_value,
}
_BY_CLASS: dict[str, _Take] = {
    "Lambda": _take_lambda,
    **dict.fromkeys(CODE_LAYERS, _take_code_layer),
    **dict.fromkeys(OP_LAYERS, _take_op_layer),
}


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


def _take_paths(serialized: dict[str, Any], contents: Contents) -> None:
    for key in PATHS:
        if isinstance(serialized.get(key), str):
            contents.files.append(f"`{serialized[key]}` ({key} of {_layer_text(serialized) or 'a layer'})")


def _layer_text(config: Any) -> str:
    return _text(config.get("name")) if isinstance(config, dict) else ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""

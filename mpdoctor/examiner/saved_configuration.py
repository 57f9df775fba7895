"""The configuration of a saved model, read and searched before anything of the model is loaded."""

from __future__ import annotations

from typing import Any, Callable, Iterator, NamedTuple

# Layers whose saved form holds code, or leads to it, and what it is.
CODE_LAYERS = {
    "TorchModuleWrapper": "a pickled PyTorch module",
    "TFSMLayer": "a graph in another file",
}
POLICY_CLASSES = frozenset(
    [
        "Policy",
        "PolicyV1",
        "DTypePolicy",
        "FloatDTypePolicy",
        "QuantizedDTypePolicy",
        "QuantizedFloat8DTypePolicy",
        "DTypePolicyMap",
    ]
)
HALF_POLICIES = ("mixed_float16", "mixed_bfloat16", "float16", "bfloat16")
# Keras, and the libraries of its makers that it imports by itself.
KERAS_FAMILY = frozenset({"keras", "tf_keras", "keras_hub", "keras_cv", "keras_nlp"})


class OwnName(NamedTuple):
    """A class or function that a configuration names and that is none of Keras' own."""

    module: str
    name: str
    registered: str

    def __str__(self) -> str:
        return f"{self.module}.{self.name}" if self.module else self.registered or self.name


def code_in(configuration: Any) -> list[str]:
    """What in a configuration holds Python code that would run while loading, in words."""
    return list(dict.fromkeys(_code_in(configuration)))


def _code_in(configuration: Any) -> Iterator[str]:
    for part in _dictionaries(configuration, inside=lambda part: not _is_lambda_layer(part)):
        class_name, config = part.get("class_name"), part.get("config")
        name = config.get("name", "") if isinstance(config, dict) else ""
        if _is_lambda_layer(part):
            yield f"Lambda layer {name}".strip()
        elif class_name == "__lambda__":
            yield "a lambda function"
        elif isinstance(class_name, str) and class_name in CODE_LAYERS:
            yield f"{class_name} {name}".strip() + f", {CODE_LAYERS[class_name]}"


def _is_lambda_layer(part: dict[str, Any]) -> bool:
    """Whether it is a Lambda layer that holds code, and not merely the name of a function that is defined elsewhere."""
    config = part.get("config")
    return part.get("class_name") == "Lambda" and not (isinstance(config, dict) and _names_function(config))


def _names_function(config: dict[str, Any]) -> bool:
    function = config.get("function")
    if "lambda" in (config.get("function_type"), config.get("output_shape_type"), config.get("mask_type")):
        return False
    if isinstance(function, str):
        return config.get("function_type") == "function"
    return isinstance(function, dict) and function.get("class_name") == "function"


def own_names_in(configuration: Any, *, imported_only: bool = False) -> list[OwnName]:
    """Classes and functions that a configuration names with the module where they lie, outside of Keras.

    `imported_only`: those that Keras would import while loading, because their module is named."""
    found = []
    for part in _dictionaries(configuration):
        if not ("module" in part and "class_name" in part and "config" in part):
            continue  # older files do not say where a class lies, and Keras imports nothing for them
        module, name = str(part["module"] or ""), part["class_name"]
        if module.split(".")[0] in KERAS_FAMILY or not isinstance(name, str):
            continue
        if module == "builtins":
            if name != "function" or not isinstance(part["config"], str):
                continue
            module, name = "", part["config"]
        elif name == "function" and isinstance(part["config"], str):
            name = part["config"]
        registered = part.get("registered_name")
        if not isinstance(registered, str) or registered == "function":
            registered = ""
        if name and (module or not imported_only):
            found.append(OwnName(module, name, registered))
    return list(dict.fromkeys(found))


def policies_in(configuration: Any) -> list[tuple[str, str]]:
    """(class, name) of every dtype policy; the class is "" where a layer names its policy as a mere text."""
    found = []
    for part in _dictionaries(configuration):
        config, dtype = part.get("config"), part.get("dtype")
        if isinstance(part.get("class_name"), str) and part["class_name"] in POLICY_CLASSES:
            name = config.get("name") if isinstance(config, dict) else None
            found.append((str(part["class_name"]), name if isinstance(name, str) else ""))
        if isinstance(dtype, str) and dtype in HALF_POLICIES:
            found.append(("", dtype))
    return found


def policy_of_model(configuration: Any) -> str | None:
    """The 16-bit policy that a saved model's configuration names: the model's own; where Keras keeps none for the
    model, that of most of its 16-bit layers. None for float32."""
    own = _own_policy(configuration)
    if own is not None:
        return own if own in HALF_POLICIES else None
    mixed = [name for _, name in policies_in(configuration) if name.startswith("mixed_")]
    return max(mixed, key=mixed.count) if mixed else None


def _own_policy(configuration: Any) -> str | None:
    """Keras 3 keeps it in the model's config, a SavedModel of Keras 2 beside it, the files of Keras 2 nowhere."""
    if not isinstance(configuration, dict):
        return None
    config = configuration.get("config")
    for place in (configuration, config if isinstance(config, dict) else {}):
        dtype = place.get("dtype")
        if isinstance(dtype, str):
            return dtype
        if isinstance(dtype, dict) and isinstance(dtype.get("config"), dict):
            name = dtype["config"].get("name")
            return name if isinstance(name, str) else None
    return None


def _dictionaries(
    configuration: Any, inside: Callable[[dict[str, Any]], bool] = lambda part: True
) -> Iterator[dict[str, Any]]:
    """Every dictionary in nested lists and dictionaries, the outer ones first, and what is in those that `inside`
    says."""
    left = [configuration]
    while left:
        part = left.pop()
        if isinstance(part, dict):
            yield part
            left.extend(reversed(list(part.values())) if inside(part) else ())
        elif isinstance(part, (list, tuple)):
            left.extend(reversed(part))

"""The dtype policies that the configuration of a saved model names."""

from __future__ import annotations

from typing import Any, Iterator

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


def policies_in(configuration: Any) -> list[tuple[str, str]]:
    """(class, name) of every dtype policy; the class is "" where a layer names its policy as a mere text."""
    policies = []
    for serialized in _dictionaries(configuration):
        config, dtype = serialized.get("config"), serialized.get("dtype")
        if isinstance(serialized.get("class_name"), str) and serialized["class_name"] in POLICY_CLASSES:
            name = config.get("name") if isinstance(config, dict) else None
            policies.append((str(serialized["class_name"]), name if isinstance(name, str) else ""))
        if isinstance(dtype, str) and dtype in HALF_POLICIES:
            policies.append(("", dtype))
    return policies


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


def _dictionaries(configuration: Any) -> Iterator[dict[str, Any]]:
    """Every dictionary in nested lists and dictionaries, the outer ones first."""
    left = [configuration]
    while left:
        value = left.pop()
        if isinstance(value, dict):
            yield value
            left.extend(reversed(list(value.values())))
        elif isinstance(value, (list, tuple)):
            left.extend(reversed(value))

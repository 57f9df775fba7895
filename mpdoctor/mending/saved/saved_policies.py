"""The dtype policies in the configuration of a saved model: which layers it holds, and the same configuration with
other policies for some of them.

A layer is a dictionary with a class and a configuration that has a name and says whether it is trainable, as every
layer's base class writes it; a model, one that has a name and a list of layers. Nothing else is touched: not the dtypes
of inputs, initializers, metrics and recorded tensors, no DTypePolicyMap, no quantized policy. Looked up in the files
that tf_keras 2.21 and Keras 3.15 write.
"""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from mpdoctor.examiner.saved.archives import SavedFile
from mpdoctor.examiner.saved.configuration import policy_of_model
from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.knowledge.layer_kinds import TEXT
from mpdoctor.knowledge.policy_names import is_quantized_policy_name
from mpdoctor.mending.saved.refused_targets import Refused

FLOAT32 = "float32"
FLOATING = ("float32", "float64", "float16", "bfloat16", *MIXED)
IN_HALF = ("float16", "bfloat16", *MIXED)
PLAIN_POLICIES = frozenset(["Policy", "DTypePolicy", "FloatDTypePolicy"])
# Recorded calls, and what compile() and build() were given: no layers in them, and dtypes that are none of a layer's.
NOT_LAYERS = frozenset(["inbound_nodes", "build_config", "compile_config", "input_layers", "output_layers"])
# Of Keras 2, which names the module of a policy from 2.13 on, and in .keras archives from the beginning.
WITHOUT_MODULES = tuple(f"2.{minor}." for minor in range(13))
LOOKUPS = TEXT | {"IntegerLookup"}


@dataclass(frozen=True)
class SavedLayer:
    """A layer, or a nested model, in the configuration of a saved model.

    path
        Names from the model down, joined by "/"; "" for the model itself.
    policy
        The name of its dtype policy; "" where the configuration keeps none, or one of another kind.
    kept_because
        Why its policy is not changed, a clause; "" where it can be.
    shared
        The number by which the configuration says that it is one object with layers in other places; 0 for none.
    """

    path: str
    class_name: str
    policy: str
    kept_because: str = ""
    is_model: bool = False
    shared: int = 0

    @property
    def in_half(self) -> bool:
        return self.policy in IN_HALF


def layers_in(configuration: Any) -> tuple[SavedLayer, ...]:
    """All layers in a saved model's configuration, in its order, the model itself first."""
    return tuple(_layer(path, serialized) for path, serialized in _parts(configuration))


def global_policy_of(configuration: Any) -> str:
    """The policy that the model was made under: its own 16-bit policy, else the most frequent one of its layers."""
    policies = [layer.policy for layer in layers_in(configuration) if layer.policy in FLOATING and not layer.is_model]
    return policy_of_model(configuration) or (max(policies, key=policies.count) if policies else "float32")


def with_policies(configuration: Any, wanted: Mapping[str, str], keras_version: str, form: str) -> Any:
    """A copy of the configuration in which the layers of these paths have these policies, written as the Keras that
    wrote the file writes them."""
    changed = copy.deepcopy(configuration)
    for path, serialized in list(_parts(changed)):
        if path in wanted and not _layer(path, serialized).kept_because:
            serialized["config"]["dtype"] = _dtype(serialized["config"]["dtype"], wanted[path], keras_version, form)
    return changed


def with_their_parts(layers: Collection[SavedLayer], chosen: Collection[str]) -> frozenset[str]:
    """The paths of these layers, of the layers in them up to the next model, and of all that are one object with one of
    them: a wrapper's layer, cells, the layers that one of the user's own holds."""
    models = {layer.path for layer in layers if layer.is_model}
    inside = {layer.path for layer in layers if any(_is_part_of(layer.path, path, models) for path in chosen)}
    shared = {layer.shared for layer in layers if layer.path in inside and layer.shared}
    more = {layer.path for layer in layers if layer.shared in shared and layer.path not in inside}
    return with_their_parts(layers, inside | more) if more else frozenset(inside)


def entry_of(layers: Collection[SavedLayer], path: str) -> str | None:
    """The path of the layer that the configuration holds for a live one: its own, or that of the layer that makes it
    (a Bidirectional of Keras 2 keeps one layer and makes two). None where there is none."""
    known = {layer.path: layer for layer in layers}
    while path and path not in known:
        path = path.rpartition("/")[0]
    return path if path and not known[path].is_model else None


def counted(policies: Collection[str]) -> str:
    """float32 (3), mixed_float16 (12)."""
    return ", ".join(f"{name} ({number})" for name, number in sorted(Counter(policies).items()))


def _is_part_of(path: str, chosen: str, models: Collection[str]) -> bool:
    if path == chosen:
        return True
    if chosen in models or not path.startswith(chosen + "/"):
        return False
    return not any(path.startswith(model + "/") and model.startswith(chosen + "/") for model in models)


# --- the tree of layers ----------------------------------------------------------------------------------------------
def _parts(configuration: Any) -> Iterator[tuple[str, dict[str, Any]]]:
    """(path, serialised layer) of the model and all layers in it, in the order in which they stand."""
    if not _is_layer(configuration):
        return
    yield "", configuration
    left: list[tuple[str, Any]] = [("", configuration["config"])]
    while left:
        prefix, value = left.pop()
        if isinstance(value, list):
            left.extend((prefix, inner) for inner in reversed(value))
        elif isinstance(value, dict) and _is_layer(value):
            path = f"{prefix}{value['config']['name']}"
            yield path, value
            left.append((f"{path}/", value["config"]))
        elif isinstance(value, dict):
            left.extend((prefix, inner) for key, inner in reversed(list(value.items())) if key not in NOT_LAYERS)


def _is_layer(serialized: Any) -> bool:
    if not isinstance(serialized, dict) or not isinstance(serialized.get("class_name"), str):
        return False
    config = serialized.get("config")
    if not isinstance(config, dict) or not isinstance(config.get("name"), str):
        return False
    return isinstance(config.get("trainable"), bool) or isinstance(config.get("layers"), list)


def _layer(path: str, serialized: dict[str, Any]) -> SavedLayer:
    config, shared = serialized["config"], serialized.get("shared_object_id")
    plain_name = serialized["class_name"].rpartition(">")[2]
    policy, kept_because = _policy(config.get("dtype"), "dtype" in config, plain_name)
    return SavedLayer(
        path,
        plain_name,
        policy,
        kept_because,
        is_model=isinstance(config.get("layers"), list),
        shared=shared if isinstance(shared, int) else 0,
    )


# --- one policy ------------------------------------------------------------------------------------------------------
def _policy(dtype: Any, is_kept: bool, class_name: str) -> tuple[str, str]:
    """(name, why it stays as it is)."""
    if not is_kept:
        return "", "its configuration keeps no dtype"
    name = _name(dtype)
    if name is None:
        kind = dtype.get("class_name") if isinstance(dtype, dict) else None
        return "", f"its policy is a {kind}" if isinstance(kind, str) else "its policy has no form that is known"
    if is_quantized_policy_name(name):
        return "", f"it is quantized ({name})"
    if class_name in LOOKUPS or name not in FLOATING:
        return name, "it handles no floating-point numbers"
    return name, ""


def _name(dtype: Any) -> str | None:
    """The name of a policy; None where it is no plain policy."""
    if isinstance(dtype, str):
        return dtype
    if not isinstance(dtype, dict) or str(dtype.get("class_name")) not in PLAIN_POLICIES:
        return None
    config = dtype.get("config")
    name = config.get("name") if isinstance(config, dict) and set(config) == {"name"} else None
    return name if isinstance(name, str) else None


def _dtype(before: Any, name: str, keras_version: str, form: str) -> Any:
    """The policy in the form in which this Keras writes it: Keras 3 before 3.3, and Keras 2 without mixed precision,
    write a mere text."""
    is_keras2 = keras_version.startswith("2")
    if is_keras2 and name not in MIXED:
        return name
    if isinstance(before, dict):  # without its number: another layer's policy may have the same one
        changed = {key: value for key, value in before.items() if key != "shared_object_id"}
        return {**changed, "config": {"name": name}}
    if not is_keras2:
        return name
    policy = {"class_name": "Policy", "config": {"name": name}}
    if form != "keras" and keras_version.startswith(WITHOUT_MODULES):
        return policy
    return {"module": "keras.mixed_precision", **policy, "registered_name": None}


def layers_to_convert(
    saved: SavedFile, layers: tuple[SavedLayer, ...], policy: str
) -> tuple[dict[str, str], tuple[SavedLayer, ...]]:
    """The layers that get this policy, and those that ought to and cannot. For float32 these are all that compute in 16
    bits; for another policy those that have the file's own, so that a head in float32 stays in float32.

    Raises Refused."""
    own = global_policy_of(saved.configuration)
    if own == "float64":
        raise Refused(f"the layers of {saved.name} compute in float64: in {policy} its weights would lose digits.")
    chosen = [layer for layer in layers if (layer.in_half if policy == FLOAT32 else layer.policy == own)]
    kept = [layer for layer in layers if layer.kept_because and not layer.policy and not layer.is_model]
    return {layer.path: policy for layer in chosen if not layer.kept_because and layer.policy != policy}, tuple(kept)

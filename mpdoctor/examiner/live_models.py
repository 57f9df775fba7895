"""The models that are alive in a process, found without the program's help."""

from __future__ import annotations

import gc
from typing import Any


def live_models(keras: Any) -> list[Any]:
    """Every model of this Keras that is not a part of another one."""
    gc.collect()
    models = [m for m in gc.get_objects() if _is_instance(m, keras.Model) and _is_made(m)]
    parts = {id(part) for m in models for part in m._flatten_layers(include_self=False, recursive=True)}
    return [m for m in models if id(m) not in parts and not _is_inside_of_sequential(m, models)]


def model_of_variables(keras: Any, variables: list[Any]) -> Any:
    """The live model whose variables these are, None where they are nobody's."""
    wanted = {id(variable) for variable in variables}
    best, most = None, 0
    for model in live_models(keras):
        shared = len(wanted & {id(v) for v in keras.trainable_variables(model)})
        if shared >= most and shared:
            best, most = model, shared
    return best


def _is_inside_of_sequential(model: Any, models: list[Any]) -> bool:
    """Keras 3 keeps a functional model for every state that a Sequential was in."""
    layers = {id(layer) for layer in model.layers}
    return type(model).__name__ == "Functional" and any(
        type(other).__name__ == "Sequential" and layers <= {id(layer) for layer in other._layers} for other in models
    )


def _is_made(model: Any) -> bool:
    """False for a model whose constructor raised: it lacks what Keras' own constructor gives it."""
    return all(hasattr(model, name) for name in ("name", "layers", "dtype_policy", "built"))


def _is_instance(thing: Any, cls: type) -> bool:
    """isinstance() without asking the object: a lazy proxy's `__class__` may import something or raise."""
    return issubclass(type(thing), cls)

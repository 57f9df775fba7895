"""Finds the models that are alive in a process, without the program's help."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from mpdoctor.examiner.keras.private_state import all_layers, layers_inside, listed_layers

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel, KerasVariable


def live_models(keras: KerasAdapter) -> list[KerasModel]:
    """Every model of this Keras that is not a part of another one."""
    gc.collect()
    models = [m for m in gc.get_objects() if _is_instance(m, keras.Model) and _is_made(m)]
    parts = {id(inner) for m in models for inner in layers_inside(m)}
    return [m for m in models if id(m) not in parts and not _is_inside_of_sequential(m, models)]


def model_of_variables(keras: KerasAdapter, variables: list[KerasVariable]) -> KerasModel | None:
    """The live model that holds these variables; None where there is none."""
    wanted = {id(variable) for variable in variables}
    best, most = None, 0
    for model in live_models(keras):
        shared = len(wanted & {id(v) for v in keras.trainable_variables(model)})
        if shared >= most and shared:
            best, most = model, shared
    return best


def smallest_model(keras: KerasAdapter, variables: list[KerasVariable]) -> KerasModel | None:
    """The smallest live model, inner ones included, that holds these variables: for a GAN the generator or the
    discriminator. Where none holds them all, the one that holds most."""
    wanted = {id(variable) for variable in variables}
    best: tuple[int, int, int] = (0, 0, 0)
    smallest = None
    for outer in live_models(keras):
        nested = [layer for layer in all_layers(outer) if isinstance(layer, keras.Model)]
        for depth, model in enumerate([outer, *(layer for layer in nested if layer is not outer)]):
            held = {id(v) for v in keras.variables(model)}  # a discriminator may have been frozen since
            # of two that hold the same, the outer one: it has the name that the program gave
            rank = (len(wanted & held), -len(held), -min(depth, 1))
            if rank[0] and (smallest is None or rank > best):
                smallest, best = model, rank
    return smallest


def _is_inside_of_sequential(model: KerasModel, models: list[KerasModel]) -> bool:
    """Whether it is the functional model that Keras 3 keeps for a state that a Sequential was in."""
    layers = {id(layer) for layer in model.layers}
    return type(model).__name__ == "Functional" and any(
        type(other).__name__ == "Sequential" and layers <= {id(layer) for layer in listed_layers(other)}
        for other in models
    )


def _is_made(model: KerasModel) -> bool:
    """Whether the model's constructor ran to its end: a model whose constructor raised lacks what Keras' own one
    sets."""
    return all(hasattr(model, name) for name in ("name", "layers", "dtype_policy", "built"))


def _is_instance(candidate: object, cls: type) -> bool:
    """Whether it is an instance, without asking the object: a lazy proxy's `__class__` may import something or
    raise."""
    return issubclass(type(candidate), cls)

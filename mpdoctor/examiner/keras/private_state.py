"""Private attributes of Keras models, layers and optimizers and of TensorFlow's functions that the examiner reads.

Those with one name in both Kerases, or that only one of them has."""

from __future__ import annotations

import importlib
import inspect
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from types import ModuleType

    import tensorflow as tf


def all_layers(model: Any) -> list[Any]:
    """Itself first, then every layer in it, those of nested models included."""
    return list(model._flatten_layers())


def layers_inside(model: Any) -> list[Any]:
    return list(model._flatten_layers(include_self=False, recursive=True))


def listed_layers(model: Any) -> list[Any]:
    """The layers that a Sequential was given, with its InputLayer."""
    return list(getattr(model, "_layers", ()))


def change_input_dtype(layer: Any, dtype: str) -> Callable[[], None]:
    """An InputLayer of Keras 3 takes numbers of this dtype from now on. Returns what ends it."""
    before = layer._dtype, layer.output._dtype
    layer._dtype = layer.output._dtype = dtype

    def end() -> None:
        layer._dtype, layer.output._dtype = before

    return end


def casts_its_input(layer: Any) -> bool:
    """Whether it casts what it is given, as a layer does unless it was made with `autocast=False`."""
    return bool(getattr(layer, "autocast", getattr(layer, "_autocast", True)))


def functional_model_of(model: Any) -> Any:
    """Keras 3 builds a functional model for a Sequential; else the model itself."""
    return getattr(model, "_functional", None) or model


def input_structure(model: Any) -> Any:
    """The symbolic inputs of a functional model in Keras 3, nested as they were given to it; None of any other."""
    return getattr(model, "_inputs_struct", None)


def output_structure(model: Any) -> Any:
    """The symbolic outputs of a functional model, nested as they were given to it; None of any other."""
    given = getattr(model, "_outputs_struct", None)  # Keras 3; a symbolic tensor has no truth
    return getattr(model, "_nested_outputs", None) if given is None else given


def specs_of_calls(model: Any) -> Any:
    """What a subclassed model of Keras 2 was called with, or saved with, as TensorSpecs; None where it knows none."""
    return getattr(model, "_saved_model_inputs_spec", None)


def given_learning_rate(optimizer: Any) -> Any:
    """A schedule, a function, or what holds the number; None where it has none. Asked for their rate, the classic
    optimizers of Keras 2 call the program's function, which may raise."""
    settings = getattr(optimizer, "_hyper", None)
    if isinstance(settings, dict) and "learning_rate" in settings:
        return settings["learning_rate"]
    given = getattr(optimizer, "_learning_rate", None)
    return getattr(optimizer, "learning_rate", None) if given is None else given


def tensorflow_variable_of(variable: Any) -> Any:
    """The tf.Variable that a variable of Keras 3 wraps; None of any other."""
    return getattr(variable, "_value", None)


def registered_object(keras: ModuleType, name: str) -> Any:
    """The class or function that was registered with a Keras by this name; None where none was. The package keras 2.10
    shows the public function through TensorFlow alone."""
    utils = keras.utils
    look_up = getattr(utils, "get_registered_object", None)
    if look_up is None:
        look_up = importlib.import_module(f"{keras.__name__}.utils.generic_utils").get_registered_object
    return look_up(name)


def names_looked_up(keras: ModuleType) -> frozenset[str]:
    """The names by which a configuration refers to parts of Keras 2: its layers, and all names in the modules in which
    it looks for losses, initializers and the like."""
    looked_up: set[str] = set()
    for part in ("activations", "constraints", "initializers", "layers", "losses", "metrics", "optimizers",
                 "regularizers"):  # fmt: skip
        names = inspect.unwrap(getattr(keras, part).deserialize).__globals__
        looked_up.update(names)
        if "populate_deserializable_objects" in names:
            names["populate_deserializable_objects"]()
            looked_up.update(names["LOCAL"].ALL_OBJECTS)
    return frozenset(looked_up)


# --- masks --------------------------------------------------------------------------------------------------------
def mask_of(tensor: tf.Tensor) -> Any:
    """Keras hangs the mask on the tensor that it belongs to; None without one."""
    return getattr(tensor, "_keras_mask", None)


def give_mask(tensor: tf.Tensor, mask: Any) -> None:
    tensor._keras_mask = mask


def function_made_anew(function: Any) -> Any:
    """A tf.function of the same Python function with the same options, and without the graphs that were traced."""
    return function._clone(None)

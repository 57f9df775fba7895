"""The name under which users find the optimizer: which class it makes depends on the Keras of the optimizer inside."""

from __future__ import annotations

import importlib
import sys
from typing import Any, Iterator, Mapping

import tensorflow as tf

from mpdoctor.training.delegation import Delegating
from mpdoctor.training.refusals import refuse_inner

# Of Keras 3 and of the optimizers since TensorFlow 2.9; of the legacy ones.
BASES = ("Optimizer", "OptimizerV2")
WRAPPERS = ("LossScaleOptimizer", "LossScaleOptimizerV3")

_made: dict[type, type] = {}  # by Keras' own wrapper


class MadeForKeras(type):
    """Any class that was made for a Keras makes, called with an optimizer of another one, an instance for that."""

    keras_wrapper: type

    def __call__(cls, inner_optimizer: Any = None, *args: Any, **kwargs: Any) -> Any:
        refuse_inner(inner_optimizer, has_keras_base(type(inner_optimizer)))
        wrapper = keras_wrapper_of(type(inner_optimizer))
        if cls.keras_wrapper is wrapper:  # Keras 2's own metaclass would choose once more
            return type.__call__(cls, inner_optimizer, *args, **kwargs)
        if cls not in _made.values():
            raise TypeError(
                f"{cls.__name__} derives from the LossScaleOptimizer for {_name_of(cls.keras_wrapper)}, and "
                f"{type(inner_optimizer).__name__} is an optimizer of {_name_of(wrapper)}."
            )
        return class_for(wrapper)(inner_optimizer, *args, **kwargs)

    def __instancecheck__(cls, instance: Any) -> bool:
        return super().__instancecheck__(instance) or (
            cls in _made.values() and issubclass(type(instance), LossScaleOptimizer)
        )


class LossScaleOptimizer(Delegating):
    """Scales the loss by a dynamic or a fixed loss scale, in place of Keras' own LossScaleOptimizer.

        LossScaleOptimizer(optimizer)
        LossScaleOptimizer(optimizer, initial_scale=2.0**12, dynamic_growth_steps=500)
        LossScaleOptimizer(optimizer, dynamic=False, initial_scale=1024.0)

    inner_optimizer
        An optimizer of Keras 3 with the TensorFlow backend, of tf_keras, or of tf.keras since TensorFlow 2.4. What is
        made is an instance of that Keras' own LossScaleOptimizer, too, and takes its arguments in its order.
    dynamic
        False: the scale stays `initial_scale`; a step with an inf or NaN gradient is skipped all the same.
    initial_scale
        2**15 where none is given; a fixed one has to be.
    dynamic_growth_steps
        The growth interval: finite steps in a row before the scale doubles. 2000 where none is given.
    floor
        The scale does not fall below it; 1.0, or the initial scale where that is smaller.
    cap
        It does not grow beyond it; the largest float32.
    hysteresis
        Skipped steps in a row before the scale is halved; 1, as in every Keras.

    Every public attribute of the inner optimizer is read and set through this one. Between floor and cap, with a
    hysteresis of 1, the scale, the counter and the weights are after every step those of Keras' own.
    """

    @classmethod
    def from_config(cls, config: Mapping[str, Any], custom_objects: Any = None) -> Any:
        """An optimizer from the `get_config()` of this class or of any of Keras' own wrappers."""
        made: Any = class_for(keras_wrapper_of_config(config)) if cls in _made.values() else cls
        return made.from_own_config(dict(config), custom_objects)


def class_for(wrapper: type) -> type:
    """The class for the Keras whose own wrapper this is."""
    if wrapper not in _made:
        _made[wrapper] = _made_for(wrapper)
    return _made[wrapper]


def _made_for(wrapper: type) -> type:
    if _is_keras3(wrapper):
        from mpdoctor.training.keras3 import Keras3Scaling as Scaling
    else:
        from mpdoctor.training.keras2 import Keras2Scaling as Scaling  # type: ignore[assignment]
    metaclass: Any = MadeForKeras
    if type(wrapper) is not type:
        metaclass = type("MadeForKeras", (MadeForKeras, type(wrapper)), {})
    said: dict[str, Any] = {
        "__module__": "mpdoctor.training",
        "__doc__": LossScaleOptimizer.__doc__,
        "keras_wrapper": wrapper,
    }
    said.update(Scaling.delegations(wrapper, _base_of(wrapper)))
    made: type = metaclass("LossScaleOptimizer", (Scaling, LossScaleOptimizer, wrapper), said)
    name = "LossScaleOptimizer" if _base_of(wrapper).__name__ == "Optimizer" else "LegacyLossScaleOptimizer"
    _keras_of(wrapper).utils.register_keras_serializable(package="mpdoctor", name=name)(made)
    return made


def made_for_this_process() -> type:
    """The wrapper class for the Optimizer of the process' Keras. Those for its other optimizer classes are made with
    it, so that a saved model finds each by its registered name."""
    loaded = [name for name in ("keras", "tf_keras") if name in sys.modules]
    kerases = [importlib.import_module("tf_keras")] if loaded == ["tf_keras"] else [tf.keras]
    kerases += [sys.modules["tf_keras"]] if "tf_keras" in loaded and kerases[0] is not sys.modules["tf_keras"] else []
    made = [class_for(keras_wrapper_of(base)) for keras in kerases for base in _bases_of(keras)]
    return made[0]


# --- Keras' own classes -------------------------------------------------------------------------------------------
def has_keras_base(cls: type) -> bool:
    return any(_is_base(base) for base in cls.__mro__)


def _is_base(cls: type) -> bool:
    return cls.__name__ in BASES and "keras" in cls.__module__ and ".optimizer" in cls.__module__


def _base_of(cls: type) -> type:
    """The class that all optimizers of its kind derive from: Optimizer, or OptimizerV2, of which TensorFlow 2.10 has
    derived another Optimizer."""
    return [base for base in cls.__mro__ if _is_base(base)][-1]


def keras_wrapper_of(optimizer_class: type) -> type:
    """Keras' own LossScaleOptimizer for optimizers of this class. It is looked for among the subclasses of the same
    base, so that the names by which Keras exports it do not matter, nor who has put another class there."""
    base = _base_of(optimizer_class)
    package = base.__module__.split(".")[0]
    for cls in _subclasses(base):
        place = cls.__module__.split(".")
        if cls.__name__ in WRAPPERS and (place[0], place[-1]) == (package, "loss_scale_optimizer"):
            return cls
    raise TypeError(f"{package} {tf.__version__} has no LossScaleOptimizer for a {optimizer_class.__name__}.")


def _subclasses(cls: type) -> Iterator[type]:
    subclasses: list[type] = type.__subclasses__(cls)
    for subclass in subclasses:
        if not issubclass(subclass, LossScaleOptimizer):
            yield subclass
            yield from _subclasses(subclass)


def _is_keras3(cls: type) -> bool:
    return any(base.__name__ == "BaseOptimizer" and base.__module__.startswith("keras.") for base in cls.__mro__)


def _name_of(cls: type) -> str:
    return "Keras 3" if _is_keras3(cls) else cls.__module__.split(".")[0]


def _keras_of(cls: type) -> Any:
    """The public module of the Keras that a class is of."""
    if _is_keras3(cls) or cls.__module__.startswith("tf_keras."):
        return importlib.import_module(cls.__module__.split(".")[0])
    return tf.keras


def keras_wrapper_of_config(config: Mapping[str, Any]) -> type:
    """Keras 3 writes a name for its wrapper and Keras 2 none; an optimizer of Keras 2 that is no legacy one says so."""
    inner = config.get("inner_optimizer")
    if inner is not None and not isinstance(inner, Mapping):
        return keras_wrapper_of(type(inner))
    if "name" in config:
        return keras_wrapper_of(importlib.import_module("keras").optimizers.Optimizer)
    is_legacy = "loss_scale" in config or inner is None or inner["config"].get("is_legacy_optimizer", True)
    kind = "OptimizerV2" if is_legacy else "Optimizer"
    return next(keras_wrapper_of(base) for base in _bases_of(_keras2()) if base.__name__ == kind)


def _keras2() -> Any:
    if "tf_keras" in sys.modules or str(getattr(tf.keras, "__version__", "2")).startswith("3"):
        return importlib.import_module("tf_keras")
    return tf.keras


def _bases_of(keras: Any) -> Iterator[type]:
    """The base classes of this Keras' optimizers."""
    optimizers = keras.optimizers
    places = [optimizers] + [getattr(optimizers, name, None) for name in ("legacy", "experimental")]
    seen = []
    for place in places:
        optimizer_class = getattr(place, "Optimizer", None)
        if (
            isinstance(optimizer_class, type)
            and has_keras_base(optimizer_class)
            and _base_of(optimizer_class) not in seen
        ):
            seen.append(_base_of(optimizer_class))
            yield seen[-1]

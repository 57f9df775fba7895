"""How Keras 2 is read: what live layers, models, variables and optimizers say of themselves. Changes nothing."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from mpdoctor.examiner.keras import function_layers
from mpdoctor.facts.versions import Keras

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel, KerasOptimizer, KerasVariable


class Keras2Reading:
    """The part of Keras 2's adapter that reads."""

    loads_directories = True
    scales_by_factor = False
    tracks_tf_variables = True

    def __init__(self, module: Any, package: str) -> None:
        """`module` is the public module (keras, tf_keras, tensorflow.keras), `package` where its parts lie."""
        self.module = module
        self._package = package
        scaling = self._part("mixed_precision.loss_scale_optimizer")
        self._policy = self._part("mixed_precision.policy")
        self.Layer, self.Model = module.layers.Layer, module.Model
        self.trainer = self._part("engine.training").Model
        self.wrappers: tuple[type[Any], ...] = tuple(
            getattr(scaling, name) for name in ("LossScaleOptimizerV3", "LossScaleOptimizer") if hasattr(scaling, name)
        )
        self.optimizer_bases: tuple[type[Any], ...] = tuple(_optimizer_base(wrapper) for wrapper in self.wrappers)
        self._dynamic_state = scaling._DynamicLossScaleState
        self.facts = Keras(
            "tf_keras" if package == "tf_keras" else "tf.keras",
            str(module.__version__),
            tf.__version__,
            "imported by the program",
        )

    def _part(self, name: str) -> Any:
        """A module of Keras by its path; releases before 2.13 have no `src`."""
        try:
            return importlib.import_module(f"{self._package}.src.{name}")
        except ImportError:
            return importlib.import_module(f"{self._package}.{name}")

    def global_policy(self) -> str:
        return str(self._policy.global_policy().name)

    def sublayers(self, layer: Any) -> list[KerasLayer]:
        return list(layer._flatten_layers(include_self=False, recursive=False))

    def parts(self, layer: KerasLayer) -> list[KerasLayer]:
        """The layers of a layer; functions between layers are layers here, too."""
        return self.sublayers(layer)

    def is_function(self, layer: KerasLayer) -> bool:
        return type(layer).__name__ in function_layers.NAMES

    is_plain_function = is_function

    def function_classes(self) -> list[type]:
        """Always []: functions between layers are layers in Keras 2."""
        return []

    def tensors_of_operation(self, operation: Any) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Never asked for: functions between layers are layers in Keras 2. Raises TypeError."""
        raise TypeError(f"{operation!r} is a layer in Keras 2")

    def makers_of(self, tensors: list[tf.Tensor]) -> tuple[str, ...]:
        """The names of the layers that these symbolic tensors come from."""
        return tuple(tensor._keras_history.layer.name for tensor in tensors)

    def own_variables(self, layer: Any) -> list[KerasVariable]:
        weights = list(layer._trainable_weights) + list(layer._non_trainable_weights)
        return [
            weight for weight in weights if hasattr(weight, "dtype")
        ]  # a lookup layer has what saves its table among them

    def trainable_variables(self, model: KerasModel) -> list[KerasVariable]:
        """The model's variables that are trained; [] before it is built."""
        try:
            return list(model.trainable_variables)
        except ValueError:  # Keras 2 refuses to say before a Sequential model is built
            return []

    def variables(self, model: KerasModel) -> list[KerasVariable]:
        """All variables of the model; [] before it is built."""
        try:
            return list(model.variables)
        except ValueError:
            return []

    def variable_dtype(self, layer: Any) -> str:
        return str(layer.dtype_policy.variable_dtype)

    def output_operations(self, model: KerasModel) -> list[KerasLayer] | None:
        """The layers that a functional model's outputs come from; None for a subclassed model."""
        tensors = getattr(model, "_nested_outputs", None)
        if tensors is None:
            return None
        return [t._keras_history.layer for t in tf.nest.flatten(tensors) if hasattr(t, "_keras_history")]

    def path(self, variable: KerasVariable) -> str:
        return str(variable.name).split(":")[0]

    def inner(self, optimizer: Any) -> KerasOptimizer | None:
        """The optimizer inside a wrapper, once its constructor has set it; None for any other optimizer."""
        return getattr(optimizer, "inner_optimizer", None) if isinstance(optimizer, self.wrappers) else None

    def wrapper_dynamics(self, wrapper: Any) -> tuple[bool, object, object]:
        return wrapper.dynamic, wrapper.initial_scale, wrapper.dynamic_growth_steps

    def missing_methods(self, optimizer: KerasOptimizer) -> tuple[str, ...]:
        """The methods that Keras needs of a custom optimizer and that this one lacks."""
        base = next((b for b in self.optimizer_bases if isinstance(optimizer, b)), None)
        if base is None:
            return ("apply_gradients",) if not hasattr(optimizer, "apply_gradients") else ()
        needed = ("update_step", "build") if hasattr(base, "update_step") else ("_resource_apply_dense", "get_config")
        if getattr(type(optimizer), "apply_gradients") is not base.apply_gradients:  # noqa: B009 - a class attribute
            return ()
        return tuple(name for name in needed[:1] if getattr(type(optimizer), name) is getattr(base, name, None))

    def jit_compile(self, model: KerasModel) -> bool:
        return bool(getattr(model, "_jit_compile", False))

    def given_loss(self, model: KerasModel) -> object:
        return getattr(getattr(model, "compiled_loss", None), "_user_losses", None) or getattr(model, "loss", None)

    def is_compiled(self, model: KerasModel) -> bool:
        return bool(getattr(model, "_is_compiled", False))

    def dtype_of(self, variable: KerasVariable) -> str:
        return str(variable.dtype.base_dtype.name)

    def metrics(self, model: Any) -> list[object]:
        """All metrics of the model, also those without a name."""
        return [metric for metric in model.metrics if hasattr(metric, "update_state")]

    def losses(self, model: Any) -> list[object]:
        """The objects, with a method `call`, that compile() was given or made of functions. [] before the first
        step."""
        flat = getattr(getattr(model, "compiled_loss", None), "_losses", None)
        return [value for value in tf.nest.flatten(flat) if hasattr(value, "call")]


def _optimizer_base(wrapper: type) -> type:
    """The optimizer class that a wrapper class derives from: OptimizerV2, or the new-style Optimizer since 2.9."""
    return next(cls for cls in wrapper.__mro__[1:] if cls.__name__ in ("OptimizerV2", "Optimizer"))

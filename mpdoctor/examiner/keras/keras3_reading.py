"""How Keras 3 is read: what live layers, models, variables and optimizers say of themselves. Changes nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import tensorflow as tf

from mpdoctor.facts.versions import Keras

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel, KerasOptimizer, KerasVariable


class Keras3Reading:
    """The part of Keras 3's adapter that reads."""

    loads_directories = False
    scales_by_factor = True
    tracks_tf_variables = False

    def __init__(self, module: Any) -> None:
        from keras.src.backend.tensorflow.trainer import TensorFlowTrainer
        from keras.src.optimizers.base_optimizer import BaseOptimizer

        self.module = module
        self.Layer, self.Model, self.Operation = module.layers.Layer, module.Model, module.Operation
        self.trainer = TensorFlowTrainer
        self.optimizer_bases: tuple[type[Any], ...] = (BaseOptimizer,)
        self.wrappers: tuple[type[Any], ...] = (module.optimizers.LossScaleOptimizer,)
        self.facts = Keras("keras", module.__version__, tf.__version__, "imported by the program")
        # a traceback with Keras' own frames cut out would lose the user's line in some errors
        module.config.disable_traceback_filtering()

    def global_policy(self) -> str:
        return str(self.module.config.dtype_policy().name)

    def sublayers(self, layer: Any) -> list[KerasLayer]:
        return list(layer._flatten_layers(include_self=False, recursive=False))

    def parts(self, layer: KerasLayer) -> list[KerasLayer]:
        """The layers of a layer, and in a functional model the functions between them, in the order in which they
        run."""
        layers = self.sublayers(layer)
        inside = {id(layer) for layer in layers}
        running = [
            operation
            for operation in getattr(layer, "_operations", ())
            if id(operation) in inside
            or (isinstance(operation, self.Operation) and not isinstance(operation, self.Layer))
        ]
        ordered = {id(layer) for layer in running}
        return running + [layer for layer in layers if id(layer) not in ordered]

    def is_function(self, layer: KerasLayer) -> bool:
        """Always False: functions are no layers here."""
        return False

    def is_plain_function(self, operation: KerasLayer) -> bool:
        """Whether it is a function between layers, of a functional model."""
        return not isinstance(operation, self.Layer)

    def function_classes(self) -> list[type]:
        """Whose calls are those of functions between layers, and of layers too."""
        return [self.Operation]

    def tensors_of_operation(self, operation: Any) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """(inputs, outputs) of a function between layers."""
        node = operation._inbound_nodes[0]
        return list(node.input_tensors), list(node.output_tensors)

    def makers_of(self, tensors: list[tf.Tensor]) -> tuple[str, ...]:
        """The names of the layers and functions that these symbolic tensors come from."""
        return tuple(tensor._keras_history.operation.name for tensor in tensors)

    def own_variables(self, layer: Any) -> list[KerasVariable]:
        """The variables of the layer itself; [] for a function."""
        if self.is_plain_function(layer):
            return []
        return list(layer._trainable_variables) + list(layer._non_trainable_variables)

    def trainable_variables(self, model: KerasModel) -> list[KerasVariable]:
        """The model's variables that are trained; [] before it is built."""
        return list(model.trainable_variables)

    def variables(self, model: KerasModel) -> list[KerasVariable]:
        return list(model.variables)

    def variable_dtype(self, layer: Any) -> str:
        return str(layer.variable_dtype)

    def output_operations(self, model: KerasModel) -> list[KerasLayer] | None:
        """The layers that a functional model's outputs come from; None for a subclassed model."""
        inner = getattr(model, "_functional", None) or model
        tensors = getattr(inner, "_outputs", None)
        if tensors is None:
            return None
        return [t._keras_history.operation for t in tensors if hasattr(t, "_keras_history")]

    def path(self, variable: KerasVariable) -> str:
        return getattr(variable, "path", None) or variable.name

    def inner(self, optimizer: Any) -> KerasOptimizer | None:
        """The optimizer inside a wrapper, once its constructor has set it; None for any other optimizer."""
        return getattr(optimizer, "inner_optimizer", None) if isinstance(optimizer, self.wrappers) else None

    def wrapper_dynamics(self, wrapper: Any) -> tuple[bool, object, object]:
        return True, wrapper.initial_scale, wrapper.dynamic_growth_steps

    def missing_methods(self, optimizer: KerasOptimizer) -> tuple[str, ...]:
        """The methods that the wrapper calls on an inner optimizer and that this one lacks."""
        if not isinstance(optimizer, self.optimizer_bases):
            return tuple(name for name in ("apply", "build") if not callable(getattr(optimizer, name, None)))
        base = self.optimizer_bases[0]
        replaced = ("update_step", "apply", "_backend_apply_gradients", "_backend_update_step")
        if any(getattr(type(optimizer), name) is not getattr(base, name) for name in replaced[:2]):
            return ()
        return ("update_step",)

    def jit_compile(self, model: KerasModel) -> bool:
        return bool(getattr(model, "jit_compile", False))

    def given_loss(self, model: KerasModel) -> object:
        return getattr(getattr(model, "_compile_loss", None), "_user_loss", None)

    def is_compiled(self, model: KerasModel) -> bool:
        return bool(getattr(model, "compiled", False))

    def dtype_of(self, variable: KerasVariable) -> str:
        return tf.as_dtype(variable.dtype).name

    def metrics(self, model: Any) -> list[object]:
        """All metrics of the model, also those without a name."""
        compiled = getattr(getattr(model, "_compile_metrics", None), "metrics", None) or []
        return list(
            {id(metric): metric for metric in [*model.metrics, *compiled] if hasattr(metric, "update_state")}.values()
        )

    def losses(self, model: Any) -> list[object]:
        """The objects, with a method `call`, that compile() was given or made of functions. [] before the first
        step."""
        flat = getattr(getattr(model, "_compile_loss", None), "_flat_losses", None) or []
        return [getattr(value, "loss", value) for value in flat if hasattr(getattr(value, "loss", value), "call")]

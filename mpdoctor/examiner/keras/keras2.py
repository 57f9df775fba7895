"""Keras 2 (tf_keras, and tf.keras inside TensorFlow up to 2.15): where to hook in, how to read it, how to adopt its
wrappers. No opinions."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

import tensorflow as tf

from mpdoctor.examiner.keras import function_layers
from mpdoctor.examiner.keras.adopted_wrappers import adopted_state_class, is_number
from mpdoctor.examiner.keras.batch_iterator import Feed
from mpdoctor.examiner.keras.own_wrapper import is_own
from mpdoctor.examiner.keras.step_record import Record
from mpdoctor.facts.versions import Keras
from mpdoctor.loss_scale import LossScale, keras2

if TYPE_CHECKING:
    import numpy as np

    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel, KerasOptimizer, KerasVariable


REACHES_INNER_DENSE = (2, 15)  # the first whose MultiHeadAttention gives its dtype to the layers that it makes


class Keras2:
    """One process' Keras 2, under whichever package name."""

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

    # --- reading ----------------------------------------------------------------------------------------------
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
        """None in Keras 2: functions between layers are layers there."""
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
        """[] before the model is built."""
        try:
            return list(model.trainable_variables)
        except ValueError:  # Keras 2 refuses to say before a Sequential model is built
            return []

    def variables(self, model: KerasModel) -> list[KerasVariable]:
        """[] before the model is built."""
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

    # --- hooking in -------------------------------------------------------------------------------------------
    def apply_methods(self) -> list[tuple[type, str]]:
        """The methods by which gradients arrive at a bare optimizer and at a wrapper."""
        return [(cls, "apply_gradients") for cls in (*self.optimizer_bases, *self.wrappers)]

    def scaling_methods(self) -> list[tuple[type, str]]:
        return [(cls, "get_scaled_loss") for cls in self.wrappers]

    def own_methods(self, wrapper: object) -> list[tuple[type, str]]:
        """mpdoctor.training's wrapper steps and scales through the methods of Keras' own."""
        return []

    def unscaling_methods(self) -> list[tuple[type, str]]:
        return [(cls, "get_unscaled_gradients") for cls in self.wrappers]

    def scale_properties(self) -> list[tuple[type, str]]:
        return [(cls, "loss_scale") for cls in self.wrappers]

    def gradients_and_variables(
        self, optimizer: KerasOptimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[tuple[object, ...], dict[str, object]], list[tf.Tensor], list[KerasVariable]]:
        """(arguments to pass on, gradients, variables) of an `apply_gradients(grads_and_vars)` call."""
        kwargs = dict(kwargs)
        pairs = list(kwargs.pop("grads_and_vars") if "grads_and_vars" in kwargs else args[0])
        return ((pairs, *args[1:]), kwargs), [g for g, _ in pairs], [v for _, v in pairs]

    def fixed_scale(self, optimizer: Any) -> float | None:
        """The scale of a wrapper with dynamic=False."""
        if self.inner(optimizer) is None or optimizer.dynamic:
            return None
        return float(optimizer.initial_scale)

    def observe_train_function(
        self, model: Any, step: Callable[[Callable[[object], object], object], object]
    ) -> Callable[[], object]:
        """Have `step(run, batch)` called for every batch of fit() and train_on_batch(); `run(batch)` is Keras' own.
        Returns what has Keras make its graph anew, for the next `run`, those that were handed out before among them."""
        model.train_function = None
        make = type(model).make_train_function
        made: list[Callable[..., object]] = []  # Keras' own, the newest last
        if model._steps_per_execution is not None:
            model._steps_per_execution.assign(1)  # the host looks at every step

        def make_train_function(force: bool = False) -> Callable[..., object]:
            if model.train_function is not None and not force:
                return model.train_function
            model.train_function = None
            made[:], feed = [make(model)], Feed()

            def train_function(iterator: Iterator[object]) -> object:
                specification = getattr(iterator, "_type_spec", None)

                def run(batch: object) -> object:
                    return made[-1](feed.iterator_of(batch, specification))

                return step(run, next(iterator))

            model.train_function = train_function
            return train_function

        model.__dict__["make_train_function"] = make_train_function
        return lambda: make_train_function(force=True)

    # --- adopting ---------------------------------------------------------------------------------------------
    def is_adoptable(self, wrapper: Any) -> bool:
        return is_number(wrapper.initial_scale)

    def adopt_wrapper(self, wrapper: Any, record: Record) -> LossScale | None:
        """Give a dynamic wrapper's loss-scale state our state machine and our record; a fixed scale has no state."""
        state = wrapper._loss_scale
        if not isinstance(state, self._dynamic_state) or not wrapper.dynamic:
            return None
        machine = keras2(float(wrapper.initial_scale), int(wrapper.dynamic_growth_steps))
        state.__class__ = adopted_state_class(type(state), record, machine)
        return machine

    def set_scale(self, wrapper: Any, scale: float) -> None:
        if wrapper.dynamic:
            wrapper._loss_scale.current_loss_scale.assign(scale)
        elif is_own(wrapper):
            wrapper._loss_scale._initial_loss_scale = scale
        else:
            wrapper._loss_scale = scale

    def scale_variable(self, wrapper: Any) -> tf.Variable:
        return wrapper._loss_scale.current_loss_scale

    def has_no_scale_variable(self, optimizer: Any) -> bool:
        return False

    def scale_in_force(self, wrapper: Any) -> float:
        return float(tf.identity(self.scale_variable(wrapper)))

    def watch_gradients(
        self, optimizer: KerasOptimizer, tell: Callable[[list[tf.Tensor], list[KerasVariable]], None]
    ) -> Callable[[], object]:
        """A bare optimizer of Keras 2 divides by nothing: there is nothing to tell."""
        return lambda: None

    def catch_gradients(
        self, innermost: Any, catch: Callable[[list[tf.Tensor], list[KerasVariable]], None]
    ) -> Callable[[], None]:
        """From now on unscaled gradients that arrive at the innermost optimizer go to `catch(gradients, variables)` and
        change nothing. Returns a function that ends it."""

        def apply_gradients(
            grads_and_vars: Iterable[tuple[tf.Tensor, KerasVariable]], *_: object, **__: object
        ) -> tf.Variable:
            pairs = list(grads_and_vars)
            catch([g for g, _ in pairs], [v for _, v in pairs])
            return innermost.iterations

        innermost.__dict__["apply_gradients"] = apply_gradients
        return lambda: innermost.__dict__.pop("apply_gradients")

    def dtype_of(self, variable: KerasVariable) -> str:
        return str(variable.dtype.base_dtype.name)

    def applied_in_float64(
        self, clone: Any, original: Any, gradients: list[tf.Tensor], variables: list[KerasVariable]
    ) -> list[np.ndarray]:
        """The values, as float64 arrays, to which a new optimizer like the original takes copies of these variables."""
        copies = [tf.Variable(tf.cast(tf.convert_to_tensor(variable), tf.float64)) for variable in variables]
        clone.iterations.assign(original.iterations)
        clone.apply_gradients(list(zip(gradients, copies)))
        return [copy.numpy() for copy in copies]

    def replace_empty_optimizer(self, model: Any) -> bool:
        """False: an optimizer of Keras 2 builds its slots where it first needs them."""
        return False

    def make_variables(self, model: KerasModel, batch: object) -> None:
        """Does nothing: Keras 2 makes variables outside of every graph."""

    def promise_dtype(self, tensor: Any, dtype: str) -> None:
        """Set the dtype of a symbolic tensor to the one that its layer will put out. Ragged and sparse tensors have the
        right one already."""
        if isinstance(tensor._type_spec, tf.TensorSpec):
            tensor._type_spec = tf.TensorSpec(tensor.shape, dtype, tensor._type_spec.name)

    def metrics(self, model: Any) -> list[object]:
        """All metrics of the model, also those without a name."""
        return [metric for metric in model.metrics if hasattr(metric, "update_state")]

    def losses(self, model: Any) -> list[object]:
        """The objects, with a method `call`, that compile() was given or made of functions. [] before the first
        step."""
        flat = getattr(getattr(model, "compiled_loss", None), "_losses", None)
        return [value for value in tf.nest.flatten(flat) if hasattr(value, "call")]

    def compile(self, model: KerasModel, loss: str) -> None:
        model.compile(optimizer="adam", loss=loss)

    def set_policy(self, name: str) -> None:
        setter = getattr(self._policy, "set_global_policy", None) or self._policy.set_policy  # 2.4 has the latter
        setter(name)

    def change_policy(self, layer: Any, name: str) -> Callable[[], None]:
        """From now on this live layer, without its sublayers, computes by this policy. Returns a function that ends
        it."""
        before = layer._dtype_policy
        layer._set_dtype_policy(self._policy.Policy(name))
        end = function_layers.with_float32_constants(layer) if name == "float32" else lambda: None

        def put_back() -> None:
            end()
            layer._set_dtype_policy(before)

        return put_back

    def made_input(self, model: Any, layer: Any) -> None:
        return None

    def keeps_its_dtype(self, layer: Any) -> bool:
        """Whether what a layer makes takes the global policy, whatever dtype the layer is given."""
        is_attention = any(cls.__name__ == "MultiHeadAttention" for cls in type(layer).__mro__)
        return is_attention and self.facts.release < REACHES_INNER_DENSE

    def set_seed(self, seed: int) -> None:
        """Like keras.utils.set_random_seed, which older releases lack. NumPy is always there: TensorFlow requires
        it."""
        import numpy

        importlib.import_module("random").seed(seed)  # the program's, which `import` would not bring here
        numpy.random.seed(seed)
        tf.random.set_seed(seed)


def _optimizer_base(wrapper: type) -> type:
    """The optimizer class that a wrapper class derives from: OptimizerV2, or the new-style Optimizer since 2.9."""
    return next(cls for cls in wrapper.__mro__[1:] if cls.__name__ in ("OptimizerV2", "Optimizer"))

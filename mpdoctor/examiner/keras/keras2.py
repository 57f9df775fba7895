"""The adapter of Keras 2 (tf_keras, and tf.keras inside TensorFlow up to 2.15): where to hook in, and how to adopt its
wrappers. No opinions."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

import tensorflow as tf

from mpdoctor.examiner.keras import function_layers
from mpdoctor.examiner.keras.adopted_wrappers import adopted_state_class, is_number
from mpdoctor.examiner.keras.batch_iterator import Feed
from mpdoctor.examiner.keras.keras2_reading import Keras2Reading
from mpdoctor.examiner.keras.own_wrapper import is_own
from mpdoctor.examiner.keras.step_record import Record
from mpdoctor.loss_scale import LossScale, keras2

if TYPE_CHECKING:
    import numpy as np

    from mpdoctor.examiner.keras.adapter import KerasModel, KerasOptimizer, KerasVariable


REACHES_INNER_DENSE = (2, 15)  # the first whose MultiHeadAttention gives its dtype to the layers that it makes


class Keras2(Keras2Reading):
    """The adapter of one process' Keras 2, under whichever package name."""

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

    def hides_caught_steps(self, optimizer: Any) -> bool:
        """A bare optimizer's `apply_gradients` is itself what `catch_gradients` replaces."""
        return self.inner(optimizer) is None

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

    def applied_in_float64(
        self, clone: Any, original: Any, gradients: list[tf.Tensor], variables: list[KerasVariable]
    ) -> list[np.ndarray]:
        """The values, as float64 arrays, to which a new optimizer like the original takes copies of these variables."""
        copies = [tf.Variable(tf.cast(tf.convert_to_tensor(variable), tf.float64)) for variable in variables]
        clone.iterations.assign(original.iterations)
        clone.apply_gradients(list(zip(gradients, copies)))
        return [copy.numpy() for copy in copies]

    def replace_empty_optimizer(self, model: Any) -> bool:
        """Always False: an optimizer of Keras 2 builds its slots where it first needs them."""
        return False

    def make_variables(self, model: KerasModel, batch: object) -> None:
        """Does nothing: Keras 2 makes variables outside of every graph."""

    def promise_dtype(self, tensor: Any, dtype: str) -> None:
        """Set the dtype of a symbolic tensor to the one that its layer will put out. Ragged and sparse tensors have the
        right one already."""
        if isinstance(tensor._type_spec, tf.TensorSpec):
            tensor._type_spec = tf.TensorSpec(tensor.shape, dtype, tensor._type_spec.name)

    def compile(self, model: KerasModel, loss: str) -> None:
        model.compile(optimizer="adam", loss=loss)

    def set_policy(self, name: str) -> None:
        setter = getattr(self._policy, "set_global_policy", None) or self._policy.set_policy  # 2.4 has the latter
        setter(name)

    def change_policy(self, layer: Any, name: str) -> Callable[[], None]:
        """From now on this live layer, without its sublayers, computes by this policy. Returns a function that ends
        it."""
        before = layer._dtype_policy
        own_keras = sys.modules.get(type(before).__module__, self._policy)  # a package may use the other Keras 2
        layer._set_dtype_policy(own_keras.Policy(name))
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

"""The adapter of Keras 3, on TensorFlow: where to hook in, and how to adopt its optimizers. No opinions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterator

import tensorflow as tf

from mpdoctor.examiner.keras.adopted_wrappers import adopted_wrapper_class, is_number, named_like
from mpdoctor.examiner.keras.keras3_reading import Keras3Reading
from mpdoctor.examiner.keras.own_wrapper import adopted_own_class, defining, is_own
from mpdoctor.examiner.keras.private_state import change_input_dtype, listed_layers
from mpdoctor.examiner.keras.step_record import Record
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.loss_scale import LossScale, keras3

if TYPE_CHECKING:
    import numpy as np

    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel, KerasOptimizer, KerasVariable


class Keras3(Keras3Reading):
    """The adapter of one process' Keras 3."""

    # --- hooking in -------------------------------------------------------------------------------------------
    def apply_methods(self) -> list[tuple[type, str]]:
        """The methods by which gradients arrive at a bare optimizer and at a wrapper."""
        return [(self.optimizer_bases[0], "apply"), (self.wrappers[0], "apply")]

    def scaling_methods(self) -> list[tuple[type, str]]:
        return [(self.optimizer_bases[0], "scale_loss"), (self.wrappers[0], "scale_loss")]

    def own_methods(self, wrapper: object) -> list[tuple[type, str]]:
        """The methods of mpdoctor.training's wrapper by which gradients arrive and a loss is scaled."""
        return [(cls, name) for name in ("apply", "scale_loss") for cls in defining(wrapper, name)]

    def unscaling_methods(self) -> list[tuple[type, str]]:
        return []

    def scale_properties(self) -> list[tuple[type, str]]:
        return []

    def gradients_and_variables(
        self, optimizer: KerasOptimizer, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[tuple[object, ...], dict[str, object]], list[tf.Tensor], list[KerasVariable]]:
        """(arguments to pass on, gradients, variables) of an `apply(grads, trainable_variables)` call."""
        grads = list(kwargs["grads"] if "grads" in kwargs else args[0])
        variables = kwargs.get("trainable_variables", args[1] if len(args) > 1 else None)
        variables = None if variables is None else list(variables)
        known = variables if variables is not None else list(getattr(optimizer, "_trainable_variables", ()))
        return ((grads, variables), {}), grads, known

    def fixed_scale(self, optimizer: Any) -> float | None:
        """`loss_scale_factor` of a bare optimizer; that of mpdoctor.training's wrapper, which Keras' own has not."""
        if is_own(optimizer):
            return None if optimizer.dynamic else float(optimizer.initial_scale)
        factor = getattr(optimizer, "loss_scale_factor", None)
        return None if factor is None else float(factor)

    def observe_train_function(
        self, model: Any, step: Callable[[Callable[[object], object], object], object]
    ) -> Callable[[], None]:
        """Have `step(run, batch)` called for every batch of fit() and train_on_batch(); `run(batch)` is Keras' own.
        Returns what has Keras make its graph anew, for the next `run`, those that were handed out before among them."""
        model.train_function = None
        model.steps_per_execution = 1  # the host looks at every step
        make = type(model).make_train_function
        made: list[Callable[..., object]] = []  # Keras' own, the newest last

        def run(batch: object) -> object:
            return made[-1](_one_batch(batch))

        def make_train_function(force: bool = False) -> None:
            if model.train_function is not None and not force:
                return
            make(model, force=True)
            made[:] = [model.train_function]
            model.train_function = lambda iterator: step(run, next(iterator))

        model.__dict__["make_train_function"] = make_train_function
        return lambda: make_train_function(force=True)

    # --- adopting ---------------------------------------------------------------------------------------------
    def adopt_wrapper(self, wrapper: Any, record: Record) -> LossScale | None:
        """Give the user's wrapper our state machine and our record; it keeps its object, its variables and its inner
        optimizer, so that every reference the user's code holds still holds the same thing."""
        if is_own(wrapper):
            if not wrapper.dynamic:
                return None
            wrapper.__class__ = named_like(type(wrapper), adopted_own_class(type(wrapper), record))
            return wrapper._machine
        machine = keras3(float(wrapper.initial_scale), int(wrapper.dynamic_growth_steps))
        wrapper.__class__ = adopted_wrapper_class(type(wrapper), record, machine)
        return machine

    def is_adoptable(self, wrapper: Any) -> bool:
        """Whether all that the user gave is a number; of anything else Keras will say so itself at the first step."""
        return is_number(wrapper.initial_scale) and is_number(wrapper.dynamic_growth_steps)

    def set_scale(self, optimizer: Any, scale: float) -> None:
        """Set the loss scale of a wrapper, or the `loss_scale_factor` of a bare optimizer. A fixed scale is only read
        while tracing."""
        if (is_own(optimizer) and not optimizer.dynamic) or self.has_no_scale_variable(optimizer):
            optimizer.initial_scale = scale
        elif isinstance(optimizer, self.wrappers):
            optimizer.dynamic_scale.assign(scale)
        else:
            optimizer.loss_scale_factor = scale

    def scale_variable(self, wrapper: Any) -> tf.Variable:
        return wrapper.dynamic_scale.value

    def has_no_scale_variable(self, optimizer: Any) -> bool:
        return isinstance(optimizer, self.wrappers) and not optimizer.built

    def scale_in_force(self, wrapper: Any) -> float:
        if self.has_no_scale_variable(wrapper):
            return float(wrapper.initial_scale)
        return float(tf.identity(self.scale_variable(wrapper)))

    def hides_caught_steps(self, optimizer: Any) -> bool:
        return False

    def catch_gradients(
        self, innermost: Any, catch: Callable[[list[tf.Tensor], list[KerasVariable]], None]
    ) -> Callable[[], None]:
        """From now on unscaled gradients that arrive at the innermost optimizer go to `catch(gradients, variables)` and
        change nothing. Returns a function that ends it."""
        name = "_backend_apply_gradients" if hasattr(innermost, "_backend_apply_gradients") else "apply"
        caught = []

        def catching(grads: Any, trainable_variables: Any = None) -> None:
            caught.append(True)
            catch(list(grads), list(trainable_variables or innermost._trainable_variables))

        def apply(grads: Any, trainable_variables: Any = None) -> Any:
            """The `apply` of an optimizer that overrides it: its gradients are caught even if it does not call Keras'
            own."""
            caught.clear()
            result = own(grads, trainable_variables)
            if not caught:
                catching(grads, trainable_variables)
            return result

        own = innermost.apply
        innermost.__dict__[name] = catching
        if name != "apply" and type(innermost).apply is not self.optimizer_bases[0].apply:
            innermost.__dict__["apply"] = apply

        def end() -> None:
            for method in {name, "apply"}:
                innermost.__dict__.pop(method, None)

        return end

    def watch_gradients(self, optimizer: Any, tell: Callable[[list[Any], list[Any]], None]) -> Callable[[], None]:
        """From now on `tell(gradients, variables)` is called with the gradients of a bare optimizer after it divided
        them by its `loss_scale_factor`. Returns a function that ends it."""
        original = optimizer._backend_apply_gradients

        def passing(grads: Any, trainable_variables: Any) -> Any:
            tell(list(grads), list(trainable_variables))
            return original(grads, trainable_variables)

        optimizer.__dict__["_backend_apply_gradients"] = passing
        return lambda: optimizer.__dict__.pop("_backend_apply_gradients")

    def applied_in_float64(
        self, clone: Any, original: Any, gradients: list[tf.Tensor], variables: list[KerasVariable]
    ) -> list[np.ndarray]:
        """The values, as float64 arrays, to which a new optimizer like the original takes copies of these variables."""
        copies = [self.module.Variable(tf.cast(variable, tf.float64), dtype="float64") for variable in variables]
        clone.build(copies)
        clone.iterations.assign(original.iterations)
        clone.apply(gradients, copies)
        return [copy.numpy() for copy in copies]

    def replace_empty_optimizer(self, model: Any) -> bool:
        """Give a loaded model whose optimizer was restored for no variables a fresh one of the same configuration.
        Whether that was so."""
        optimizer = getattr(model, "optimizer", None)
        if optimizer is None or not optimizer.built:
            return False
        innermost = optimizer
        while self.inner(innermost) is not None:
            innermost = self.inner(innermost)
        if innermost._trainable_variables or not model.trainable_variables:
            return False
        optimizers = self.module.optimizers
        model.optimizer = optimizers.deserialize(optimizers.serialize(optimizer))
        return True

    def make_variables(self, model: Any, batch: object) -> None:
        """Make the variables of the model and its optimizer before a graph is traced: made in it, they would stay
        without a value if the trace fails. Raises what the model's call raises."""
        if tf.distribute.in_cross_replica_context():  # there they have been made in the strategy's scope
            return
        if not model.built:
            model(self.module.utils.unpack_x_y_sample_weight(batch)[0])
        if hasattr(model.optimizer, "build") and not model.optimizer.built:
            model.optimizer.build(model.trainable_variables)

    def promise_dtype(self, tensor: Any, dtype: str) -> None:
        """Set the dtype of a symbolic tensor to the one that its layer will put out."""
        tensor._dtype = dtype

    def compile(self, model: KerasModel, loss: str) -> None:
        model.compile(optimizer="adam", loss=loss)

    def set_policy(self, name: str) -> None:
        self.module.config.set_dtype_policy(name)

    def change_policy(self, layer: Any, name: str) -> Callable[[], None]:
        """From now on this live layer, without its sublayers, computes by the policy of this name. Returns a function
        that ends it. The public setter would write into a DTypePolicyMap that other layers share, and could not be
        undone."""
        attributes = vars(layer)
        before = attributes["_dtype_policy"]
        attributes["_dtype_policy"] = self.module.DTypePolicy(name)
        of_input = change_input_dtype(layer, name) if isinstance(layer, self.module.layers.InputLayer) else None

        def end() -> None:
            attributes["_dtype_policy"] = before
            if of_input is not None:
                of_input()

        return end

    def made_input(self, model: Any, layer: Any) -> KerasLayer | None:
        listed = listed_layers(model) if isinstance(model, self.module.Sequential) else []
        is_first = len(listed) > 1 and listed[1] is layer and isinstance(listed[0], self.module.layers.InputLayer)
        return listed[0] if is_first and listed[0].compute_dtype in HALF else None

    def keeps_its_dtype(self, layer: Any) -> bool:
        return False

    def set_seed(self, seed: int) -> None:
        self.module.utils.set_random_seed(seed)


def _one_batch(batch: object) -> Iterator[object]:
    """An iterator over one batch. Keras' train function takes a Python iterator's batch as it is."""
    return iter([batch])

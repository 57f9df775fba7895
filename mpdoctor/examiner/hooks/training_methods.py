"""The methods that train: fit(), train_on_batch() and an optimizer's apply(); the first call of one begins the training
that is looked at. And compile(), after which a process may die."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Callable

from mpdoctor.examiner.capture.live_models import model_of_variables
from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.facts.model import CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel, KerasOptimizer
    from mpdoctor.examiner.probe.training import Training
    from mpdoctor.examiner.session import Session


class TrainingMethods:
    """The hooks on training methods of one examination."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._hooked: set[tuple[type, str]] = set()  # methods of mpdoctor.training's wrappers
        self._applying: list[KerasOptimizer] = []  # optimizers whose step is under way, the outermost first

    def install(self, keras: KerasAdapter) -> None:
        # where it is defined, not below: Keras 3 compiles no loaded model whose class seems to override it
        owner = next(cls for cls in keras.trainer.__mro__ if "compile" in vars(cls))
        replace_method(owner, "compile", functools.partial(self._compile, keras))
        replace_method(keras.trainer, "fit", functools.partial(self._fit, keras))
        replace_method(keras.trainer, "train_on_batch", functools.partial(self._train_on_batch, keras))
        for cls, name in keras.apply_methods():
            replace_method(cls, name, functools.partial(self._apply, keras))

    def install_wrappers(self, keras: KerasAdapter) -> None:
        """Hook the constructors of the wrappers. Only after the methods that scale were hooked."""
        for cls in keras.wrappers:
            replace_method(cls, "__init__", functools.partial(self._wrapper_made, keras))

    def _compile(
        self, keras: KerasAdapter, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        """Report at once what the program compiles: a process that dies or hangs later cannot."""
        result = original(model, *args, **kwargs)
        if self._session.training is None:
            with self._session.own_work():
                self._session.events.model_built(self._session.untrained(keras, model, running=False))
        return result

    def _fit(
        self, keras: KerasAdapter, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        if self._session.training is not None or not keras.is_compiled(model):  # Keras refuses it in its own words
            return original(model, *args, **kwargs)
        self._session.training = self._session.new_training(
            self._session, keras, CallFacts("fit", own_location(sys._getframe(2))), model, model.optimizer
        )
        return self._session.training.run_fit(original, args, kwargs)

    def _train_on_batch(
        self, keras: KerasAdapter, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        is_new = self._session.training is None or not self._session.training.observes(model)
        if is_new and keras.is_compiled(model):
            call = CallFacts("train_on_batch", own_location(sys._getframe(2)))
            if self._session.training is None:
                self._session.training = self._session.new_training(self._session, keras, call, model, model.optimizer)
            self._session.training.begin_on_batches(model, call, args, kwargs)
        return original(model, *args, **kwargs)

    def _wrapper_made(
        self, keras: KerasAdapter, original: Callable[..., object], wrapper: object, *args: object, **kwargs: object
    ) -> object:
        for cls, name in keras.own_methods(wrapper):
            if (cls, name) not in self._hooked:
                self._hooked.add((cls, name))
                scale_loss = self._session.scaling_calls.scale_loss
                replace_method(cls, name, functools.partial(self._apply, keras) if name == "apply" else scale_loss)
        return original(wrapper, *args, **kwargs)

    def _apply(
        self,
        keras: KerasAdapter,
        original: Callable[..., object],
        optimizer: KerasOptimizer,
        *args: object,
        **kwargs: object,
    ) -> object:
        import tensorflow as tf

        try:
            (args, kwargs), gradients, variables = keras.gradients_and_variables(optimizer, args, kwargs)
        except (TypeError, ValueError, LookupError):  # a call that Keras does not understand either, and will say so
            return original(optimizer, *args, **kwargs)
        training = self._session.training
        if training is not None and training.is_our_own(optimizer):
            return original(optimizer, *args, **kwargs)
        if training is None:
            call = CallFacts("loop", own_location(sys._getframe(2)))
            model = model_of_variables(keras, variables)
            training = self._session.training = self._session.new_training(self._session, keras, call, model, optimizer)
            with tf.init_scope():
                training.begin_loop()
        if training.holds_still(optimizer):
            return optimizer.iterations
        outermost = training.arrived(optimizer, gradients, variables, within=self._applying)
        self._applying.append(optimizer)
        try:
            result = original(optimizer, *args, **kwargs)
        finally:
            self._applying.remove(optimizer)  # replicas take turns within their steps
        if outermost and training.is_loop and tf.executing_eagerly() and self._session.function_calls.outermost is None:
            training.after_step()
        return result


def training_class(request: Request) -> type[Training]:
    if request.timed:
        from mpdoctor.examiner.probe.timed.timed_training import TimedTraining

        return TimedTraining
    from mpdoctor.examiner.probe.training import Training

    return Training

"""One examination: hooks into Keras the moment the script imports it, waits for the training call, hands over to the
training, and says goodbye."""

from __future__ import annotations

import functools
import os
import re
import sys
import traceback
from types import ModuleType
from typing import TYPE_CHECKING, Any, Callable

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.capture.live_models import live_models, model_of_variables
from mpdoctor.examiner.capture.load_hooks import LoadHooks
from mpdoctor.examiner.capture.optimizer_setup import OptimizerHooks
from mpdoctor.examiner.exceptions import OtherBackend, chain_of
from mpdoctor.examiner.failures.mending import Mender
from mpdoctor.examiner.failures.parts import classes_of_parts
from mpdoctor.examiner.keras.private_state import function_made_anew
from mpdoctor.examiner.process import autograph_files
from mpdoctor.examiner.process.import_hooks import ImportHooks
from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.user_code import own_code, own_location
from mpdoctor.examiner.protocol.event_kinds import (
    Crashed,
    Environment,
    Failure,
    FilesWritten,
    KerasUsed,
    StandInsUsed,
)
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.examiner.stand_ins.install import StandIns
from mpdoctor.facts.devices import DeviceFacts
from mpdoctor.facts.failure import FailureFacts, PartFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts, ModelFacts, OtherPolicyFacts

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.capture.loss_hooks import Losses
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel, KerasOptimizer
    from mpdoctor.examiner.probe.predictions import Predictions
    from mpdoctor.examiner.probe.training import Training
    from mpdoctor.facts.environment import EnvironmentFacts


# Where the Kerases keep their global policy: 3, tf_keras and 2.13 to 2.15, 2.6 to 2.12, TensorFlow 2.4 and 2.5.
POLICY_MODULES = (
    "keras.src.dtype_policies.dtype_policy",
    "tf_keras.src.mixed_precision.policy",
    "keras.src.mixed_precision.policy",
    "keras.mixed_precision.policy",
    "tensorflow.python.keras.mixed_precision.policy",
)
POLICY_SETTERS = ("set_dtype_policy", "set_global_policy", "set_policy")


def _if_library(act: Callable[[ModuleType], None]) -> Callable[[ModuleType], None]:
    """`act`, but only on the package that it is called, and not on a keras.py beside the script."""

    def act_if_library(module: ModuleType) -> None:
        if hasattr(module, "__path__") and re.match(r"\d+\.\d+", str(getattr(module, "__version__", ""))):
            act(module)

    return act_if_library


class Session:
    """The state of one examination. `keras` is the adapter of the Keras that was hooked last, None before."""

    def __init__(self, request: Request, events: Events) -> None:
        self.request = request
        self.events = events
        self.watch = LayerHooks()
        self.mender = Mender(self)
        self.notes = OptimizerHooks()
        self.stand_ins = StandIns(
            os.path.join(request.scratch, "stand-ins"), lambda names: events.send(StandInsUsed(tuple(names)))
        )
        self.loads = LoadHooks()
        self.keras: KerasAdapter | None = None
        self.training: Training | None = None
        self.new_training: type[Training]
        self.policy_set = False
        self.overrules_policy = False  # whether the program itself sets one where another was forced
        self._forces_policy = False
        self._sets_half = False  # whether the program itself has set a global policy of 16 bits
        self.differentiated: tf.Tensor | None = None  # what a tape was asked to differentiate last
        self.sources: set[int] = set()  # by what a tape was ever asked to differentiate, by identity
        self._policy_lines: dict[str, Location] = {}  # by package: the user's line that set its policy last
        self._devices: tuple[DeviceFacts, ...] | None = None
        self.failed_in_tape: BaseException | None = None
        self.half_given_to_saved: PartFacts | None = None  # a SavedModel's function of float32 that took 16 bits
        self.files_written: list[str] = []
        self._adapters: list[KerasAdapter] = []
        self._losses: Losses | None = None
        self._scale_calls = {"scaled": False, "unscaled": False}
        self._environment: EnvironmentFacts | None = None
        self._functions_made_anew: dict[Callable[..., object], Callable[..., object]] = {}
        self._tf_functions: list[Callable[..., object]] = []  # those whose call is under way, the outermost first
        self._hooked: set[tuple[type, str]] = set()  # methods of mpdoctor.training's wrappers
        self._applying: list[KerasOptimizer] = []  # optimizers whose step is under way, the outermost first
        self._predictions: Predictions | None = None
        self.trained_models: list[KerasModel | None] = []  # of trainings that have ended

    # --- hooks --------------------------------------------------------------------------------------------------
    def install(self) -> None:
        ImportHooks(
            {
                "tensorflow": _if_library(self._tensorflow_imported),
                "keras": _if_library(self._keras_imported),
                "tf_keras": _if_library(self._keras_imported),
                **dict.fromkeys(POLICY_MODULES, self._watch_policy),
                autograph_files.LOADER: autograph_files.kept_in(os.path.join(self.request.scratch, "autograph")),
                "tensorflow_datasets": _if_library(self.stand_ins.install_tensorflow_datasets),
            },
            before={"tensorflow": functools.partial(self.events.stage, "importing TensorFlow")},
        ).install()

    def _tensorflow_imported(self, module: ModuleType) -> None:
        """Up to 2.5 TensorFlow holds its Keras itself; from 2.6 on it comes as a package of its own."""
        from mpdoctor.examiner.process.environment import environment_of_interpreter, with_tensorflow

        self._environment = with_tensorflow(environment_of_interpreter(), module)
        self._tell_environment()
        if tuple(int(number) for number in module.__version__.split(".")[:2]) < (2, 6):
            self._keras_imported(module)

    def _watch_policy(self, module: ModuleType) -> None:
        """A policy that the program sets itself, whatever its name, is never overruled by `--policy auto`."""
        setter = next(name for name in POLICY_SETTERS if hasattr(module, name))
        original = getattr(module, setter)

        @functools.wraps(original)
        def set_policy(policy: Any) -> object:
            # Keras 3 calls its own setter with the default when the policy is first asked for
            is_asked_for = sys._getframe(1).f_globals.get("__name__") != module.__name__
            self.policy_set = self.watch.policy_set = self.policy_set or is_asked_for
            self.overrules_policy = self.overrules_policy or (is_asked_for and not self._forces_policy)
            place = own_location(sys._getframe(1))
            if place is not None:
                self._policy_lines[module.__name__.partition(".")[0]] = place
            if self.request.holds_policy and is_asked_for:
                return original(self._held_policy(policy))
            return original(policy)

        setattr(module, setter, set_policy)

    def _held_policy(self, asked: Any) -> object:
        """The forced policy in place of the program's own; a program in 16 bits that goes back to float32 for some of
        its layers does so under each policy."""
        in_half = "16" in str(getattr(asked, "name", asked))
        goes_back = self._sets_half and not in_half
        self._sets_half = self._sets_half or (in_half and not self._forces_policy)
        return asked if goes_back else self.request.policy

    def _keras_imported(self, module: ModuleType) -> None:
        try:
            from mpdoctor.examiner.keras.adapter_choice import adapter_for

            adapter = adapter_for(module)
            if adapter is None:
                return
            self.keras = adapter
            self._adapters.append(self.keras)
            self._patch(self.keras)
            if self.request.seed is not None:
                self.keras.set_seed(self.request.seed)
            if self.request.policy != "auto":
                self._forces_policy = True
                self.keras.set_policy(self.request.policy)
                self._forces_policy = False
                self.watch.mender = self.mender
            else:
                self.watch.try_float32 = self.mender.runs_in_float32
            self.events.stage("running the script")
        except OtherBackend:
            raise
        except Exception as error:
            self.broke(error)

    def _patch(self, keras: KerasAdapter) -> None:
        import tensorflow as tf

        from mpdoctor.examiner.capture.loss_hooks import Losses
        from mpdoctor.examiner.capture.saved_functions import watch_saved_functions
        from mpdoctor.examiner.probe.predictions import Predictions

        self.new_training = _training_class(self.request)
        self.watch.install(keras.Layer, keras.global_policy)
        self.watch.install_policies(keras.Layer)
        parts = [cls for _, cls in classes_of_parts(keras) if not issubclass(cls, keras.Layer)]
        self.watch.install_parts(parts)
        for cls in keras.function_classes():
            self.watch.install_operations(cls, keras.Layer)
        self.notes.install(keras)
        self.stand_ins.install(keras)
        self.loads.install(keras)
        # where it is defined, not below: Keras 3 compiles no loaded model whose class seems to override it
        owner = next(cls for cls in keras.trainer.__mro__ if "compile" in vars(cls))
        replace_method(owner, "compile", functools.partial(self._compile, keras))
        replace_method(keras.trainer, "fit", functools.partial(self._fit, keras))
        replace_method(keras.trainer, "train_on_batch", functools.partial(self._train_on_batch, keras))
        for cls, name in keras.apply_methods():
            replace_method(cls, name, functools.partial(self._apply, keras))
        for cls, name in keras.scaling_methods():
            replace_method(cls, name, self._scale_loss)
        for cls, name in keras.scale_properties():
            self._note_reads(cls, name)
        for cls, name in keras.unscaling_methods():
            replace_method(cls, name, self._unscale)
        for cls in keras.wrappers:
            replace_method(cls, "__init__", functools.partial(self._wrapper_made, keras))
        if self._predictions is None:
            self._predictions = Predictions(self)
        self.predictions.install(keras)
        if self._losses is None:
            self._losses = Losses()
            watch_saved_functions(self.watch, self._note_saved_function)
            replace_method(tf.GradientTape, "gradient", self._gradient)
            replace_method(tf.GradientTape, "__exit__", self._leave_tape)
            replace_method(type(tf.function(lambda: None)), "__call__", self._call_function)

    @property
    def hooked_keras(self) -> KerasAdapter:
        """`keras`, where a model is there already, and so a Keras."""
        assert self.keras is not None
        return self.keras

    @property
    def losses(self) -> Losses:
        """Once a Keras is hooked."""
        assert self._losses is not None
        return self._losses

    @property
    def predictions(self) -> Predictions:
        """Once a Keras is hooked."""
        assert self._predictions is not None
        return self._predictions

    @property
    def has_predicted(self) -> bool:
        return self._predictions is not None and self._predictions.any

    def _note_reads(self, cls: type, name: str) -> None:
        """Code that reads the scale may scale by hand: then nobody can say that the loss was never scaled."""
        read = getattr(cls, name).fget

        def scale(optimizer: KerasOptimizer) -> object:
            if own_code(sys._getframe(1)):
                self._scale_calls["scaled"] = True
            return read(optimizer)

        setattr(cls, name, property(functools.update_wrapper(scale, read)))

    def _tell_environment(self) -> None:
        """Variables may be set, and devices be known, later than TensorFlow is imported."""
        from mpdoctor.examiner.process.environment import as_of_now

        if self._environment is not None:
            self.events.send(Environment(as_of_now(self._environment, self._devices or ())))

    def _tell_environment_at_end(self) -> None:
        """Of a program that made no model, too."""
        try:
            if self._environment is not None and self._devices is None:
                from mpdoctor.examiner.process.devices import devices_from_tensorflow

                self._devices = devices_from_tensorflow(program_has_computed=False)
            self._tell_environment()
        except Exception as error:
            self.broke(error)

    # --- what the program does ----------------------------------------------------------------------------
    def begins_to_train(self) -> None:
        """A process that dies while it trains can tell nothing more."""
        self.events.begin_to_train()
        self.devices()
        self._tell_environment()

    def end_training(self) -> None:
        """The program goes on, to its next training."""
        assert self.training is not None
        self.trained_models += [entry.model for entry in self.training.training_calls]
        self.training = None

    @property
    def has_trained(self) -> bool:
        return self.training is not None or bool(self.trained_models)

    def _compile(
        self, keras: KerasAdapter, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        """A process that dies or hangs later on can tell nothing more: what it has compiled is told here."""
        result = original(model, *args, **kwargs)
        if self.training is None:
            try:
                self.events.model_built(self._untrained(keras, model, running=False))
            except Exception as error:
                self.broke(error)
        return result

    def _fit(
        self, keras: KerasAdapter, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        if self.training is not None:
            return original(model, *args, **kwargs)
        self.training = self.new_training(
            self, keras, CallFacts("fit", own_location(sys._getframe(2))), model, model.optimizer
        )
        return self.training.run_fit(original, args, kwargs)

    def _train_on_batch(
        self, keras: KerasAdapter, original: Callable[..., object], model: KerasModel, *args: object, **kwargs: object
    ) -> object:
        if self.training is None or not self.training.observes(model):
            call = CallFacts("train_on_batch", own_location(sys._getframe(2)))
            if self.training is None:
                self.training = self.new_training(self, keras, call, model, model.optimizer)
            self.training.begin_on_batches(model, call, args, kwargs)
        return original(model, *args, **kwargs)

    def _wrapper_made(
        self, keras: KerasAdapter, original: Callable[..., object], wrapper: object, *args: object, **kwargs: object
    ) -> object:
        for cls, name in keras.own_methods(wrapper):
            if (cls, name) not in self._hooked:
                self._hooked.add((cls, name))
                replace_method(
                    cls, name, functools.partial(self._apply, keras) if name == "apply" else self._scale_loss
                )
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
        training = self.training
        if training is not None and training.is_our_own(optimizer):
            return original(optimizer, *args, **kwargs)
        if training is None:
            call = CallFacts("loop", own_location(sys._getframe(2)))
            model = model_of_variables(keras, variables)
            training = self.training = self.new_training(self, keras, call, model, optimizer)
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
        if outermost and training.is_loop and tf.executing_eagerly() and not self._tf_functions:
            training.after_step()
        return result

    def _call_function(
        self, original: Callable[..., object], function: Callable[..., object], *args: object, **kwargs: object
    ) -> object:
        """The outermost call of a tf.function is where the host may look at what its graph recorded."""
        if self.training is not None and self.training.is_loop and not self._tf_functions:
            self.training.before_call()
        self._tf_functions.append(function)
        try:
            if len(self._tf_functions) == 1 and (self.training is None or self.training.is_loop):
                result = self._call_until_mended(original, function, args, kwargs)
            else:
                result = original(function, *args, **kwargs)
        except Exception as error:
            if len(self._tf_functions) == 1 and self.training is not None and self._is_stop(error):
                self.training.stopped_in_graph(function, args, kwargs)
            raise
        finally:
            self._tf_functions.pop()
        if self.training is not None and self.training.is_loop and not self._tf_functions:
            self.training.after_call(function, args, kwargs)
        if not self._tf_functions:
            self.predictions.function_returned(function, args, kwargs, result)
        return result

    def _call_until_mended(
        self,
        original: Callable[..., object],
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        """The outermost tf.function of a custom loop. Under a forced policy what raises in it, while it is traced or
        run, is computed in float32 from then on, in a graph that is made anew."""
        while True:
            count = self.mender.count
            try:
                result = original(self._functions_made_anew.get(function, function), *args, **kwargs)
            except Exception as error:
                if self._is_stop(error):
                    raise
                first = error
                if self.training is not None:
                    first = self.training.first_error_of_call(error, function, args, kwargs)
                if not self._mends_loop(first, count):
                    if first is error:
                        raise
                    raise first from None
                self._functions_made_anew[function] = function_made_anew(function)
            else:
                self.mender.step_ran()
                return result

    def _mends_loop(self, error: Exception, count: int) -> bool:
        from mpdoctor.examiner.replay.variable_snapshot import all_have_values  # it needs TensorFlow

        return self.mender.is_on and all_have_values() and self.mender.mends_step(error, self._only_model(), count)

    def _only_model(self) -> KerasModel | None:
        found = self.models()
        return found[0][1] if len(found) == 1 else None

    def _is_stop(self, error: Exception) -> bool:
        """A loop inside of a tf.function ends itself where enough was seen."""
        from mpdoctor.examiner.probe.graph_stop import is_stop

        return is_stop(error)

    @property
    def outermost_function(self) -> Callable[..., object] | None:
        """The tf.function of the program's whose call is under way; None outside of all."""
        return self._tf_functions[0] if self._tf_functions else None

    @property
    def in_xla(self) -> bool:
        """Whether what is traced now will be compiled by XLA, as a tf.function with jit_compile."""
        return any(getattr(function, "_jit_compile", False) for function in self._tf_functions)

    def _scale_loss(
        self, original: Callable[..., object], optimizer: KerasOptimizer, loss: object, *args: object, **kwargs: object
    ) -> object:
        self._scale_calls["scaled"] = True
        result = original(optimizer, loss, *args, **kwargs)
        if not callable(loss):
            self.losses.scaled(loss, result, optimizer)
        return result

    def _unscale(
        self, original: Callable[..., object], optimizer: KerasOptimizer, *args: object, **kwargs: object
    ) -> object:
        self._scale_calls["unscaled"] = True
        return original(optimizer, *args, **kwargs)

    def _gradient(
        self,
        original: Callable[..., object],
        tape: tf.GradientTape,
        target: tf.Tensor,
        sources: object,
        *args: object,
        **kwargs: object,
    ) -> object:
        import tensorflow as tf

        self.losses.differentiated(target, sources)
        self.differentiated = target
        self.sources.update(map(id, tf.nest.flatten(sources)))
        return original(tape, target, sources, *args, **kwargs)

    def _leave_tape(
        self, original: Callable[..., object], tape: tf.GradientTape, kind: object, error: BaseException, trace: object
    ) -> object:
        if error is not None:
            self.failed_in_tape = error
        return original(tape, kind, error, trace)

    def _note_saved_function(self, part: PartFacts) -> None:
        self.half_given_to_saved = part

    def left_a_tape(self, error: BaseException) -> bool:
        return any(one is self.failed_in_tape for one in chain_of(error))

    @property
    def scale_calls(self) -> dict[str, bool]:
        return self._scale_calls

    # --- models -------------------------------------------------------------------------------------------------
    def models(self) -> list[tuple[KerasAdapter, KerasModel]]:
        """(adapter, model) of every live model that is not a part of another one, in the order of their birth lines."""
        found = [
            (keras, model)
            for keras in self._adapters
            for model in live_models(keras)
            if not self.loads.left_behind(self.watch.made_at(model))
        ]
        return sorted(found, key=lambda pair: getattr(self.watch.made_at(pair[1]), "line", 0))

    def tell_models(self) -> bool:
        """Send the facts of every live model, of a program that does not train one. False where there is none."""
        found = self.models()
        try:
            for keras, model in found:
                from mpdoctor.examiner.capture.trace import trace_outputs  # it needs TensorFlow

                trace_outputs(self.watch, keras, model)
                self.events.model_seen(self._untrained(keras, model))
        except Exception as error:
            self.broke(error)
        return bool(found)

    def _untrained(self, keras: KerasAdapter, model: KerasModel, running: bool = True) -> ModelFacts:
        from mpdoctor.examiner.capture.model_facts import model_from_live

        optimizer = getattr(model, "optimizer", None)
        call, data = self.predictions.call_of(model), self.predictions.data_of(model)
        return model_from_live(self, keras, model, optimizer, call, data, running=running)

    def tell_predictions(self) -> None:
        """What the program computed with models that it does not train."""
        try:
            now = [] if self.training is None else [entry.model for entry in self.training.training_calls]
            trained = [*self.trained_models, *now] if self.has_trained else None
            for facts in [] if self._predictions is None else self.predictions.facts(trained):
                self.events.model_seen(facts.model)
                self.events.training(facts)
        except Exception as error:
            self.broke(error)

    # --- what a model's facts need beside the model -------------------------------------------------------------
    def devices(self) -> tuple[DeviceFacts, ...]:
        if self._devices is None:
            from mpdoctor.examiner.process.devices import devices_from_tensorflow

            self._devices = devices_from_tensorflow(program_has_computed=True)
        return self._devices

    def policies_of_others(self, keras: KerasAdapter) -> tuple[OtherPolicyFacts, ...]:
        """What the program set in other Kerases than this one."""
        return tuple(
            OtherPolicyFacts(str(other.facts.package), other.global_policy(), place, bool(live_models(other)))
            for other in self._adapters
            if other is not keras
            for place in [self.policy_set_at(other)]
            if place is not None
        )

    def policy_set_at(self, keras: KerasAdapter) -> Location | None:
        """The user's line that set this Keras' global policy last."""
        return self._policy_lines.get(keras.module.__name__.partition(".")[0])

    # --- the end ------------------------------------------------------------------------------------------------
    def tell_built(self) -> None:
        """What a program has made that is not at its end, and perhaps never comes there."""
        for keras, model in self.models():
            self.events.model_built(self._untrained(keras, model))

    def fail(self, failure: FailureFacts) -> None:
        self.events.send(Failure(failure))

    def broke(self, error: BaseException) -> None:
        """The examiner itself broke: say so, and end."""
        self.events.send(Crashed("".join(traceback.format_exception(type(error), error, error.__traceback__))))
        os._exit(70)

    def finish(self) -> None:
        """Enough was seen: no `finally`, `atexit` or line after the training call runs."""
        if not self.events.speaks:
            self.events.wait_for_training()
            os._exit(0)
        if self.keras is not None:
            self.events.send(KerasUsed(self.keras.facts))
        self.tell_predictions()
        self._tell_environment_at_end()
        self.events.send(FilesWritten(tuple(sorted(set(self.files_written))[:50])))
        self.events.end()
        os._exit(0)


def _training_class(request: Request) -> type[Training]:
    if request.timed:
        from mpdoctor.examiner.probe.timed.timed_training import TimedTraining

        return TimedTraining
    from mpdoctor.examiner.probe.training import Training

    return Training

"""One examination: hooks into Keras the moment the script imports it, waits for the training call, hands over to the
training, and says goodbye."""

from __future__ import annotations

import functools
import os
import traceback
from contextlib import contextmanager
from types import ModuleType
from typing import TYPE_CHECKING, Iterator, NoReturn

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.capture.live_models import live_models
from mpdoctor.examiner.capture.load_hooks import LoadHooks
from mpdoctor.examiner.capture.optimizers.optimizer_setup import OptimizerHooks
from mpdoctor.examiner.exceptions import OtherBackend
from mpdoctor.examiner.failures.mending import Mender
from mpdoctor.examiner.failures.parts import classes_of_parts
from mpdoctor.examiner.hooks.function_calls import FunctionCalls
from mpdoctor.examiner.hooks.gradient_tapes import GradientTapes
from mpdoctor.examiner.hooks.policy_setters import POLICY_MODULES, PolicySetters
from mpdoctor.examiner.hooks.scaling_calls import ScalingCalls
from mpdoctor.examiner.hooks.training_methods import TrainingMethods, training_class
from mpdoctor.examiner.process import autograph_files
from mpdoctor.examiner.process.import_hooks import ImportHooks, if_library
from mpdoctor.examiner.process.patching import replace_method
from mpdoctor.examiner.process.reported_environment import ReportedEnvironment
from mpdoctor.examiner.process.started_processes import MULTIPROCESSING, StartedProcesses
from mpdoctor.examiner.protocol.event_kinds import Crashed, Failure, FilesWritten, KerasUsed, StandInsUsed
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.examiner.stand_ins.install import StandIns
from mpdoctor.facts.failure import FailureFacts, PartFacts
from mpdoctor.facts.machine.devices import DeviceFacts
from mpdoctor.facts.model import ModelFacts, OtherPolicyFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.loss_hooks import Losses
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel
    from mpdoctor.examiner.probe.predicting.predictions import Predictions
    from mpdoctor.examiner.probe.timed.layer_scopes import LayerScopes
    from mpdoctor.examiner.probe.training import Training


class Session:
    """The state of one examination. `keras` is the adapter of the Keras that was hooked last, None before."""

    def __init__(self, request: Request, events: Events) -> None:
        self.request = request
        self.events = events
        self.layer_hooks = LayerHooks()
        self.mender = Mender(self)
        self.optimizer_hooks = OptimizerHooks()
        self.stand_ins = StandIns(
            os.path.join(request.scratch, "stand-ins"), lambda names: events.send(StandInsUsed(tuple(names)))
        )
        self.load_hooks = LoadHooks()
        self.policy_setters = PolicySetters(request, self.layer_hooks)
        self.training_methods = TrainingMethods(self)
        self.function_calls = FunctionCalls(self)
        self.scaling_calls = ScalingCalls(lambda: self.losses)
        self.tapes = GradientTapes(lambda: self.losses)
        self.keras: KerasAdapter | None = None
        self.training: Training | None = None
        self.new_training: type[Training]
        self.half_given_to_saved: PartFacts | None = None  # a SavedModel's function of float32 that took 16 bits
        self.files_written: list[str] = []
        self.processes = StartedProcesses(events.process_started, lambda: events.speaks, self.broke)
        self._adapters: list[KerasAdapter] = []
        self._losses: Losses | None = None
        self.environment = ReportedEnvironment(events)
        self._predictions: Predictions | None = None
        self.trained_models: list[KerasModel | None] = []  # of trainings that have ended

    # --- hooks --------------------------------------------------------------------------------------------------
    def install(self) -> None:
        ImportHooks(
            {
                "tensorflow": if_library(self._tensorflow_imported),
                "keras": if_library(self._keras_imported),
                "tf_keras": if_library(self._keras_imported),
                **dict.fromkeys(POLICY_MODULES, self.policy_setters.watch),
                autograph_files.LOADER: autograph_files.kept_in(os.path.join(self.request.scratch, "autograph")),
                MULTIPROCESSING: self.processes.watch_multiprocessing,
                "tensorflow_datasets": if_library(self.stand_ins.install_tensorflow_datasets),
            },
            before={"tensorflow": functools.partial(self.events.stage, "importing TensorFlow")},
        ).install()

    def _tensorflow_imported(self, module: ModuleType) -> None:
        """Up to 2.5 TensorFlow holds its Keras itself; from 2.6 on it comes as a package of its own."""
        self.environment.note_tensorflow(module)
        if tuple(int(number) for number in module.__version__.split(".")[:2]) < (2, 6):
            self._keras_imported(module)

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
                self.policy_setters.force(self.keras)
                self.layer_hooks.mender = self.mender
            else:
                self.layer_hooks.try_float32 = self.mender.float32_way
            self.events.stage("running the script")
        except OtherBackend:
            raise
        except Exception as error:
            self.broke(error)

    def _patch(self, keras: KerasAdapter) -> None:
        import tensorflow as tf

        from mpdoctor.examiner.capture.loss_hooks import Losses
        from mpdoctor.examiner.capture.saved_functions import watch_saved_functions
        from mpdoctor.examiner.probe.predicting.predictions import Predictions

        self.new_training = training_class(self.request)
        self.layer_hooks.install(keras.Layer, keras.global_policy)
        if self.request.timed:
            self.layer_scopes.install(self.layer_hooks, keras.Model)
        self.layer_hooks.origins.install_policies(keras.Layer)
        parts = [cls for _, cls in classes_of_parts(keras) if not issubclass(cls, keras.Layer)]
        self.layer_hooks.origins.install_parts(parts)
        for cls in keras.function_classes():
            self.layer_hooks.origins.install_operations(cls, keras.Layer)
        self.optimizer_hooks.install(keras)
        self.stand_ins.install(keras)
        self.load_hooks.install(keras)
        self.training_methods.install(keras)
        self.scaling_calls.install(keras)
        self.training_methods.install_wrappers(keras)
        if self._predictions is None:
            self._predictions = Predictions(self)
        self.predictions.install(keras)
        if self._losses is None:
            self._losses = Losses()
            watch_saved_functions(self.layer_hooks, self._note_saved_function)
            self.tapes.install()
            replace_method(type(tf.function(lambda: None)), "__call__", self.function_calls.call)

    @functools.cached_property
    def layer_scopes(self) -> LayerScopes:
        """The layer scopes of a timed run, from its start: the layers of a loop are called before it is known that it
        trains."""
        from mpdoctor.examiner.probe.timed.layer_scopes import LayerScopes

        return LayerScopes()

    @property
    def hooked_keras(self) -> KerasAdapter:
        """`keras`, where a model is there already, and so a Keras."""
        assert self.keras is not None
        return self.keras

    @property
    def losses(self) -> Losses:
        """The hooks on losses. Only once a Keras is hooked."""
        assert self._losses is not None
        return self._losses

    @property
    def predictions(self) -> Predictions:
        """The observed predictions. Only once a Keras is hooked."""
        assert self._predictions is not None
        return self._predictions

    @property
    def has_predicted(self) -> bool:
        return self._predictions is not None and self._predictions.any

    # --- what the program does ----------------------------------------------------------------------------
    def begins_to_train(self) -> None:
        """A process that dies while it trains can tell nothing more."""
        self.events.begin_to_train()
        self.devices()
        self.environment.report()

    def end_training(self) -> None:
        """The program goes on, to its next training."""
        assert self.training is not None
        self.trained_models += [entry.model for entry in self.training.training_calls]
        self.training = None

    @property
    def has_trained(self) -> bool:
        return self.training is not None or bool(self.trained_models)

    def _note_saved_function(self, part: PartFacts) -> None:
        self.half_given_to_saved = part

    # --- models -------------------------------------------------------------------------------------------------
    def models(self) -> list[tuple[KerasAdapter, KerasModel]]:
        """(adapter, model) of every live model that is not a part of another one, in the order of their birth lines."""
        models = [
            (keras, model)
            for keras in self._adapters
            for model in live_models(keras)
            if not self.load_hooks.left_behind(self.layer_hooks.origins.made_at(model))
        ]
        return sorted(models, key=lambda pair: getattr(self.layer_hooks.origins.made_at(pair[1]), "line", 0))

    def tell_models(self) -> bool:
        """Send the facts of every live model, of a program that does not train one. False where there is none."""
        models = self.models()
        with self.own_work():
            for keras, model in models:
                from mpdoctor.examiner.capture.trace import trace_outputs  # it needs TensorFlow

                trace_outputs(self.layer_hooks, keras, model)
                self.events.model_seen(self.untrained(keras, model))
        return bool(models)

    def untrained(self, keras: KerasAdapter, model: KerasModel, running: bool = True) -> ModelFacts:
        from mpdoctor.examiner.capture.model_facts import model_from_live

        optimizer = getattr(model, "optimizer", None)
        call, data = self.predictions.call_of(model), self.predictions.data_of(model)
        return model_from_live(self, keras, model, optimizer, call, data, running=running)

    def tell_predictions(self) -> None:
        """Report what the program computed with models that it does not train."""
        with self.own_work():
            now = [] if self.training is None else [entry.model for entry in self.training.training_calls]
            trained = [*self.trained_models, *now] if self.has_trained else None
            for facts in [] if self._predictions is None else self.predictions.facts(trained):
                self.events.model_seen(facts.model)
                self.events.training(facts)

    # --- what a model's facts need beside the model -------------------------------------------------------------
    def devices(self) -> tuple[DeviceFacts, ...]:
        return self.environment.devices(program_has_computed=True)

    def policies_of_others(self, keras: KerasAdapter) -> tuple[OtherPolicyFacts, ...]:
        """The policies that the program set in other Kerases than this one."""
        return tuple(
            OtherPolicyFacts(str(other.facts.package), other.global_policy(), place, bool(live_models(other)))
            for other in self._adapters
            if other is not keras
            for place in [self.policy_setters.set_at(other)]
            if place is not None
        )

    # --- the end ------------------------------------------------------------------------------------------------
    def tell_built(self) -> None:
        """Report the models that the program has made: it is not at its end, and may never reach it."""
        for keras, model in self.models():
            self.events.model_built(self.untrained(keras, model))

    def fail(self, failure: FailureFacts) -> None:
        self.events.send(Failure(failure))

    @contextmanager
    def own_work(self) -> Iterator[None]:
        """While this context is active, an exception is a defect of mpdoctor's: it ends the process, and no `except` of
        the user's can take it for one of the program's."""
        try:
            yield
        except Exception as error:
            self.broke(error)

    def broke(self, error: BaseException) -> NoReturn:
        """The examiner itself broke: say so, and end."""
        self.events.send(Crashed("".join(traceback.format_exception(type(error), error, error.__traceback__))))
        os._exit(70)

    def finish(self) -> NoReturn:
        """Enough was seen: no `finally`, `atexit` or line after the training call runs."""
        if not self.events.speaks:
            self.events.wait_for_training()
            os._exit(0)
        if self.keras is not None:
            self.events.send(KerasUsed(self.keras.facts))
        self.tell_predictions()
        with self.own_work():
            self.environment.report_at_end()
        self.events.send(FilesWritten(tuple(sorted(set(self.files_written))[:50])))
        self.events.end()
        os._exit(0)

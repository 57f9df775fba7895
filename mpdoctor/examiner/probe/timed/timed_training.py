"""The user's own training, shortened and timed: its compiled step with nothing of the probe's in it. No optimizer is
adopted, nothing is recorded, and no batch is looked at."""

from __future__ import annotations

import inspect
import os
import threading
import time
from typing import TYPE_CHECKING, Callable, NoReturn

import tensorflow as tf

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.keras.graph_casts import casts_in_graph
from mpdoctor.examiner.probe.mended_runs import fit_until_mended, step_until_mended
from mpdoctor.examiner.probe.own_work import own_work
from mpdoctor.examiner.probe.short_fit.short_fit import shortened_fit
from mpdoctor.examiner.probe.timed.step_clock import WARM_UP, StepClock
from mpdoctor.examiner.probe.timed.step_profile import NotProfiled, profiled
from mpdoctor.examiner.probe.training import Training
from mpdoctor.examiner.probe.training_call import TrainingCall
from mpdoctor.examiner.process.memory import device_peak, resident, resident_peak
from mpdoctor.examiner.protocol.event_kinds import NotTimed, Timed
from mpdoctor.facts.examination import ProfileFacts, TimingFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.model import CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel, KerasOptimizer, KerasVariable

PROFILED_STEPS = 3
LONG_STEP = 0.5  # seconds: of such steps one is profiled
NO_GRAPH = "its step runs eagerly, where each call of a layer is watched and would be timed, too"
OVER = "the training had ended by then"
ONE_CALL = "its whole loop runs in one call of a tf.function, or a step takes longer than --budget"


class TimedTraining(Training):
    """Takes the place of a Training: it has the same methods and hooks."""

    _clock: StepClock
    _graph: tf.Graph | None = None
    _function: Callable[..., object] | None = None  # of a loop: whose call is a step
    _resident_before: int | None = None
    _is_over = False

    # --- the three ways in ----------------------------------------------------------------------------------------
    def run_fit(self, fit: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> NoReturn:
        """Time steps of this fit(), and end the process."""
        training_call = self.training_calls[0]
        try:
            (_, *given) = inspect.signature(fit).bind(training_call.model, *args, **kwargs).arguments.items()
        except TypeError as error:  # an argument that fit() does not know
            self.failed(error)
        self._begin()
        self._observe(training_call)
        shortened = shortened_fit(self.keras, dict(given), lambda: self.conclude("script"))
        try:
            fit_until_mended(self, fit, training_call, shortened)
        except Exception as error:
            self.failed(error)
        self.conclude("script")

    @own_work
    def begin_on_batches(
        self, model: KerasModel, call: CallFacts, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        if self.training_calls[0].observed:
            self._end_without("several models take turns with train_on_batch()")
        self._begin()
        self._observe(self.training_calls[0])

    def _begin(self) -> None:
        self._clock = StepClock(self.wanted, self.session.request.budget, self._wait_for_device)
        self._resident_before = resident()
        self.session.events.stage("training")
        self.session.events.steps(0, self.wanted)
        self.started = time.monotonic()

    # --- every step -----------------------------------------------------------------------------------------------
    def _one_step(self, training_call: TrainingCall, run: Callable[[object], object], batch: object) -> object:
        first = not self.count.calls
        if not first:
            self._clock.step_begins()
        logs = step_until_mended(self, training_call, run, batch) if first else run(batch)
        self.count.calls += 1
        self._clock.step_ends()
        if self._clock.has_enough:
            self._timed(lambda: run(batch))
        return logs

    @own_work
    def arrived(
        self,
        optimizer: KerasOptimizer,
        gradients: list[tf.Tensor],
        variables: list[KerasVariable],
        within: list[KerasOptimizer],
    ) -> bool:
        if within:
            return False
        if tf.executing_eagerly():
            self._end_without(NO_GRAPH)
        if self._graph is None:
            self._given_optimizer = optimizer
            self._graph = tf.compat.v1.get_default_graph()
            if self.is_loop:
                self._function = self.session.function_calls.outermost
                self._end_if_it_never_returns()
        return False

    def before_call(self) -> None:
        if self.count.calls and not self._is_over:
            self._clock.step_begins()

    @own_work
    def after_call(self, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]) -> None:
        if function is not self._function or self._is_over:
            return
        self.count.calls += 1
        self._clock.step_ends()
        if self._clock.has_enough:
            self._timed(lambda: function(*args, **kwargs))

    def first_error_of_call(
        self, error: Exception, function: Callable[..., object], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Exception:
        return error

    def holds_still(self, optimizer: KerasOptimizer) -> bool:
        return False

    def is_our_own(self, optimizer: KerasOptimizer) -> bool:
        return False

    def _wait_for_device(self) -> None:
        """Wait until a GPU has finished the step. On a CPU it has when its call returns."""
        if not tf.config.list_logical_devices("GPU"):
            return
        wait = getattr(tf.test.experimental, "sync_devices", None)
        if wait is not None:
            wait()
        elif self._given_optimizer is not None:
            self._given_optimizer.iterations.numpy()  # which the last step has moved

    def _end_if_it_never_returns(self) -> None:
        timer = threading.Timer(2 * self.session.request.budget, self._look_whether_it_returned)
        timer.daemon = True
        timer.start()

    def _look_whether_it_returned(self) -> None:
        if not self.count.calls:
            self._end_without(ONE_CALL)

    # --- the end --------------------------------------------------------------------------------------------------
    @own_work
    def _timed(self, again: Callable[[], object] | None = None) -> NoReturn:
        """Send what was timed, and end the process. `again` runs the last step once more; None where the
        training is over."""
        self._is_over = True
        blocks = tuple(self._clock.blocks)
        # before the profiler takes some for itself; what the program does after its training is none of it
        peak, on_device = (resident_peak(), device_peak()) if again is not None else (None, None)
        on_gpu = bool(tf.config.list_logical_devices("GPU"))
        profile, reason = self._profile(again, on_gpu) if again is not None else (None, OVER)
        call = self.training_calls[0].call.kind
        facts = TimingFacts(
            of="fit" if call == "none" else call,  # of a factory the probe calls fit() itself
            blocks=blocks,
            steps_a_block=self._clock.steps_a_block,
            warm_up=WARM_UP,
            device="GPU" if on_gpu else "CPU",
            resident_before=self._resident_before,
            resident_peak=peak,
            device_peak=on_device,
            casts=None if self._graph is None else casts_in_graph(self._graph),
            profile=profile,
            not_profiled=reason,
        )
        self.session.events.send(Timed(facts))
        self.session.finish()

    def _profile(self, again: Callable[[], object], on_gpu: bool) -> tuple[ProfileFacts | None, str]:
        if on_gpu:
            return None, "operations are timed on CPUs alone so far"
        os.makedirs(self.session.request.scratch, exist_ok=True)
        folder = os.path.join(self.session.request.scratch, "profile")
        try:
            seconds, _ = self._clock.blocks[-1]
            steps = PROFILED_STEPS if seconds < LONG_STEP else 1
            return profiled(again, steps, folder, self.session.layer_scopes), ""
        except NotProfiled as reason:
            return None, str(reason)
        except (tf.errors.OpError, OSError) as error:
            return None, first_line(error)

    def _end_without(self, reason: str) -> NoReturn:
        """Report why nothing was timed, and end the process."""
        self.session.events.send(NotTimed(reason))
        self.session.finish()

    def conclude(self, ended: str, failure: FailureFacts | None = None) -> NoReturn:
        """The program's training ended before enough steps were timed, or raised."""
        if failure is not None:
            self.session.fail(failure)
            self._end_without("its training raises")
        if self.count.calls and self._clock.blocks:
            self._timed()
        block = f", of which {WARM_UP} are warm-up" if self.count.calls > WARM_UP else ""
        self._end_without(
            f"it ended after {self.count.calls} steps{block}, and steps are timed in blocks of some 20 ms"
        )

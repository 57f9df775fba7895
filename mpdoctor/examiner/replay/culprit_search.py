"""Why a step failed: it is repeated with everything observed, where it can be; else the next one that fails is watched.

Costs nothing on the steps that don't need it: a skip of the first steps is the loss scale finding its place."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Callable, ContextManager

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.replay.constant_factors import ConstantFactors
from mpdoctor.examiner.replay.culprits import Culprits, culprits_from_step
from mpdoctor.examiner.replay.eager_step import call_of_running_step
from mpdoctor.examiner.replay.step_observer import Enough, StepObserver
from mpdoctor.examiner.replay.variable_snapshot import snapshot_of_variables
from mpdoctor.facts.fit_ending import NotMeasured
from mpdoctor.facts.training import StepFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer


ATTEMPTS = 3  # failing steps of one optimizer that are looked at in vain
TRIES = 3  # repetitions of one failing step: dropout may draw another mask
WATCHED_STEPS = 20  # of an eager loop, until one of them fails again
NO_LAYERS: tuple[NotMeasured, str] = (
    "first number not finite",
    "the call that applies the gradients calls no layer, and the calls that computed them could not be repeated",
)


class CulpritSearch:
    """For all optimizers of a training. `repeating()` is the context in which a step may run and moves nothing."""

    def __init__(self, layer_hooks: LayerHooks, repeating: Callable[[], ContextManager[object]]) -> None:
        self._layer_hooks, self._repeating = layer_hooks, repeating
        self._attempts: dict[int, int] = {}
        self._seen: dict[int, int] = {}  # steps of each optimizer that were judged
        self._watched: ObservedOptimizer | None = None  # the optimizer whose next failing step is waited for
        self._observer: StepObserver | None = None
        self._patience = 0

    def is_over(self, observed: ObservedOptimizer) -> bool:
        """Whether no further failing step of this optimizer needs to be repeated."""
        return self.has_found(observed) or self._attempts.get(id(observed), 0) >= ATTEMPTS

    def has_found(self, observed: ObservedOptimizer) -> bool:
        return (observed.culprit or observed.loss_culprit or observed.gradient_culprit) is not None

    def after_step(self, observed: ObservedOptimizer, wanted: int) -> None:
        """Called after one step of this optimizer, or after several that one call took."""
        steps = observed.steps
        since, self._seen[id(observed)] = self._seen.get(id(observed), 0), len(steps)
        failed = [number for number in range(since, len(steps)) if _failed(steps[number])]
        if self._observer is not None:
            if self._watched is observed:
                self._end_watching(observed, failed)
            return
        failed = [number for number in failed if _asks_for_reason(steps[number], number, wanted)]
        if not failed or self.is_over(observed):
            return
        self._attempts[id(observed)] = self._attempts.get(id(observed), 0) + 1
        if observed.repeat is None:  # a loop that only the user's own code can drive
            self._observer = StepObserver(observed.keras, self._layer_hooks, observed.optimizer)
            self._observer.__enter__()
            self._watched, self._patience = observed, WATCHED_STEPS
            return
        try:
            with self._repeating(), observed.weights_of_last_step():
                state = snapshot_of_variables()
                self._repeat_calls(observed, failed[0])
                if self.has_found(observed):
                    observed.keep_failing_step(state)
        except Exception as error:  # the user's step, which may be fit for graphs only
            observed.not_looked.append(
                ("first number not finite", f"the failing step cannot be repeated eagerly: {first_line(error)}")
            )

    def note_eager_step(self, observed: ObservedOptimizer) -> None:
        """While a step of an eager loop is taken: what repeats it, of the steps that may be tried with a remedy."""
        if self._watched is observed or observed.failing is not None:
            observed.call_of_step = call_of_running_step()

    def _end_watching(self, observed: ObservedOptimizer, failed: list[int]) -> None:
        observer = self._observer
        assert observer is not None
        self._patience -= 1
        if not failed and self._patience:
            observer.clear()
            return
        observer.__exit__()
        self._observer = self._watched = None
        if failed:
            scale = observed.steps[failed[-1]].loss_scale
            try:
                self._tell(observed, culprits_from_step(observer, failed[-1], scale))
                if self.has_found(observed) and not observed.steps[failed[-1]].applied:  # no weight was moved
                    observed.keep_failing_call(snapshot_of_variables())
            except Exception as error:
                observed.not_looked.append(
                    ("first number not finite", f"the failing step cannot be followed: {first_line(error)}")
                )

    def _repeat_calls(self, observed: ObservedOptimizer, step: int) -> None:
        """Repeat the call that took the step. Where nothing fails in it, gradients may have been added up before: then
        repeat all calls since the step before, which are known from the second step on."""
        saw_layers = False
        for repeat in dict.fromkeys((observed.repeat, observed.repeat_all)):
            assert repeat is not None
            culprits, calls_layers = self._repeat(observed, repeat, step)
            saw_layers = saw_layers or calls_layers
            self._tell(observed, culprits)
            if self.has_found(observed):
                observed.repeat_failing = repeat
                break
        if NO_LAYERS in observed.not_looked:
            observed.not_looked.remove(NO_LAYERS)
        if not saw_layers:
            observed.not_looked.append(NO_LAYERS)

    def _repeat(
        self, observed: ObservedOptimizer, repeat: Callable[[], object], step: int
    ) -> tuple[Culprits | None, bool]:
        """What broke, and whether a layer was called."""
        scale: float | None = observed.steps[step].loss_scale
        for _ in range(TRIES):
            if scale is not None and observed.can_set_scale:
                observed.set_scale(scale)
            culprits, calls_layers = self._observed(observed, repeat, step, scale)
            if culprits is not None:
                break
        if culprits is None or culprits.gradient is None or scale is None or not observed.can_set_scale:
            return culprits, calls_layers
        observed.set_scale(1.0)
        with ConstantFactors() as factors:
            breaks = self._observed(observed, repeat, step, 1.0)[0] is not None
        observed.set_scale(scale)
        is_scaled = any(taken.loss_scale in factors.numbers for taken in observed.steps)  # by hand, at 1 as well
        without = None if is_scaled and breaks else breaks
        return culprits._replace(gradient=replace(culprits.gradient, without_scale=without)), calls_layers

    def _observed(
        self, observed: ObservedOptimizer, repeat: Callable[[], object], step: int, scale: float | None
    ) -> tuple[Culprits | None, bool]:
        """What broke in one repetition, which ends where a step in it fails, and whether a layer was called."""
        with StepObserver(observed.keras, self._layer_hooks, observed.optimizer, stops=True) as observer, suppress(
            Enough
        ):
            repeat()
        entry = observed.training_call
        culprits = culprits_from_step(observer, step, scale, entry.batch, entry.call.location)
        return culprits, bool(observer.calls)

    def _tell(self, observed: ObservedOptimizer, culprits: Culprits | None) -> None:
        if culprits is not None:
            observed.culprit, observed.loss_culprit, observed.gradient_culprit = culprits


def _failed(step: StepFacts) -> bool:
    return not step.applied or step.first_nonfinite is not None or _is_bad(step.loss)


def _is_bad(loss: float | None) -> bool:
    return loss is not None and not math.isfinite(loss)


def _asks_for_reason(step: StepFacts, number: int, wanted: int) -> bool:
    beyond_float16 = step.loss_scale is not None and step.loss_scale <= 1  # no scale takes its gradients there
    return step.applied or _is_bad(step.loss) or beyond_float16 or 3 * (number + 1) > 2 * wanted

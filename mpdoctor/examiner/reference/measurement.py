"""Compares kept steps of a training with the same steps in float32, and makes ReferenceFacts of it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Iterator

import tensorflow as tf

from mpdoctor.examiner.reference.kept_steps import KeptSteps
from mpdoctor.examiner.reference.same_draws import seed_put_back
from mpdoctor.examiner.reference.scale_search import OutOfTime, ScaleSearch
from mpdoctor.examiner.reference.twin_steps import NotComparable, StepRunner, Twins, compared_step
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.reference import ReferenceFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.reference.twin_steps import KeptStep
    from mpdoctor.examiner.replay.step_replay import StepReplay


class ReferenceMeasurement:
    """Compares the kept steps of all optimizers of a training; `seconds` is the time of --budget."""

    def __init__(self, look: StepReplay, layer_hooks: LayerHooks, steps: int, seconds: float) -> None:
        self._look, self._layer_hooks = look, layer_hooks
        self._steps, self._seconds = steps, seconds
        self._kept: dict[ObservedOptimizer, KeptSteps] = {}

    def note(self, observed: ObservedOptimizer) -> None:
        """Note a step of this optimizer."""
        kept = self._kept.setdefault(observed, KeptSteps(self._steps))
        kept.note(observed.steps, observed.repeat_all, scale_in_force(observed))

    def facts(self, observed: ObservedOptimizer) -> ReferenceFacts:
        """The comparison at the end of the training. The variables are as before, afterwards."""
        began = time.monotonic()
        dtype = next((dtype for dtype in HALF if self._layer_hooks.saw((dtype,))), "")
        try:
            measured = self._measured(observed, dtype, began + self._seconds)
        except NotComparable as reason:
            measured = ReferenceFacts(not_measured=str(reason))
        return replace(measured, dtype=dtype, seconds=time.monotonic() - began)

    def _measured(self, observed: ObservedOptimizer, dtype: str, until: float) -> ReferenceFacts:
        """The comparison. Raises NotComparable."""
        if not dtype:
            raise NotComparable("no layer computes in 16 bits")
        if observed.replicas > 1:
            raise NotComparable("several replicas train in step")
        noted = self._kept.get(observed)
        kept = [] if noted is None else noted.all(observed.steps, observed.repeat_all, scale_in_force(observed))
        if not kept:
            raise NotComparable("a step of an eager loop cannot be repeated")
        with self._repeating(observed, dtype) as runner:
            twins = self._twins(runner, kept, until)
            facts = ReferenceFacts(steps=tuple(map(compared_step, twins)))
            if dtype != "float16" or not observed.can_set_scale:
                return facts
            try:
                return replace(facts, room=ScaleSearch(runner, twins, until).room())
            except OutOfTime:
                return replace(facts, no_time=True)

    @contextmanager
    def last_step(self, observed: ObservedOptimizer, half: str = "float16") -> Iterator[tuple[StepRunner, KeptStep]]:
        """The last batch, and what runs it again. Raises NotComparable."""
        kept = KeptSteps(self._steps).all(observed.steps, observed.repeat_all, scale_in_force(observed))
        if not kept or observed.replicas > 1:
            raise NotComparable("the step cannot be repeated")
        with self._repeating(observed, half) as runner:
            yield runner, kept[-1]

    @contextmanager
    def _repeating(self, observed: ObservedOptimizer, dtype: str) -> Iterator[StepRunner]:
        set_scale = observed.set_scale if observed.can_set_scale else None
        with seed_put_back(), self._look.repeating() as catchers:
            catchers[observed].stops = observed.steps_a_call > 1
            yield StepRunner(
                observed.keras, self._layer_hooks, catchers[observed], set_scale, observed.variables, dtype
            )

    def _twins(self, runner: StepRunner, kept: list[KeptStep], until: float) -> list[Twins]:
        """The steps run in both precisions, as many as there is time for, the first one twice. Raises NotComparable."""
        twins: list[Twins] = []
        for step in kept:
            if not twins or time.monotonic() < until:
                twins.append(runner.twins(step, twice=not twins))
        return twins


def scale_in_force(observed: ObservedOptimizer) -> float | None:
    """The loss scale of the next step; None without loss scaling."""
    if observed.machine is None:
        return observed.fixed_scale
    with tf.init_scope():
        return observed.keras.scale_in_force(observed.chain[0])

"""Inner gradients, which a step takes while another tape records (in a gradient penalty, say): those of the last batch
that takes some, run again in float16 and in float32, are compared. Costs nothing in a program without any."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, NamedTuple

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.process.user_code import own_location
from mpdoctor.examiner.protocol.event_kinds import InnerGradients
from mpdoctor.examiner.reference.measurement import ReferenceMeasurement
from mpdoctor.examiner.reference.twin_steps import NotComparable, with_sublayers
from mpdoctor.examiner.replay.magnitudes import array_from_tensor, is_floating
from mpdoctor.facts.location import Location
from mpdoctor.facts.reference import InnerGradientFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.examination import Examination
    from mpdoctor.examiner.probe.earlier_calls import EarlierCalls
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.reference.twin_steps import KeptStep, StepRunner
    from mpdoctor.examiner.replay.step_replay import StepReplay

HALF = "float16"  # bfloat16 has float32's range
SHARE = 0.25  # of --budget


class InnerGradient(NamedTuple):
    """One call's, its tensors in one row."""

    at: Location | None
    numbers: np.ndarray


class InnerGradientWatch:
    """While it is entered: the gradients that are taken under another tape that records."""

    def __init__(self) -> None:
        self.found: list[InnerGradient] = []
        self._open: list[tf.GradientTape] = []
        self._release: list[Callable[[], None]] = []

    def __enter__(self) -> InnerGradientWatch:
        self._release = [
            replace_for_now(tf.GradientTape, "__enter__", self._begin),
            replace_for_now(tf.GradientTape, "__exit__", self._end),
            replace_for_now(tf.GradientTape, "gradient", self._differentiate),
        ]
        return self

    def __exit__(self, *error: object) -> None:
        while self._release:
            self._release.pop()()

    def _begin(self, original: Callable[..., object], tape: tf.GradientTape) -> object:
        self._open.append(tape)
        return original(tape)

    def _end(self, original: Callable[..., object], tape: tf.GradientTape, *error: object) -> object:
        self._open = [one for one in self._open if one is not tape]
        return original(tape, *error)

    def _differentiate(
        self, original: Callable[..., object], tape: tf.GradientTape, *args: object, **kwargs: object
    ) -> object:
        gradients = original(tape, *args, **kwargs)
        if any(other is not tape for other in self._open):
            self.found.append(InnerGradient(own_location(), _in_one_row(gradients)))
        return gradients


def tell_inner_gradients(
    examination: Examination, look: StepReplay, reported: list[ObservedOptimizer], earlier: EarlierCalls
) -> None:
    """Measure the inner gradients of each training that was reported last, by its last batch, and send them. Where no
    last batch takes any, as with a penalty of every fourth step, by the last batch that does."""
    if not examination.tapes.took_inner or not examination.layer_hooks.saw((HALF,)):
        return
    until = time.monotonic() + SHARE * examination.request.budget
    for batches in (slice(1), slice(1, None)):
        measured = False
        for place, observed in enumerate(reported):
            examination.events.stage("comparing with float32")
            measurement = ReferenceMeasurement(
                look, examination.layer_hooks, len(observed.steps), SHARE * examination.request.budget
            )
            with suppress(NotComparable), measurement.last_step(observed) as (runner, kept):
                last = [kept, *(kept._replace(repeat=repeat) for repeat in earlier.of(observed)[1:])]
                gradients = _first_found(observed, runner, last[batches], until)
                if gradients:
                    examination.events.send(InnerGradients(place - len(reported), gradients))
                    measured = True
        if measured:
            return


def _first_found(
    observed: ObservedOptimizer, runner: StepRunner, steps: list[KeptStep], until: float
) -> tuple[InnerGradientFacts, ...]:
    """The inner gradients of the first of these steps that takes any that can be compared. Raises NotComparable: nobody
    knows what they are in float32."""
    for step in steps:
        gradients = _compared(observed, runner, step)
        if gradients or time.monotonic() > until:
            return gradients
    return ()


def _compared(observed: ObservedOptimizer, runner: StepRunner, kept: KeptStep) -> tuple[InnerGradientFacts, ...]:
    """The step as it is, and with all layers in float32. () where the two take different gradients, or two of float32
    are not the same. Raises NotComparable."""
    with InnerGradientWatch() as half:
        layers = with_sublayers(observed.keras, runner.run(kept).seen.layers.values())
    if not half.found:
        return ()
    with InnerGradientWatch() as single:
        runner.run(kept, layers)
    shapes = [[(one.at, one.numbers.size) for one in run.found] for run in (half, single)]
    if shapes[0] != shapes[1]:
        return ()
    return tuple(_facts(one, other) for one, other in zip(half.found, single.found))


def _facts(half: InnerGradient, single: InnerGradient) -> InnerGradientFacts:
    present = single.numbers != 0
    return InnerGradientFacts(
        half.at,
        int(np.count_nonzero(present)),
        int(np.count_nonzero(present & (half.numbers == 0))),
        _apart(half.numbers, single.numbers),
    )


def _apart(half: np.ndarray, single: np.ndarray) -> float:
    if not np.isfinite(single).all():
        return 0.0  # no 16 bits did that
    norm = float(np.linalg.norm(single))
    distance = float(np.linalg.norm(half - single))
    return distance / norm if norm and np.isfinite(distance) else 0.0 if not distance else float("inf")


def _in_one_row(gradients: object) -> np.ndarray:
    tensors = [tf.convert_to_tensor(g) for g in tf.nest.flatten(gradients) if g is not None]
    rows = [array_from_tensor(tensor).ravel().astype(np.float64) for tensor in tensors if is_floating(tensor)]
    return np.concatenate(rows) if rows else np.zeros(0)

"""Repeats a whole training from its first weights: as it is, with all layers in float32, and as the two controls."""

from __future__ import annotations

import enum
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Callable, Dict, List, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.capture.layer_calls import dtype_name, flat_tensors
from mpdoctor.examiner.capture.open_call import OpenCall, OpenCallsObserver
from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.reference.same_draws import same_draws, seed_put_back
from mpdoctor.examiner.replay.marked_tensors import mapped
from mpdoctor.examiner.second_training.second_training import NotTried
from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    from typing import Iterable

    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasOptimizer, KerasVariable
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.second_training.played_steps import PlayedStep
    from mpdoctor.examiner.second_training.second_training import SecondTraining
    from mpdoctor.facts.training import StepFacts

    Calls = List[Dict[ObservedOptimizer, List[StepFacts]]]  # by call, the steps taken in it


class Rounding(enum.Enum):
    """What is rounded to 16 bits in a training in float32: nothing, the first weights, or also the outputs of the
    layers that compute in 16 bits in the user's training, and the gradients that arrive at these outputs."""

    NOTHING = "nothing"
    FIRST_WEIGHTS = "first weights"
    THROUGHOUT = "throughout"


class CalledLayers(OpenCallsObserver):
    """Notes the layers that are called while it is entered, and the dtypes that they put out, by path. What those in
    `to_round` put out in float32 is rounded to `half`, and so is the gradient that arrives there."""

    def __init__(self, layer_hooks: LayerHooks, to_round: Iterable[str] = (), half: str = "") -> None:
        super().__init__()
        self._layer_hooks, self._to_round, self._half = layer_hooks, frozenset(to_round), half
        self.layers: dict[str, KerasLayer] = {}  # in the order in which they returned
        self.dtypes: dict[str, set[str]] = {}

    def __enter__(self) -> CalledLayers:
        self._layer_hooks.observer = self
        return self

    def __exit__(self, *error: object) -> None:
        self._layer_hooks.observer = None

    # --- called by LayerHooks -------------------------------------------------------------------------------------
    def leave(self, call: OpenCall, outputs: object) -> object:
        self.abandon(call)
        self.layers.setdefault(call.path, call.layer)
        self.dtypes.setdefault(call.path, set()).update(map(dtype_name, flat_tensors(outputs)))
        return mapped(self._rounded, outputs) if call.path in self._to_round else outputs

    def _rounded(self, value: object) -> object:
        is_single = isinstance(value, tf.Tensor) and value.dtype == tf.float32
        return rounded(value, self._half) if is_single else value

    @property
    def in_half(self) -> list[str]:
        """Paths of layers that put out 16 bits, in the order in which they returned."""
        return [path for path, dtypes in self.dtypes.items() if dtypes & set(HALF)]


class TrainedOnceMore(NamedTuple):
    """`calls`: of the training, with the steps that each optimizer took in it."""

    calls: Calls
    seen: CalledLayers

    def steps(self, observed: ObservedOptimizer) -> list[StepFacts]:
        return [step for call in self.calls for step in call[observed]]


class TwinTraining:
    """Repeats the training of these optimizers. `call(step)` runs a step of the first training; `seconds` is the time
    for each repetition after its first call, as it is for the training."""

    def __init__(
        self,
        layer_hooks: LayerHooks,
        second: SecondTraining,
        call: Callable[[PlayedStep], None],
        optimizers: list[ObservedOptimizer],
        half: str,
        seconds: float,
    ) -> None:
        self._layer_hooks, self._second, self._call = layer_hooks, second, call
        self._optimizers, self._half, self._seconds = optimizers, half, seconds

    def run(
        self,
        layers: Iterable[KerasLayer] = (),
        skipping: TrainedOnceMore | None = None,
        rounding: Rounding = Rounding.NOTHING,
        most: int | None = None,
    ) -> TrainedOnceMore:
        """Repeat the training with these layers in float32, without the steps that were skipped in `skipping`, the run
        in 16 bits; at most `most` calls. Raises NotTried."""
        to_round = skipping.seen.in_half if skipping and rounding is Rounding.THROUGHOUT else ()
        with ExitStack() as stack:
            stack.enter_context(seed_put_back())
            stack.enter_context(same_draws(self._half))
            played = stack.enter_context(self._second.from_the_first_weights(layers))
            seen = stack.enter_context(CalledLayers(self._layer_hooks, to_round, self._half))
            tf.random.set_seed(1)
            for optimizer in self._optimizers:
                optimizer.unread()
                if rounding is not Rounding.NOTHING:
                    _round(optimizer.variables, self._half)
            return TrainedOnceMore(self._calls(played.all[:most], skipping), seen)

    def _calls(self, played: list[PlayedStep], skipping: TrainedOnceMore | None) -> Calls:
        calls: Calls = []
        first_call_at = 0.0
        for step in played if skipping is None else played[: len(skipping.calls)]:
            skipped = [] if skipping is None else _skipped(skipping.calls[len(calls)])
            before = [(v, tf.identity(v)) for optimizer in skipped for v in _moved_by(optimizer)]
            try:
                self._call(step)
            except Exception as error:  # of the user's step: two dtypes meet
                raise NotTried(f"the step raises when it is trained once more: {first_line(error)}") from error
            for variable, value in before:
                variable.assign(value)
            calls.append({optimizer: optimizer.steps_from_record() for optimizer in self._optimizers})
            first_call_at = first_call_at or time.monotonic()
            if time.monotonic() - first_call_at > self._seconds:
                break
        return calls


def _skipped(call: dict[ObservedOptimizer, list[StepFacts]]) -> list[ObservedOptimizer]:
    """The optimizers that skipped their steps in this call. Raises NotTried where one skipped some of several."""
    skipped = []
    for optimizer, steps in call.items():
        if not all(step.applied for step in steps):
            if any(step.applied for step in steps):
                raise NotTried("one call takes several steps, of which some were skipped")
            skipped.append(optimizer)
    return skipped


def _moved_by(observed: ObservedOptimizer) -> list[KerasVariable]:
    return [*observed.variables, *_own_variables(observed.innermost)]


def _own_variables(optimizer: KerasOptimizer) -> list[KerasVariable]:
    """The variables of the optimizer itself: its slots and its count of steps."""
    variables = optimizer.variables  # type: ignore[attr-defined]
    return list(variables() if callable(variables) else variables)


def _round(variables: Iterable[KerasVariable], half: str) -> None:
    for variable in variables:
        variable.assign(rounded(tf.convert_to_tensor(variable), half))


def rounded(value: tf.Tensor, half: str) -> tf.Tensor:
    """The value rounded to 16 bits and back to its dtype; numbers beyond the 16-bit range stay."""
    there = tf.cast(tf.cast(value, half), value.dtype)
    return tf.where(tf.math.is_finite(there), there, value)

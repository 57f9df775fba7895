"""One trial: runs a step again eagerly with some layers in float32, and returns its loss and gradients."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Callable, Iterable, NamedTuple

import tensorflow as tf

from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.keras.in_place import float32_in_place
from mpdoctor.examiner.replay.step_observer import Enough
from mpdoctor.examiner.replay.two_scales import GradientCatcher, Passage
from mpdoctor.examiner.replay.variable_snapshot import Snapshot, put_back
from mpdoctor.examiner.trials.step_outcome import SeenCall, StepOutcome
from mpdoctor.facts.remedies import ROOM

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer


class Case(NamedTuple):
    """One batch and the state that it is run from."""

    repeat: Callable[[], object]
    state: Snapshot


class Trial(NamedTuple):
    """What one step showed. `error`: what it raised, "" for nothing."""

    calls: list[SeenCall]
    passage: Passage | None = None
    error: str = ""

    @property
    def is_finite(self) -> bool:
        """Whether loss and gradients were, and gradients there were. Those that a bare optimizer of Keras 2 is given
        are only seen to arrive, and those that a wrapper drops are only seen at the outermost one."""
        if self.error or self.passage is None:
            return False
        norms = {**self.passage.arrived, **self.passage.applied}
        seen_loss = bool(self.passage.taped)
        finite = bool(norms) and all(math.isfinite(norm) for norm in norms.values())
        return finite and (math.isfinite(self.passage.loss) or not seen_loss)


class TrialRunner:
    """Runs trials of one optimizer's steps. The caller has steps run eagerly and change nothing."""

    def __init__(
        self,
        keras: KerasAdapter,
        layer_hooks: LayerHooks,
        catcher: GradientCatcher,
        set_scale: Callable[[float], None] | None,
    ) -> None:
        self._keras, self._layer_hooks, self._catcher, self._set_scale = keras, layer_hooks, catcher, set_scale

    def run(
        self, layers: Iterable[KerasLayer], case: Case, outputs_in_float32: bool = False, scale: float = ROOM
    ) -> Trial:
        """`scale`: of the loss, where it has one; by ROOM the gradients get as much room as what goes forward."""
        put_back(case.state)
        if self._set_scale is not None:
            self._set_scale(scale)
        tf.random.set_seed(1)
        error = ""
        outcome = StepOutcome(self._keras, self._layer_hooks, outputs_in_float32)
        with float32_in_place(self._keras, layers), suppress(Enough), outcome:
            try:
                case.repeat()
            except Exception as raised:  # of the user's step: two dtypes meet, or it is fit for graphs only
                error = first_line(raised)
        return Trial(outcome.calls, self._catcher.take(), error)

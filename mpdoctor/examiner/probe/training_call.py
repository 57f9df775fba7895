"""One training call of the program, and its step, repeated as Keras runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from mpdoctor.examiner.keras.private_state import all_layers
from mpdoctor.examiner.keras.replicas import run_in_replicas
from mpdoctor.facts.model import ArrayFacts, CallFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer, KerasModel


class TrainingCall:
    """One training call of the program: fit() or train_on_batch() of one model, or its own loop.

    model
        None for a loop: whose variables are trained is seen when gradients arrive.
    batch
        What the last step was given; None in a loop.
    make_graph_anew
        Has Keras trace its step once more before the next one.
    """

    def __init__(self, call: CallFacts, model: KerasModel | None, data: tuple[ArrayFacts, ...] = ()) -> None:
        self.call, self.model, self.data = call, model, data
        self.batch: object = None
        self.observed = False
        self.make_graph_anew: Callable[[], object] = lambda: None
        self._trainable: list[tuple[KerasLayer, bool]] = []

    def begin_step(self, batch: object) -> None:
        if self.batch is None:
            self._trainable = [(layer, layer.trainable) for layer in all_layers(self.model)]
        self.batch = batch

    def repeat_step(self, batch: object) -> None:
        """Repeat a step with the layers trainable that were so when it was traced: Keras does not look again,
        either."""
        assert self.model is not None, "a loop repeats its own function"
        now = [(layer, layer.trainable) for layer, _ in self._trainable]
        _set_trainable(self._trainable)
        try:
            run_in_replicas(self.model, self.model.train_step, batch)
        finally:
            _set_trainable(now)

    @property
    def replicas(self) -> int:
        strategy = getattr(self.model, "distribute_strategy", None)
        return 1 if strategy is None else int(strategy.num_replicas_in_sync)


def _set_trainable(wanted: list[tuple[KerasLayer, bool]]) -> None:
    for layer, trainable in wanted:  # outer layers first: they pass their own on to the inner ones
        if layer.trainable is not trainable:
            layer.trainable = trainable

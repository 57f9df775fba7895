"""Does the loss leave that of the same training in float32, and with which layer does that begin?

In 16 bits and in float32, each once more from the first weights. Where both part, in float32 once more for a few steps,
to see that its random numbers can be repeated; from rounded weights, to see how far rounding alone carries this loss;
and with single layers in float32, or all of a class.
"""

from __future__ import annotations

import math
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from mpdoctor.examiner.reference.comparison import REPEATABLE
from mpdoctor.examiner.reference.twin_steps import with_sublayers
from mpdoctor.examiner.reference.twin_training import Rounding
from mpdoctor.examiner.second_training.second_training import NotTried
from mpdoctor.facts.divergence import FEWEST_STEPS, DivergenceFacts, TriedLayer
from mpdoctor.facts.reference import FAR

if TYPE_CHECKING:
    from typing import Iterable

    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.reference.twin_training import TrainedOnceMore, TwinTraining
    from mpdoctor.facts.reference import ReferenceFacts

RUNS = 8  # at most, that share the budget
REPEATED = 3  # calls


class DivergenceSearch:
    """Compares the loss of one optimizer in 16 bits with that in float32, and finds the layer that makes the
    difference."""

    def __init__(
        self, keras: KerasAdapter, training: TwinTraining, observed: ObservedOptimizer, reference: ReferenceFacts
    ) -> None:
        self._keras, self._training, self._observed = keras, training, observed
        self._reference = reference

    def facts(self) -> DivergenceFacts:
        began = time.monotonic()
        try:
            divergence = self._divergence()
        except NotTried as reason:
            divergence = DivergenceFacts(not_measured=str(reason))
        return replace(divergence, dtype=self._reference.dtype, seconds=time.monotonic() - began)

    def _divergence(self) -> DivergenceFacts:
        """The comparison. Raises NotTried."""
        half = self._training.run()
        layers = with_sublayers(self._keras, half.seen.layers.values())
        single = self._training.run(layers, skipping=half)
        for path in single.seen.in_half:
            raise NotTried(f"`{path}` puts out 16 bits under any policy that is set later")
        divergence = self._compared(half, single)
        if not divergence.is_apart:
            return divergence
        self._repeat(layers, half, single)
        rounded, throughout = (
            self._losses(self._training.run(layers, half, rounding), divergence.steps)
            for rounding in (Rounding.FIRST_WEIGHTS, Rounding.THROUGHOUT)
        )
        divergence = replace(divergence, rounded=rounded, rounded_throughout=throughout)
        return replace(divergence, layers=self._tried(divergence, half)) if divergence.diverges else divergence

    def _compared(self, half: TrainedOnceMore, single: TrainedOnceMore) -> DivergenceFacts:
        pairs = list(zip(half.steps(self._observed), single.steps(self._observed)))
        steps = tuple(n for n, pair in enumerate(pairs) if all(step.applied for step in pair))
        if len(steps) < FEWEST_STEPS:
            raise NotTried(f"{len(steps)} steps could be compared, fewer than {FEWEST_STEPS}")
        return DivergenceFacts(self._reference.dtype, steps, self._losses(half, steps), self._losses(single, steps))

    def _losses(self, run: TrainedOnceMore, steps: tuple[int, ...]) -> tuple[float, ...]:
        """The losses of these steps. Raises NotTried where one is not known."""
        taken = run.steps(self._observed)
        losses = [taken[step].loss if step < len(taken) else None for step in steps]
        known = tuple(loss for loss in losses if loss is not None)
        if len(known) < len(steps):
            fewer = len(taken) <= steps[-1]
            raise NotTried("the time of --budget was spent" if fewer else "the loss of a step is not known")
        return known

    def _repeat(self, layers: list[KerasLayer], half: TrainedOnceMore, single: TrainedOnceMore) -> None:
        """Check that two trainings in float32 have the same losses. Raises NotTried where they have not."""
        again = self._training.run(layers, skipping=half, most=REPEATED)
        for first, second in zip(single.steps(self._observed), again.steps(self._observed)):
            if not math.isclose(first.loss or 0.0, second.loss or 0.0, rel_tol=REPEATABLE, abs_tol=1e-30):
                raise NotTried("two trainings in float32 differ: their random numbers cannot be repeated")

    # --- where it begins ------------------------------------------------------------------------------------------
    def _tried(self, divergence: DivergenceFacts, half: TrainedOnceMore) -> tuple[TriedLayer, ...]:
        """The layers that were tried in float32, up to the first that heals."""
        tried: list[TriedLayer] = []
        for paths in self._to_try(half):
            layers = with_sublayers(self._keras, [half.seen.layers[path] for path in paths])
            losses = self._losses(self._training.run(layers, skipping=half), divergence.steps)
            stays = not divergence.parts_from_float32(losses)
            tried.append(TriedLayer(paths[0], losses, stays, paths[1:]))
            if stays:
                break
        return tuple(tried)

    def _to_try(self, half: TrainedOnceMore) -> Iterable[tuple[str, ...]]:
        """The first layer whose output is far from float32's, and the last one in 16 bits, each alone; then the first
        one with the others of its class, of which each may lose as much."""
        of_all = half.seen.layers
        alone = [path for path in dict.fromkeys([*self._first_far(), *half.seen.in_half[-1:]]) if path in of_all]
        yield from ((path,) for path in alone)
        for first in alone[:1]:
            alike = [path for path in half.seen.in_half if type(of_all[path]) is type(of_all[first])]
            if 1 < len(alike) < len(half.seen.in_half):
                yield (first, *(path for path in alike if path != first))

    def _first_far(self) -> list[str]:
        first = self._reference.steps[0].layers if self._reference.steps else ()
        return [layer.path for layer in first if layer.apart is not None and layer.apart >= FAR][:1]

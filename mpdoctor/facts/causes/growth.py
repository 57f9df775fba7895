"""The growth of weights and loss in a training that diverges."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass

FEWEST_LEAPS = 2  # a batch far beyond the others makes one
RAN_AWAY = 100.0  # times what the weights began with


@dataclass(frozen=True)
class GrowthFacts:
    """How the weights grew while the loss rose.

    start
        The largest magnitude of a weight before the first step.
    rises
        (step, its loss, the largest weight after it), where the loss was at least twice that of the rise before, or of
        the first step; the loss is inf where the first rise went to inf or NaN.
    learning_rate
        The innermost optimizer's at the end; None where it has none that is a number.
    scaled_gradients
        Whether the loss was scaled and nothing was seen to unscale the gradients: they may be why.
    """

    start: float
    rises: tuple[tuple[int, float, float], ...]
    learning_rate: float | None = None
    scaled_gradients: bool = False

    def runs_away(self, before: int | None = None) -> bool:
        """Whether weights and loss ran away together, in more than one leap, before this step (from 0 on)."""
        rises = [rise for rise in self.rises if before is None or rise[0] <= before]
        if not rises or self.start <= 0:
            return False
        weights = [self.start, *(weight for _, _, weight in rises)]
        leaps = sum(later >= 2 * earlier for earlier, later in zip(weights, weights[1:]))
        return leaps >= FEWEST_LEAPS and weights[-1] >= RAN_AWAY * self.start

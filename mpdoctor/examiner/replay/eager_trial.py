"""An eager loop at two loss scales: its next steps run at a low and a high scale in turn, and change nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, ContextManager

from mpdoctor.examiner.replay.scale_pairs import pairs_from_scale
from mpdoctor.examiner.replay.two_scales import GradientCatcher, Passage, mean_of_passages

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer

TRIAL_STEPS = 4  # of an eager loop, spent on two scales


class EagerTrial:
    """An eager loop at two scales, which only the user's code can drive: its next steps run at a low and a high scale
    in turn and change nothing. Their batches differ, which moves an exponent far less than a defect does."""

    def __init__(
        self, observed: ObservedOptimizer, repeating: ContextManager[dict[ObservedOptimizer, GradientCatcher]]
    ) -> None:
        self.observed, self._repeating = observed, repeating
        self.pair = pairs_from_scale(observed.steps[-1].loss_scale)[0]
        self.catcher = repeating.__enter__()[observed]
        self._seen: tuple[list[Passage], list[Passage]] = ([], [])
        observed.set_scale(self.pair[0])

    def go_on(self) -> tuple[Passage, Passage] | None:
        """Take note of a step of the user's loop; the means at both scales once there were enough steps, else None."""
        done = len(self._seen[0]) + len(self._seen[1]) + 1
        self._seen[(done - 1) % 2].append(self.catcher.take())
        if done < TRIAL_STEPS:
            self.observed.set_scale(self.pair[done % 2])
            return None
        self.abandon()
        return mean_of_passages(self._seen[0]), mean_of_passages(self._seen[1])

    def abandon(self) -> None:
        """End the trial: everything is what it was before."""
        self._repeating.__exit__(None, None, None)

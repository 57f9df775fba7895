"""Whether a training is in trouble, by its loss scale: stuck at the floor, collapsing, or skipping every step.

Pure: it is told rows of steps, and says each trouble once, in words, and when it is over.
"""

from __future__ import annotations

import math
from typing import Any

from mpdoctor.facts.half_dtypes import LOST_SCALE
from mpdoctor.training.monitoring.run_file import Row, RunFile

SKIPS_TO_SETTLE = 5  # beyond those that take a scale from where it starts to 1
FEWEST_SKIPS = 20
RECOVERED_AFTER = 100  # applied steps in a row


class Trouble:
    """What is wrong: "stuck", "collapsing" or "skipping", and the words for it."""

    def __init__(self, kind: str, words: str) -> None:
        self.kind, self.words = kind, words


class TroubleWatch:
    """`floor` is None where the scale has none."""

    def __init__(self, floor: float | None, is_dynamic: bool) -> None:
        self.floor, self.is_dynamic = floor, is_dynamic
        self.trouble: Trouble | None = None
        self.skipped_in_a_row = self.applied_in_a_row = 0
        self.first_skip: int | None = None
        self._scale_before = 1.0
        self._scale: float | None = None

    def after(self, step: int, row: Row) -> Trouble | None:
        """A trouble that begins with these steps, of which `step` is the last."""
        self._count(step, row)
        if self.trouble is not None:
            return None
        self.trouble = self._trouble_in_row(row)
        return self.trouble

    def is_over(self) -> bool:
        """Whether the trouble that was told has gone: a new one will be told again."""
        if self.trouble is None or self.applied_in_a_row < RECOVERED_AFTER or self._is_lost(self._scale or 0.0):
            return False
        self.trouble = None
        return True

    def _count(self, step: int, row: Row) -> None:
        before, self._scale = self._scale, row.scale
        if not row.skipped:
            self.applied_in_a_row += row.steps
            self.skipped_in_a_row = 0
            if self.applied_in_a_row >= RECOVERED_AFTER:
                self.first_skip = None
            return
        if not self.skipped_in_a_row:
            self._scale_before = row.high if before is None else max(before, row.high)
        self.applied_in_a_row = 0
        if row.skipped < row.steps:  # it is not known which: only what is certain counts
            self.skipped_in_a_row = 1
        else:
            self.skipped_in_a_row += row.steps
        self.first_skip = step - self.skipped_in_a_row + 1

    def _trouble_in_row(self, row: Row) -> Trouble | None:
        scale = row.scale
        if not row.skipped and not self._is_lost(scale):
            return None
        enough = FEWEST_SKIPS
        if self.is_dynamic and 1 < self._scale_before < math.inf:
            enough = max(enough, math.ceil(math.log2(self._scale_before)) + SKIPS_TO_SETTLE)
        if self.skipped_in_a_row >= enough:
            return self._trouble_of_skips(scale)
        if self.is_dynamic and self._is_lost(scale):
            return Trouble(
                "collapsing",
                f"the loss scale has gone to {scale:.3g}: gradients below 1 lose their digits at such a scale",
            )
        return None

    def _is_lost(self, scale: float) -> bool:
        return self.floor is None and not LOST_SCALE <= scale < math.inf

    def _trouble_of_skips(self, scale: float) -> Trouble:
        skipped = f"{self.skipped_in_a_row} steps in a row were skipped since step {self.first_skip}"
        if not self.is_dynamic:
            return Trouble("skipping", f"{skipped}; the loss scale is fixed at {scale:g}")
        if self.floor is not None and scale <= self.floor:
            return Trouble("stuck", f"{skipped}; the loss scale lies at its floor of {self.floor:g}")
        if self.floor is None and (scale < 1 or math.isinf(scale)):
            return Trouble("collapsing", f"{skipped}; the loss scale went from {self._scale_before:g} to {scale:.3g}")
        return Trouble("skipping", f"{skipped}; the loss scale is {scale:g}")


def warning_text(trouble: Trouble, culprit: dict[str, Any] | None) -> str:
    """For a warning: what is wrong, since when, by which layer, and what to do next."""
    why = ""
    if culprit is not None and culprit.get("layer"):
        where = f" ({culprit['file']}:{culprit['line']})" if culprit.get("file") else ""
        kind = f" ({culprit['layer_class']})" if culprit.get("layer_class") else ""
        why = f" In the replayed batch {culprit['what']} of layer {culprit['layer']!r}{kind} {culprit['how']}{where}."
    elif culprit is not None and culprit.get("variable"):
        why = f" In the replayed batch {culprit['what']} {culprit['how']}."
    return f"Nothing is trained: {trouble.words}.{why}"


def what_next(file: RunFile | None, kept: str) -> str:
    if file is None:
        return ""
    course = f" `mpdoctor show {file.path}` has the course"
    again = f"; `mpdoctor check --from-run {file.path}` with the script trains on that batch ({kept})" if kept else ""
    return f"{course}{again}."


def nothing_to_watch(optimizers: list[Any]) -> str:
    names = ", ".join(type(optimizer).__name__ for optimizer in optimizers)
    return (
        f"LossScaleMonitor finds nothing to watch: {names} scales no loss. Under the policy mixed_float16 `compile` "
        "puts a LossScaleOptimizer around it; in a loop of your own you do."
    )

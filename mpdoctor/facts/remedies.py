"""Layers set to float32 on the failing batches of a training, and whether that made their steps finite."""

from __future__ import annotations

from typing import Literal

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location

ROOM = 4  # times: what stays in 16 bits must be this far below 65504
FAILS_IN_FLOAT32 = "with all layers in float32 the step is not finite either"  # the reason of a remedy that failed


RemedyKind = Literal["float32-layers", "float32-loss", "smaller-scale"]
TrialResult = Literal["healed", "failed", "not-tried"]


@dataclass(frozen=True)
class RemedyFacts:
    """One remedy, tried in place on live layers; nothing of it remains.

    kind
        "float32-layers" (these layers compute in float32), "float32-loss" (the model's outputs are cast to float32
        before the loss sees them) or "smaller-scale" (the fixed loss scale is lower).
    tried
        "healed": loss and gradients were finite on every batch, at a loss scale of ROOM, and what stayed in 16 bits
        was at most 65504 / ROOM. "failed": they were not, or nearly all layers would be needed. "not-tried": no trial
        counts.
    layers, locations
        Paths of the layers, and where each is made, None where the program's own line does not show it. Of
        "failed" and "not-tried" the layers that were looked at.
    with_parts
        The layers that were tried together with their copies of a layer of the program's, which need the same dtype, as
        in a Bidirectional.
    reason
        Why it is "failed" or "not-tried", a clause. Of "healed" why `not_enough` did not heal, where its steps were
        finite; "" else.
    not_enough
        A smaller set of these layers, the first that was tried and did not heal; () where there was none.
    needed
        The layers that are necessary: with all layers but one of these in float32, a batch was not finite at a loss
        scale of 1.
    scale
        The largest power of 2 at ROOM times which every batch is finite; None of another kind, or where none is.
    batches, trials, seconds
        The batches that a healing trial was run on, all trials of the search, and the time that they took.
    """

    kind: RemedyKind
    tried: TrialResult
    layers: tuple[str, ...] = ()
    locations: tuple[Location | None, ...] = ()
    with_parts: tuple[str, ...] = ()
    reason: str = ""
    not_enough: tuple[str, ...] = ()
    needed: tuple[str, ...] = ()
    batches: int = 0
    trials: int = 0
    seconds: float = 0.0
    scale: float | None = None

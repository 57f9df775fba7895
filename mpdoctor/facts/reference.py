"""What a step in 16 bits loses against float32: in gradients and layers, and the loss scales that fit."""

from __future__ import annotations

import math
from typing import Literal

from mpdoctor.facts.divergence import DivergenceFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location

RELEVANT = 1e-4  # of the norm of the whole gradient: below, a variable's numbers are noise (a bias before a BatchNorm)
FLUSHED_TOO_MUCH = 0.05  # share of a variable's gradient
FAR = 0.05  # of its norm, a layer's output from float32's on the same weights

LOW_SCALE = 128.0  # of a loss scale, whose default is 32768 in both Kerases

Moment = Literal["first", "settled", "late"]


@dataclass(frozen=True)
class VariableFidelity:
    """The gradient of one variable, unscaled, in 16 bits against float32.

    nonzero
        How many of its elements are not 0 in float32.
    flushed
        Share of these that are 0 in 16 bits.
    overflowed
        Share of all elements that are inf or NaN in 16 bits.
    cosine, size
        Of the angle between both, and the norm in 16 bits by that in float32; None where one of them is 0 or not
        finite.
    norm_share
        Its norm in float32 by that of the whole gradient.
    """

    path: str
    nonzero: int
    flushed: float
    overflowed: float
    cosine: float | None = None
    size: float | None = None
    norm_share: float = 0.0

    @property
    def is_relevant(self) -> bool:
        return self.norm_share >= RELEVANT

    @property
    def underflows(self) -> bool:
        return self.is_relevant and self.flushed >= FLUSHED_TOO_MUCH


@dataclass(frozen=True)
class LayerRange:
    """What a layer put out in 16 bits, over all its calls in the step.

    largest, smallest
        Largest and smallest non-zero finite magnitude; 0.0 where there is none.
    near_limit, subnormal
        Share of the values beyond 0.9 · 65504, inf and NaN among them, and share of the non-zero ones below 2^-14.
    flushed
        Of the gradient that arrives at its output, the share of float32's non-zero elements that are 0 in 16 bits;
        None where none arrives.
    apart
        Norm of its difference to what the layer puts out in float32, by the norm of that, over a sample of the
        elements; None where these are not known or 0.
    """

    path: str
    dtype: str
    largest: float
    smallest: float
    near_limit: float
    subnormal: float
    flushed: float | None = None
    apart: float | None = None


@dataclass(frozen=True)
class ComparedStep:
    """One batch, with the weights that the training had then, once as the model is and once in float32.

    step
        From 0 on.
    loss_scale
        That was in force; None without loss scaling.
    cosine
        Between the whole gradients; None where that in 16 bits is not finite, or one is 0.
    layers
        In the order in which they returned; those that put out 16 bits.
    begins
        The layer at whose output, on the way back, the first gradient with FLUSHED_TOO_MUCH zeros arrives; "" where
        none does.
    """

    moment: Moment
    step: int
    loss_scale: float | None = None
    cosine: float | None = None
    variables: tuple[VariableFidelity, ...] = ()
    layers: tuple[LayerRange, ...] = ()
    begins: str = ""


@dataclass(frozen=True)
class ScaleRoom:
    """Between which loss scales, powers of 2, the gradients of the batches tried fit into float16.

    lowest
        Two powers above `flushes_below`, for weights that move, but no more than `highest`; None where there is none.
    overflows_above
        The largest at which all gradients are finite; None where they are at none.
    replays
        How many steps were run for it.
    overflowing, flushed
        Where there is no room, why: the variables whose gradients are not finite at twice `overflows_above`, and those
        that are flushed at `overflows_above` or within two powers below.
    flushes_below
        The smallest at which, and at the next two powers, no relevant variable has FLUSHED_TOO_MUCH flushed; None where
        there is none up to a quarter of `overflows_above`.
    cosine
        At `middle`, between the whole gradients in 16 bits and in float32: the smallest of the batches tried. None
        without a room, and where there was no time for it.
    """

    lowest: float | None = None
    overflows_above: float | None = None
    replays: int = 0
    overflowing: tuple[str, ...] = ()
    flushed: tuple[str, ...] = ()
    flushes_below: float | None = None
    cosine: float | None = None

    @property
    def highest(self) -> float | None:
        """Two powers below the largest, for weights that move."""
        return None if self.overflows_above is None else self.overflows_above / 4

    @property
    def is_empty(self) -> bool:
        """Whether no loss scale lies in it; nor does one between numbers that are none, in a damaged report."""
        if self.lowest is None or self.highest is None:
            return True
        return not 0 < self.lowest <= self.highest < math.inf

    @property
    def middle(self) -> float | None:
        """A fixed scale in the middle of the room, a power of 2, and not below 1 if the room reaches above 1; None
        where there is no room."""
        if self.lowest is None or self.highest is None or self.is_empty:
            return None
        lowest = max(self.lowest, min(1.0, self.highest))
        return float(2.0 ** math.ceil((math.log2(lowest) + math.log2(self.highest)) / 2))


@dataclass(frozen=True)
class ReferenceFacts:
    """A training's steps against their float32 twins.

    dtype
        "float16" or "bfloat16": what the layers compute in.
    room
        None without a loss scale that can be set, in bfloat16, and where there was no time for it.
    no_time
        Whether the budget was spent before the room was found.
    not_measured
        Why there are no numbers, a clause; "" where there are.
    divergence
        Of the whole training, run once more; None where that was not tried.
    in_tf32
        Whether the float32 twins multiplied matrices in TF32, as a GPU does unless it is told not to.
    """

    dtype: str = ""
    steps: tuple[ComparedStep, ...] = ()
    room: ScaleRoom | None = None
    no_time: bool = False
    seconds: float = 0.0
    not_measured: str = ""
    divergence: DivergenceFacts | None = None
    in_tf32: bool = False

    @property
    def worst_step(self) -> ComparedStep | None:
        """The one with the smallest cosine."""
        compared = [step for step in self.steps if step.cosine is not None]
        return min(compared, key=lambda step: step.cosine or 0.0, default=None)

    @property
    def fidelity(self) -> float | None:
        step = self.worst_step
        return None if step is None else step.cosine

    @property
    def worst_variable(self) -> VariableFidelity | None:
        """Among the relevant ones of that step; None where all have the cosine of the whole."""
        step = self.worst_step
        relevant = [] if step is None else [v for v in step.variables if v.is_relevant and v.cosine is not None]
        return min(relevant, key=lambda variable: variable.cosine or 0.0, default=None)


def power_text(scale: float) -> str:
    """ "2^15", or the number where it is no power of 2."""
    if not 0 < scale < math.inf:
        return f"{scale:g}"
    power = round(math.log2(scale))
    return f"2^{power}" if 2.0**power == scale else f"{scale:g}"


def cosine_text(cosine: float) -> str:
    """The cosine with as many digits as are needed to tell it from 1."""
    for digits in (2, 4, 6):
        text = f"{cosine:.{digits}f}"
        if float(text) < 1 and abs(float(text) - cosine) <= (1 - cosine) / 2:
            return text
    return f"{cosine:.6g}"


@dataclass(frozen=True)
class InnerGradientFacts:
    """A gradient that is taken while another tape records, a gradient penalty's say, beside the same in float32: of one
    batch, from the same weights and the same random numbers.

    location
        The user's line that takes it.
    numbers
        How many of its numbers are not 0 in float32.
    flushed
        How many of these are 0 in 16 bits.
    apart
        Norm of the difference from float32's, by the norm of the latter; inf where it is finite in float32 alone.
    """

    location: Location | None
    numbers: int
    flushed: int
    apart: float

    @property
    def is_kept(self) -> bool:
        """Whether 16 bits hold it. Nothing is known of one that is 0 in float32 as well."""
        return self.numbers > 0 and self.flushed < FLUSHED_TOO_MUCH * self.numbers and self.apart < FAR

    @property
    def is_lost(self) -> bool:
        return self.flushed >= FLUSHED_TOO_MUCH * max(self.numbers, 1) or not math.isfinite(self.apart)

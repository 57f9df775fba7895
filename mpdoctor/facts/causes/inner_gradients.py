"""A gradient that is taken while another tape records, a gradient penalty's say, beside the same in float32."""

from __future__ import annotations

import math

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.facts.reference import FAR, FLUSHED_TOO_MUCH


@dataclass(frozen=True)
class InnerGradientFacts:
    """Of one batch, from the same weights and the same random numbers.

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

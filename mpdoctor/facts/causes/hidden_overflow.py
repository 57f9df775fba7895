"""What no skipped step shows: a result beyond float16 that later operations make finite again, or a wave without its
phase."""

from __future__ import annotations

from mpdoctor.facts.causes.operations import OperationFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location


@dataclass(frozen=True)
class HiddenOverflowFacts:
    """An operation in a layer that made inf of finite float16 numbers, in a step whose gradients were finite: 1 / inf
    is 0, tanh(inf) is 1. Or a sine or cosine of angles so large that neighbouring 16-bit numbers lie half a radian or
    more apart. Only where the layer puts out something else than it does in float32.

    layer, class_name
        The innermost layer that was called then: its path and its class.
    operation
        What overflowed; `in_float32` is finite. Of a wave there is no `in_float32`.
    apart
        Norm of the difference between what the layer puts out and what it puts out in float32 on the same input, by the
        norm of the latter, over a sample of the elements.
    layers, locations
        This layer and those in which a result overflows once it computes in float32, and so on, with the user's lines
        that make them.
    is_healed
        Whether nothing overflows in any layer once all of these compute in float32.
    """

    layer: str
    class_name: str
    operation: OperationFacts
    apart: float
    layers: tuple[str, ...] = ()
    locations: tuple[Location | None, ...] = ()
    is_healed: bool = False

    @property
    def is_wave(self) -> bool:
        return self.operation.name in ("Sin", "Cos")

"""Functions that divide by the size of their argument and add an epsilon to it themselves."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import NO_RECIPROCAL, ROUNDED_TO_ZERO
from mpdoctor.program.events import Call
from mpdoctor.program.values import known

# Function → the place, the name and the default of its epsilon, and up to which it protects against nothing. The bound
# of `normalize` is for the norm: its reciprocal must not be infinite.
NORMALIZING = {
    "l2_normalize": (2, "epsilon", 1e-12, ROUNDED_TO_ZERO),
    "normalize": (3, "epsilon", 1e-7, NO_RECIPROCAL),
    "batch_normalization": (5, "variance_epsilon", 1e-3, ROUNDED_TO_ZERO),
}
OF_BACKEND = "keras.backend.l2_normalize"


def is_by_squares(call: Call, name: str) -> bool:
    """Whether it divides by a root of squares, as `ops.normalize` does unless it is told another order."""
    order = call.argument(2, "order") if name == "normalize" else None
    return order is None or known(order) == 2

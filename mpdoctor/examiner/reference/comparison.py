"""Compares two gradients of one step number by number, with plain NumPy in float64."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Dict

import numpy as np

from mpdoctor.facts.half_dtypes import ROUNDED_TO_ZERO
from mpdoctor.facts.reference import RELEVANT, VariableFidelity

if TYPE_CHECKING:
    Gradients = Dict[str, np.ndarray]  # by variable, unscaled, as float32

REPEATABLE = 1e-4  # of the norm: two runs of one step in float32 differ by less


def variables_compared(half: Gradients, single: Gradients) -> tuple[VariableFidelity, ...]:
    """The gradients in 16 bits and in float32 compared, for each variable that has both."""
    whole_norm = norm(single)
    return tuple(_compared(path, half[path], single[path], whole_norm) for path in single if path in half)


def _compared(path: str, half: np.ndarray, single: np.ndarray, whole_norm: float) -> VariableFidelity:
    nonzero = single != 0
    count = int(np.count_nonzero(nonzero))
    flushed = int(np.count_nonzero(nonzero & (half == 0)))
    own = float(np.linalg.norm(single.astype(np.float64)))
    other = float(np.linalg.norm(half.astype(np.float64)))
    known = own > 0 and 0 < other < np.inf
    return VariableFidelity(
        path=path,
        nonzero=count,
        flushed=flushed / count if count else 0.0,
        overflowed=float(np.mean(~np.isfinite(half))) if half.size else 0.0,
        cosine=cosine({path: half}, {path: single}),
        size=other / own if known else None,
        norm_share=own / whole_norm if whole_norm > 0 else 0.0,
    )


def cosine(half: Gradients, single: Gradients) -> float | None:
    """The cosine of the angle between both gradients as one vector each; None where one is 0 or not finite."""
    paths = [path for path in single if path in half]
    product = sum(float(np.vdot(half[path].astype(np.float64), single[path].astype(np.float64))) for path in paths)
    lengths = norm({path: half[path] for path in paths}) * norm({path: single[path] for path in paths})
    return min(product / lengths, 1.0) if 0 < lengths < np.inf and np.isfinite(product) else None


def norm(gradients: Gradients) -> float:
    """NaN or inf where a number is not finite."""
    return float(np.sqrt(sum(float(np.sum(np.square(g.astype(np.float64)))) for g in gradients.values())))


def repeats(first: Gradients, second: Gradients) -> bool:
    """Whether two runs of one step gave the same, but for the order in which a device adds up."""
    if first.keys() != second.keys():
        return False
    return norm({path: first[path] - second[path] for path in first}) <= REPEATABLE * norm(first)


def relevant_paths(gradients: Gradients) -> list[str]:
    """The variables whose gradient has a relevant share in the whole gradient."""
    whole_norm = norm(gradients)
    return [path for path in gradients if norm({path: gradients[path]}) >= RELEVANT * whole_norm > 0]


def lowest_power(gradient: np.ndarray, share: float) -> int:
    """The smallest power of 2 times which a smaller share than this of the non-zero elements is 0 in float16."""
    magnitudes = np.sort(np.abs(gradient[gradient != 0]).astype(np.float64), axis=None)
    held = magnitudes[min(math.ceil(share * magnitudes.size), magnitudes.size) - 1]
    return math.floor(math.log2(ROUNDED_TO_ZERO / held)) + 1


def is_finite(gradients: Gradients) -> bool:
    return bool(gradients) and all(bool(np.isfinite(gradient).all()) for gradient in gradients.values())

"""Where a failing batch broke: the first layer, or the first gradient, that was not finite."""

from __future__ import annotations

from mpdoctor.facts.causes.operations import OperationFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location


@dataclass(frozen=True)
class TensorFacts:
    """Magnitudes of one tensor: one frame that led up to an overflow, or the overflow itself.

    largest, smallest
        Largest and smallest non-zero finite absolute value; 0.0 where there is none.
    near_limit, subnormal
        Share of the finite values beyond 0.9 · 65504, and share of non-zero ones below 2^-14.
    nonfinite
        Share of values that are inf or NaN.
    call
        Which call of the layer in this step, from 1 on: a shared layer is called several times.
    """

    layer: str
    layer_class: str
    dtype: str
    shape: tuple[int, ...]
    largest: float
    smallest: float
    near_limit: float
    subnormal: float
    nonfinite: float
    location: Location | None = None
    call: int = 1


@dataclass(frozen=True)
class CulpritFacts:
    """The first layer whose output was not finite when a failing batch was run again, and what led up to it.

    inputs_finite
        True if everything that went into the layer was finite: then the layer itself is where it broke.
    calls
        How often this layer was called in that step.
    operation
        What broke inside the layer.
    is_function
        True of a function between the layers of a functional model, `h * 60000.0`: it has no dtype policy to set.
    """

    step: int
    overflow: TensorFacts
    frames: tuple[TensorFacts, ...] = ()
    inputs_finite: bool = True
    calls: int = 1
    operation: OperationFacts | None = None
    is_function: bool = False


@dataclass(frozen=True)
class GradientCulpritFacts:
    """The first gradient that was not finite when a failing batch was run again, though the loss was finite.

    variable
        Path of the first variable, in the order of the way back, whose gradient was not finite.
    layer, layer_class, location
        The layer in which the gradient broke, and where it was made; "" where it broke outside of all layers.
    where
        "variable" (the sum over the batch that makes a weight's gradient), "layer" (the way back through the layer),
        "loss" (before it reached the model's output), "loop" (what the training code does with the gradients).
    scale
        The loss scale of that step, None without loss scaling.
    frames
        Gradients that arrived at the outputs of layers before, the last one just before it broke.
    is_function
        True where `layer` is a function between the layers of a functional model.
    without_scale
        True if it is not finite without any loss scale either: then no loss scale can help. None where not tried.
    """

    step: int
    variable: str
    layer: str = ""
    layer_class: str = ""
    where: str = "layer"
    scale: float | None = None
    frames: tuple[TensorFacts, ...] = ()
    without_scale: bool | None = None
    operation: OperationFacts | None = None
    location: Location | None = None
    is_function: bool = False


def broken_operation(
    layer: CulpritFacts | None, gradient: GradientCulpritFacts | None, elsewhere: OperationFacts | None
) -> OperationFacts | None:
    """The operation that made the first number that was not finite: in a layer, on the way back, or outside of all
    layers."""
    culprit = layer or gradient
    return elsewhere if culprit is None else culprit.operation

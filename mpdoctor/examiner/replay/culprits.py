"""Finds what broke in an observed step: a layer, an operation after the layers, or a gradient."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.replay.magnitudes import state_of
from mpdoctor.examiner.replay.observed_calls import ObservedCall, place_of_layer
from mpdoctor.examiner.replay.op_trace import Operation
from mpdoctor.examiner.replay.step_observer import StepObserver
from mpdoctor.facts.location import Location
from mpdoctor.facts.training import CulpritFacts, GradientCulpritFacts, OperationFacts, TensorFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasVariable


FRAMES = 6


class Culprits(NamedTuple):
    """What broke; at most one of the three is known."""

    layer: CulpritFacts | None = None
    loss: OperationFacts | None = None
    gradient: GradientCulpritFacts | None = None


def culprits_from_step(
    observer: StepObserver,
    step: int,
    scale: float | None,
    batch: object = None,
    called_at: Location | None = None,
) -> Culprits | None:
    """What broke the step; None where nothing was wrong with it this time. `batch`: what the step was given, None where
    only the user's own code knows. `called_at`: the user's line that trains, which is told of no operation."""
    trace = observer.trace
    if trace.failure is not None:
        raise trace.failure
    bad = observer.bad
    if not bad:
        return None
    roots = [root for root in (trace.root(tensor) for tensor in bad) if root is not None]
    root = min(roots, key=lambda operation: operation.number, default=None)
    if root is not None:
        _forget_line_of_call(root, called_at)
    if root is not None and (root.back or root.facts.where == "loop"):
        return Culprits(gradient=_gradient(observer, root, step, scale))
    if root is None or root.facts.given:
        return _culprits_without_operation(observer, root, step, batch)
    if root.layer is None:
        return Culprits(loss=root.facts)
    return Culprits(layer=_layer(observer, root, step))


def _forget_line_of_call(root: Operation, called_at: Location | None) -> None:
    """Which operation of a library's broke is not to be seen on the line that called the layer, or the training."""
    place = root.facts.location
    lines = [line for line in (called_at, root.layer.called_at if root.layer else None) if line is not None]
    if place is not None and any((place.path, place.line) == (line.path, line.line) for line in lines):
        root.facts = replace(root.facts, location=None)


def _culprits_without_operation(
    observer: StepObserver,
    root: Operation | None,
    step: int,
    batch: object,
) -> Culprits:
    """The culprit where no operation was seen to make the first number that is not finite: the batch, a weight or a
    constant, or else the first layer that put it out."""
    facts = OperationFacts("", "loss", "", "nan") if root is None else root.facts
    in_batch = part_not_finite(batch) if batch is not None else "data" if facts.given == "data" else ""
    if in_batch and not (facts.given == "constant" and facts.masked):
        return Culprits(loss=replace(facts, given=in_batch))
    if root is None:
        first = _operation_of_first_layer(observer)
        if first is None or first.layer is None:
            return Culprits()
        return Culprits(layer=_layer(observer, first, step))
    is_weight = observer.had_bad_weight and not facts.masked
    root.facts = replace(facts, name="ReadVariableOp", given="") if is_weight else replace(facts, given="constant")
    if root.layer is None:
        return Culprits(loss=root.facts)
    return Culprits(layer=_layer(observer, root, step))


def _operation_of_first_layer(observer: StepObserver) -> Operation | None:
    """The operation that stands for the first layer whose output was not finite, without a line of its own."""
    call = next((call for call in observer.calls if call.output is not None and call.output.nonfinite), None)
    operation = None if call is None else observer.trace.first_of(call)
    if operation is not None:
        _forget_line_of_call(operation, None)
    return operation


def _layer(observer: StepObserver, root: Operation, step: int) -> CulpritFacts:
    call = root.layer
    assert call is not None
    overflow = call.output
    if overflow is None:  # it raised, or put out no numbers
        place = place_of_layer(observer.layer_hooks, call.layer)
        name = type(call.layer).__name__
        overflow = TensorFacts(
            layer=call.path,
            layer_class=name,
            dtype=root.facts.dtype,
            shape=(),
            largest=0.0,
            smallest=0.0,
            near_limit=0.0,
            subnormal=0.0,
            nonfinite=1.0,
            location=place,
            call=call.number,
        )
    before = [frame for frame in observer.frames[: _place(observer.frames, overflow)] if not frame.nonfinite]
    calls = sum(other.layer is call.layer for other in observer.calls)
    return CulpritFacts(
        step=step,
        overflow=overflow,
        frames=tuple(_distinct(before)[-FRAMES:]),
        inputs_finite=not root.sources or bool(root.facts.given),
        calls=calls,
        operation=root.facts,
        is_function=observer.keras.is_plain_function(call.layer),
    )


def _gradient(observer: StepObserver, root: Operation, step: int, scale: float | None) -> GradientCulpritFacts:
    keras = observer.keras
    call: ObservedCall | None = root.layer
    first = observer.first_bad_gradient
    if root.facts.name == "Cast" and first is not None:
        # A float32 layer hands back more than float16 holds: what suffers first is the weight that it comes to.
        call = _owner(observer, first[1]) or call
    frames = [at.gradient for at in observer.way_back if at.after < root.number and not at.gradient.nonfinite]
    return GradientCulpritFacts(
        step=step,
        variable="" if first is None else keras.path(first[1]),
        layer="" if call is None else call.path,
        layer_class="" if call is None else type(call.layer).__name__,
        where=_part_of_gradient(observer, root, call),
        scale=scale,
        frames=tuple(_distinct(frames[::-1])[:FRAMES][::-1]),
        operation=root.facts,
        location=None if call is None else place_of_layer(observer.layer_hooks, call.layer),
        is_function=call is not None and keras.is_plain_function(call.layer),
    )


def _part_of_gradient(observer: StepObserver, root: Operation, call: ObservedCall | None) -> str:
    """Where a gradient broke: in the training loop ("loop"), before the first layer on the way back ("loss"), in the
    gradient of one of a layer's own variables alone, or in what a layer handed back."""
    if root.facts.where == "loop":
        return "loop"
    if call is None:
        return "loss"
    first = observer.first_bad_gradient
    own = [id(variable) for variable in observer.keras.own_variables(call.layer)]
    passed_on = any(at.gradient.nonfinite for at in observer.way_back)
    return "variable" if first is not None and id(first[1]) in own and not passed_on else "layer"


def _owner(observer: StepObserver, variable: KerasVariable) -> ObservedCall | None:
    owners = (c for c in observer.calls if any(own is variable for own in observer.keras.own_variables(c.layer)))
    return next(owners, None)


def part_not_finite(batch: object) -> str:
    """Which part of a batch (x, y, sample weights) is not finite: "data", "labels", or "" where all is finite."""
    parts = batch if isinstance(batch, (tuple, list)) else (batch,)
    bad = [any(map(_is_bad, tf.nest.flatten(component, expand_composites=True))) for component in parts]
    if len(bad) > 1 and bad[1] and not bad[0]:
        return "labels"
    return "data" if any(bad) else ""


def _is_bad(value: object) -> bool:
    if isinstance(value, np.ndarray):
        return value.dtype.kind == "f" and not np.isfinite(value).all()
    return bool(state_of(value))


def _place(frames: list[TensorFacts], frame: TensorFacts) -> int:
    return next((place for place, other in enumerate(frames) if other is frame), len(frames))


def _distinct(frames: list[TensorFacts]) -> list[TensorFacts]:
    """The frames, each once: a model puts out the tensor of its last layer again."""
    kept: list[TensorFacts] = []
    for frame in frames:
        if not kept or (frame.largest, frame.shape, frame.dtype) != (kept[-1].largest, kept[-1].shape, kept[-1].dtype):
            kept.append(frame)
    return kept

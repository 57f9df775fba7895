"""Why applied steps move no weight: the learning rate, the gradients of the loss as it is and made larger, and updates
that are rounded away. Measured on the last step, repeated; nothing is moved."""

from __future__ import annotations

import math
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable, ContextManager, Iterator

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.capture.optimizers.optimizer_chain import learning_rate
from mpdoctor.examiner.exceptions import first_line
from mpdoctor.examiner.keras.private_state import given_learning_rate, tensorflow_variable_of
from mpdoctor.examiner.keras.step_record import values_of_gradient
from mpdoctor.examiner.process.patching import replace_for_now
from mpdoctor.examiner.replay.magnitudes import array_from_tensor, is_floating
from mpdoctor.examiner.replay.step_observer import BackFrame, Enough, StepObserver
from mpdoctor.examiner.replay.two_scales import GradientCatcher
from mpdoctor.examiner.replay.variable_snapshot import variables_put_back
from mpdoctor.facts.training import StandstillFacts

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasOptimizer, KerasVariable
    from mpdoctor.examiner.probe.observed_optimizer import ObservedOptimizer
    from mpdoctor.examiner.replay.op_trace import OperationTrace


# How much larger than it is the loss is made. The first float16 number is 2^-24, and float32 ends at 2^128.
FACTORS = (1.0, 2.0**8, 2.0**16, 2.0**24, 2.0**32)
DIGITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}  # bits behind the first one

Repeating = Callable[[], ContextManager[Any]]


def look_at_standstill(
    observed: ObservedOptimizer, layer_hooks: LayerHooks, repeating: Repeating, aside: Callable[[KerasOptimizer], None]
) -> None:
    """Tell the observed optimizer. `aside(optimizer)` makes known that this one is the probe's own."""
    facts = StandstillFacts(
        learning_rate(observed.innermost),
        _schedule(observed.innermost),
        rate_dtype=_dtype_of_rate(observed.innermost),
    )
    observed.standstill = facts
    if observed.repeat is None:
        observed.not_looked.append(("what holds the weights", "a step of an eager loop cannot be repeated"))
        return
    try:
        observed.standstill = _with_gradients(facts, observed, layer_hooks, repeating, aside)
    except Exception as error:  # the user's step, which may be fit for graphs only
        observed.not_looked.append(
            ("what holds the weights", f"the step cannot be repeated eagerly: {first_line(error)}")
        )


# --- the learning rate ------------------------------------------------------------------------------------------
def _schedule(optimizer: KerasOptimizer) -> str:
    """The class of its schedule, "" where the rate is a number."""
    given = given_learning_rate(optimizer)
    return type(given).__name__ if callable(given) and not hasattr(given, "dtype") else ""


def _dtype_of_rate(optimizer: KerasOptimizer) -> str:
    """The dtype of the tensor that its schedule returns, "" where it has none or that is no tensor."""
    schedule = given_learning_rate(optimizer)
    if not _schedule(optimizer):
        return ""
    try:
        rate = schedule(getattr(optimizer, "iterations", 0))
    except Exception:  # a schedule of the user's that raises
        return ""
    return rate.dtype.name if isinstance(rate, tf.Tensor) else ""


# --- the gradients ----------------------------------------------------------------------------------------------
def _with_gradients(
    facts: StandstillFacts,
    observed: ObservedOptimizer,
    layer_hooks: LayerHooks,
    repeating: Repeating,
    aside: Callable[[KerasOptimizer], None],
) -> StandstillFacts:
    with repeating() as catchers:
        catcher: GradientCatcher = catchers[observed]
        catcher.stops = observed.steps_a_call > 1
        for factor in FACTORS:
            largest = _largest_gradient(observed, factor)
            if factor == 1.0:
                first, caught = largest, list(catcher.caught)
            if largest is None or largest > 0:
                break
    if first is None:  # no tape was seen
        return facts
    facts = replace(facts, gradient=first, factor=None if not largest else factor, most=FACTORS[-1])
    if not largest:
        with repeating():
            return _with_place(facts, observed, layer_hooks)
    if first and caught and facts.learning_rate:
        return _with_update(facts, observed, caught, aside)
    return facts


def _largest_gradient(observed: ObservedOptimizer, factor: float) -> float | None:
    """The largest finite magnitude of the gradients that a tape gives for its variables; None where none was asked."""
    with _loss_times(factor, observed.variables) as seen, variables_put_back(), suppress(Enough):
        tf.random.set_seed(1)
        assert observed.repeat is not None
        observed.repeat()
    return max(seen, default=None)


@contextmanager
def _loss_times(factor: float, variables: list[KerasVariable]) -> Iterator[list[float]]:
    """While this context is active, every tape differentiates `factor` times its target. Yields a list that receives
    the largest finite gradient for each of these variables."""
    seen: list[float] = []
    wanted = {id(form) for variable in variables for form in (variable, tensorflow_variable_of(variable))}

    def differentiate(
        original: Callable[..., object],
        tape: tf.GradientTape,
        target: tf.Tensor,
        sources: object,
        *args: object,
        **kwargs: object,
    ) -> object:
        if factor != 1.0 and not args and kwargs.get("output_gradients") is None:
            larger = tf.nest.map_structure(
                lambda tensor: tf.fill(tf.shape(tensor), tf.cast(factor, tensor.dtype)), target
            )
            kwargs = {**kwargs, "output_gradients": larger}
        gradients = original(tape, target, sources, *args, **kwargs)
        for gradient, source in zip(tf.nest.flatten(gradients), tf.nest.flatten(sources)):
            if gradient is not None and id(source) in wanted:
                seen.append(_largest(gradient))
        return gradients

    release = replace_for_now(tf.GradientTape, "gradient", differentiate)
    try:
        yield seen
    finally:
        release()


def _largest(gradient: tf.Tensor) -> float:
    gradient = values_of_gradient(gradient)
    if not is_floating(gradient):
        return 0.0
    values = np.abs(array_from_tensor(gradient).astype(np.float64))
    finite = values[np.isfinite(values)]
    return float(finite.max()) if finite.size else 0.0


def _with_place(facts: StandstillFacts, observed: ObservedOptimizer, layer_hooks: LayerHooks) -> StandstillFacts:
    """The facts with the last layer on the way back whose output still has a gradient, where all gradients of the
    weights are 0."""
    ways = _ways_back(observed, layer_hooks)
    frames, trace = next(((seen, trace) for seen, trace in ways if not _is_any_bad(seen)), ([], None))
    alive = [at for at in frames if at.gradient.largest]
    if not frames or trace is None:
        return facts
    facts = replace(facts, overflow=trace.first_overflow())
    if not alive:
        return replace(facts, reaches_output=False)
    call = alive[-1].call
    return replace(
        facts,
        reaches_output=True,
        layer=call.path,
        layer_class=type(call.layer).__name__,
        puts_out_zeros=call.output is not None and not call.output.largest and not call.output.nonfinite,
    )


def _is_any_bad(frames: list[BackFrame]) -> bool:
    return any(at.gradient.nonfinite for at in frames)


def _ways_back(
    observed: ObservedOptimizer, layer_hooks: LayerHooks
) -> Iterator[tuple[list[BackFrame], OperationTrace]]:
    """The gradients at the outputs of the layers, and all operations, at the largest factor first."""
    assert observed.repeat is not None
    for factor in reversed(FACTORS):
        observer = StepObserver(observed.keras, layer_hooks, observed.optimizer, stops=True)
        with _loss_times(factor, observed.variables), variables_put_back(), observer, suppress(Enough):
            observed.repeat()
        yield observer.way_back, observer.trace


# --- the update -------------------------------------------------------------------------------------------------
def _with_update(
    facts: StandstillFacts,
    observed: ObservedOptimizer,
    caught: list[tuple[tf.Tensor, KerasVariable]],
    aside: Callable[[KerasOptimizer], None],
) -> StandstillFacts:
    """The facts with the update that a new optimizer of the same configuration makes of these gradients in float64, and
    whether it is lost in the weights' dtype: one that is not, the optimizer does not make in that dtype."""
    innermost = observed.innermost
    clone = type(innermost).from_config(innermost.get_config())
    aside(clone)
    variables = [variable for _, variable in caught]
    before = [array_from_tensor(tf.convert_to_tensor(variable)).astype(np.float64) for variable in variables]
    gradients = [tf.cast(tf.convert_to_tensor(gradient), tf.float64) for gradient, _ in caught]
    after = observed.keras.applied_in_float64(clone, innermost, gradients, variables)
    largest, place, survives_rounding = 0.0, -1, False
    for number, (then, now) in enumerate(zip(before, after)):
        kept = tf.cast(tf.cast(now, observed.keras.dtype_of(variables[number])), tf.float64)
        survives_rounding = survives_rounding or not np.array_equal(kept, then)
        if np.abs(now - then).max(initial=0.0) > largest:
            largest, place = float(np.abs(now - then).max()), number
    if place < 0:
        return facts
    at = np.abs(after[place] - before[place]).argmax()
    weight, dtype = abs(float(before[place].flat[at])), observed.keras.dtype_of(variables[place])
    return replace(
        facts,
        update=largest,
        half_digit=2.0 ** (math.floor(math.log2(weight)) - DIGITS[dtype] - 1) if weight else None,
        variable=observed.keras.path(variables[place]),
        dtype=dtype,
        survives_rounding=survives_rounding,
    )

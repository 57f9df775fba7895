"""The loss that a loop has scaled, or may have: the call that scaled it, and the gradients that are taken of it."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Earlier, Known, Unknown, Value, known, options, walk
from mpdoctor.semantics.source.loops.gradients import target
from mpdoctor.semantics.source.loops.loss_scale_signs import may_be_scaled_in
from mpdoctor.semantics.source.loops.scaling import FEWEST, PASSING_ON, divided_by_scale
from mpdoctor.semantics.source.programs.attribute_access import same_object

MOST_TARGETS = 40
AVERAGING = ("reduce_mean", "mean", "reduce_sum", "sum")


def scaling_of(value: Value, scaled: list[Call], in_list: bool = False) -> Call | None:
    """The call that scaled this loss, seen through casts, `float(…)`, `.numpy()`, running sums, means and small factors
    (`loss / steps`). For a mean of a list, also written `sum(losses) / len(losses)`, the call that scaled its first
    loss."""
    for _ in range(6):
        value = _without_factor(value)
        value = _added_up(value) or value
        if not isinstance(value, Call):
            scalings = [] if in_list else [scaling_of(item, scaled, in_list=True) for item in _kept_in(value)]
            return scalings[0] if scalings and all(scalings) else None
        if any(value is call for call in scaled):
            return value
        inside = converted(value, (*PASSING_ON, *AVERAGING))
        if inside is None:
            return None
        value = inside
    return None


def converted(value: Value, conversions: tuple[str, ...] = PASSING_ON) -> Value | None:
    """What a `float(…)`, a cast or a `.numpy()` converts; None where the value is none of the `conversions`."""
    if not isinstance(value, Call) or value.method not in conversions:
        return None
    return value.receiver if not isinstance(value.callee, Api) else value.argument(0)


def _without_factor(value: Value) -> Value:
    """What a mean, or a number that is too small for a loss scale, is made of; else the value itself."""
    if not isinstance(value, Operation) or len(value.operands) != 2:
        return value
    left, right = value.operands
    if value.operator == "/" and (_is_mean(value) or _is_small(right)):
        return left
    if value.operator == "*" and (_is_small(left) or _is_small(right)):
        return right if _is_small(left) else left
    return value


def _is_small(factor: Value) -> bool:
    is_count = isinstance(factor, Attribute) and factor.name == "num_replicas_in_sync"
    number = known(factor)
    return is_count or (isinstance(number, (int, float)) and 1 / FEWEST < number < FEWEST)


def _is_mean(quotient: Operation) -> bool:
    total, count = quotient.operands
    is_of_running_sum = _added_up(total) is not None and not divided_by_scale(quotient)
    return is_call_of(count, "builtins.len") or is_of_running_sum


def _added_up(value: Value) -> Value | None:
    """The summand of a loop's `total += loss`; None for anything else."""
    choices = [option for option in options(value) if not isinstance(option, (Known, Earlier))]
    if len(choices) != 1 or not isinstance(choices[0], Operation) or choices[0].operator != "+":
        return None
    added = [operand for operand in choices[0].operands if not _is_carried(operand)]
    return added[0] if len(added) == 1 and len(choices[0].operands) == 2 else None


def summands(value: Value, left: int = 4) -> Iterator[Value]:
    """The value, and what `loss + other` adds: of a sum that one of them leaves N times too large."""
    yield value
    if left and isinstance(value, Operation) and value.operator == "+" and len(value.operands) == 2:
        for operand in value.operands:
            for option in options(operand):
                yield from summands(option, left - 1)


def _is_carried(value: Value) -> bool:
    """Whether it is the sum itself, as the loop's body begins with it."""
    choices = options(value)
    is_sum = all(isinstance(option, (Known, Earlier)) for option in choices)
    return is_sum and any(isinstance(option, Earlier) for option in choices)


def _kept_in(value: Value) -> list[Value]:
    """The values in a list that may have been empty before a loop filled it."""
    lists = [option for option in options(value) if isinstance(option, Collection) and option.kind == "list"]
    return [item for kept in lists for item in kept.items] if len(lists) == len(options(value)) else []


def gradients_of_loss(loss: Call | None, gradients: list[Call]) -> list[Call]:
    """The calls that differentiate a scaled loss."""
    return [] if loss is None else [gradient for gradient in gradients if loss in _targets(gradient)]


def _targets(gradient: Call) -> list[Value]:
    """The losses that a tape differentiates: one, or those of a list; and the losses of the examples that are added up
    or averaged to one, `tf.reduce_sum(losses) * (1 / batch)`."""
    losses = options(target(gradient))
    targets = [item for loss in losses for item in (loss.items if isinstance(loss, Collection) else (loss,))]
    for value in targets:
        inside = _averaged(value) if len(targets) < MOST_TARGETS else None
        targets += [] if inside is None else [inside]
    return targets


def _averaged(value: Value) -> Value | None:
    """The argument of a mean or a sum, or the factor beside one that is no loss scale."""
    if isinstance(value, Call):
        return value.argument(0) if isinstance(value.callee, Api) and value.method in AVERAGING else None
    if not isinstance(value, Operation) or value.operator not in ("*", "/") or divided_by_scale(value):
        return None
    losses = [operand for operand in value.operands if isinstance(operand, Call)]
    return losses[0] if len(losses) == 1 else None


def may_be_scaled(facts: SourceFacts, apply: Call, gradient: Call) -> bool:
    """Whether the loss of these gradients may be scaled before the optimizer applies them: as the source shows it, or
    where that does not, through `output_gradients` of the tape that are given from outside, or in code that was given
    the optimizer and is not followed."""
    loss, factors = target(gradient), gradient.argument(2, "output_gradients")
    if may_be_scaled_in(facts, loss):
        return True
    if factors is not None and (may_be_scaled_in(facts, factors) or any(map(_is_from_outside, walk(factors)))):
        return True
    return is_given_optimizer(apply, loss)


def is_given_optimizer(apply: Call, loss: Value | None) -> bool:
    """Whether a call that a loss is made of is given the optimizer that applies its gradients."""
    given = (value for call in walk(loss) if isinstance(call, Call) for value in call.given)
    return apply.receiver is not None and any(same_object(value, apply.receiver) for value in given)


def _is_from_outside(value: Value) -> bool:
    return isinstance(value, Parameter) or type(value) is Unknown

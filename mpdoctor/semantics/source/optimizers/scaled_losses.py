"""The loss that a loop has scaled: the call that scaled a value, and the gradients that are taken of it."""

from __future__ import annotations

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.values import Api, Collection, Earlier, Known, Value, options
from mpdoctor.semantics.source.optimizers.gradients import target
from mpdoctor.semantics.source.optimizers.scaling import PASSING_ON, divided_by_scale

MOST_TARGETS = 40
AVERAGING = ("reduce_mean", "mean", "reduce_sum", "sum")


def scaling_of(value: Value, scaled: list[Call], in_list: bool = False) -> Call | None:
    """The call that scaled this loss, seen through casts, `float(…)`, `.numpy()`, running sums and means. For a mean of
    a list, also written `sum(losses) / len(losses)`, the call that scaled its first loss."""
    for _ in range(6):
        if isinstance(value, Operation) and value.operator == "/" and _is_mean(value):
            value = value.operands[0]
        value = _added_up(value) or value
        if not isinstance(value, Call):
            found = [] if in_list else [scaling_of(item, scaled, in_list=True) for item in _kept_in(value)]
            return found[0] if found and all(found) else None
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
    found = [item for loss in losses for item in (loss.items if isinstance(loss, Collection) else (loss,))]
    for value in found:
        inside = _averaged(value) if len(found) < MOST_TARGETS else None
        found += [] if inside is None else [inside]
    return found


def _averaged(value: Value) -> Value | None:
    """The argument of a mean or a sum, or the factor beside one that is no loss scale."""
    if isinstance(value, Call):
        return value.argument(0) if isinstance(value.callee, Api) and value.method in AVERAGING else None
    if not isinstance(value, Operation) or value.operator not in ("*", "/") or divided_by_scale(value):
        return None
    losses = [operand for operand in value.operands if isinstance(operand, Call)]
    return losses[0] if len(losses) == 1 else None

"""Steps that apply the gradients of a scaled loss without unscaling them, or that scale it once more than they
unscale."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import GLOBAL_POLICY
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Attribute, Either, Value, is_api, known, options
from mpdoctor.semantics.source.loops.clipping import CLIPPING
from mpdoctor.semantics.source.loops.gradients import (
    applied_gradients,
    calls_on_the_way,
    given_to,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.loss_scale_signs import is_scaled_by
from mpdoctor.semantics.source.loops.resized_gradients import unscaled_on_the_way
from mpdoctor.semantics.source.loops.scaling import (
    applied_by_its_scaler,
    is_of_scaled_loss,
    products_with_scale,
    scales,
)
from mpdoctor.semantics.source.optimizers.wrappers import wrapped
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.branches import depends_on_no_more

INNER = "inner_optimizer"


def applied_scaled(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """Each call that applies the gradients of a scaled loss without unscaling them, with the tape's `gradient` call."""
    for apply, gradient in applied_gradients(facts):
        if not _is_scaled(facts, apply, gradient) or not applied_by_its_scaler(facts, apply, gradient):
            continue
        if not calls_on_the_way(apply, "get_unscaled_gradients") and not unscaled_on_the_way(facts, apply, gradient):
            yield apply, gradient


def applied_inside(facts: SourceFacts) -> Iterator[tuple[Call, Value]]:
    """(the apply call, the LossScaleOptimizer) where the optimizer inside applies the gradients of a loss that the
    outer one scaled, as they are (Keras 3)."""
    for apply, gradient in applied_gradients(facts):
        wrapper = _wrapper_around(facts, apply)
        if wrapper is None or unscaled_on_the_way(facts, apply, gradient):
            continue
        if is_of_scaled_loss(facts, gradient):
            yield apply, wrapper


def _wrapper_around(facts: SourceFacts, apply: Call) -> Value | None:
    """The LossScaleOptimizer of `optimizer.inner_optimizer.apply(…)`."""
    for option in options(apply.receiver):
        if isinstance(option, Attribute) and option.name == INNER and wrapped(facts, option.of, apply):
            return option.of
    return None


def unscaled_in_one_arm(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """(the apply call, the unscaling) of each step that always scales its loss, but unscales the gradients only in the
    arm of an `if` that clips them, and applies them where that arm is not taken."""
    for apply, gradient in applied_gradients(facts):
        parts = list(until_gradients(given_to(apply)))
        unscalings = list(filter(unscales, parts))
        if len(unscalings) != 1 or not _is_left_out(unscalings[0], gradient, parts):
            continue
        unscaling, around = unscalings[0], {branch.statement for branch in apply.context.branches}
        scaled = [gradient, *(loss for loss in options(target(gradient)) if isinstance(loss, Call))]
        if (
            is_scaled_by(target(gradient), "get_scaled_loss")
            and all({branch.statement for branch in event.context.branches} == around for event in scaled)
            and not depends_on_no_more(unscaling.context, gradient.context)
            and not _asks_whether_it_scales(unscaling)
            and any(_clips_in_arm_of(unscaling, part) for part in parts)
            and applied_by_its_scaler(facts, apply, gradient)
            and not unscaled_on_the_way(facts, apply, gradient)
        ):
            yield apply, unscaling


def _is_left_out(unscaling: Call, gradient: Call, parts: list[Value]) -> bool:
    """Whether the gradients pass by an unscaling on one of two paths."""
    choices = (part.options for part in parts if isinstance(part, Either))
    made_of = ([set(map(id, until_gradients(option))) for option in choice] for choice in choices)
    return any(
        any(id(unscaling) in made for made in choice)
        and any(id(gradient) in made and id(unscaling) not in made for made in choice)
        for choice in made_of
    )


def _asks_whether_it_scales(unscaling: Call) -> bool:
    """Whether the `if`s around it ask for the optimizer or the policy: where they are not taken, nothing is scaled."""
    context, optimizer = unscaling.context, unscaling.receiver
    return (context.guarded or context.only_wrapped) or any(
        is_call_of(asked, "builtins.isinstance", "builtins.hasattr", *GLOBAL_POLICY)
        or (optimizer is not None and same_object(asked, optimizer))
        or (isinstance(known(asked), str) and "16" in str(known(asked)))
        for asked in context.asked()
    )


def _clips_in_arm_of(unscaling: Call, part: Value) -> bool:
    if not isinstance(part, Call) or not is_api(part.callee, *CLIPPING):
        return False
    arms = [event.context.branches[-1:] for event in (unscaling, part)]
    return bool(arms[0]) and [(arm.statement, arm.taken) for arm in arms[0]] == [
        (arm.statement, arm.taken) for arm in arms[1]
    ]


def _is_scaled(facts: SourceFacts, apply: Call, gradient: Call) -> bool:
    """Whether the loss is certainly scaled: by the method, or multiplied by the applying optimizer's own scale."""
    if is_scaled_by(target(gradient), "get_scaled_loss") or _is_scaled_on_a_path_to(apply, gradient):
        return True
    products = list(products_with_scale(facts, gradient))
    return len(products) == len(options(target(gradient))) and all(
        apply.receiver is not None and same_object(owner, apply.receiver) for _, owner in products
    )


def _is_scaled_on_a_path_to(apply: Call, gradient: Call) -> bool:
    """Whether the loss is scaled on one of several paths (`get_scaled_loss(loss) if amp else loss`), and every path
    that scales it reaches the call that applies its gradients."""
    return any(
        isinstance(loss, Call)
        and is_scaled_by(loss, "get_scaled_loss")
        and all(_leads_to(loss.context, event.context) for event in (gradient, apply))
        for loss in options(target(gradient))
    )


def _leads_to(scaling: Context, later: Context) -> bool:
    """Whether every `if` around a later event took the same branch for the scaling."""
    arms = {branch.statement: branch.taken for branch in scaling.branches}
    return all(arms.get(branch.statement) is branch.taken for branch in later.branches)


def scaled_twice(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """(the second scaling, the apply call) of each step that scales one loss twice with one optimizer and unscales its
    gradients once."""
    for apply, gradient in applied_gradients(facts):
        if not applied_by_its_scaler(facts, apply, gradient) or unscaled_on_the_way(facts, apply, gradient):
            continue
        unscalings = sum(map(unscales, until_gradients(given_to(apply))))
        if unscalings == (0 if facts.keras.is_keras3 else 1):
            for loss in options(target(gradient)):
                if isinstance(loss, Call) and is_scaled_already(facts, loss):
                    yield loss, apply


def is_scaled_already(facts: SourceFacts, scaling: Call) -> bool:
    """Whether it scales nothing but what the same optimizer has scaled."""
    if scaling.method not in SCALING or scaling.receiver is None or not scales(facts, scaling):
        return False
    given = options(scaling.argument(0, "loss"))
    before = [call for call in given if isinstance(call, Call) and call.method in SCALING and scales(facts, call)]
    return len(before) == len(given) > 0 and all(
        call.receiver is not None and same_object(call.receiver, scaling.receiver) for call in before
    )

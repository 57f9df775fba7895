"""Steps that apply the gradients of a scaled loss without unscaling them, or that scale it once more than they
unscale."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.wrapper_api import SCALING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import options
from mpdoctor.semantics.source.optimizers.attribute_access import same_object
from mpdoctor.semantics.source.optimizers.gradients import (
    applied_gradients,
    calls_on_the_way,
    given_to,
    target,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.optimizers.loss_scale_signs import is_scaled_by
from mpdoctor.semantics.source.optimizers.resized_gradients import unscaled_on_the_way
from mpdoctor.semantics.source.optimizers.scaling import (
    applied_by_its_scaler,
    products_with_scale,
    scales,
)


def applied_scaled(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """Each call that applies the gradients of a scaled loss without unscaling them, with the tape's `gradient` call."""
    for apply, gradient in applied_gradients(facts):
        if not _is_scaled(facts, apply, gradient) or not applied_by_its_scaler(facts, apply, gradient):
            continue
        if not calls_on_the_way(apply, "get_unscaled_gradients") and not unscaled_on_the_way(facts, apply, gradient):
            yield apply, gradient


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

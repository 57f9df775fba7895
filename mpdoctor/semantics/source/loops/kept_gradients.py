"""Scaled gradients on their way through variables in which a program adds them up, and which of them it applies as they
are."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, known
from mpdoctor.semantics.source.loops.gradient_sums import (
    AT_ANY_SCALE,
    are_weights,
    gradients_kept_until,
    holders_of,
    is_made_from,
    scaled_gradients_given,
)
from mpdoctor.semantics.source.loops.gradients import (
    calls_on_the_way,
    given_to,
    is_gradient_call,
    unscales,
    until_gradients,
)
from mpdoctor.semantics.source.loops.scaling import FEWEST, applied_by_its_scaler, holds_gradient, is_of_scaled_loss
from mpdoctor.semantics.source.programs.branches import may_not_run

UNSCALING = (".loss_scale", "unscale")  # in the text of a file that may unscale gradients

ADDING = ("assign_add", "assign")


class Kept(NamedTuple):
    """Gradients that a variable keeps, from the tape's call to the call that applies the variable."""

    apply: Call
    gradient: Call
    before: tuple[Value, ...]  # what holds them on the way into the variable
    behind: tuple[Value, ...]  # and on the way out of it


@lru_cache(maxsize=1)
def kept_gradients(facts: SourceFacts) -> tuple[Kept, ...]:
    """The gradients that reach an apply call through variables alone, which one call fills and no other. Cached: two
    rules ask."""
    if not facts.method_calls("gradient") or not facts.method_calls(*ADDING):
        return ()
    return tuple(_kept_gradients(facts))


def _kept_gradients(facts: SourceFacts) -> Iterator[Kept]:
    for apply in facts.method_calls(*APPLYING):
        applied = list(until_gradients(given_to(apply)))
        if may_not_run(facts, apply.context) or any(map(is_gradient_call, applied)):
            continue
        kept = list(gradients_kept_until(facts, apply))
        if len({call.location for call, _ in kept}) != 1:
            continue
        for call, gradient in kept:
            holders = holders_of(call.receiver)
            if not may_not_run(facts, call.context) and not _is_changed_otherwise(facts, holders, call):
                before = [part for part in until_gradients(call.argument(0, "delta")) if holds_gradient(part, gradient)]
                behind = [part for part in applied if is_made_from(part, holders)]
                yield Kept(apply, gradient, tuple(before), tuple(behind))


def _is_changed_otherwise(facts: SourceFacts, holders: tuple[Value, ...], kept: Call) -> bool:
    """Whether what a variable holds is divided or unscaled in its place: `total.assign(total / scale)`."""
    return any(
        is_made_from(call.receiver, holders) and is_made_from(given, holders) and not _is_zero(given)
        for call in facts.method_calls("assign")
        if call.location != kept.location and (given := call.argument(0)) is not None
    )


def _is_zero(value: Value) -> bool:
    return isinstance(value, Call) and value.method in AT_ANY_SCALE


def sums_applied_scaled(facts: SourceFacts) -> dict[Call, list[Call]]:
    """Each call that applies variables in which the gradients of a scaled loss are kept or added up, and that nothing
    unscales: in this file, or on the way through the only call that fills them. With the calls of tapes that give
    those."""
    unscales_somewhere = any(word in facts.text for word in UNSCALING)
    applied: dict[Location, tuple[Call, list[Call]]] = {}
    for apply, gradient in _kept_scaled(facts) if unscales_somewhere else _summed_scaled(facts):
        applied.setdefault(apply.location, (apply, []))[1].append(gradient)
    return dict(applied.values())


def _summed_scaled(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """(apply, gradient) in a file that unscales nothing."""
    applying = [call for call in facts.method_calls(*APPLYING) if not may_not_run(facts, call.context)]
    applying = [call for call in applying if not calls_on_the_way(call, "get_unscaled_gradients")]
    for kept in facts.method_calls(*ADDING) if applying else ():
        holders = () if are_weights(holders_of(kept.receiver)) else holders_of(kept.receiver)
        for gradient in scaled_gradients_given(facts, kept) if holders and _keeps_the_size(kept.argument(0)) else ():
            for apply in applying:
                is_of_these = _keeps_the_size(given_to(apply)) and is_made_from(given_to(apply), holders)
                if is_of_these and applied_by_its_scaler(facts, apply, gradient):
                    yield apply, gradient


def _kept_scaled(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """(apply, gradient) in a file that unscales somewhere, but not on the way through the only call that fills the
    variables."""
    for apply, gradient, before, behind in kept_gradients(facts):
        if not applied_by_its_scaler(facts, apply, gradient):
            continue
        way = (*before, *behind)
        is_unscaled = any(unscales(part) or (isinstance(part, Operation) and part.operator != "+") for part in way)
        if not is_unscaled and is_of_scaled_loss(facts, gradient) and not any(map(_is_unknown, way)):
            yield apply, gradient


def _is_unknown(value: Value) -> bool:
    """Whether it is a call of what is not known to leave gradients at their size."""
    return isinstance(value, Call) and not isinstance(value.callee, (Api, Attribute))


def _keeps_the_size(gradients: Value | None) -> bool:
    """Whether nothing on the way multiplies or divides the gradients, but for a small number such as that of steps."""
    sizes = (
        part for part in until_gradients(gradients) if isinstance(part, Operation) and part.operator in ("*", "/", "//")
    )
    return all(any(_is_small(operand) for operand in part.operands) for part in sizes)


def _is_small(value: Value) -> bool:
    number = known(value)
    return isinstance(number, int | float) and 1 / FEWEST < number < FEWEST

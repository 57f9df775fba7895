"""Scaled gradients on their way through variables in which a program adds them up."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value
from mpdoctor.semantics.source.loops.gradient_sums import (
    AT_ANY_SCALE,
    gradients_kept_until,
    holders_of,
    is_made_from,
)
from mpdoctor.semantics.source.loops.gradients import given_to, is_gradient_call, until_gradients
from mpdoctor.semantics.source.loops.scaling import holds_gradient
from mpdoctor.semantics.source.programs.branches import may_not_run

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

"""Variables that hold gradients of a scaled loss and are applied as they are."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, known
from mpdoctor.semantics.source.loops.gradient_sums import (
    are_weights,
    holders_of,
    is_made_from,
    scaled_gradients_given,
)
from mpdoctor.semantics.source.loops.gradients import calls_on_the_way, given_to, unscales, until_gradients
from mpdoctor.semantics.source.loops.kept_gradients import kept_gradients
from mpdoctor.semantics.source.loops.scaling import FEWEST, applied_by_its_scaler, is_of_scaled_loss
from mpdoctor.semantics.source.programs.branches import may_not_run

UNSCALING = (".loss_scale", "unscale")  # in the text of a file that may unscale gradients


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
    for kept in facts.method_calls("assign_add", "assign") if applying else ():
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

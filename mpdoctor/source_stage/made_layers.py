"""Which of the user's layers and models a program makes, and whether in float32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpdoctor.facts.location import Location
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, Parameter

ASKED_FOR_FLOAT32, NO_POLICY, OTHER = "float32", "no policy", "other"
_FIRST_THAT_HOLDS = (OTHER, NO_POLICY, ASKED_FOR_FLOAT32)
"""Of two makings of one class, the one that says more about whether it ever computes in 16 bits."""


def makings_from_events(facts: SourceFacts) -> tuple[tuple[Location, str], ...]:
    """What the events say for `SourceFacts.makings`: where the class is defined, and what its layers are given."""
    makings: dict[Location, str] = {}
    for call in facts.calls:
        if not isinstance(call.callee, Defined) or not isinstance(call.callee.of, ClassFacts):
            continue
        own = call.callee.of
        given = _policy_given(facts, call, own)
        if given is None:
            continue
        for base in own.lineage():
            makings[base.location] = min(given, makings.get(base.location, given), key=_FIRST_THAT_HOLDS.index)
    return tuple(makings.items())


def _policy_given(facts: SourceFacts, making: Call, own: ClassFacts) -> str | None:
    """Whether a call makes its layer in float32: by the `dtype` that it gives or the class hands on, else by the
    policy in force, or because none was ever set. None where that is not known: the class is no layer, a caller gives
    the dtype, or the call stands in a function that nobody calls, and no policy is set."""
    given = making.keyword("dtype") or own.base_argument("dtype")
    if not own.is_layer or isinstance(given, Parameter):
        return None
    if given is not None:
        return ASKED_FOR_FLOAT32 if policies_named(given) == ("float32",) else OTHER
    policies = set(facts.policies_at(making))
    if policies == {None} and not making.context.reached:
        return None
    if not policies <= {None, "float32"}:
        return OTHER
    return NO_POLICY if None in policies else ASKED_FOR_FLOAT32


def float32_classes(sources: Iterable[SourceFacts], assume_mixed: bool) -> Mapping[str, list[Location]]:
    """The places of the classes that all of these files instantiate in float32 only, by path as shown. With
    `assume_mixed` those that are made where no policy is set are not among them."""
    in_float32 = {ASKED_FOR_FLOAT32} if assume_mixed else {ASKED_FOR_FLOAT32, NO_POLICY}
    made: dict[Location, bool] = {}
    for facts in sources:
        for place, given in facts.makings:
            made[place] = made.get(place, True) and given in in_float32
    classes: dict[str, list[Location]] = {}
    for place, is_always in made.items():
        if is_always:
            classes.setdefault(place.path, []).append(place)
    return classes

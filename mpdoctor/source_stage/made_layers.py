"""Which of the user's layers and models a program makes, and whether in float32."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from mpdoctor.facts.location import Location
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, Parameter


def makings_from_events(facts: SourceFacts) -> tuple[tuple[Location, bool], ...]:
    """What the events say for `SourceFacts.makings`: where the class is defined, and whether all are in float32."""
    makings: dict[Location, bool] = {}
    for call in facts.calls:
        if not isinstance(call.callee, Defined) or not isinstance(call.callee.of, ClassFacts):
            continue
        own = call.callee.of
        in_float32 = _made_in_float32(facts, call, own)
        for base in own.lineage() if in_float32 is not None else ():
            makings[base.location] = makings.get(base.location, True) and bool(in_float32)
    return tuple(makings.items())


def _made_in_float32(facts: SourceFacts, making: Call, own: ClassFacts) -> bool | None:
    """Whether a call makes its layer in float32: by the `dtype` that it gives or the class hands on, else by the
    policy in force. None where that is not known: the class is no layer, a caller gives the dtype, or the call
    stands in a function that nobody calls, and no policy is set."""
    given = making.keyword("dtype") or own.base_argument("dtype")
    if not own.is_layer or isinstance(given, Parameter):
        return None
    if given is not None:
        return policies_named(given) == ("float32",)
    policies = set(facts.policies_at(making))
    if policies == {None} and not making.context.reached:
        return None
    return policies <= {None, "float32"}


def float32_classes(sources: Iterable[SourceFacts]) -> Mapping[str, list[Location]]:
    """The places of the classes that all of these files instantiate in float32 only, by path as shown."""
    made: dict[Location, bool] = {}
    for facts in sources:
        for place, in_float32 in facts.makings:
            made[place] = made.get(place, True) and in_float32
    classes: dict[str, list[Location]] = {}
    for place, is_always in made.items():
        if is_always:
            classes.setdefault(place.path, []).append(place)
    return classes

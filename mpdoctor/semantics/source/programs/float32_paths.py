"""Where a program that may compute in 16 bits does not: in `if not args.mixed:`, where another arm sets the policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from itertools import chain

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.location import Location
from mpdoctor.program.context import Context, Said
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.policy_settings import policies_set_by
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.programs.graph_rewrites import rewrites

# The places of one setting: of the call, and of the name that it is given.
Places = tuple[Context, ...]


def runs_in_float32_alone(facts: SourceFacts, location: Location | None) -> bool:
    """Whether nothing that the program does at this place happens on a path on which 16 bits were asked for."""
    contexts = _contexts(facts).get(location, []) if location is not None else []
    if not contexts or not all(context.branches for context in contexts):
        return False
    settings = _settings(facts)
    return bool(settings) and all(_is_excluded(context, settings or []) for context in contexts)


@lru_cache(maxsize=1)
def _contexts(facts: SourceFacts) -> Mapping[Location, list[Context]]:
    """The contexts of all calls and operations, by their place."""
    contexts: dict[Location, list[Context]] = {}
    events: Iterable[Call | Operation] = chain(facts.calls, facts.operations)
    for event in events:
        contexts.setdefault(event.location, []).append(event.context)
    return contexts


def _is_excluded(context: Context, settings: list[Places]) -> bool:
    return all(any(exclude_each_other(place, context) for place in places) for places in settings)


@lru_cache(maxsize=1)
def _settings(facts: SourceFacts) -> list[Places] | None:
    """The places at which the program asks for 16 bits; None where it may do so elsewhere, or where a setting is not
    known."""
    if facts.assume_mixed or facts.mixed_elsewhere or facts.incomplete or next(rewrites(facts), None) is not None:
        return None
    places: list[Places] = []
    for call in facts.policy_calls:
        if not policies_set_by(call):
            return None
        places += _places_of_half_policies(call, call.argument(0, "policy") or call.keyword("dtype_policy"))
    for call in facts.calls:
        places += _places_of_half_policies(call, call.keyword("dtype")) if call.keywords else []
    return places


def _places_of_half_policies(call: Call, given: Value | None) -> list[Places]:
    """The places that have to be reached for the call to set 16 bits, for each 16-bit policy that it may be given."""
    halves = (option for option in options(given) if any(name in HALF_POLICIES for name in policies_named(option)))
    return [(call.context, *_contexts_of_choice(half)) for half in halves]


def _contexts_of_choice(policy: Value) -> Places:
    """The contexts in which a policy is chosen: of the value itself, and of the call that makes it."""
    if isinstance(policy, Call):
        names = [name for name in options(policy.argument(0, "name")) if isinstance(name, Said)]
        return (policy.context, *(name.context for name in names[:1] if len(names) == 1))
    return (policy.context,) if isinstance(policy, Said) else ()

"""Whether the code of a layer's `call()` computes in 16 bits."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.dtypes import policies_named
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import (
    Api,
    Attribute,
    Call,
    ClassFacts,
    Context,
    Defined,
    Instance,
    Parameter,
    Value,
    known,
    walk,
)
from mpdoctor.rules.layers.outputs import SIXTEEN_BITS


def policies_of_instances(facts: SourceFacts, owner: ClassFacts) -> frozenset[str]:
    """The policies that this program's layers of a class may have: by their `dtype`, else the global one where they are
    made. Of a class that the program never makes itself: "mixed_float16", since it shows mixed precision."""
    made = [
        call
        for call in facts.calls
        if isinstance(call.callee, Defined)
        and isinstance(call.callee.of, ClassFacts)
        and any(one is owner for one in call.callee.of.lineage())
    ]
    found: set[str] = set()
    for call in made:
        found.update(_policies(facts, call, owner))
    return frozenset(found) if made else frozenset(("mixed_float16",))


def computes_in_half(facts: SourceFacts, value: Value, context: Context, only: str | None = None) -> bool:
    """Whether a value that is autocast is 16-bit in some layer of the program; with `only`, in that dtype ("float16").

    The layer is the one whose `call()` the value comes from; a helper function that it calls may stand outside."""
    owners: dict[int, ClassFacts | None] = {id(one): one for one in _owners(value)}
    owners = owners or {id(context.owner): context.owner}
    policies = [
        policy
        for owner in owners.values()
        if owner is not None and owner.kind in ("layer", "model")
        for policy in policies_of_instances(facts, owner)
    ]
    dtypes = {SIXTEEN_BITS[one] for one in policies if one in SIXTEEN_BITS}
    return bool(dtypes) if only is None else only in dtypes


def _owners(value: Value) -> Iterator[ClassFacts]:
    for one in walk(value):
        if isinstance(one, Instance):
            yield one.of
        elif isinstance(one, Parameter) and one.function is not None and one.function.owner is not None:
            yield one.function.owner


def asks_for_dtype(context: Context) -> bool:
    """Whether code stands behind an `if` about dtypes or policies, so that it may never run in 16 bits."""
    return any(_is_about_dtypes(part) for branch in context.branches for part in walk(branch.test))


def _is_about_dtypes(value: Value) -> bool:
    if isinstance(value, Attribute):
        return "dtype" in value.name or "policy" in value.name or "precision" in value.name
    if isinstance(value, Api):
        return "dtype" in value.name or "policy" in value.name or value.name.endswith(("float16", "float32"))
    return False


def _policies(facts: SourceFacts, call: Call, owner: ClassFacts) -> tuple[str, ...]:
    given = call.keyword("dtype")
    if given is None:
        base = owner.base_arguments.get("dtype")
        given = None if isinstance(base, Parameter) else base
    if given is not None and known(given) is not None:
        return policies_named(given)
    if call.open and given is None:
        return ()
    policies = facts.policies_at(call)
    named = tuple(one for one in policies if isinstance(one, str))
    if not named and facts.assume_mixed:
        return ("mixed_float16",)
    return named

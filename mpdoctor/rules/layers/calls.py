"""Whether the code of a layer's `call()` computes in 16 bits."""

from __future__ import annotations

from mpdoctor.facts.dtypes import policies_named
from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Call, ClassFacts, Context, Defined, Parameter, known
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


def computes_in_half(facts: SourceFacts, context: Context, only: str | None = None) -> bool:
    """Whether what is autocast here is 16-bit for some layer of the program; with `only`, in that dtype ("float16")."""
    owner = context.owner
    if owner is None or owner.kind not in ("layer", "model"):
        return False
    dtypes = {SIXTEEN_BITS[one] for one in policies_of_instances(facts, owner) if one in SIXTEEN_BITS}
    return bool(dtypes) if only is None else only in dtypes


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

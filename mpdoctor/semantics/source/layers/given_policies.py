"""The policies that a layer's `dtype` argument names, where it may be the global policy that the program has read."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.program.dtypes.dtype_names import GLOBAL_POLICY
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Attribute, Value, is_api, options


def policies_given(facts: SourceFacts, given: Value) -> tuple[str, ...]:
    """The policies that it names, or was when it was read; () if that is not known."""
    named = policies_named(given)
    if named:
        return named
    read = [_read(facts, option) for option in options(given)]
    return tuple(dict.fromkeys(name for names in read for name in names)) if all(read) else ()


def _read(facts: SourceFacts, value: Value) -> tuple[str, ...]:
    """The global policies that `global_policy()` gives, also where `.name` or `.compute_dtype` is asked of it."""
    if isinstance(value, Attribute) and value.name == "name":
        return tuple(name for option in options(value.of) for name in _read(facts, option))
    if isinstance(value, Attribute) and value.name == "compute_dtype":
        policies = (name for option in options(value.of) for name in _read(facts, option))
        return tuple(SIXTEEN_BITS.get(policy, policy) for policy in policies)
    if not isinstance(value, Call) or not is_api(value.callee, *GLOBAL_POLICY):
        return ()
    return tuple(
        policy or "float32" for policy in facts.policies_at(value) if policy is None or isinstance(policy, str)
    )

"""The 16-bit dtype that a layer computes in, as the call that makes it tells."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import known
from mpdoctor.semantics.source.layers.call_dtypes import policies_made_with


def half_dtype_of_layer(facts: SourceFacts, layer: Call) -> str | None:
    """The 16-bit compute dtype of a layer: of its own `dtype`, else of the global policy where it is made. None if that
    is not 16-bit, or not known."""
    own, given = class_of(layer), layer.keyword("dtype")
    if layer.open or known(layer.keyword("autocast")) is False:
        return None
    if own is not None and known(own.base_argument("autocast")) is False:
        return None
    names: tuple[object, ...]
    if own is not None or (given is not None and known(given) is not None):
        names = policies_made_with(facts, layer, own)
    else:
        names = facts.policies_at(layer)
        if facts.assume_mixed and all(name in (None, UNSURE) for name in names):
            return "float16"
    return next((SIXTEEN_BITS[name] for name in names if isinstance(name, str) and name in SIXTEEN_BITS), None)

"""The dtype in which a layer computes: by its own `dtype`, or by the policy in force where it is made.

Rules ask `half_dtype_of_layer`, which says 16 bits alone, and only of a layer that casts what it is given. Dtypes of
tensors are worked out with `LayerDtypes`, which says float32 as well and looks into wrappers; both know the user's own
classes. (Whether the *output* is 16-bit, `output_dtypes.py` says.)
"""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.facts.half_dtypes import HALF, SIXTEEN_BITS
from mpdoctor.program.dtypes.dtype_names import is_policy_in_force
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.policy_settings import UNSURE, PolicyName
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Value, agreed, known
from mpdoctor.semantics.source.layers.call_dtypes import (
    layer_whose_policy_it_is,
    policies_made_with,
    policies_of_instances,
)
from mpdoctor.semantics.source.layers.given_policies import policies_given
from mpdoctor.semantics.source.layers.weight_values import wrapper_around
from mpdoctor.semantics.source.programs.running_functions import functions_around


class LayerDtypes:
    """Answers for the layers of one program, and for the weights that are read of them."""

    def __init__(self, facts: SourceFacts) -> None:
        self.facts = facts
        self._policies: dict[int, frozenset[str]] = {}

    def policies_of(self, owner: ClassFacts) -> frozenset[str]:
        """The policies under which the program makes layers of one of the user's classes."""
        if id(owner) not in self._policies:
            self._policies[id(owner)] = policies_of_instances(self.facts, owner)
        return self._policies[id(owner)]

    def of_layer(self, layer: Call) -> str | None:
        """The dtype in which a built-in layer computes, by its own `dtype` or by the policy in force where it is
        made."""
        given = layer.keyword("dtype")
        if given is not None and known(given) is not None:
            policies = policies_given(self.facts, given)
            if policies or not is_policy_in_force(given):
                return sixteen_bits_of(policies)
        outer = layer_whose_policy_it_is(given)
        if outer is not None:
            return sixteen_bits_of(self.policies_of(outer))
        if layer.open:
            return None
        inner = layer.argument(0, "layer")
        if is_call_of(layer, "keras.layers.TimeDistributed", "keras.layers.Bidirectional"):
            return self.of_layer(inner) if isinstance(inner, Call) else None
        in_force = self.facts.policies_at(layer)
        named = [policy for policy in in_force if isinstance(policy, str)]
        if not named and self.facts.assume_mixed:
            return "float16"
        owner = layer.context.owner
        if not named and UNSURE in in_force and owner is not None and owner.is_layer:
            return sixteen_bits_of(self.policies_of(owner))
        return dtype_under(in_force)

    def of_weight(self, holder: Value, in_call: bool) -> str | None:
        """The dtype in which a layer's weight is read, inside the `call()` of a layer or outside of any."""
        own, wrapper = class_of(holder), wrapper_around(holder)
        dtype = self.of_layer(holder) if isinstance(holder, Call) and own is None else None
        dtype = sixteen_bits_of(self.policies_of(own)) if own is not None else dtype
        dtype = self._of_wrapped_layers(wrapper) if wrapper is not None else dtype
        if in_call and own is None and wrapper is None:
            return self._read_around(holder, dtype)
        return dtype if in_call or dtype not in HALF else "float32"

    def _read_around(self, layer: Value, dtype: str | None) -> str | None:
        """The dtype in which `call()` of the layer around reads the weights of a layer that it makes, which computes in
        `dtype` itself: Keras 3 casts them to the dtype of the layer around, Keras 2 only where both compute in 16 bits
        (measured in TensorFlow 2.10, 2.15 and 2.21)."""
        at = layer.context if isinstance(layer, Call) else None
        makers = (at.function, *functions_around(self.facts, at)) if at is not None else ()
        owners = {maker.owner for maker in makers if maker is not None and maker.owner is not None}
        around = agreed(sixteen_bits_of(self.policies_of(owner)) for owner in owners if owner.is_layer)
        if around is None or dtype is None:
            return dtype
        is_cast = around in HALF and (dtype in HALF or self.facts.keras.is_keras3)
        return around if is_cast else "float32"

    def _of_wrapped_layers(self, wrapper: ClassFacts) -> str | None:
        """The dtype in which the layers compute that a wrapper is given; its own where the program makes none."""
        given = [call.argument(0, "layer") for call in self.facts.makings_of(wrapper)]
        if not given:
            return sixteen_bits_of(self.policies_of(wrapper))
        return agreed(self.of_layer(layer) if isinstance(layer, Call) else None for layer in given)


def dtype_under(policies: tuple[PolicyName, ...]) -> str | None:
    """The dtype of what is computed under one of these global policies; None where it is not certain."""
    named = [policy for policy in policies if isinstance(policy, str)]
    return sixteen_bits_of(named) if named or UNSURE in policies else "float32"


def sixteen_bits_of(policies: Iterable[str]) -> str | None:
    """The 16-bit dtype in which a layer of one of these policies computes, or else float32; None where that is not
    certain."""
    dtypes = {SIXTEEN_BITS.get(policy, policy) for policy in policies}
    return next((dtype for dtype in HALF if dtype in dtypes), "float32" if dtypes == {"float32"} else None)


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

"""The 16-bit dtype in which a model's last layer answers."""

from __future__ import annotations

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.facts.versions import Keras
from mpdoctor.knowledge.api_names import is_network, public_name
from mpdoctor.knowledge.layer_kinds import HANDING_ON, OUTPUT_IN_COMPUTE_DTYPE
from mpdoctor.program.dtypes.own_layers import gives_what_its_base_gives
from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, is_api, known
from mpdoctor.semantics.source.layers.call_dtypes import layer_whose_policy_it_is, policies_of_instances
from mpdoctor.semantics.source.layers.given_policies import policies_given

WRAPPED_LAYER = ("keras.layers.TimeDistributed", "keras.layers.Bidirectional")


def sixteen_bit_output(facts: SourceFacts, layer: Call) -> str | None:
    """The 16-bit dtype that the output of this layer may have; None if it has none for certain, or that is not
    known."""
    while is_call_of(layer, *WRAPPED_LAYER):
        inner = layer.argument(0, "layer")
        if layer.open or layer.keyword("dtype") is not None or not isinstance(inner, Call):
            return None
        layer = inner
    if layer.open or not (isinstance(layer.callee, Api) or gives_what_its_base_gives(layer, facts.values_returned)):
        return None
    given = layer.keyword("dtype")
    is_certain = is_application(layer) or answers_in_compute_dtype(layer, facts.keras)
    if not is_certain and isinstance(layer.callee, Api):
        return None
    outer = layer_whose_policy_it_is(given)
    if outer is not None:
        return sixteen_bits(tuple(sorted(policies_of_instances(facts, outer))))
    if given is not None and known(given) is not None:
        return sixteen_bits(policies_given(facts, given))
    policies = facts.policies_at(layer)
    if facts.assume_mixed and all(policy in (None, UNSURE) for policy in policies):
        return "float16"
    return sixteen_bits(tuple(policy for policy in policies if isinstance(policy, str)))


def answers_in_compute_dtype(layer: Call, keras: Keras) -> bool:
    """Whether the output of a library's layer has its compute dtype for certain. A bilinear UpSampling2D gives float32
    in Keras 2."""
    name = public_name(layer.callee.name).rpartition(".")[2] if isinstance(layer.callee, Api) else ""
    return name in OUTPUT_IN_COMPUTE_DTYPE or (name == "UpSampling2D" and (keras.is_keras3 or hands_on(layer)))


def hands_on(layer: Call) -> bool:
    """Whether a library's layer hands on the numbers that it is given, in its compute dtype."""
    name = public_name(layer.callee.name).rpartition(".")[2] if isinstance(layer.callee, Api) else ""
    if name == "UpSampling2D":
        given = layer.argument(2, "interpolation")
        return not layer.open and (given is None or known(given) == "nearest")
    return name in HANDING_ON


def sixteen_bits(policies: tuple[str, ...]) -> str | None:
    return next((SIXTEEN_BITS[policy] for policy in policies if policy in SIXTEEN_BITS), None)


def is_application(value: Value) -> bool:
    """Whether it is a whole network of keras.applications, with its classifying top."""
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return False
    name = value.callee.name
    return (
        is_network(name)
        and known(value.keyword("include_top")) is not False
        and (value.keyword("include_top") is None or known(value.keyword("include_top")) is True)
        and not value.args
        and is_api(value.callee, name)
    )

"""A layer has its own dtype, but the layers inside it follow the global policy.

## Why it matters
A layer does not pass its dtype to the layers inside it. Under `mixed_float16`, `Head(dtype="float32")` returns
float16 if the Dense layer inside was made without a dtype (measured in Keras 3.15, tf_keras 2.21, TensorFlow
2.15 and 2.10). The float32 head that was asked for computes in half precision after all, or the other way
round.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Head(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(1)

    def call(self, inputs):
        return self.dense(inputs)


head = Head(dtype="float32")
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Head(keras.layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = keras.layers.Dense(1, dtype=self.dtype_policy)

    def call(self, inputs):
        return self.dense(inputs)


head = Head(dtype="float32")
```

## Versions
All. In Keras 2 the same is true of TimeDistributed, Bidirectional and RNN; in Keras 3 their output is right.

## Where users met it
larq/larq#631, tensorflow/community#293, keras-team/keras-core#805.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.knowledge.layer_kinds import NOT_FLOATING
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.given_dtypes import with_dtype
from mpdoctor.semantics.source.layers.call_dtypes import dtype_given
from mpdoctor.semantics.source.programs.running_functions import functions_around

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
EXPLAINS = {"MP201": "line", "MP209": "model"}
SETTING_UP = ("__init__", "build")
DTYPES = {"float32": "float32", **SIXTEEN_BITS}
OUTER_CLASS = "outer_class"  # in the evidence: the class that is given the other dtype
WRAPPERS = ("keras.layers.TimeDistributed", "keras.layers.Bidirectional", "keras.layers.RNN")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    made = _made_inside(facts)
    for own in facts.classes:
        if own.is_layer:
            yield from _inside(facts, own, made.get(id(own), []))
    if facts.keras.is_keras3:
        return
    for wrapper in facts.calls_of(*WRAPPERS):
        inner = wrapper.argument(0, "layer")
        given = policies_named(wrapper.keyword("dtype"))
        for option in options(inner):
            if len(given) == 1 and isinstance(option, Call) and (other := _other_policy(facts, option, given[0])):
                yield _finding(facts, option, wrapper.method, given[0], other)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or not model.policy_set:
        return
    for parent, layer in _layers_against_parent(model):
        yield Finding(
            f"{layer.path} ({layer.class_name}) follows the global policy {layer.policy}, but "
            f"{parent.path} ({parent.class_name}), which holds it, has the policy {parent.policy}.",
            f"Pass the dtype on in {parent.class_name}: `dtype=self.dtype_policy`.",
            layer.made_at,
            layer=layer.path,
            evidence={
                "policies": {parent.path: parent.policy, layer.path: layer.policy},
                OUTER_CLASS: parent.class_name,
            },
        )


def _layers_against_parent(model: ModelFacts) -> Iterator[tuple[LayerFacts, LayerFacts]]:
    """Each pair of a user's layer with its own policy and a layer inside it that follows the global policy."""
    for parent in model.layers:
        if not parent.own_class or parent.policy == model.global_policy:
            continue
        for layer in model.inside(parent):
            follows = layer.floating and bool(layer.variables) and layer.policy == model.global_policy
            if follows and layer.compute_dtype != parent.compute_dtype:
                yield parent, layer


def _made_inside(facts: SourceFacts) -> dict[int, list[Call]]:
    """The layers without a dtype that a class makes, by the id of the class; not those of a function of no class that
    gives some of its layers a dtype, and so decides about each of them."""
    deciding = {id(call.context.function) for call in facts.calls if _is_given_a_dtype(call)}
    made: dict[int, list[Call]] = {}
    makers: dict[Context, ClassFacts | None] = {}
    for call in facts.calls:
        if call.context not in makers:
            makers[call.context] = _maker(facts, call.context)
        own = makers[call.context]
        is_decided = call.context.owner is None and id(call.context.function) in deciding
        if own is not None and not is_decided and _is_layer_without_dtype(call):
            made.setdefault(id(own), []).append(call)
    return made


def _inside(facts: SourceFacts, own: ClassFacts, inner: list[Call]) -> Iterator[Finding]:
    """The layers made inside a user's layer that is given another dtype than the global policy's."""
    fixed = policies_named(own.base_argument("dtype"))
    makings = facts.makings_of(own) if inner and not fixed else []
    given = [(making.location, policies_named(dtype_given(facts, making))) for making in makings]
    given = [(made_at, policies) for made_at, policies in given if policies]
    for call in inner:
        for policy in sorted(set(fixed) or _policies_around(given, call)):
            other = _other_policy(facts, call, policy)
            if other is not None:
                yield _finding(facts, call, own.name, policy, other)
                break


def _policies_around(given: Iterable[tuple[Location, tuple[str, ...]]], inner: Call) -> set[str]:
    """The policies that the outer layer is given, in the calls that make both it and the inner layer."""
    callers = inner.context.callers
    return {policy for made_at, policies in given if not callers or made_at in callers for policy in policies}


def _maker(facts: SourceFacts, context: Context) -> ClassFacts | None:
    """The class in whose own `__init__` or `build` code runs, or in a function of no class that it calls."""
    function, owner = context.function, context.owner
    makers = [function] if owner is not None else [None, *functions_around(facts, context)][-1:]
    return next((maker.owner for maker in makers if maker is not None and maker.name in SETTING_UP), None)


def _finding(facts: SourceFacts, inner: Call, outer: str, given: str, other: str) -> Finding:
    owner = inner.context.owner
    is_shared = outer != "RNN" and owner is None  # made by a function that other layers may call
    dtype = f'"{given}"' if outer == "RNN" or owner is None else "self.dtype_policy"
    return Finding(
        f"{outer} is given {given}, but this {inner.method} inside it follows the global policy, {other}.",
        f"Pass the dtype on: `{inner.method}(…, dtype={dtype})`.",
        inner.location,
        evidence={OUTER_CLASS: outer},
        fix=None if is_shared else unsafe_fix(f"Give the layer dtype={dtype}", with_dtype(facts, inner, dtype)),
    )


def _is_given_a_dtype(call: Call) -> bool:
    is_layer = isinstance(call.callee, Api) and kind_of_class(call.callee.name) == "layer"
    return is_layer and call.keyword("dtype") is not None


def _is_layer_without_dtype(call: Call) -> bool:
    if call.open or call.keyword("dtype") is not None:
        return False
    own = class_of(call)
    if own is not None:
        return own.kind == "layer" and own.base_argument("dtype") is None
    if not isinstance(call.callee, Api) or kind_of_class(call.callee.name) != "layer":
        return False
    name = public_name(call.callee.name)
    return name != "keras.Input" and name.rpartition(".")[2] not in NOT_FLOATING


def _other_policy(facts: SourceFacts, inner: Call, given: str) -> str | None:
    """The global policy that an inner layer follows, where its compute dtype differs from the one given."""
    if not _is_layer_without_dtype(inner) or given not in DTYPES:
        return None
    policies = facts.policies_at(inner)
    for policy in policies:
        name = "float32" if policy is None else policy
        if isinstance(name, str) and name in DTYPES and DTYPES[name] != DTYPES[given]:
            is_certain = len(policies) == 1 and not facts.assume_mixed
            return name if name in SIXTEEN_BITS or is_certain else None
    return None

"""The program assigns a dtype of a layer, a model or a policy, which Keras only lets it read.

## Why it matters
The line raises AttributeError: `Can't set the attribute "dtype"` in Keras 2, `property 'dtype' of … has no setter` in
Keras 3. A layer computes by its policy, which it is given when it is made; `self.dtype = …` in the `__init__` of an own
layer or model raises just so. Losses have such a `dtype` in Keras 3 only.

With TensorFlow, Keras 3 lets pass what changes nothing: the string that a layer or model has there already,
`self.dtype = "float32"` under a mixed policy (3.15). That is not reported.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def __init__(self, factor, dtype="float16"):
        super().__init__()
        self.factor = factor
        self.dtype = dtype

    def call(self, x):
        return x * self.factor
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def __init__(self, factor, dtype="float16"):
        super().__init__(dtype=dtype)
        self.factor = factor

    def call(self, x):
        return x * self.factor
```

## Versions
All. Tried in TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21 and Keras 3.15.

## Where users met it
Layers that were written for TensorFlow 1, and programs that follow other frameworks, where a dtype can be assigned.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import POLICY
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Write
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.policy_settings import READ_POLICY
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Value, known, options
from mpdoctor.semantics.source.layers.model_layers import layer_or_model, policies_set
from mpdoctor.semantics.source.programs.attribute_access import takes_assignments_itself, writes
from mpdoctor.semantics.source.programs.branches import is_ruled_out

SEVERITY = Severity.ERROR
OF_LAYERS = ("dtype", "compute_dtype", "variable_dtype")
READ_ONLY = {
    "layer": OF_LAYERS,
    "model": OF_LAYERS,
    "policy": ("compute_dtype", "variable_dtype"),
    "metric": ("dtype",),
}
READ_ONLY_IN_KERAS3 = {"loss": ("dtype",)}
HELP = {
    "layer": "Pass it where the layer is made, `dtype=…`.",
    "model": "Pass `dtype=…` to its layers, or set the global policy before they are made.",
    "policy": 'Make another policy: `Policy("mixed_float16")` computes in float16 and keeps float32 weights.',
    "metric": "Pass it where the metric is made, `dtype=…`.",
    "loss": "Pass it where the loss is made, `dtype=…`.",
}
IN_OWN_CLASS = "Pass it on, `super().__init__(dtype=…)`, or keep it under another name."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for write in writes(facts, OF_LAYERS):
        is_about_precision = facts.shows_mixed_precision or dtype_named(write.value, facts.keras) in HALF
        if not is_about_precision or write.context.guarded or is_ruled_out(write.context):
            continue
        kinds = {_kind(option, write, facts.keras) for option in options(write.of)}
        if len(kinds) == 1 and None not in kinds:
            (kind,) = kinds
            if kind in ("layer", "model") and facts.keras.is_keras3 and _may_be_there_already(facts, write):
                continue
            yield Finding(_message(kind or "", write.name), _help(kind or "", write), write.location)


def _may_be_there_already(facts: SourceFacts, write: Write) -> bool:
    """Whether the value may be the very string that the layer has there, which Keras 3 lets pass."""
    given = [option.default if isinstance(option, Parameter) else option for option in options(write.value)]
    texts = {known(option) for option in given}
    if write.name != "compute_dtype":
        return "float32" in texts
    policies = {name for call in facts.policy_calls for name in policies_set(call)}
    return any(f"mixed_{text}" in policies for text in texts) or ("float32" in texts and not policies)


def _message(kind: str, name: str) -> str:
    return f"`{name}` of a {kind} can only be read: this line raises AttributeError."


def _help(kind: str, write: Write) -> str:
    return IN_OWN_CLASS if write.context.owner is not None and _is_own(write) else HELP[kind]


def _is_own(write: Write) -> bool:
    """Whether a method assigns it to its own object."""
    return any(class_of(option) is write.context.owner for option in options(write.of))


def _kind(value: Value, write: Write, keras: Keras) -> str | None:
    """The kind of object that the value certainly is, if its attribute cannot be assigned: a key of READ_ONLY or of
    READ_ONLY_IN_KERAS3."""
    own = class_of(value)
    if own is not None:
        kind = None if takes_assignments_itself(own, write.name) else own.kind
    else:
        kind = "policy" if is_call_of(value, POLICY, READ_POLICY) else layer_or_model(value)
    named = {**READ_ONLY, **(READ_ONLY_IN_KERAS3 if keras.is_keras3 else {})}
    return kind if write.name in named.get(kind or "", ()) else None

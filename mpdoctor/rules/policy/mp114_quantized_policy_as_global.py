"""A quantized dtype policy is set as the global policy, so every model fails at its first call.

## Why it matters
Every layer takes the global policy, including models and layers without weights, and those cannot compute in
int8 or float8: `Layer Sequential does not have a `_float8_call` method implemented` (NotImplementedError in
Keras 3.3, 3.8 and 3.15, in training and in predict). Quantize only the layers that can be: call
`model.quantize("int8")`, or pass `dtype` to single layers.

## Flagged
```python
import keras

keras.config.set_dtype_policy(keras.dtype_policies.QuantizedDTypePolicy("int8", "mixed_bfloat16"))
```

## Fixed
```python
import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8)])
model.quantize("int8")
```

## Versions
Keras 3.3 and later; Keras 2 has no quantized policies. A `DTypePolicyMap` may be set globally.

## Where users met it
keras-team/keras#23479.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.policy_names import NOT_QUANTIZED, is_quantized_policy_name
from mpdoctor.program.events import Call
from mpdoctor.program.policy_settings import SET_FLOATX
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value, known, options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.statements import without_statement
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.programs.models import is_model

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
KERAS = ("3",)
CLASSES = ("QuantizedDTypePolicy", "QuantizedFloat8DTypePolicy", "GPTQDTypePolicy", "AWQDTypePolicy", "Int4DTypePolicy")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.policy_calls:
        if call.context.guarded or (isinstance(call.callee, Api) and call.callee.is_(SET_FLOATX)):
            continue
        given = call.argument(0, "policy") or call.keyword("dtype_policy")
        if (
            given is not None
            and all(_is_quantized(option) for option in options(given))
            and not _is_put_back(facts, call)
        ):
            yield Finding(
                "A quantized policy is set for every layer, and models have no quantized form: the first call of a "
                "model raises NotImplementedError.",
                'Remove this line. Quantize the built model with `model.quantize("int8")`, or pass this policy to '
                "single layers as their `dtype`.",
                call.location,
                fix=unsafe_fix("Remove the policy", without_statement(facts, call.location)),
            )


def _is_quantized(value: Value) -> bool:
    name = known(value)
    if isinstance(name, str):
        return is_quantized_policy_name(name) and name not in NOT_QUANTIZED  # MP104: setting it raises
    if not isinstance(value, Call) or not isinstance(value.callee, Api) or not value.callee.name.startswith("keras."):
        return False
    if value.method == "get":
        given = options(value.argument(0, "identifier"))
        return bool(given) and all(map(_is_quantized, given))
    return value.method in CLASSES


def _is_put_back(facts: SourceFacts, policy: Call) -> bool:
    """Whether another policy is set before any model is made: then only single layers take this one."""
    later = [policy_call for policy_call in facts.policy_calls if policy_call.order > policy.order]
    later = [call for call in later if not exclude_each_other(call.context, policy.context)]
    if not later:
        return False
    return not any(policy.order < call.order < later[0].order and is_model(call) for call in facts.calls)

"""A layer asks `add_weight` for a 16-bit weight, although Keras casts float32 weights by itself.

## Why it matters
Such a weight has no float32 copy: an update smaller than its last bit is lost. With `dtype=self.compute_dtype`,
SGD at 1e-4 and weights of 1, 20 epochs changed the weight by exactly 0 in Keras 3.15, tf_keras 2.21, TensorFlow
2.15 and 2.10. A weight made without a dtype is stored in float32 and read as float16 inside `call()`.

The numbers of a metric are the same case, Keras' own with `dtype="float16"` among them, and in Keras 3 with a mixed
policy as its dtype, for which Keras 2 keeps float32: of 3000 batches a `Mean` counts 2048 (Keras 3.15, tf_keras 2.21,
TensorFlow 2.15 and 2.10), and a share of 72,000 samples, counted in two float16
weights, came out as 0, because the number of samples was inf (Keras 3.15).

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.gamma = self.add_weight(
            name="gamma", shape=(input_shape[-1],), initializer="ones", dtype=self.compute_dtype
        )

    def call(self, inputs):
        return inputs * self.gamma
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.gamma = self.add_weight(name="gamma", shape=(input_shape[-1],), initializer="ones")

    def call(self, inputs):
        return inputs * self.gamma
```

## Versions
All. Weights with `trainable=False` (caches, masks) may be 16-bit.

## Where users met it
tensorflow/addons#2405, keras-team/keras#16907 (advised there as a workaround).
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import ADDING_WEIGHTS, kind_of_class
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, is_policy_in_force
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named, policies_named
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, Attribute, Value, is_api, known
from mpdoctor.semantics.source.edits.expressions import unsafe_fix, without_keyword
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_of_instances
from mpdoctor.semantics.source.layers.layer_variables import (
    added_weights,
    may_be_trained,
    owner_of_weight,
    raw_variables,
)
from mpdoctor.semantics.source.programs.losses_and_metrics import half_dtype_of_policy
from mpdoctor.semantics.source.programs.running_functions import is_in_test_without_training
from mpdoctor.semantics.source.texts.written import argument_text

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
CONFIRMED_LIVE = True
MIXED = {"mixed_float16": "float16", "mixed_bfloat16": "bfloat16"}
LOST = "there is no float32 copy, so updates smaller than its last bit are lost."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for weight in added_weights(facts):
        dtype = _half_dtype(facts, weight)
        if dtype is not None:
            yield Finding(
                f"This weight is stored in {dtype}, not only used in it: {LOST}",
                "Leave `dtype` out: Keras stores a float32 weight and casts it in `call()`.",
                weight.location,
                fix=unsafe_fix("Leave `dtype` out", without_keyword(facts, weight.location, "dtype")),
            )
    yield from _states_of_metrics(facts)
    if facts.keras.is_keras3:
        return  # Keras 3 does not train a raw variable at all, whatever its dtype (MP203).
    for variable in raw_variables(facts):
        dtype = _half_dtype(facts, variable)
        if dtype is not None:
            yield Finding(
                f"This variable is stored in {dtype}: {LOST}",
                "Make it with `self.add_weight(…)` and no dtype: Keras stores it in float32 and casts it in `call()`.",
                variable.location,
            )


def _states_of_metrics(facts: SourceFacts) -> Iterator[Finding]:
    """What metrics of the program's own count and sum in, over all batches of an epoch."""
    for state in facts.method_calls(*ADDING_WEIGHTS):
        owner, given = state.context.owner or owner_of_weight(state), state.keyword("dtype")
        if owner is None or owner.kind != "metric" or given is None or asks_for_dtype(state.context):
            continue
        dtype = _half_dtype_named(facts, given)
        if dtype is not None:
            yield _finding_of_metric(facts, dtype, state)
    for made in facts.calls:
        given = made.keyword("dtype")
        if given is not None and not asks_for_dtype(made.context) and _is_given_dtype_of_metric(facts, made):
            dtype = _half_dtype_named(facts, given) or half_dtype_of_policy(facts, given)
            dtype = dtype or _of_own_compute_dtype(facts, made, given)
            if dtype is not None:
                yield _finding_of_metric(facts, dtype, made)


def _finding_of_metric(facts: SourceFacts, dtype: str, given_to: Call) -> Finding:
    digits = "2048, and is inf from 65520 on" if dtype == "float16" else "256"
    return Finding(
        f"This metric keeps its numbers in {dtype} over a whole epoch: it counts exactly only up to {digits}.",
        "Leave `dtype` out: a metric keeps float32 numbers, whatever the policy.",
        given_to.location,
        fix=unsafe_fix("Leave `dtype` out", without_keyword(facts, given_to.location, "dtype")),
    )


def _is_given_dtype_of_metric(facts: SourceFacts, call: Call) -> bool:
    """Whether the call says itself in which dtype a metric counts, and not a caller's `**kwargs`, nor a test of the
    metric. Of another file of the program the text is not at hand: it is judged again with its own."""
    if not _takes_dtype_of_metric(call) or is_in_test_without_training(facts, call.context):
        return False
    return call.location.path != facts.path or argument_text(facts, call.location, "dtype") is not None


def _takes_dtype_of_metric(call: Call) -> bool:
    """Whether it makes a metric of Keras', or is the `super().__init__(…)` of one of the program's own."""
    if isinstance(call.callee, Api):
        return kind_of_class(call.callee.name) == "metric"
    owner = call.context.owner
    is_of_base = isinstance(call.receiver, Call) and is_api(call.receiver.callee, "builtins.super")
    return is_of_base and call.method == "__init__" and owner is not None and owner.kind == "metric"


def _half_dtype_named(facts: SourceFacts, given: Value) -> str | None:
    """The 16-bit dtype that a value certainly names: by itself, or as the compute dtype of a policy."""
    dtype = dtype_named(given, facts.keras)
    dtype = dtype if dtype in HALF else _computed_in_by_policy(given) or _computed_in_by_global_policy(facts, given)
    return dtype if dtype in HALF else None


def _of_own_compute_dtype(facts: SourceFacts, made: Call, given: Value) -> str | None:
    """The dtype of the `self.compute_dtype` of a layer or model that makes a metric, if all its instances compute in
    the same 16 bits."""
    owner = made.context.owner
    if owner is None or not owner.is_layer or dtype_named(given, facts.keras) != AUTOCAST:
        return None
    policies = policies_of_instances(facts, owner)
    return MIXED.get(next(iter(policies))) if len(policies) == 1 else None


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained:
        return
    for layer in model.layers:
        dtype = next((dtype for dtype, _, trainable in layer.variables if trainable and dtype in HALF), None)
        if dtype is not None and layer.policy in MIXED and not layer.is_model:
            yield Finding(
                f"{layer.path} ({layer.class_name}) has a {dtype} weight under {layer.policy}: {LOST}",
                "In its `build()`, leave `dtype` out of `add_weight(…)`: Keras stores a float32 weight and casts it.",
                layer.class_location or layer.made_at,
                layer=layer.path,
                evidence={"variables": [list(variable) for variable in layer.variables]},
            )


def _computed_in_by_policy(dtype: Value) -> str | None:
    """The dtype of `POLICY.compute_dtype`, for a policy that the program makes."""
    if not isinstance(dtype, Attribute) or dtype.name != "compute_dtype" or not isinstance(dtype.of, Call):
        return None
    policies = policies_named(dtype.of)
    return MIXED.get(policies[0]) if len(policies) == 1 else None


def _computed_in_by_global_policy(facts: SourceFacts, dtype: Value) -> str | None:
    """The dtype of `global_policy().compute_dtype`, where only one policy may be in force."""
    if not isinstance(dtype, Attribute) or dtype.name != "compute_dtype" or not isinstance(dtype.of, Call):
        return None
    policies = facts.policies_at(dtype.of) if is_policy_in_force(dtype.of) else ()
    return MIXED.get(str(policies[0])) if len(policies) == 1 else None


def _half_dtype(facts: SourceFacts, weight: Call) -> str | None:
    """The 16-bit dtype that a trained weight is given, None if it has none."""
    owner = weight.context.owner or owner_of_weight(weight)
    given = weight.keyword("dtype") or (weight.argument(2) if weight.method != "Variable" else None)
    if given is None or owner is None or not may_be_trained(weight) or asks_for_dtype(weight.context):
        return None
    if any(write.name == "trainable" and known(write.value) is False and weight is write.of for write in facts.writes):
        return None  # frozen after it was made
    named = dtype_named(given, facts.keras) or _computed_in_by_policy(given)
    if named in HALF:
        return named
    return _compute_dtype_of(facts, owner) if named == AUTOCAST and facts.shows_mixed_precision else None


def _compute_dtype_of(facts: SourceFacts, owner: ClassFacts) -> str | None:
    """The 16-bit dtype in which the program's layers of this class compute, by their mixed policy."""
    policies = sorted(policies_of_instances(facts, owner))
    return next((MIXED[policy] for policy in policies if policy in MIXED), None)

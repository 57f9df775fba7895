"""`call()` uses `self.dtype` where it needs `self.compute_dtype` or the input's dtype.

## Why it matters
A layer's `dtype` is the dtype of its weights: float32 under a mixed policy, where the inputs are 16-bit. So
`inputs + tf.cast(mask, self.dtype)` raises (`expected to be a half tensor but is a float tensor`) in Keras
3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10, and code that does not raise computes in float32.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Gate(keras.layers.Layer):
    def call(self, inputs):
        return inputs * tf.cast(inputs > 0, self.dtype)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Gate(keras.layers.Layer):
    def call(self, inputs):
        return inputs * tf.cast(inputs > 0, inputs.dtype)
```

## Versions
All. `self.variable_dtype` is the same dtype under another name. A value for a weight (`assign`) or for
`add_loss` is rightly float32 and is not reported. A tensor that `__init__` or `build` makes in `self.dtype` is
reported where `call()` combines it with a 16-bit one.

## Where users met it
tensorflow/tensorflow#58937.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF, SIXTEEN_BITS
from mpdoctor.facts.location import holds
from mpdoctor.finding import AlsoSeen, Edit, Finding, Fix, Severity
from mpdoctor.knowledge.dtypes.result_dtypes import COMPARISONS
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, VARIABLE, is_policy_in_force
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Collection, Either, Item, Value, options
from mpdoctor.semantics.live.errors.dtype_error_causes import mismatch_in_call, names_variable_dtype
from mpdoctor.semantics.live.errors.error_texts import evidence_of, place_of_failure
from mpdoctor.semantics.source.edits.attributes import attribute_renamed
from mpdoctor.semantics.source.edits.expressions import safe_fix, unsafe_fix
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_of_instances, runs_in_layer
from mpdoctor.semantics.source.layers.layer_variables import RAW
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.operands.casts import is_cast, is_cast_to, is_supervised
from mpdoctor.semantics.source.operands.mixed_operands import MixedOperands, is_half, may_raise, mixed_operands

SEVERITY = Severity.WARNING
FIXES = ("safe", "unsafe")
FAILS_IN = ("model", "training")
EXPLAINS = {"MP202": "line"}
ONLY_IN_HALF = True
MOST_STEPS = 40
FIX = "Write `compute_dtype`"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for call in facts.library_calls:
        name = _variable_dtype(facts, call)
        if name is None or asks_for_dtype(call.context) or facts.dtype_of(call) != VARIABLE:
            continue
        pairs = _operations_by_operand(facts).get(id(call), ())
        met = next((pair for pair in pairs if _meets(facts, pair, call) and not _runs_by_hand(facts, pair, call)), None)
        problem = f"`{name}` is the dtype of the layer's weights, which is float32 under a mixed policy"
        if met is not None:
            yield _finding(
                f"{problem}. The layer computes in 16 bits, and combining the two raises.",
                call,
                safe_fix(FIX, _edit(facts, call)),
                Severity.ERROR,
                _also_combined_at(met, call),
            )
        elif runs_in_layer(facts, call.context) and _widens_half(facts, call):
            message = f"{problem}: this is computed in float32, while the rest of the layer is 16-bit."
            yield _finding(message, call, unsafe_fix(FIX, _edit(facts, call)))


def _runs_by_hand(facts: SourceFacts, met: MixedOperands, call: Call) -> bool:
    """Whether the two meet in a `call()` that the function which makes the one runs by hand, `self.call(…)`, outside of
    the layer: there Keras hands out weights in their own dtype."""
    if precision_of(facts).runs_in_call(call.context):
        return False
    by_hand = (run.location for run in facts.method_calls("call") if run.context.function is call.context.function)
    return any(location in met[0].context.callers for location in by_hand)


def _edit(facts: SourceFacts, call: Call) -> Edit | None:
    """The edit that writes `self.compute_dtype`, where the call itself names the weights' dtype."""
    names = [read for read in facts.reads if read.name in ("dtype", "variable_dtype")]
    inside = {read.name_location: read for read in names if holds(call.location, read.location)}
    return attribute_renamed(facts, next(iter(inside.values())), "compute_dtype") if len(inside) == 1 else None


def _finding(
    message: str,
    call: Call,
    fix: Fix | None,
    severity: Severity | None = None,
    also_seen: tuple[AlsoSeen, ...] = (),
) -> Finding:
    help = "Write `self.compute_dtype`, or the dtype of the other operand."
    return Finding(message, help, call.location, severity=severity, also_seen=also_seen, fix=fix)


def _also_combined_at(met: MixedOperands, call: Call) -> tuple[AlsoSeen, ...]:
    place = met[0].location
    if place.line == call.location.line:
        return ()
    return (AlsoSeen("MP206", "source", "It is combined with a 16-bit tensor here.", place.path, place.line),)


def _widens_half(facts: SourceFacts, call: Call) -> bool:
    """Whether a call casts a 16-bit tensor to float32 for further computation. Masks and targets may be float32 on
    purpose, so only values that were 16-bit before are reported."""
    given = call.argument(0)
    if not is_cast(call) or given is None or not is_half(facts, given, call.context):
        return False
    if is_supervised(facts, call) or is_cast_to(facts, call, (AUTOCAST, *HALF)):
        return False
    return not _is_float32_on_purpose(facts, call)


def _is_float32_on_purpose(facts: SourceFacts, cast: Call) -> bool:
    """Whether the layer whose dtype a cast names makes inner layers in that dtype, which compute in float32 too."""
    named = {id(class_of(value.of)) for value in _dtypes_of_weights(facts, cast.given)}
    made = [call.keyword("dtype") for call in facts.calls if layer_name(call)]
    given = [dtype for dtype in made if dtype is not None]
    return any(id(class_of(value.of)) in named for value in _dtypes_of_weights(facts, given))


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    mismatch = mismatch_in_call(failure)
    if mismatch is not None and names_variable_dtype(failure):
        yield Finding(
            f"In {place_of_failure(failure)} {mismatch.words}: `{_named_dtype(failure)}` is the dtype of the layer's "
            f"weights, float32, but the layer computes in {mismatch.half}.",
            f"Write `self.compute_dtype`, or the dtype of the input: `{_input_of(failure)}.dtype`.",
            failure.location,
            severity=Severity.ERROR,
            layer=failure.layer,
            evidence=evidence_of(failure),
        )


def _input_of(failure: FailureFacts) -> str:
    """What the layer's `call()` names its first input."""
    return failure.layer_inputs[0][0] if failure.layer_inputs else "inputs"


def _named_dtype(failure: FailureFacts) -> str:
    return "self.variable_dtype" if "self.variable_dtype" in failure.failing_line else "self.dtype"


def _variable_dtype(facts: SourceFacts, call: Call) -> str | None:
    """ "self.dtype" or "self.variable_dtype", whichever this TensorFlow call is given in a layer that computes in 16
    bits. None without either, and for a variable that is not made in the layer's `call()`."""
    named = next(_dtypes_of_weights(facts, call.given), None)
    if named is None or (is_call_of(call, "tensorflow.Variable") and not runs_in_layer(facts, call.context)):
        return None
    return f"self.{named.name}"


def _dtypes_of_weights(facts: SourceFacts, given: Iterable[Value]) -> Iterator[Attribute]:
    """The values among these that name the weights' dtype of a layer that computes in 16 bits."""
    for option in _attributes_and_calls(given):
        is_made = isinstance(option, Call) and is_call_of(option, "tensorflow.as_dtype")
        value = option.argument(0) if isinstance(option, Call) and is_made else option
        if isinstance(value, Attribute) and value.name in ("dtype", "variable_dtype"):
            named = value.of
            owner = class_of(named.of if isinstance(named, Attribute) and is_policy_in_force(named) else named)
            if owner is not None and any(policy in SIXTEEN_BITS for policy in policies_of_instances(facts, owner)):
                yield value


def _attributes_and_calls(given: Iterable[Value]) -> Iterator[Attribute | Call]:
    for value in given:
        for option in value.options if isinstance(value, Either) else (value,):
            if isinstance(option, (Attribute, Call)):
                yield option


@lru_cache(maxsize=1)
def _operations_by_operand(facts: SourceFacts) -> dict[int, list[MixedOperands]]:
    """The operations by the id of each value that an operand is made from."""
    operations: dict[int, list[MixedOperands]] = {}
    for pair in mixed_operands(facts):
        for identity in {id(value) for operand in pair[1] for value in _value_and_sources(operand)}:
            operations.setdefault(identity, []).append(pair)
    return operations


def _meets(facts: SourceFacts, met: MixedOperands, call: Call) -> bool:
    event, operands = met
    combined = [
        operand
        for operand in operands
        if _is_made_from(operand, call) and facts.dtype_at(operand, event.context) == VARIABLE
    ]
    return (
        bool(combined)
        and may_raise(facts, met)
        and any(is_half(facts, operand, event.context) for operand in operands if operand not in combined)
    )


def _is_made_from(value: Value, call: Call) -> bool:
    """Whether a value is the result of a call, a reshaped form of it, or arithmetic on it (`1.0 - mask`), but no
    comparison with it."""
    return any(item is call for item in _value_and_sources(value))


def _value_and_sources(value: Value) -> Iterator[Value]:
    """The value, and the values that it is reshaped or computed from; not those that a variable is made from, whose
    dtype is its own."""
    waiting = list(options(value))
    for item in waiting:
        yield item
        if isinstance(item, Operation) and item.operator not in COMPARISONS:
            waiting.extend(option for operand in item.operands for option in options(operand))
        elif isinstance(item, Item):
            waiting.extend(options(item.of))
        elif isinstance(item, Call) and isinstance(item.callee, Api) and not is_call_of(item, *RAW):
            waiting.extend(option for given in item.args for option in options(given))
        elif isinstance(item, Collection):
            waiting.extend(option for inner in item.items for option in options(inner))
        if len(waiting) > MOST_STEPS:
            return

"""A layer combines its second input with its first, but Keras 2 casts only the first to 16 bits.

## Why it matters
Keras 2 casts the first argument of `call()` and leaves the others unchanged. Where a float32 second argument is
combined with the float16 first one, TensorFlow raises (`expected to be a half tensor but is a float tensor`;
tf_keras 2.21, TensorFlow 2.15 and 2.10). Keras 3 casts every tensor argument. Keras 2 casts every tensor in a
list or dict that is the first argument. In a layer of a package, which you cannot edit, the report names the line
that makes it, and whether the call ran with that layer in float32.

## Flagged
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Gate(tf.keras.layers.Layer):
    def call(self, inputs, gate):
        return inputs * gate


a, b = tf.keras.Input((4,)), tf.keras.Input((4,))
outputs = Gate()(a, b)
```

## Fixed
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")


class Gate(tf.keras.layers.Layer):
    def call(self, inputs, gate):
        return inputs * tf.cast(gate, inputs.dtype)


a, b = tf.keras.Input((4,)), tf.keras.Input((4,))
outputs = Gate()(a, b)
```

## Versions
Keras 2 (tf.keras up to TensorFlow 2.15, tf_keras).

## Where users met it
tensorflow/tensorflow#41614, huggingface/transformers#3320.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import HALF, SIXTEEN_BITS
from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Finding, Fix, Severity
from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Instance, Parameter
from mpdoctor.program.values import Either, Value, known, options
from mpdoctor.semantics.live.errors.dtype_error_causes import is_float32_state, later_input, mismatch_in_call
from mpdoctor.semantics.live.errors.dtype_errors import mismatch_of_precisions
from mpdoctor.semantics.live.errors.error_texts import evidence_of, headline_from_failure, place_of_failure
from mpdoctor.semantics.live.refusing_layers import computing_in_float32, later_float32_inputs
from mpdoctor.semantics.source.edits.casts import cast
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_of_instances
from mpdoctor.semantics.source.layers.later_inputs import MOST_LAYERS, given_to_call, is_later_input
from mpdoctor.semantics.source.layers.later_inputs import given as given_to
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.operands.mixed_operands import (
    MixedOperands,
    is_half,
    mixed_operands,
    origin,
    without_numbers,
)
from mpdoctor.semantics.source.texts.written import name_at
from mpdoctor.semantics.wording import listed, place_of

SEVERITY = Severity.ERROR
FIXES = ("safe",)
FAILS_IN = ("model", "training")
KERAS = ("2",)
EXPLAINS = {"MP202": "line"}
ONLY_IN_HALF = True
MOST_FUNCTIONS = 4  # that a later input goes through before it meets the first one


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    given = [
        (call, own)
        for call in facts.calls
        if isinstance(call.callee, Call | Either | Instance)
        for own in _called_layer(facts, call)
    ]
    for met in mixed_operands(facts) if given else ():
        wide = next(_wide_inputs(facts, met, given), None)
        if wide is not None and not asks_for_dtype(met[0].context):
            yield _finding(facts, met[0].location, *wide)


def _finding(facts: SourceFacts, raising: Location, second: Parameter, called: Location) -> Finding:
    return Finding(
        f"`{second.name}` is the layer's second input and stays float32, the dtype in which the layer is called "
        f"({place_of(facts, called, raising)}): Keras 2 casts only the first input, so this line raises.",
        f"Cast `{second.name}` to the dtype of the first input, or pass both to the layer in one list.",
        raising,
        fix=_fix(facts, raising, second),
        also_seen=(AlsoSeen("MP217", "source", "The layer is called here.", called.path, called.line),),
    )


def _fix(facts: SourceFacts, raising: Location, second: Parameter) -> Fix | None:
    """The edit that casts it where it is combined with the first input."""
    place = name_at(facts, raising, second.name)
    first = second.function.parameters[1] if second.function is not None else ""
    return (
        safe_fix(f"Cast the second input to `{first}.dtype`", cast(facts, place, f"{first}.dtype"))
        if place is not None
        else None
    )


def _wide_inputs(
    facts: SourceFacts, met: MixedOperands, given: Sequence[tuple[Call, ClassFacts]]
) -> Iterator[tuple[Parameter, Location]]:
    """The later inputs of a layer that meet a 16-bit tensor, each with a call of the layer that passes it in
    float32."""
    event, operands = met
    for value in operands:
        second = _second_input(value)
        others = [operand for operand in operands if operand is not value]
        if second is None or not others:
            continue
        is_half_here = any(is_half(facts, operand, event.context) for operand in others)
        further = [] if is_half_here else [later for later in map(_second_input, others) if later is not None]
        for call, own in given if is_half_here or further else ():
            if _is_float32(facts, given_to(call, own, second)) and (
                is_half_here
                or any(_is_given_half(facts, given, call, given_to(call, own, later), MOST_LAYERS) for later in further)
            ):
                yield second, call.location


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if is_float32_state(failure):
        return
    if failure.layer_in_library:
        yield from _of_librarys_layer(failure)
        return
    mismatch, second = mismatch_in_call(failure), later_input(failure)
    if mismatch is None or second is None:
        return
    yield Finding(
        f"In {place_of_failure(failure)} {mismatch.words}: the input `{second.name}` stays float32, because Keras 2 "
        "casts only the first input.",
        f"Cast it, `tf.cast({second.name}, {failure.layer_inputs[0][0]}.dtype)`, or pass all inputs to the layer in "
        "one list.",
        failure.location,
        layer=failure.layer,
        evidence=evidence_of(failure),
    )


def _of_librarys_layer(failure: FailureFacts) -> Iterator[Finding]:
    """The finding where the user's inputs meet in a layer that the user did not write."""
    later, mismatch = later_float32_inputs(failure), mismatch_of_precisions(failure)
    if not later or mismatch is None or failure.layer_dtype not in HALF:
        return
    stay = "stays" if len(later) == 1 else "stay"
    yield Finding(
        f"In {place_of_failure(failure)}, which is not your code, {listed([f'`{name}`' for name in later])} {stay} "
        f"float32, because Keras 2 casts only the first input, `{failure.layer_inputs[0][0]}`, to "
        f"{failure.layer_dtype}: {headline_from_failure(failure)}",
        computing_in_float32(failure),
        failure.layer_made_at or failure.location,
        layer=failure.layer,
        evidence=evidence_of(failure),
        also_seen=tuple(_call_of(failure)),
    )


def _call_of(failure: FailureFacts) -> Iterator[AlsoSeen]:
    """The user's line that calls the layer, where the finding stands at the one that makes it."""
    called = failure.location
    if called is not None and failure.layer_made_at is not None:
        yield AlsoSeen("MP217", "training", "The layer is called here.", called.path, called.line)


def _called_layer(facts: SourceFacts, call: Call) -> Iterator[ClassFacts]:
    """The user's class whose layer or model is called with more than one argument, if it computes in 16 bits."""
    if len(call.args) + len(call.keywords) < 2:
        return
    for layer in options(call.callee):
        own = class_of(layer)
        if own is not None and own.is_layer and _computes_in_half(facts, layer, own):
            yield own


def _computes_in_half(facts: SourceFacts, layer: Value, own: ClassFacts) -> bool:
    if isinstance(layer, Call):
        return half_dtype_of_layer(facts, layer) is not None
    casts = known(own.base_argument("autocast")) is not False
    return casts and any(policy in SIXTEEN_BITS for policy in policies_of_instances(facts, own))


def _second_input(value: Value) -> Parameter | None:
    """The later input that a tensor is, or a function of TensorFlow's made it of, in its dtype."""
    source = origin(without_numbers(value))
    for _ in range(MOST_FUNCTIONS):
        if not isinstance(source, Call) or function_named(source) not in KEEPING:
            break
        source = origin(without_numbers(source.argument(0) or source))
    return source if isinstance(source, Parameter) and is_later_input(source) else None


def _is_given_half(
    facts: SourceFacts, given: Sequence[tuple[Call, ClassFacts]], call: Call, value: Value | None, layers: int
) -> bool:
    """Whether a layer's call hands over a 16-bit tensor: the output of another layer, or a later input of the layer
    around it, which is always called with one."""
    if value is None:
        return False
    if is_half(facts, value, call.context) or precision_of(facts).half(value, call.context) is not None:
        return True
    outer = _second_input(value) if layers else None
    around = [(further, given_to(further, own, outer)) for further, own in given] if outer is not None else []
    handed = [(further, tensor) for further, tensor in around if tensor is not None]
    return bool(handed) and all(_is_given_half(facts, given, further, tensor, layers - 1) for further, tensor in handed)


def _is_float32(facts: SourceFacts, value: Value | None, layers: int = MOST_LAYERS) -> bool:
    """Whether it is a float32 tensor, or a later input of a layer further out, which is called with one."""
    if value is None or is_array(value):
        return False
    if facts.dtype_of(value) == "float32":
        return True
    outer = _second_input(value) if layers else None
    return outer is not None and any(
        _is_float32(facts, handed, layers - 1) for handed in given_to_call(facts, outer) if handed is not value
    )

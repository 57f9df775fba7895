"""A layer makes its weight with `tf.Variable` instead of `add_weight`, and combines it with its input.

## Why it matters
Keras casts only the weights that it made itself. `inputs * tf.Variable(…)` works under float32 and raises under
mixed precision in Keras 3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10 (`cannot compute Mul as input
#1(zero-based) was expected to be a half tensor but is a float tensor`). A cast removes the error, but Keras 3
does not train such a variable at all: it is missing from `trainable_variables`, and after an epoch it had moved
by exactly 0, where tf_keras moved it by 0.2.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Scale(keras.layers.Layer):
    def build(self, input_shape):
        self.gamma = tf.Variable(tf.ones((input_shape[-1],)))

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
All. A variable that is cast to the input's dtype is right in Keras 2 and still not trained in Keras 3. Counters
and other state that is never combined with the input are fine.

## Where users met it
keras-team/keras#16907: ConvNeXt in keras.applications, TensorFlow 2.10 to 2.12.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import AlsoSeen, Edit, Finding, Fix, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING
from mpdoctor.program.dtypes.dtype_names import VARIABLE
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Value, is_api, known, options
from mpdoctor.semantics.live.errors.dtype_error_causes import mismatch_in_call, raw_variable
from mpdoctor.semantics.live.errors.error_texts import evidence_of, place_of_failure
from mpdoctor.semantics.source.edits.expressions import safe_fix, unsafe_fix
from mpdoctor.semantics.source.edits.made.weights import as_added_weight
from mpdoctor.semantics.source.edits.met_operands import cast_where_it_meets, dtype_written
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_of_instances
from mpdoctor.semantics.source.layers.layer_variables import ASSIGNING, FLOATS, may_be_trained, raw_variables
from mpdoctor.semantics.source.operands.mixed_operands import (
    MixedOperands,
    is_half,
    mixed_operands,
    origin,
    without_numbers,
)
from mpdoctor.semantics.source.operands.operand_words import pairs_that_meet
from mpdoctor.semantics.wording import listed, place_of

SEVERITY = Severity.ERROR
UNTRAINED = "Keras 3 does not train a raw variable: it is not among the layer's `trainable_variables`"
HELP = "Make it with `self.add_weight(name=…, shape=…, initializer=…)`: Keras casts and trains such a weight."
HELP_UNTRAINED = (
    "Make it with `self.add_weight(name=…, shape=…, initializer=…, trainable=False)`: Keras casts such a weight."
)
# With an initializer, `add_weight(shape=(None, 4))` raises ValueError (TensorFlow 2.4 and 2.15, tf_keras, Keras 3).
HELP_RESHAPED = (
    "Cast it where it meets the input, `tf.cast(self.…, inputs.dtype)`: its shape may change, and `add_weight` makes "
    "no such weight."
)
FIXES = ("safe", "unsafe")
FAILS_IN = ("model", "training")
EXPLAINS = {"MP202": "line"}
CONFIRMED_LIVE = True
MOST_FUNCTIONS = 6


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    variables = [variable for variable in raw_variables(facts) if _is_wide(facts, variable)]
    operands = mixed_operands(facts) if variables else ()
    met = [mixed_operand for mixed_operand in operands if not asks_for_dtype(mixed_operand[0].context)]
    plain, cast = _operations_by_operand(met, past_casts=False), _operations_by_operand(met, past_casts=True)
    for variable in variables:
        met_plain, met_cast = plain.get(id(variable), []), cast.get(id(variable), [])
        raising = next((pair for pair in met_plain if _meets(facts, pair, variable, past_casts=False)), None)
        if raising is not None or _is_wrongly_untrained(facts, met_cast, variable):
            yield _finding(facts, variable, raising)


def _is_wide(facts: SourceFacts, variable: Call) -> bool:
    """Whether its first value is float32 or wider, also by the name `self.variable_dtype` in a layer with a mixed
    policy."""
    dtype, owner = facts.dtype_of(variable), variable.context.owner
    if dtype == VARIABLE and owner is not None:
        return any(policy in MIXED for policy in policies_of_instances(facts, owner))
    return dtype in FLOATS


def _operations_by_operand(met: Iterable[MixedOperands], past_casts: bool) -> dict[int, list[MixedOperands]]:
    """The operations by the id of each value that an operand may be."""
    operations: dict[int, list[MixedOperands]] = {}
    for pair in met:
        for identity in {id(value) for operand in pair[1] for value in _behind(operand, past_casts)}:
            operations.setdefault(identity, []).append(pair)
    return operations


def _is_wrongly_untrained(facts: SourceFacts, met: Iterable[MixedOperands], variable: Call) -> bool:
    """Whether a variable that the program never assigns, and that keeps its first value in Keras 3, is meant to be
    trained: the program says so, or casts it before it computes with it."""
    if not facts.keras.is_keras3 or not may_be_trained(variable):
        return False
    is_assigned = any(
        option is variable for call in facts.method_calls(*ASSIGNING) for option in options(call.receiver)
    )
    if is_assigned:
        return False
    if known(variable.keyword("trainable")) is True and not _may_be_trained_elsewhere(facts, variable):
        return True
    return any(_meets(facts, operand_pair, variable, past_casts=True) for operand_pair in met)


def _may_be_trained_elsewhere(facts: SourceFacts, variable: Call) -> bool:
    """Whether code outside of the layer may train it in a loop of its own: by its name, or with all that a tape has
    watched."""
    if next(iter(facts.method_calls("watched_variables")), None) is not None:
        return True
    names = {write.name for write in facts.writes if any(option is variable for option in options(write.value))}
    owner = variable.context.owner
    return any(read.name in names and read.context.owner is not owner for read in facts.reads)


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    mismatch, variable = mismatch_in_call(failure), raw_variable(failure)
    if mismatch is not None and variable is not None:
        yield Finding(
            f"In {place_of_failure(failure)} {mismatch.words}: `{variable.name}` is a `tf.Variable`, which Keras does "
            f"not cast to the layer's {mismatch.half}.",
            f'Make it with `self.add_weight(name="{variable.name.removeprefix("self.")}", …)`: Keras casts such a '
            "weight and trains it.",
            failure.location,
            layer=failure.layer,
            evidence=evidence_of(failure),
        )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not model.is_trained or not model.keras.is_keras3:
        return
    for layer in model.layers:
        raw = _untrained(layer) if layer.computes_in_half else []
        if raw:
            yield Finding(
                f"{listed([f'`self.{name}`' for name in raw])} of {layer.path} ({layer.class_name}) "
                f"{'is a tf.Variable' if len(raw) == 1 else 'are tf.Variables'}, and the loss depends on "
                f"{'it' if len(raw) == 1 else 'them'}. {UNTRAINED}.",
                HELP,
                layer.class_location,
                layer=layer.path,
                evidence={"variables": raw},
            )


def _untrained(layer: LayerFacts) -> list[str]:
    """The names of the raw variables on which the loss depends."""
    return [
        variable.name
        for variable in layer.raw_variables
        if variable.trainable and variable.reaches_loss and variable.dtype in FLOATS
    ]


def _meets(facts: SourceFacts, met: MixedOperands, variable: Call, past_casts: bool) -> bool:
    event, operands = met
    combined = [operand for operand in operands if _is_of(operand, variable, past_casts)]
    return bool(combined) and any(
        is_half(facts, operand, event.context) for operand in operands if operand not in combined
    )


def _is_of(value: Value, variable: Call, past_casts: bool) -> bool:
    return any(option is variable for option in _behind(value, past_casts))


def _behind(value: Value, past_casts: bool) -> Iterator[Value]:
    """What may be behind a value, also through functions that keep its dtype, and beside numbers:
    `2.0 * tf.exp(self.log_scale)`."""
    for _ in range(MOST_FUNCTIONS):
        behind = origin(without_numbers(value), past_casts)
        yield from options(behind)
        name = public_name(behind.callee.name) if isinstance(behind, Call) and isinstance(behind.callee, Api) else ""
        inner = behind.argument(0) if name.startswith("tensorflow.") and isinstance(behind, Call) else None
        if inner is None or name.rpartition(".")[2] not in KEEPING:
            return
        value = inner


def _finding(facts: SourceFacts, variable: Call, raising: MixedOperands | None) -> Finding:
    if raising is None:
        message = f"This weight is a tf.Variable that the layer makes. {UNTRAINED}, and keeps its first value."
    else:
        message = (
            "This weight is a tf.Variable that the layer makes, and it stays float32: TensorFlow raises where it is "
            f"combined with the 16-bit input ({place_of(facts, raising[0].location, variable.location)})."
        )
        if facts.keras.is_keras3 and may_be_trained(variable):
            message += f" Casting it is not enough. {UNTRAINED}."
    place = raising[0].location if raising is not None else None
    # Keras 2 trains such a weight: only its dtype is wrong. In Keras 3 a weight of Keras' alone is trained.
    weight = as_added_weight(facts, variable) if facts.keras.is_keras3 else None
    cast = _cast_to_input(facts, variable, *raising) if raising is not None and not facts.keras.is_keras3 else None
    return Finding(
        message,
        _help_of(variable) if weight is None else _help_with(weight, variable),
        variable.location,
        also_seen=(AlsoSeen("MP203", "source", "It is combined with the layer's input here.", place.path, place.line),)
        if place is not None
        else (),
        fix=unsafe_fix("Make the variable a weight of the layer", weight) if weight is not None else cast,
    )


def _help_with(weight: Edit, variable: Call) -> str:
    trains = "and trains " if may_be_trained(variable) else ""
    return f"Write `{' '.join(weight.text.split())}`: Keras casts {trains}such a weight."


def _help_of(variable: Call) -> str:
    if may_be_trained(variable):
        return HELP
    return HELP_RESHAPED if _may_change_its_shape(variable) else HELP_UNTRAINED


def _may_change_its_shape(variable: Call) -> bool:
    """Whether values of other shapes may be assigned to it later: `validate_shape=False`, or a shape with a None."""
    shape = variable.keyword("shape")
    if isinstance(shape, Call) and is_api(shape.callee, "tensorflow.TensorShape"):
        shape = shape.argument(0)
    dimensions = shape.items if isinstance(shape, Collection) else (shape,) if shape is not None else ()
    return known(variable.keyword("validate_shape")) is False or any(known(part) is None for part in dimensions)


def _cast_to_input(
    facts: SourceFacts, variable: Call, event: Call | Operation, operands: tuple[Value, ...]
) -> Fix | None:
    combined = [operand for operand in operands if _is_of(operand, variable, past_casts=False)]
    pairs = pairs_that_meet(facts, event)
    dtype = dtype_written(pairs, lambda value: value not in combined and is_half(facts, value, event.context))
    casts = [cast_where_it_meets(facts, operand, pairs, dtype) if dtype else None for operand in combined]
    return safe_fix(f"Cast to `{dtype}`", *casts)

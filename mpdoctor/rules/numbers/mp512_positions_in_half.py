"""Positions or timesteps are counted in 16 bits, beyond the range where 16 bits hold every integer.

## Why it matters
float16 holds every integer only up to 2048, bfloat16 only up to 256: of the positions 0 to 4095 only 3073
different ones are left in float16, and of 0 to 999 only 507 in bfloat16 (TensorFlow 2.21). Neighbouring
positions get the same encoding. Compute sines, cosines and differences in float32, and cast the result, which
lies between -1 and 1. Positions that are only divided by a number are not reported: their fractions have as few
digits if they are divided first (3073 different ones of 4096 in float16 either way; TensorFlow 2.15).

A check that trains the program also looks at the sines and cosines in its layers, where the numbers come from the
data: days since 1970, timesteps, a running sum.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Positions(keras.layers.Layer):
    def call(self, inputs):
        positions = tf.cast(tf.range(4096), inputs.dtype)
        return inputs + tf.sin(positions / 10000.0)[:, tf.newaxis]
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Positions(keras.layers.Layer):
    def call(self, inputs):
        positions = tf.cast(tf.range(4096), tf.float32)
        return inputs + tf.cast(tf.sin(positions / 10000.0)[:, tf.newaxis], inputs.dtype)
```

## Versions
All.

## Where users met it
keras-team/keras-cv#2102, divamgupta/stable-diffusion-tensorflow#43.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import EXACT
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.dtypes.array_dtypes import dtype_of_array
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Item, Value, options
from mpdoctor.semantics.live.hidden_overflows import finding_of_lost_wave
from mpdoctor.semantics.source.edits.uses import is_only_divided
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.later_inputs import given_in_calls
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.class_ids import gives_floats
from mpdoctor.semantics.source.numbers.constants import CASTS
from mpdoctor.semantics.source.programs.data.fed_elements import given_by_training, keys_of_part

SEVERITY = Severity.WARNING
CONFIRMED_LIVE = True
EXPLAINS = {"MP908": "model"}
ONLY_IN_HALF = True
CONVERTING = ("tensorflow.constant", "tensorflow.convert_to_tensor", "keras.ops.convert_to_tensor", "keras.ops.array")
RANGES = ("range", "arange")
WAVES = ("sin", "cos")
MOST_WAVES = 200
MOST_PARTS = 50
MOST_LAYERS = 4
HANDING_ON = ("einsum", "outer", "matmul", "multiply", "expand_dims", "reshape", "squeeze", "identity")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    counted = list(_counted(facts)) if facts.shows_mixed_precision else []
    if counted:
        yield from _cast(facts, counted)
    waves = [call for call, name in functions_called(facts) if name in WAVES] if facts.shows_mixed_precision else []
    if waves:
        yield from _autocast(facts, waves)


def _cast(facts: SourceFacts, calls: list[tuple[Call, Value | None]]) -> Iterator[Finding]:
    """Whole numbers that the program casts, or counts in 16 bits."""
    from mpdoctor.semantics.source.numbers.last_integers import LastIntegers  # many programs count none

    precision = precision_of(facts)
    integers, of_data = LastIntegers(facts), LastIntegers(facts, of_data=True)
    for call, counted in calls:
        last = integers.last(counted)
        if not last and counted is not call and id(call) in _behind_waves(facts) and _is_always_cast(facts, counted):
            last = of_data.last(counted)
        dtype = precision.half(call, call.context) if last else None
        if counted is call and dtype == "float16":
            continue  # it has no kernel for that: MP211
        if dtype is not None and last > EXACT[dtype] and not asks_for_dtype(call.context):
            if id(call) not in _behind_waves(facts) and is_only_divided(facts, call):
                continue  # 16 bits hold no more of the fractions of numbers that are counted exactly
            is_cast_before = precision.half(counted, call.context) is not None
            is_given_floats = is_cast_before and counted is not None and any(_floats_given(facts, counted))
            finding = _finding_of_autocast if is_given_floats else _finding_of_cast
            yield _finding_of_range(call, dtype, last) if counted is call else finding(call, dtype, last)


def _finding_of_range(call: Call, dtype: str, last: float) -> Finding:
    """The finding for numbers that are counted in 16 bits, which no cast behind that brings back."""
    return dataclasses.replace(
        _finding_of_cast(call, dtype, last),
        help='Count in float32, `dtype="float32"`, cast what that meets to float32 as well, and the result (a sine, a '
        "fraction) to 16 bits.",
    )


def _finding_of_cast(call: Call, dtype: str, last: float) -> Finding:
    return Finding(
        f"{dtype} holds every integer only up to {EXACT[dtype]}, and these go up to {last:g}: neighbouring "
        "numbers become equal.",
        "Compute with them in float32, `tf.cast(…, tf.float32)`, and cast the result (a sine, a fraction) to 16 bits.",
        call.location,
    )


def _finding_of_autocast(call: Call, dtype: str, last: float) -> Finding:
    return Finding(
        f"Keras casts the floats that `call()` is given to {dtype}, which holds every integer only up to "
        f"{EXACT[dtype]}, and these go up to {last:g}: neighbouring numbers become equal.",
        "Pass the integers themselves, which Keras never casts, and cast them to float32 here. Cast the result (a "
        "sine, a fraction) to 16 bits.",
        call.location,
    )


def _autocast(facts: SourceFacts, waves: list[Call]) -> Iterator[Finding]:
    """Waves of whole numbers that a layer is given as floats, which Keras casts before `call()` runs."""
    from mpdoctor.semantics.source.numbers.last_integers import LastIntegers

    integers, precision, said = LastIntegers(facts, of_data=True), precision_of(facts), set[int]()
    for call in waves:
        for part in _met_directly(facts, call.argument(0)) if not call.context.guarded else ():
            last = max(map(integers.last, _floats_given(facts, part)), default=0)
            dtype = precision.half(part, call.context) if last and _is_always_cast(facts, part) else None
            if dtype is not None and last > EXACT[dtype] and id(part) not in said:
                said.add(id(part))
                yield _finding_of_autocast(call, dtype, last)


def _is_always_cast(facts: SourceFacts, part: Value | None) -> bool:
    """Whether each of the layers casts whose `call()` has this parameter: some may be made in float32."""
    whole = keys_of_part(part)[0] if part is not None else None
    owner = whole.function.owner if isinstance(whole, Parameter) and whole.function is not None else None
    return owner is not None and all(half_dtype_of_layer(facts, made) for made in facts.makings_of(owner))


def _floats_given(facts: SourceFacts, part: Value, depth: int = 0) -> Iterator[Value]:
    """The floats that are given for a parameter of `call()`, or a part of one, by whatever layers hand them on."""
    for value in (*given_in_calls(facts, part), *given_by_training(facts, part)):
        if depth < MOST_LAYERS and isinstance(keys_of_part(value)[0], Parameter):
            yield from _floats_given(facts, value, depth + 1)
        elif _is_float(facts, value):
            yield value


def _is_float(facts: SourceFacts, value: Value) -> bool:
    if is_call_of(value, "keras.Input"):
        return gives_floats(value)
    dtype = facts.dtype_of(value) or dtype_of_array(value, lambda named: dtype_named(named, facts.keras))
    return dtype in ("float32", "float64")


def _met_directly(facts: SourceFacts, value: Value | None) -> Iterator[Value]:
    """The parameters of `call()`, and parts of them, that an angle is computed of without a cast to 16 bits, or a
    division by a number, which makes fractions of them. A cast to float32 comes too late for them."""
    waiting = list(options(value))
    for part in waiting:
        if len(waiting) > MOST_PARTS:
            return
        if isinstance(part, Parameter) or (isinstance(part, Item) and isinstance(keys_of_part(part)[0], Parameter)):
            yield part
        elif isinstance(part, Operation):
            is_fraction = part.operator == "/" and is_number(part.operands[-1])
            waiting += [] if is_fraction else [option for operand in part.operands for option in options(operand)]
        elif isinstance(part, Item):
            waiting += options(part.of)
        elif isinstance(part, Call) and is_call_of(part, *CASTS):
            is_late = dtype_named(part.argument(1, "dtype"), facts.keras) == "float32"
            waiting += options(part.argument(0, "x")) if is_late else []
        elif isinstance(part, Call) and function_named(part) in HANDING_ON:
            waiting += [option for given in part.given for option in options(given)]


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    """Waves that a layer computes of angles without a phase: of days, of timesteps, of a running sum."""
    hidden = training.hidden_overflow
    if hidden is not None and hidden.is_wave:
        yield finding_of_lost_wave(training)


def _counted(facts: SourceFacts) -> Iterator[tuple[Call, Value | None]]:
    """Each call with the values that are integers there: a range itself, or the value that is cast."""
    for call, name in functions_called(facts):
        if name in RANGES and not call.context.guarded:
            yield call, call
    for call in facts.calls_of(*CASTS, *CONVERTING):
        yield call, call.argument(0, "x")


@lru_cache(maxsize=1)
def _behind_waves(facts: SourceFacts) -> frozenset[int]:
    """The ids of what sines and cosines are computed of. Numbers that a program is fed count there alone: elsewhere
    they may be any feature, of which 16 bits keep enough."""
    waiting = [given for call, name in functions_called(facts) if name in WAVES for given in call.given]
    seen = set(waiting)
    for value in waiting if len(waiting) < MOST_WAVES else ():
        for part in (*value.parts, *given_in_calls(facts, value)):
            if part not in seen:
                seen.add(part)
                waiting.append(part)
    return frozenset(map(id, seen))

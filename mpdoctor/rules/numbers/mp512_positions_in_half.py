"""Positions or timesteps are counted in 16 bits, beyond the range where 16 bits hold every integer.

## Why it matters
float16 holds every integer only up to 2048, bfloat16 only up to 256: of the positions 0 to 4095 only 3073
different ones are left in float16, and of 0 to 999 only 507 in bfloat16 (TensorFlow 2.21). Neighbouring
positions get the same encoding. Compute sines, cosines and differences in float32, and cast the result, which
lies between -1 and 1.

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

import math
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import EXACT
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Item, Value, is_api, options
from mpdoctor.semantics.live.hidden_overflows import finding_of_lost_wave
from mpdoctor.semantics.source.function_names import function_named, functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.later_inputs import given_in_calls
from mpdoctor.semantics.source.numbers.constants import CASTS, numbers_from_value
from mpdoctor.semantics.source.numbers.precision import precision_of
from mpdoctor.semantics.source.numbers.tensor_shapes import sizes_named

SEVERITY = Severity.WARNING
CONFIRMED_LIVE = True
EXPLAINS = {"MP908": "model"}
DEEPEST = 12
LastNumbers = dict[tuple[int, int], float]
RANGES = ("range", "arange")
CONVERTING = ("tensorflow.constant", "tensorflow.convert_to_tensor", "keras.ops.convert_to_tensor", "keras.ops.array")
# Functions that draw whole numbers, and the place of the end of their range.
DRAWING = {
    "tensorflow.random.uniform": (2, "maxval"),
    "keras.random.randint": (2, "maxval"),
    "numpy.random.randint": (1, "high"),
}
PASSING = ("reshape", "expand_dims", "squeeze", "tile", "repeat", "broadcast_to", "identity", "transpose")
JOINING = ("meshgrid", "stack", "concat")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    last_numbers: LastNumbers = {}
    for call, counted in _counted(facts):
        last = _last(facts, counted, last_numbers)
        dtype = precision.half(call, call.context) if last else None
        if counted is call and dtype == "float16":
            continue  # it has no kernel for that: MP211
        if dtype is not None and last > EXACT[dtype] and not asks_for_dtype(call.context):
            yield Finding(
                f"{dtype} holds every integer only up to {EXACT[dtype]}, and these go up to {last:g}: neighbouring "
                "numbers become equal.",
                "Compute with them in float32, `tf.cast(…, tf.float32)`, and cast the result (a sine, a fraction) to "
                "16 bits.",
                call.location,
            )


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


def _last(facts: SourceFacts, value: Value | None, lasts: LastNumbers, depth: int = 0) -> float:
    """The largest number of a range of integers; 0 where it is no range, or its end is unknown. `lasts` caches results
    by id and depth, because each line of a long computation contains the lines before it."""
    for option in options(value):
        if (id(option), depth) not in lasts:
            lasts[id(option), depth] = _last_of_one(facts, option, lasts, depth + 1) if depth <= DEEPEST else 0
    return max((lasts[id(option), depth] for option in options(value)), default=0)


def _last_of_one(facts: SourceFacts, value: Value, lasts: LastNumbers, depth: int) -> float:
    handed = list(given_in_calls(facts, value))
    if handed:
        return max(_last(facts, part, lasts, depth) for part in handed)
    if isinstance(value, Item):
        return _last(facts, value.of, lasts, depth)
    if isinstance(value, Collection) or (isinstance(value, Operation) and value.operator in ("+", "-")):
        return max((_last(facts, part, lasts, depth) for part in value.parts), default=0)
    if not isinstance(value, Call):
        return 0
    name = function_named(value)
    if name in (*PASSING, *JOINING) or (isinstance(value.callee, Api) and public_name(value.callee.name) in CASTS):
        return _last(facts, value.argument(0), lasts, depth)
    if name == "linspace":
        return _last_of_linspace(value)
    is_range = name in RANGES or is_api(value.callee, "numpy.arange")
    return _last_of_range(facts, value) if is_range else _last_drawn(value)


def _last_of_linspace(value: Call) -> float:
    """The distance from 0 of the farthest number, counted in steps of at least 1; 0 for others."""
    given = [value.argument(0, "start"), value.argument(1, "stop"), value.argument(2, "num")]
    numbers = [numbers_from_value(one) for one in given]
    if any(len(choices) != 1 for choices in numbers) or numbers[2][0] < 2:
        return 0
    start, stop, count = (choices[0] for choices in numbers)
    step = abs(stop - start) / (count - 1)
    return max(abs(start), abs(stop)) / step if step >= 1 else 0


def _last_drawn(value: Call) -> float:
    """The largest whole number that may be drawn at random, as timesteps are; 0 for other calls."""
    place = next((place for name, place in DRAWING.items() if is_api(value.callee, name)), None)
    is_float = value.method == "uniform" and not (dtype_named(value.argument(3, "dtype")) or "").startswith("int")
    if place is None or is_float:
        return 0
    return max(numbers_from_value(value.argument(*place)), default=1) - 1


def _last_of_range(facts: SourceFacts, value: Call) -> float:
    named = value.keyword("limit") or value.keyword("stop")
    start = value.argument(0)
    position = 1 if value.argument(1) is not None and not named else 0
    given = value.argument(2, "delta") or value.keyword("step")
    step = numbers_from_value(given) if given is not None else (1.0,)
    if not step or abs(max(step)) < 1:
        return 0
    first = numbers_from_value(start) if position else (0.0,)
    end = named or value.argument(position)
    ends = numbers_from_value(end) or tuple(sizes_named(facts, end))
    grain = _common_power_of_two([*first, *step])
    return max(min(ends) - 1, *(abs(number) for number in first)) / grain if ends and first else 0


def _common_power_of_two(numbers: list[float]) -> int:
    """The largest power of two that divides all of these numbers, 1 where not all are whole: float16 holds multiples of
    16 up to 16 times as far as whole numbers."""
    whole = math.gcd(*(int(number) for number in numbers)) if all(number == int(number) for number in numbers) else 1
    return max(whole & -whole, 1)

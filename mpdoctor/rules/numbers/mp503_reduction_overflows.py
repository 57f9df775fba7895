"""A sum over a whole picture, batch or weight, a square or an exponential leaves float16's range.

## Why it matters
The largest float16 number is 65504. A sum of ones over 256×256 pixels is already infinite, and the dice loss of
a 512×512 mask is NaN (Keras 3.15, tf_keras 2.21, TensorFlow 2.15). A sum of squares, a norm over everything and
a Gram matrix overflow sooner, and `exp` overflows from 11.1 on. A sum in float32 is right, and bfloat16 has
float32's range. Where a division by the infinite sum follows, the result is 0 and no step is skipped; a short
training shows that as well. A sum over at most 64 numbers, by the shapes that a layer is seen to be given, is
not reported.

A mean stays small, but does not help with 65520 values or more: `tf.reduce_mean` divides its gradient by their
number cast to float16, which is then inf. The gradient is exactly 0 at every loss scale, and so is that of
`GlobalAveragePooling` in tf_keras and Keras 2 (TensorFlow 2.4, 2.10, 2.15, 2.21). On a CPU, which sums in
float16, such a mean is inf, NaN or 0 as well. `keras.ops.mean` and the layers of Keras 3 average in float32. A
mean is reported where the source shows the number of values: in the shape given to `reshape`, or in an input's
shape, followed through layers that keep the positions.

A division by a number below 1.53e-05 overflows, too, whatever is divided: a graph multiplies by the reciprocal, which
is inf in float16. `x / 1e-6` is inf or NaN under `tf.function` and right in an eager call (TensorFlow 2.4 to 2.21).
A divisor from 65520 on is itself inf there: `x / 1e5`, or a picture of 16 bits divided by 65535, is 0 everywhere, and
so is its gradient (TensorFlow 2.4, 2.15, 2.21).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Energy(keras.layers.Layer):
    def call(self, pictures):
        return tf.reduce_sum(pictures, axis=[1, 2])
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Energy(keras.layers.Layer):
    def call(self, pictures):
        return tf.reduce_sum(tf.cast(pictures, tf.float32), axis=[1, 2])
```

## Versions
All, under mixed_float16. In Keras 3 the losses passed to compile() compute in float32 and are fine.

## Where users met it
tensorflow/tensorflow#45568, tensorflow/tensorflow#47156, qubvel-org/segmentation_models.pytorch#463,
ultralytics/ultralytics#24554, tarun-bisht/fast-style-transfer#3.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.location import holds
from mpdoctor.facts.training import UNCOUNTABLE, OperationFacts, TrainingFacts
from mpdoctor.finding import Edit, Finding, Fix, Severity
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import options
from mpdoctor.semantics.live.broken_operations import ADDING, SUMS, broke, is_overflow
from mpdoctor.semantics.live.hidden_overflows import finding_of_hidden_overflow
from mpdoctor.semantics.live.second_training import remedies_to_report
from mpdoctor.semantics.live.tried_remedies import after_trials
from mpdoctor.semantics.source.edits.casts import cast_argument, cast_around
from mpdoctor.semantics.source.edits.expressions import replaced, unsafe_fix
from mpdoctor.semantics.source.edits.float32.softmax import is_softplus, softmax_instead, softplus_instead
from mpdoctor.semantics.source.edits.given_dtypes import in_float32
from mpdoctor.semantics.source.edits.uses import meets_others
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.precision import ARITHMETIC, precision_of
from mpdoctor.semantics.source.layers.weight_values import is_made_of_weights
from mpdoctor.semantics.source.loops.gradients import gradient_calls
from mpdoctor.semantics.source.numbers.constants import written
from mpdoctor.semantics.source.numbers.reductions import EXPONENTIAL, GRAM, NORM, SQUARE, SUM, reductions
from mpdoctor.semantics.source.numbers.small_divisors import divided_by_large, divided_by_small
from mpdoctor.semantics.source.numbers.value_counts import is_over_few, is_over_short_rows, large_means, large_pooling
from mpdoctor.semantics.source.numbers.whole_numbers import is_whole
from mpdoctor.semantics.source.programs.running_functions import is_in_test_without_training
from mpdoctor.semantics.source.texts.written import argument_at, expression_written

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
CONFIRMED_LIVE = True
ONLY_IN_HALF = True
WHILE_SAVING = ("save_own_variables", "load_own_variables")
MESSAGES = {
    SUM: "This sums float16 values over all axes, or over several: the sum is inf from 65520 on, as that of 256×256 "
    "ones is.",
    NORM: "This sums the squares of many 16-bit values: the largest float16 number is 65504, and the result is "
    "infinite from 65505 values of size 1 on.",
    SQUARE: "A factor of 256 or more is squared in float16, whose largest number is 65504: an input of 1.0 already "
    "gives infinity.",
    EXPONENTIAL: "`exp` is infinite in float16 from 11.1 on, and nothing keeps these values below that.",
    GRAM: "Each element of this Gram matrix sums products over all positions, and float16's largest number is 65504.",
}
HELP = {
    SUM: "Cast first: `tf.reduce_sum(tf.cast(x, tf.float32), …)`.",
    NORM: "Cast first: `tf.cast(x, tf.float32)`.",
    SQUARE: "Cast first: `tf.square(tf.cast(x, tf.float32))`.",
    EXPONENTIAL: "Use `tf.nn.softmax`, `tf.nn.sigmoid`, `tf.nn.softplus`, `tf.reduce_logsumexp` or "
    "`tf.math.cumulative_logsumexp`, or cast to float32 first.",
    GRAM: "Cast first: `tf.cast(x, tf.float32)`, or divide by the number of positions before the product.",
}
SOFTPLUS = "Write `tf.nn.softplus(x)` for `log(1 + exp(x))`: it is the same, and stays finite."
BY_SMALL = (
    "A float16 value is divided by {}: a graph multiplies by the reciprocal of that, which is inf in float16, and all "
    "results are inf or NaN."
)
BY_LARGE = (
    "A float16 value is divided by {}, which is inf in float16: every finite value becomes 0, and so does its gradient."
)
ALSO_CAST = " Cast what it is combined with as well: float16 and float32 do not mix."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if facts.shows_mixed_precision:
        yield from _reductions(facts)
        yield from _divisions(facts)
        yield from _large_means(facts)
        yield from () if facts.keras.is_keras3 else _large_poolings(facts)


def _reductions(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for event, kind, value in reductions(facts):
        if asks_for_dtype(event.context) or is_made_of_weights(value) or is_whole(facts, value):
            continue  # a sum of weights alone is MP510
        if kind == SUM and is_over_short_rows(facts, event.context, value):
            continue
        if kind in (SUM, NORM) and is_over_few(facts, event, value):
            continue
        if kind == SUM and _is_only_differentiated(facts, event):
            continue
        summed = event if kind == SUM and isinstance(event, Call) else value  # a list of tensors has no dtype itself
        if precision.dtype(summed, event.context) == "float16" and not _is_of_small_data(facts, event.context):
            advice = SOFTPLUS if is_softplus(event) else HELP[NORM if _is_einsum(event) and kind == SUM else kind]
            advice += ALSO_CAST if kind in (SUM, NORM) and _meets_half(facts, event) else ""
            yield Finding(MESSAGES[kind], advice, event.location, fix=_fix(facts, event, kind))


def _is_only_differentiated(facts: SourceFacts, event: Call | Operation) -> bool:
    """Whether a sum is written as what a gradient is taken of, `tf.gradients(tf.reduce_sum(y), x)`: the gradient does
    not depend on its value, and nothing else can read it."""
    places = (
        argument_at(facts, call.location, 0, "target", "ys", "loss")
        for call in gradient_calls(facts)
        if event in options(call.argument(0))
    )
    return any(place is not None and holds(place, event.location) for place in places)


def _meets_half(facts: SourceFacts, event: Call | Operation) -> bool:
    """Whether it is an operand of an operation with a float16 value, which a sum in float32 cannot meet."""
    precision = precision_of(facts)
    for operation in facts.operations:
        if operation.operator in ARITHMETIC and any(event in options(operand) for operand in operation.operands):
            others = (operand for operand in operation.operands if event not in options(operand))
            if any(precision.half(other, operation.context) is not None for other in others):
                return True
    return False


def _is_of_small_data(facts: SourceFacts, context: Context) -> bool:
    """Whether a test adds something up itself, which it made for that, or weights are added up to be saved."""
    if not context.callers and is_in_test_without_training(facts, context):
        return True
    around = _callers_by_function(facts).get(id(context.function)) or [context.function]
    return all(function is not None and function.name in WHILE_SAVING for function in around)


@lru_cache(maxsize=1)
def _callers_by_function(facts: SourceFacts) -> dict[int, list[FunctionFacts | None]]:
    """The functions that call each function of the program, by its id; None for the program itself."""
    callers: dict[int, list[FunctionFacts | None]] = {}
    for call in facts.calls:
        if isinstance(call.callee, Defined):
            callers.setdefault(id(call.callee.of), []).append(call.context.function)
    return callers


def _large_means(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for call, value, number in large_means(facts):
        if not asks_for_dtype(call.context) and precision.dtype(value, call.context) == "float16":
            yield Finding(
                _message_on_mean(number),
                "Cast first: `tf.reduce_mean(tf.cast(x, tf.float32), …)`.",
                call.location,
                fix=_fix(facts, call, SUM),
            )


def _divisions(facts: SourceFacts) -> Iterator[Finding]:
    precision = precision_of(facts)
    for divisions, message in ((divided_by_small(facts), BY_SMALL), (divided_by_large(facts), BY_LARGE)):
        for division, value, number in divisions:
            if not asks_for_dtype(division.context) and precision.dtype(value, division.context) == "float16":
                help = "Divide in float32: `tf.cast(x, tf.float32) / …`."
                yield Finding(message.format(written(number)), help, division.location)


def _large_poolings(facts: SourceFacts) -> Iterator[Finding]:
    for layer, number in large_pooling(facts):
        if half_dtype_of_layer(facts, layer) == "float16":
            yield Finding(
                _message_on_mean(number),
                f'Average in float32: `{layer.method}(dtype="float32")`.',
                layer.location,
                fix=unsafe_fix('Give the layer dtype="float32"', in_float32(facts, layer)),
            )


def _fix(facts: SourceFacts, event: Call | Operation, kind: str) -> Fix | None:
    """The edit that casts the values to float32, where they are an argument of this call; or one that writes a softmax
    where the expression is one."""
    if isinstance(event, Call) and is_softplus(event):
        return unsafe_fix("Use softplus", softplus_instead(facts, event))
    if isinstance(event, Call) and kind == EXPONENTIAL:
        return unsafe_fix("Use softmax", softmax_instead(facts, event))
    if not isinstance(event, Call) or kind == GRAM or meets_others(facts, event):
        return None
    in_square = _cast_in_square(facts, event) if kind == NORM else None
    edits = in_square or cast_argument(facts, event.location, position=int(_is_einsum(event)))  # behind the equation
    return unsafe_fix("Cast to float32 before the reduction", edits)


def _cast_in_square(facts: SourceFacts, summing: Call) -> list[Edit] | None:
    """The edits that cast inside `tf.reduce_sum(tf.square(x))`, where the square of 256 is infinite before anything is
    added."""
    squared = summing.argument(0)
    if not isinstance(squared, Call | Operation) or not holds(summing.location, squared.location):
        return None
    if isinstance(squared, Call):
        return cast_argument(facts, squared.location) if function_named(squared) == "square" else None
    written, around = expression_written(facts, squared.location), cast_around(facts)
    if not isinstance(written, ast.BinOp) or not isinstance(written.op, ast.Pow) or around is None:
        return None
    base, exponent = ast.unparse(written.left), ast.unparse(written.right)
    edit = replaced(facts, squared.location, f"{around[0]}{base}{around[1]} ** {exponent}")
    return [edit] if edit is not None else None


def _is_einsum(event: Call | Operation) -> bool:
    return isinstance(event, Call) and function_named(event) == "einsum"


def _message_on_mean(number: int) -> str:
    return (
        f"This is a mean over {number:,} float16 values: from {UNCOUNTABLE} values on its gradient is 0 at every loss "
        "scale, because TensorFlow divides the gradient by that number, which is inf in float16."
    )


def in_training(training: TrainingFacts) -> Iterator[Finding]:
    hidden = training.hidden_overflow
    if hidden is not None and hidden.operation.name in SUMS:
        yield finding_of_hidden_overflow(training)
    operation = training.broken_operation
    if operation is not None and operation.has_no_gradient and operation.where != "gradient":
        yield _mean(training, operation)
        return
    if operation is None or operation.name not in SUMS or operation.where == "gradient" or not is_overflow(operation):
        return
    yield Finding(
        f"Here, {broke(operation)}: the largest float16 number is 65504.",
        after_trials(training, "Cast first, `tf.cast(x, tf.float32)`.", _beside(operation)),
        operation.location or training.model.call.location,
        model=training.model.id,
        evidence={"operation": operation.name, "in_float32": operation.in_float32},
        remedies=remedies_to_report(training),
    )


def _beside(operation: OperationFacts) -> str:
    return "average instead of summing" if operation.name in ADDING else "make its input smaller"


def _mean(training: TrainingFacts, operation: OperationFacts) -> Finding:
    return Finding(
        f"Here a mean over {operation.averaged:,} float16 values is {operation.result}. From {UNCOUNTABLE} values on "
        "its gradient is 0 at every loss scale: TensorFlow divides the gradient by that number, which is inf in "
        "float16.",
        "Cast first: `tf.reduce_mean(tf.cast(x, tf.float32))`.",
        operation.location or training.model.call.location,
        model=training.model.id,
        evidence={"operation": operation.name, "averaged": operation.averaged, "in_float32": operation.in_float32},
    )

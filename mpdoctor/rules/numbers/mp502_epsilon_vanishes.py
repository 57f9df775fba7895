"""A small number that protects a division, a logarithm or a root from 0 is itself 0 in float16.

## Why it matters
float16 rounds numbers below 2.98e-08 to 0: the guards in `x / (norm + 1e-8)` and `log(p + 1e-12)` have no
effect, and a row of zeros gives NaN, in the forward pass and in the gradients (TensorFlow 2.21, tf_keras,
2.15). Between 2.98e-08 and 1.53e-05 the number is not 0, but its reciprocal is infinite: the result is finite,
the gradient of that row is inf or NaN, and the step is skipped.

What helps depends on where the number is used (TensorFlow 2.4 to 2.21). Under a root or in a logarithm use
1e-4, in `rsqrt` 1e-3. In a divisor no number helps, because the gradient divides by its square: `1 / (x +
1e-4)` has a gradient of 1e8 at 0. Use `tf.math.divide_no_nan` instead, which returns 0 there, with a gradient
of 0. A cast to float32 around the expression does not help, because the gradient is cast back to float16.

`tf.math.l2_normalize`, `keras.ops.normalize` and `tf.nn.batch_normalization` add an epsilon themselves. The first two
turn a row of zeros into NaN unless they are given a larger one; the third does so with equal values and 1e-9.

`1 - 1e-7` is 1.0, in bfloat16 too, so `log(1 - p)` after such a clip is -inf. `K.epsilon()` is this 1e-7, unless
`set_epsilon` sets another number. Keras' own normalization layers compute in float32 inside and are fine with
1e-12.

In a graph `1 - p + 1e-8` is 0 for p = 1 in float32, too: TensorFlow adds the two constants first, and their sum is 1
(2.21; outside of a `tf.function` it is 1e-8). Write `tf.maximum(1 - p, 1e-4)` or `1 - p + 1e-4`.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Unit(keras.layers.Layer):
    def call(self, inputs):
        norm = tf.reduce_max(tf.abs(inputs), axis=-1, keepdims=True)
        return inputs / (norm + 1e-8)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Unit(keras.layers.Layer):
    def call(self, inputs):
        norm = tf.reduce_max(tf.abs(inputs), axis=-1, keepdims=True)
        return tf.math.divide_no_nan(inputs, norm)
```

## Versions
All, under mixed_float16. In Keras 3 the losses passed to compile() compute in float32 and are fine.

## Where users met it
keras-team/keras#9582, keras-team/keras#11832, keras-team/keras#22586, keras-team/keras-hub#730.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import NO_RECIPROCAL, ROUNDED_TO_ZERO
from mpdoctor.finding import AlsoSeen, Finding, Fix, Severity
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import is_api
from mpdoctor.semantics.source.edits.expressions import unsafe_fix, with_keyword
from mpdoctor.semantics.source.edits.float32.guarded_logarithms import (
    CAST_IT,
    advice_on_softmax,
    is_log_of_softmax,
    softmax_in_float32,
    way_to_keep_below_one,
)
from mpdoctor.semantics.source.edits.lines import edited_together
from mpdoctor.semantics.source.edits.named_numbers import number_replaced
from mpdoctor.semantics.source.edits.quotients import divided_without_nan, quotient_without_nan
from mpdoctor.semantics.source.function_names import functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.constants import BELOW_ONE, ONE_IN_FLOAT32, numbers_from_value, written
from mpdoctor.semantics.source.numbers.differentiated_values import divides_by_stopped, has_gradient, is_stopped_behind
from mpdoctor.semantics.source.numbers.epsilon_guards import (
    BOUND,
    DIVISOR,
    INVERSE,
    LOG,
    NORMALIZING,
    OF_BACKEND,
    RECIPROCAL_ROOT,
    ROOT,
    ROOT_DIVISOR,
    ROOT_OF_POWERS,
    Guard,
    adds_epsilon,
    guards,
    has_logarithm_taken,
    same_added_above,
    upper_bounds,
)
from mpdoctor.semantics.wording import named_default, text_at

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
EXPLAINS = {"MP903": "zero", "MP904": "zero", "MP905": "zero", "MP907": "zero"}
ONLY_IN_HALF = True
WITHOUT_GUARD = {
    DIVISOR: "a divisor of 0 gives inf or NaN",
    ROOT_DIVISOR: "a divisor of 0 gives inf or NaN",
    LOG: "the logarithm of 0 is -inf",
    ROOT: "the gradient of the root of 0 is infinite",
    ROOT_OF_POWERS: "the gradient of the root of 0 is infinite",
    RECIPROCAL_ROOT: "the reciprocal of the root of 0 is infinite",
}
DIVIDED_HERE = "It is divided by here."
USED_HERE = {
    LOG: "The logarithm is taken here.",
    **dict.fromkeys((ROOT, ROOT_OF_POWERS), "The root is taken here."),
    RECIPROCAL_ROOT: "The reciprocal of the root is taken here.",
    **{name: f"`{name}` is called here." for name in INVERSE},
}
HELP = {
    LOG: "Write `1e-4`: the gradient at 0 is then 1e4, which a dynamic loss scale can adapt to.",
    ROOT: "Write `1e-4`: the gradient of the root at 0 is then 50.",
    ROOT_DIVISOR: "Write `1e-4`: the gradient at 0 is then 100.",
    ROOT_OF_POWERS: "Cast to float32 before the power, and back behind the root.",
    RECIPROCAL_ROOT: "Write `1e-3`: the gradient at 0 is then 16,000; with 1e-4 it would leave float16's range.",
}
NO_NAN = (
    "it returns 0 where the divisor is 0, with a gradient of 0. A larger epsilon does not help: the gradient divides "
    "by its square, and 1e-4 gives 1e8."
)
OF_QUOTIENT = (
    "Subtract logarithms, `log(p + 1e-4) - log(q + 1e-4)`: the gradient at 0 is then 1e4. For softmax outputs subtract "
    "`log_softmax(logits)`. `divide_no_nan` does not help here: the logarithm of its 0 is -inf."
)
OF_SMOOTHED = (
    "Write `1e-3` above and below: two zeros still give 1, and the gradient there is about 1000. `divide_no_nan` would "
    "give 0."
)
OF_STEP = (
    "Keep the optimizer's variables in float32, and cast the gradient to it: averages of squares, which it divides by, "
    "vanish in 16 bits as the epsilon does; `divide_no_nan` would leave those weights as they are."
)
OWN_OPTIMIZER = "own_optimizer"  # in the evidence: the class whose step divides
INSTEAD_OF_BACKEND = "Call `tf.math.l2_normalize` instead: that of the Keras backend takes no epsilon."
OF_NORMALIZING = {
    "l2_normalize": (
        "is 0 in float16: a row of zeros, or of values below 2e-4, becomes NaN",
        "Give it `epsilon=1e-3`: the gradient of a row of zeros is then multiplied by 32, with 1e-6 by 1000.",
    ),
    "normalize": (
        "has an infinite reciprocal in float16: a row of zeros becomes NaN, and one of values below 2e-4 infinite",
        "Give it `epsilon=1e-3`: the gradient of a row of zeros is then multiplied by 1000.",
    ),
    "batch_normalization": (
        "is 0 in float16: where all values are equal, their variance is 0, and they become NaN",
        "Give it `variance_epsilon=1e-3`, as the layers of Keras have it.",
    ),
}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    yield from edited_together(_guards_that_vanish(facts))
    yield from _bounds_that_vanish(facts)
    yield from _normalizing(facts)


def _guards_that_vanish(facts: SourceFacts) -> Iterator[Finding]:
    """Numbers that protect a divisor, a root or a logarithm from 0."""
    precision = precision_of(facts)
    for guard in guards(facts):
        largest, context = max(numbers_from_value(guard.number)) ** guard.power, guard.user.context
        is_too_small = 0 < largest < NO_RECIPROCAL and not asks_for_dtype(context)
        if not is_too_small or precision.dtype(guard.guarded, context) != "float16":
            continue
        small = f"{written(largest ** (1 / guard.power))}{named_default(facts, guard.number)}"
        small += f" to the power of {guard.power:g}" if guard.power != 1 else ""
        optimizer = context.owner.name if context.owner is not None and context.owner.kind == "optimizer" else ""
        if largest <= ROUNDED_TO_ZERO and not (optimizer and guard.kind == ROOT):
            yield Finding(
                f"{small} is 0 in float16 and protects against nothing: {WITHOUT_GUARD[guard.kind]}.",
                OF_STEP if optimizer else _help(facts, guard),
                guard.guarded.location,
                fix=None if optimizer else _fix(facts, guard),
                also_seen=_used_at(guard),
                evidence={OWN_OPTIMIZER: optimizer} if optimizer else {},
            )
        elif not optimizer and _is_reciprocal_in_gradient(facts, guard):  # an optimizer's step has no gradient
            yield Finding(
                f"The reciprocal of {small} is infinite in float16: near 0 this expression's gradient is inf or NaN.",
                _help(facts, guard),
                guard.guarded.location,
                severity=Severity.WARNING,
                fix=_fix(facts, guard),
            )


def _is_reciprocal_in_gradient(facts: SourceFacts, guard: Guard) -> bool:
    """Whether a gradient goes through the guarded value, and divides by it rather than by its root alone, as it does
    where none goes through the divisor."""
    if guard.kind in (ROOT, ROOT_OF_POWERS) or (guard.kind, guard.way) == (LOG, BOUND):
        return False
    if guard.kind == ROOT_DIVISOR and divides_by_stopped(guard.user):
        return False
    return has_gradient(guard.user) and not is_stopped_behind(facts, guard.user)


def _used_at(guard: Guard) -> tuple[AlsoSeen, ...]:
    """The line that relies on the guard, if it is another one: a run shows what breaks there."""
    made, used = guard.guarded.location, guard.user.location
    if made is None or used is None or (made.path, made.line) == (used.path, used.line):
        return ()
    return (AlsoSeen("MP502", "source", USED_HERE.get(guard.kind, DIVIDED_HERE), used.path, used.line),)


def _fix(facts: SourceFacts, guard: Guard) -> Fix | None:
    """The edit that writes a number that float16 holds. For a divisor no number is right unless it is added to the
    dividend as well: it is divided by as `divide_no_nan` does. For a softmax none restores the digits that are lost."""
    number, place = guard.number, guard.guarded.location
    above = same_added_above(number, guard.user) if guard.kind == DIVISOR else None
    if above is not None:
        places = [place, guard.user.location]
        numbers = [number] if number.location == above.location else [number, above]
        return unsafe_fix("Write 1e-3", *(number_replaced(facts, each, places, "1e-3") for each in numbers))
    if is_log_of_softmax(facts, guard):
        return softmax_in_float32(facts, guard)
    if guard.kind in (DIVISOR, ROOT_OF_POWERS):
        return divided_without_nan(facts, guard) if guard.kind == DIVISOR else None
    enough = "1e-3" if guard.kind == RECIPROCAL_ROOT else "1e-4"
    return unsafe_fix(f"Write {enough}", number_replaced(facts, number, [place], enough))


def _bounds_that_vanish(facts: SourceFacts) -> Iterator[Finding]:
    """Numbers that keep a probability below 1."""
    precision = precision_of(facts)
    for guard in upper_bounds(facts):
        dtype = precision.half(guard.guarded, guard.user.context)
        distance = 1 - max(numbers_from_value(guard.number))
        if dtype is None or not 0 < distance <= BELOW_ONE[dtype] or asks_for_dtype(guard.user.context):
            continue
        if guard.kind in (LOG, DIVISOR):
            then = f"so `1 - p` can be 0 here: {WITHOUT_GUARD[guard.kind]}"
            way = way_to_keep_below_one(facts, guard)
            instead = ", or use the loss that works on logits"
        elif has_gradient(guard.user) and not is_stopped_behind(facts, guard.user):
            then, instead = f"and the gradient of `{guard.kind}` at 1 is infinite", ""
            way = CAST_IT
        else:
            continue
        too = f" and with 1e-6, since 1 - {written(distance)} is 1.0 there too" if distance <= ONE_IN_FLOAT32 else ""
        yield Finding(
            f"1 - {written(distance)} is 1.0 in {dtype}, {then}.",
            f"{way}{too}{instead}.",
            guard.guarded.location,
            also_seen=_used_at(guard),
        )


def _help(facts: SourceFacts, guard: Guard) -> str:
    if is_log_of_softmax(facts, guard):
        return advice_on_softmax(facts, guard)
    return _help_for_divisor(facts, guard) if guard.kind == DIVISOR else HELP[guard.kind]


def _help_for_divisor(facts: SourceFacts, guard: Guard) -> str:
    if has_logarithm_taken(facts, guard.user):
        return OF_QUOTIENT
    if same_added_above(guard.number, guard.user) is not None:
        return OF_SMOOTHED
    is_of_ops = "ops." in text_at(facts, guard.user.location)
    if instead := quotient_without_nan(facts, guard, "" if is_of_ops else "tf", "ops"):
        return f"Write `{instead}`: {NO_NAN}"
    largest = written(max(numbers_from_value(guard.number)))
    return f"Divide with `tf.math.divide_no_nan`, and leave out the {largest}: {NO_NAN}"


def _normalizing(facts: SourceFacts) -> Iterator[Finding]:
    """Functions that add their epsilon themselves: tf.math.l2_normalize, ops.normalize, tf.nn.batch_normalization."""
    precision = precision_of(facts)
    for call, name in functions_called(facts):
        if name not in NORMALIZING or asks_for_dtype(call.context) or call.open or not adds_epsilon(call, name):
            continue
        place, keyword, default, vanishes = NORMALIZING[name]
        given = call.argument(place, keyword)
        largest = default if given is None else max(numbers_from_value(given), default=1.0)
        if 0 < largest <= vanishes and precision.dtype(call.argument(0, "x"), call.context) == "float16":
            takes_none = is_api(call.callee, OF_BACKEND)
            is_replaced = not takes_none and (given is None or call.keyword(keyword) is not None)
            yield Finding(
                f"The epsilon of `{name}`, {written(largest)}, {OF_NORMALIZING[name][0]}.",
                f"{INSTEAD_OF_BACKEND} {OF_NORMALIZING[name][1]}" if takes_none else OF_NORMALIZING[name][1],
                call.location,
                severity=Severity.WARNING if given is None else None,
                fix=unsafe_fix(f"Give `{name}` {keyword}=1e-3", with_keyword(facts, call.location, keyword, "1e-3"))
                if is_replaced
                else None,
            )

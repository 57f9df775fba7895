"""A mask is multiplied by a constant that float16 cannot hold: `(1 - mask) * -1e9`.

## Why it matters
-1e9 is -inf in float16, and 0 times -inf is NaN, so the rows where nothing is masked become NaN too: 64 of 64
rows, in Keras 3.15, tf_keras 2.21 and TensorFlow 2.15. Every step is skipped, the loss scale falls, and the
model never learns. Right are: a factor of -1e4; the whole computation in float32; and `tf.where(mask, scores,
-1e9)`, where `mask` marks the scores to keep (a masked score becomes -inf, the others do not change). bfloat16
holds -1e9, so under mixed_bfloat16 only `tf.float32.min` and the like are reported, which it rounds to -inf
(TensorFlow 2.15 and 2.21). Whatever the other factor is, such a product is infinite or
NaN in float16: it is also reported where it is added to 16-bit scores, `scores - visited * 1e30`, and where the other
factor is a 16-bit value, `predictions * 1e5`. A sigmoid or a clip around it bounds the result, but its gradient is 0
times infinity, NaN (TensorFlow 2.4, 2.15, 2.21).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Attention(keras.layers.Layer):
    def call(self, scores):
        mask = tf.cast(scores != 0, scores.dtype)
        return tf.nn.softmax(scores + (1.0 - mask) * -1e9)
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_float16")


class Attention(keras.layers.Layer):
    def call(self, scores):
        return tf.nn.softmax(tf.where(scores != 0, scores, -6e4))
```

## Versions
All, under mixed_float16; float32's limits under mixed_bfloat16 as well.

## Where users met it
keras-team/keras#17571, tensorflow/tensorflow#59657, openai/gpt-2#122, huggingface/transformers#6915,
huggingface/transformers#31989.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT, LARGEST
from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit, Finding, Fix, Severity
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Value, agreed
from mpdoctor.semantics.source.edits.expressions import replaced, safe_fix
from mpdoctor.semantics.source.edits.named_numbers import number_replaced
from mpdoctor.semantics.source.function_names import functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.later_inputs import given_further_out
from mpdoctor.semantics.source.layers.precision import Precision, precision_of
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.masks import is_mask, is_named_mask
from mpdoctor.semantics.source.numbers.small_divisors import is_of_ones
from mpdoctor.semantics.source.operands.operand_words import pairs_that_meet
from mpdoctor.semantics.source.texts.syntax_trees import location_of
from mpdoctor.semantics.wording import expression_at, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
EXPLAINS = {"MP904": "line", "MP907": "line"}
ONLY_IN_HALF = True
LIMIT_OF_MASKS = 1e6  # smaller positive factors are units: meters in kilometers, a price in thousands
HELP_FOR_ANY_FACTOR = "Compute this product in float32: cast the other factor first, `tf.cast(x, tf.float32)`, and "
IF_ADDED = "what it is added to."
IF_USED = "keep in float32 what is computed with it: a layer behind it that computes in 16 bits casts it back."
FAR_BEYOND = "which is still far beyond the others"
SMALL_ENOUGH = 10000.0  # a larger one could leave float16's range when a score of the same sign is added


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    masks = list(_masks_that_overflow(facts))
    products = [event.location for event, *_ in masks]
    for event, constant, masks_out, is_added, dtype in masks:
        consequence = (
            "and 0 times infinity is NaN: every row becomes NaN, masked or not."
            if masks_out
            else "and so is this product, or it is NaN where the other factor is 0."
        )
        looks_so = masks_out or (is_added and _is_limit_of_masks(constant))
        yield Finding(
            f"{_constant_as_written(facts, event, constant)} is infinite in {dtype}, {consequence}",
            _help(facts, event, constant, dtype) if looks_so else _help_for_any_factor(is_added),
            event.location,
            fix=_fix(facts, event, constant, products) if looks_so else None,
        )


def _is_limit_of_masks(constant: Value) -> bool:
    """Whether it is a number that masks are multiplied by: negative, or larger than the factors between units are."""
    numbers = numbers_from_value(constant)
    return max(numbers) < 0 or min(numbers) >= LIMIT_OF_MASKS


def _constant_as_written(facts: SourceFacts, event: Operation | Call, constant: Value) -> str:
    """ "`-1e9`"; with the name by which the product reads it, "`BIG` (`-1e9`)"."""
    number = text_at(facts, constant.location)
    operands = (node for value, node in pairs_that_meet(facts, event) if value is constant)
    name = next((ast.unparse(node) for node in operands if isinstance(node, (ast.Name, ast.Attribute))), number)
    if number and name != number:
        return f"`{name}` (`{number}`)"
    return f"`{name}`" if name else "This constant"


def _help_for_any_factor(is_added: bool) -> str:
    return HELP_FOR_ANY_FACTOR + (IF_ADDED if is_added else IF_USED)


def _masks_that_overflow(facts: SourceFacts) -> Iterator[tuple[Operation | Call, Value, bool, bool, str]]:
    """(product, its constant, whether its other factor certainly is a mask, whether it is added to 16-bit scores,
    dtype) of what is multiplied in 16 bits by more than these hold: a mask, what is then added to 16-bit scores, or
    another 16-bit value."""
    precision = precision_of(facts)
    for event, constant, other in _products_with_overflow(facts):
        dtype = None if asks_for_dtype(event.context) else _half_dtype(facts, precision, event, other)
        if dtype is None or not _overflows(constant, LARGEST[dtype]):
            continue
        masks_out = is_mask(facts, other) or is_named_mask(facts, event, other)
        is_added = _dtype_of_sum(facts, precision, event) is not None
        if masks_out or is_added or _is_value_in_half(precision, event, constant, other):
            yield event, constant, masks_out, is_added, dtype


def _is_value_in_half(precision: Precision, event: Operation | Call, constant: Value, other: Value) -> bool:
    """Whether a factor is computed in 16 bits; not a tensor of ones, which times a large number is to be as large as a
    mask, and not beside a constant that is a float32 tensor, with which it does not meet."""
    is_wide = precision.dtype(constant, event.context) in ("float32", "float64")
    return not is_wide and not is_of_ones(other) and precision.half(other, event.context) is not None


def _help(facts: SourceFacts, event: Operation | Call, constant: Value, dtype: str) -> str:
    """The help text: the product as written, with a constant that the dtype holds, so that the mask keeps its
    meaning."""
    product = expression_at(facts, event.location)
    numbers = [node for node in ast.walk(product) if isinstance(node, ast.Constant)] if product is not None else []
    large = [
        number for number in numbers if isinstance(number.value, (int, float)) and abs(number.value) > FLOAT16_LIMIT
    ]
    if product is not None and len(large) == 1:
        large[0].value = SMALL_ENOUGH
        text = ast.unparse(product).replace(str(SMALL_ENOUGH), "1e4")
        then = "and a softmax turns the masked scores into 0" if _takes_softmax(facts) else FAR_BEYOND
        return f"Write `{text}`: {dtype} holds this number, {then}."
    sign = "-" if max(numbers_from_value(constant)) < 0 else ""
    text = text_at(facts, constant.location)
    place = f" in place of `{text}`" if text else ""
    then = "and a softmax turns scores 1e4 below the others into 0" if _takes_softmax(facts) else FAR_BEYOND
    return f"Use {sign}1e4{place}: {dtype} holds this number, {then}."


def _takes_softmax(facts: SourceFacts) -> bool:
    """Whether the program may take a softmax of what is masked: a minimum or an argmax does as well with a mask."""
    return "softmax" in facts.text.lower() or "attention" in facts.text.lower()


def _fix(facts: SourceFacts, event: Operation | Call, constant: Value, products: list[Location]) -> Fix | None:
    """The edit that writes another number: where the number stands, in the product or behind a name that only such
    products read; otherwise in place of the name, which may be meant for float32 elsewhere."""
    sign = "-" if max(numbers_from_value(constant)) < 0 else ""
    edit = number_replaced(facts, constant, products, f"{sign}1e4") or _in_place_of_name(facts, event, constant, sign)
    return safe_fix(f"Write {sign}1e4", edit)


def _in_place_of_name(facts: SourceFacts, event: Operation | Call, constant: Value, sign: str) -> Edit | None:
    """The edit that writes the number in place of the factor's name; None for a parameter, which callers may pass."""
    function = event.context.function
    for value, node in pairs_that_meet(facts, event):
        if value is constant and isinstance(node, (ast.Name, ast.Attribute)):
            is_given = function is not None and isinstance(node, ast.Name) and node.id in function.parameters
            return replaced(facts, location_of(facts, node), f"{sign}1e4") if not is_given else None
    return None


def _products(facts: SourceFacts) -> Iterator[tuple[Operation | Call, tuple[Value, ...]]]:
    for operation in facts.operations:
        if operation.operator == "*" and len(operation.operands) == 2:
            yield operation, operation.operands
    for call, name in functions_called(facts):
        if name in ("multiply", "scalar_mul"):
            yield call, call.arguments(slice(2))


def _products_with_overflow(facts: SourceFacts) -> Iterator[tuple[Operation | Call, Value, Value]]:
    """Each product with a constant that float16 does not hold, with that constant and the other factor."""
    for event, factors in _products(facts):
        constant = next((factor for factor in factors if _overflows(factor)), None)
        other = next((factor for factor in factors if factor is not constant), None)
        if constant is not None and other is not None:
            yield event, constant, other


def _overflows(value: Value, largest: float = FLOAT16_LIMIT) -> bool:
    """Whether it is larger on every path than what a dtype holds; not an infinity, which is one in float32 as well."""
    numbers = numbers_from_value(value)
    return bool(numbers) and largest < min(map(abs, numbers)) < float("inf")


def _half_dtype(facts: SourceFacts, precision: Precision, event: Operation | Call, mask: Value) -> str | None:
    """The 16-bit dtype in which a mask is multiplied; None for another dtype, and where it is not certain."""
    dtype = precision.dtype(mask, event.context)
    if dtype is None and not facts.keras.is_keras3:  # which casts no later input: it has the dtype in which it is given
        given = given_further_out(facts, mask)
        dtype = agreed(precision.dtype(handed, call.context) for call, handed in given)
    if dtype is not None or not facts.keras.is_keras3:
        return dtype if dtype in LARGEST else None
    # Keras 3 casts every tensor argument of `call()`; a value added to float16 scores is float16, or the line raises.
    return _dtype_of_sum(facts, precision, event)


def _dtype_of_sum(facts: SourceFacts, precision: Precision, event: Operation | Call) -> str | None:
    """The 16-bit dtype of what a product is added to, or taken from; None for others."""
    others = (
        precision.half(other, sum_.context)
        for sum_, operands in _sums_by_operand(facts).get(id(event), ())
        for other in operands
        if other is not event
    )
    return next((dtype for dtype in others if dtype is not None), None)


@lru_cache(maxsize=1)
def _sums_by_operand(facts: SourceFacts) -> dict[int, list[tuple[Operation | Call, tuple[Value, ...]]]]:
    """The sums by the id of each of their operands."""
    sums: dict[int, list[tuple[Operation | Call, tuple[Value, ...]]]] = {}
    for sum_, operands in _sums(facts):
        for one in {id(operand) for operand in operands}:
            sums.setdefault(one, []).append((sum_, operands))
    return sums


def _sums(facts: SourceFacts) -> Iterator[tuple[Operation | Call, tuple[Value, ...]]]:
    for operation in facts.operations:
        if operation.operator in ("+", "-"):
            yield operation, operation.operands
    for call, name in functions_called(facts):
        if name in ("add", "subtract"):
            yield call, call.arguments(slice(2))

"""The training's loss is computed in 16 bits.

## Why it matters
A float16 loss has three digits and ends at 65504: a target of 1000 gives a mean squared error of inf where
float32 gives 1e6, and a loss of 2.0 is infinite as soon as it is multiplied by a loss scale of 2^15. In a
custom loop nothing casts the predictions of a model whose last layer is 16-bit. Keras 2 casts the labels to the
predictions' dtype, in compile() too, and its loss objects compute in the dtype of their inputs. Keras 3 casts
to float32 for the losses in compile() and for loss objects, but not for loss functions such as
`keras.losses.mean_squared_error` (Keras 3.15, tf_keras 2.21).

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(keras.losses.mean_squared_error(y, model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        predictions = tf.cast(model(x), tf.float32)
        loss = tf.reduce_mean(keras.losses.mean_squared_error(y, predictions))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Versions
All. In Keras 3 the losses passed to compile() compute in float32, unless they are made with another dtype:
`keras.losses.MeanSquaredError(dtype="float16")` (Keras 3.15).

## Where users met it
tensorflow/tensorflow#45568, tensorflow/tensorflow#39982, keras-team/keras#16552, vanvalenlab/deepcell-tf#490.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Edit, Finding, Fix, Severity
from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.knowledge.half_dtypes import HALF
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation, Return
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Item, Value, options
from mpdoctor.semantics.source.edits.expressions import (
    argument_at,
    argument_replaced,
    put_around,
    unsafe_fix,
    without_keyword,
)
from mpdoctor.semantics.source.edits.made_layers import location_of, tree_of
from mpdoctor.semantics.source.edits.names import cast, cast_around
from mpdoctor.semantics.source.edits.statements import line_before
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.casts import is_cast
from mpdoctor.semantics.source.layers.output_layers import half_output
from mpdoctor.semantics.source.numbers.losses_and_metrics import compiled
from mpdoctor.semantics.source.numbers.precision import Precision, precision_of
from mpdoctor.semantics.source.optimizers.gradients import applied_gradients, target
from mpdoctor.semantics.source.programs.models import is_model

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
NEVER_RAISES = True
SCALING = ("scale_loss", "get_scaled_loss")
REDUCING = ("reduce_mean", "reduce_sum", "mean", "sum")
MOST_NESTED = 6
LOSSES_OF_LAYERS = "losses"  # of a model or of a layer


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    precision = precision_of(facts)
    for _, call in applied_gradients(facts):
        if asks_for_dtype(call.context):
            continue
        for part, half in _halves(precision, _unscaled(target(call)), call.context):
            yield _finding(half, part.location, _fix(facts, part))
    if facts.keras.is_keras3:
        yield from _given_half(facts)
        return
    for call, loss in compiled(facts, 1, "loss"):
        if asks_for_dtype(call.context):
            continue
        for returned in _returned(facts, loss):
            dtype = precision.half(returned.value, returned.context)
            if dtype is not None:
                yield _finding(dtype, returned.location, _fix(facts, returned.value))


def _given_half(facts: SourceFacts) -> Iterator[Finding]:
    """Loss objects of Keras 3 that are made with a 16-bit dtype: they cast labels and predictions to it."""
    for call in facts.calls:
        dtype = dtype_named(call.keyword("dtype"), facts.keras)
        if dtype in HALF and _takes_dtype_as_keras_does(call) and not call.context.guarded:
            yield Finding(
                f"This loss casts labels and predictions to {dtype}, its own dtype: {_what_it_holds(dtype)}.",
                "Leave out its dtype: Keras computes a loss in float32.",
                call.location,
                fix=unsafe_fix("Leave out the dtype of the loss", without_keyword(facts, call.location, "dtype")),
            )


def _takes_dtype_as_keras_does(call: Call) -> bool:
    """Whether it makes a loss object, of Keras' own or of a class that hands its dtype on unread."""
    own = class_of(call)
    if own is None:
        return isinstance(call.callee, Api) and kind_of_class(call.callee.name) == "loss"
    initializer = own.find_method("__init__")
    return own.kind == "loss" and (initializer is None or "dtype" not in initializer.parameters)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    """Losses passed to compile() in Keras 2, whose own losses compute in the dtype of their inputs. A user's loss may
    cast inside, which is not visible here."""
    if model.keras.is_keras3 or not model.compiled or model.call.kind == "loop" or not model.loss_is_of_keras:
        return
    dtype = half_output(model)
    if dtype is not None:
        yield _finding(dtype, None)


def _fix(facts: SourceFacts, loss: Value) -> Fix | None:
    """The edits that compute every part of the loss in float32: the predictions, cast after the model or in the loss
    function, the sum of `model.losses`, and any cast to 16 bits."""
    precision, around = precision_of(facts), cast_around(facts)
    if around is None:
        return None
    edits: list[Edit | list[Edit] | None] = []
    waiting, seen = [loss], {id(loss)}
    for part in waiting:
        if is_model(part):
            continue  # a part of the model itself
        if _cannot_be_cast(precision, part):
            return None
        if isinstance(part, Call) and _sums_losses_of_layers(part):
            edits.append(_cast_each(facts, part, around))
        elif isinstance(part, Call) and precision.of_model(part.callee) in HALF:
            edits.append(cast(facts, part.location))
        else:
            edits += _edits_in_part(facts, part, around)
            waiting += [inner for inner in part.parts if id(inner) not in seen]
            seen.update(map(id, part.parts))
    found = [edit for edit in edits if edit != []]
    return unsafe_fix("Compute the loss in float32", *found) if found else None


def _edits_in_part(facts: SourceFacts, part: Value, around: tuple[str, str]) -> Iterator[Edit | list[Edit] | None]:
    """Those of the part itself, and not of what it is computed from."""
    if isinstance(part, Parameter) and _is_half_prediction(precision_of(facts), part):
        yield _cast_at_start(facts, part, around)
    if isinstance(part, Call) and is_cast(part) and _names_half(facts, part):
        wide = around[1].removeprefix(", ").removesuffix(")")
        yield argument_replaced(facts, part.location, "dtype", 1, wide)


def _cannot_be_cast(precision: Precision, part: Value) -> bool:
    if isinstance(part, Attribute):
        return part.name == LOSSES_OF_LAYERS  # in a list with others, or one after the other
    # one of several outputs: a cast around the call would stack them
    return isinstance(part, Item) and isinstance(part.of, Call) and precision.of_model(part.of.callee) in HALF


def _cast_each(facts: SourceFacts, sum_of_losses: Call, around: tuple[str, str]) -> list[Edit] | None:
    summed = argument_at(facts, sum_of_losses.location, 0)
    each = f"[{'part'.join(around)} for part in "
    return put_around(facts, summed, each, "]") if summed is not None else None


def _sums_losses_of_layers(call: Call) -> bool:
    """Whether it is `sum(model.losses)`: activity regularizers return numbers in the layer's own dtype."""
    summed = call.argument(0)
    return isinstance(summed, Attribute) and summed.name == LOSSES_OF_LAYERS and call.argument(1) is None


def _names_half(facts: SourceFacts, call: Call) -> bool:
    """Whether a cast names a 16-bit dtype itself, rather than the dtype of another tensor, which may change."""
    given = call.argument(1, "dtype")
    return not isinstance(given, Attribute) and dtype_named(given, facts.keras) in HALF


def _is_half_prediction(precision: Precision, value: Parameter) -> bool:
    return value.function is not None and precision.half(value, Context(function=value.function)) is not None


def _cast_at_start(facts: SourceFacts, value: Parameter, around: tuple[str, str]) -> Edit | None:
    """The edit in the function that has the prediction as a parameter."""
    assert value.function is not None
    name, place = value.name, value.function.location
    for node in ast.walk(tree_of(facts) or ast.Module([], [])):
        if isinstance(node, ast.FunctionDef) and node.name == value.function.name and node.lineno == place.line:
            first = next((line for line in node.body if not _is_text(line)), node.body[0])
            return line_before(facts, location_of(facts, first), f"{name} = {name.join(around)}")
    return None


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)


def _finding(dtype: str, location: Location | None, fix: Fix | None = None) -> Finding:
    return Finding(
        f"This loss is computed in {dtype}, the dtype of the predictions: {_what_it_holds(dtype)}.",
        'Cast the predictions first: `tf.cast(predictions, tf.float32)`, or give the last layer `dtype="float32"`.',
        location,
        fix=fix,
    )


def _what_it_holds(dtype: str) -> str:
    return "it has three digits and ends at 65504" if dtype == "float16" else "it has two digits"


def _halves(precision: Precision, loss: Value | None, context: Context, depth: int = 0) -> Iterator[tuple[Value, str]]:
    """The loss if it is 16-bit, and its dtype; for a sum, or a scalar that was cast afterwards, the parts that are."""
    for option in options(loss):
        parts = _parts(option)
        is_number = _is_loss if isinstance(option, Call) and is_cast(option) else _is_one_number
        numbers = [part for part in parts if is_number(part)] if depth < MOST_NESTED else []
        found = [half for number in numbers for half in _halves(precision, number, context, depth + 1)]
        whole = precision.half(option, context)
        if whole is not None and (not found or len(numbers) < len(parts)):
            found = [(option, whole)]
        yield from found


def _parts(loss: Value) -> tuple[Value | None, ...]:
    """What a loss is put together from: summands, what was cast, what a weight multiplies, what was cast before its
    mean."""
    if isinstance(loss, Operation):
        return loss.operands if loss.operator == "+" else _weighted(loss)
    if not isinstance(loss, Call):
        return ()
    if is_cast(loss):
        return (loss.argument(0),)
    given = loss.argument(0) if loss.method in REDUCING else None
    return (given,) if isinstance(given, Call) and is_cast(given) else ()


def _weighted(product: Operation) -> tuple[Value | None, ...]:
    return tuple(filter(_is_cast_number, product.operands)) if product.operator == "*" else ()


def _is_one_number(value: Value | None) -> bool:
    """Whether it is certainly a mean or a sum, perhaps cast, or added to another one."""
    choices = options(value)
    return bool(choices) and all(
        (isinstance(choice, Call) and (choice.method in REDUCING or is_cast(choice)))
        or (isinstance(choice, Operation) and choice.operator == "+")
        or (isinstance(choice, Operation) and choice.operator == "*" and any(map(_is_cast_number, choice.operands)))
        for choice in choices
    )


def _is_cast_number(value: Value | None) -> bool:
    """Whether it is a mean or a sum that was cast: a part of the loss that a weight may multiply."""
    return isinstance(value, Call) and is_cast(value) and _is_one_number(value.argument(0))


def _is_loss(value: Value | None) -> bool:
    """Whether it is certainly one number, or what one of Keras' losses gives."""
    choices = options(value)
    return _is_one_number(value) or (
        bool(choices) and all(isinstance(choice, Call) and _is_loss_of_keras(choice) for choice in choices)
    )


def _is_loss_of_keras(call: Call) -> bool:
    """`keras.losses.mean_squared_error(y, p)`, `MeanSquaredError()(y, p)`."""
    made_by = call.callee.callee if isinstance(call.callee, Call) else None
    if isinstance(made_by, Api):
        return kind_of_class(made_by.name) == "loss"
    return isinstance(call.callee, Api) and public_name(call.callee.name).startswith("keras.losses.")


def _unscaled(loss: Value | None) -> Value | None:
    """The loss behind `optimizer.scale_loss(loss)`."""
    choices = options(loss)
    choice = choices[0] if len(choices) == 1 else None
    return choice.argument(0, "loss") if isinstance(choice, Call) and choice.method in SCALING else loss


def _returned(facts: SourceFacts, loss: Value) -> Iterator[Return]:
    """The values that a user's loss, passed to compile(), returns."""
    own = class_of(loss)
    function = loss.of if isinstance(loss, Defined) and isinstance(loss.of, FunctionFacts) else None
    if own is not None:
        function = own.find_method("call")
    return facts.returns_of(function) if function is not None else iter(())

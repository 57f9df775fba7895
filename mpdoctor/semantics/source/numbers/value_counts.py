"""How many values a mean is taken over, where the source shows it; and sums over a short row for each example of a
model's output, which are over few values, whatever the batch."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.training import UNCOUNTABLE
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Attribute, Collection, Known, Value, known, options, walk
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.output_layers import output_layers
from mpdoctor.semantics.source.layers.preceding_layers import rows
from mpdoctor.semantics.source.numbers.layer_shapes import Shape
from mpdoctor.semantics.source.numbers.tensor_shapes import shape_of, shapes_in_layer, shapes_in_sequential
from mpdoctor.semantics.source.programs.losses_and_metrics import compiled, function_of
from mpdoctor.semantics.source.programs.running_functions import functions_around

MEANS = ("tensorflow.reduce_mean", "tensorflow.math.reduce_mean", "keras.backend.mean")
POOLING = frozenset(
    f"{name}{dimensions}" for name in ("GlobalAveragePooling", "GlobalAvgPool") for dimensions in ("1D", "2D", "3D")
)
SUMS = ("reduce_sum", "sum", "einsum")  # and what else is asked about adds up squares
SHORT = 64  # numbers in a row: a batch of 1023 such rows of ones is what float16 adds up
FLAT = ("Flatten", *(f"Global{kind}Pooling{n}D" for kind in ("Average", "Max") for n in (1, 2, 3)))
IN_ROWS = ("Dense", "Dropout", "BatchNormalization", "LayerNormalization", "Activation", "ReLU", "LeakyReLU")
NUMBER_BY_NUMBER = (
    *("abs", "cast", "multiply", "subtract", "add", "log", "maximum", "minimum", "sigmoid"),
    *("clip_by_value", "clip", "round", "floor", "ceil", "sign"),
)
ARITHMETIC = ("+", "-", "*", "/")
MOST_PARTS = 40


def large_means(facts: SourceFacts) -> Iterator[tuple[Call, Value, int]]:
    """(call, what is averaged, how many values each mean is made of) of means over too many values for float16."""
    for call in facts.calls_of(*MEANS):
        given = call.argument(0, "input_tensor")
        if given is not None and (number := _averaged(facts, call, given)) >= UNCOUNTABLE:
            yield call, given, number


def large_pooling(facts: SourceFacts) -> Iterator[tuple[Call, int]]:
    """(the call that makes the layer, how many positions it averages) of those that average too many for float16."""
    for call in facts.object_calls:
        if isinstance(call.callee, Call) and layer_name(call.callee) in POOLING:
            yield from _if_large(call.callee, shape_of(facts, call.argument(0)))
    for call in facts.calls_of("keras.Sequential"):
        for layer, shape in shapes_in_sequential(facts, call):
            if layer_name(layer) in POOLING:
                yield from _if_large(layer, shape)


def _if_large(layer: Call, shape: Shape | None) -> Iterator[tuple[Call, int]]:
    """The pooling layer with the number of positions that it averages, if these are too many for float16. Channels come
    last, unless the layer says otherwise: of those nothing is said."""
    if shape is None or layer.open or layer.keyword("data_format") is not None:
        return
    number = _product(shape[1:-1])
    if number >= UNCOUNTABLE:
        yield layer, number


def _averaged(facts: SourceFacts, call: Call, given: Value) -> int:
    """How many numbers a mean averages; 0 where it is not known."""
    shape = shape_of(facts, given)
    return 0 if shape is None or call.open else _number_along(call.argument(1, "axis"), shape)


def _number_along(axis: Value | None, shape: Shape) -> int:
    """How many numbers lie along one axis or several, along all of them where none is given; 0 where it is not
    known."""
    if axis is None:
        return _product(shape)
    chosen = [known(item) for item in axis.items] if isinstance(axis, Collection) else [known(axis)]
    within = [dimension for dimension in chosen if isinstance(dimension, int) and -len(shape) <= dimension < len(shape)]
    return _product(tuple(shape[dimension] for dimension in within)) if len(within) == len(chosen) else 0


def _product(sizes: Shape) -> int:
    """The product of the sizes; 0 where one is not known."""
    return math.prod(0 if size is None else size for size in sizes)


def is_over_few(facts: SourceFacts, event: Call | Operation, summed: Value) -> bool:
    """Whether a layer's `call()` adds up few numbers, by the shapes of all that it is seen to be given, or numbers so
    small that their sum stays in float16's range."""
    of_call = any(isinstance(part, Parameter) and part.is_of_call for part in walk(summed))
    if not isinstance(event, Call) or event.open or not of_call:
        return False
    axis = event.argument(2 if function_named(event) == "norm" else 1, "axis")
    numbers = [_number_along(axis, shape) for shape in shapes_in_layer(facts, summed)]
    if not numbers or not all(numbers):
        return False
    if max(numbers) <= SHORT:
        return True
    from mpdoctor.semantics.source.numbers.value_ranges import largest_of  # few sums come here

    largest = largest_of(summed) ** (1 if function_named(event) in SUMS else 2)
    return max(numbers) * largest <= FLOAT16_LIMIT


def is_over_short_rows(facts: SourceFacts, context: Context, summed: Value) -> bool:
    """Whether a loss or a metric of compile() adds up what it makes of labels and predictions number by number, and
    every model that is compiled with it gives short rows."""
    functions = list(filter(None, (context.function, *functions_around(facts, context))))
    if not functions or not _is_made_one_by_one(summed):
        return False
    losses = [call for call, loss in compiled(facts, 1, "loss") if function_of(loss, "call") in functions]
    metrics = [
        call for call, metric in compiled(facts, 2, "metrics") if function_of(metric, "update_state") in functions
    ]
    models = [model for call in (*losses, *metrics) for model in options(call.receiver)]
    return bool(models) and all(isinstance(model, Call) and _gives_short_rows(facts, model) for model in models)


def _is_made_one_by_one(value: Value) -> bool:
    """Whether the value is computed element by element from parameters and numbers, without squares: a single large
    error makes a square infinite."""
    waiting = [*options(value)]
    for part in waiting:
        if len(waiting) > MOST_PARTS:
            return False
        if isinstance(part, Operation) and part.operator in ARITHMETIC:
            is_square = part.operator == "*" and part.operands[0] is part.operands[-1]
            if is_square:
                return False
            waiting += [option for operand in part.operands for option in options(operand)]
        elif isinstance(part, Call) and function_named(part) in NUMBER_BY_NUMBER:
            count = 1 if function_named(part) == "cast" else None
            waiting += [option for operand in part.arguments(slice(count)) for option in options(operand)]
        elif not isinstance(part, (Parameter, Known, Attribute)):
            return False
    return True


def _gives_short_rows(facts: SourceFacts, model: Call) -> bool:
    last = output_layers(facts, model)
    return bool(last) and all(_is_short(layer) and _is_flat(facts, layer) for layer in last)


def _is_short(layer: Call) -> bool:
    units = known(layer.argument(0, "units")) if is_call_of(layer, "keras.layers.Dense") else None
    return isinstance(units, int) and units <= SHORT


def _is_flat(facts: SourceFacts, dense: Call) -> bool:
    """Whether the layer's input has two dimensions, the batch and one more."""
    for layer, before in rows(facts, "keras.layers.Dense"):
        if layer is dense:
            between = [layer_before for layer_before in before if layer_name(layer_before) not in IN_ROWS]
            nearest = between[-1] if between else None
            return nearest is not None and (layer_name(nearest) in FLAT or _is_input_of_rows(nearest))
    return False


def _is_input_of_rows(layer: Call) -> bool:
    shape = layer.argument(0, "shape")
    return is_call_of(layer, "keras.Input") and isinstance(shape, Collection) and len(shape.items) == 1

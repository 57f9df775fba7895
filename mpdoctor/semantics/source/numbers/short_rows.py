"""Sums over what a model puts out as a short row for each example: few numbers, whatever the batch."""

from __future__ import annotations

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import (
    Attribute,
    Call,
    Collection,
    FunctionFacts,
    Known,
    Operation,
    Parameter,
    Value,
    is_call_of,
    known,
    options,
)
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.output_layers import output_layers
from mpdoctor.semantics.source.layers.preceding_layers import rows
from mpdoctor.semantics.source.numbers.epsilon_guards import function_named
from mpdoctor.semantics.source.numbers.losses_and_metrics import compiled, function_of

SHORT = 64  # numbers in a row: a batch of 1023 such rows of ones is what float16 adds up
FLAT = ("Flatten", *(f"Global{kind}Pooling{n}D" for kind in ("Average", "Max") for n in (1, 2, 3)))
IN_ROWS = ("Dense", "Dropout", "BatchNormalization", "LayerNormalization", "Activation", "ReLU", "LeakyReLU")
ONE_BY_ONE = ("abs", "cast", "multiply", "subtract", "add", "log", "maximum", "minimum", "clip_by_value", "sigmoid")
OPERATORS = ("+", "-", "*", "/")
MOST_PARTS = 40


def is_over_short_rows(facts: SourceFacts, function: FunctionFacts | None, summed: Value) -> bool:
    """Whether a loss or a metric of compile() adds up what it makes of labels and predictions number by number, and
    every model that is compiled with it gives short rows."""
    if function is None or not _is_made_one_by_one(summed):
        return False
    losses = [call for call, loss in compiled(facts, 1, "loss") if function_of(loss, "call") is function]
    metrics = [call for call, one in compiled(facts, 2, "metrics") if function_of(one, "update_state") is function]
    models = [model for call in (*losses, *metrics) for model in options(call.receiver)]
    return bool(models) and all(isinstance(model, Call) and _gives_short_rows(facts, model) for model in models)


def _is_made_one_by_one(value: Value) -> bool:
    """Of parameters and numbers alone; not squares, which a single large error makes infinite."""
    waiting = [*options(value)]
    for part in waiting:
        if len(waiting) > MOST_PARTS:
            return False
        if isinstance(part, Operation) and part.operator in OPERATORS:
            is_square = part.operator == "*" and part.operands[0] is part.operands[-1]
            if is_square:
                return False
            waiting += [option for operand in part.operands for option in options(operand)]
        elif isinstance(part, Call) and function_named(part) in ONE_BY_ONE:
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
    """Whether what it is given has two dimensions, the batch and another one."""
    for layer, before in rows(facts, "keras.layers.Dense"):
        if layer is dense:
            between = [one for one in before if layer_name(one) not in IN_ROWS]
            nearest = between[-1] if between else None
            return nearest is not None and (layer_name(nearest) in FLAT or _is_input_of_rows(nearest))
    return False


def _is_input_of_rows(layer: Call) -> bool:
    shape = layer.argument(0, "shape")
    return is_call_of(layer, "keras.Input") and isinstance(shape, Collection) and len(shape.items) == 1

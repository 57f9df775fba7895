"""Probabilities that a softmax or sigmoid rounds to 16 bits: float32 only behind it, or given to a logarithm as they
are."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from mpdoctor.knowledge.api_names import PROBABILITIES, public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Item, Value, known, leaves, options
from mpdoctor.semantics.source.function_names import function_named, function_or_activation_named, functions_called
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.layer_dtypes import half_dtype_of_layer
from mpdoctor.semantics.source.layers.model_layers import policies_of_layer
from mpdoctor.semantics.source.layers.output_activations import activation_given
from mpdoctor.semantics.source.layers.output_dtypes import hands_on
from mpdoctor.semantics.source.layers.output_layers import first_of, is_functional
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.numbers.differentiated_values import is_stopped_behind
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.programs.branches import may_be_reached_by

PICKING = ("gather", "gather_nd", "take", "take_along_axis", "boolean_mask")
PASSING = ("cast", "squeeze", "reshape", "expand_dims", "identity")
SUMMING = ("reduce_sum", "sum")
SAMPLING = ("tensorflow.random.categorical", "keras.random.categorical", "tensorflow.compat.v1.multinomial")
MOST_PICKED = 8
MOST_STEPS = 20
MOST_NESTED = 4
_KEEPING_NUMBERS = ("squeeze", "expand_dims", "reshape", "transpose", "identity")
_AVERAGING = ("AveragePooling", "AvgPool")


class Rounded(NamedTuple):
    """What computes a model's probabilities in 16 bits: a layer, or the call of a function."""

    by: Call
    activation: str
    dtype: str


def rounded_outputs(facts: SourceFacts, model: Value | None) -> list[Rounded | None]:
    """For each output of a model how it is rounded; None for one that is not, or not certainly."""
    return [_rounded(facts, steps) for steps in _steps_to_outputs(facts, model)]


def rounded_tensor(facts: SourceFacts, tensor: Value | None) -> Rounded | None:
    return _rounded(facts, _steps_to(facts, tensor))


def probabilities_behind(facts: SourceFacts, tensor: Value | None) -> Rounded | None:
    """What computes the probabilities in 16 bits that a tensor, or one of a model's outputs, comes straight from,
    whether or not it is cast later."""
    steps = _steps_to(facts, tensor)
    if isinstance(tensor, Item) and isinstance(tensor.of, Call):
        outputs, place = _steps_to_outputs(facts, tensor.of.callee), known(tensor.index)
        steps = iter(outputs[place] if isinstance(place, int) and 0 <= place < len(outputs) > 1 else ())
    for step in steps:
        activation, dtype = _activation(facts, step)
        if activation in PROBABILITIES:
            return Rounded(step, activation, dtype) if dtype is not None else None
        if not _keeps_numbers(facts, step):
            return None
    return None


def _steps_to_outputs(facts: SourceFacts, model: Value | None, depth: int = 0) -> list[Iterable[Call]]:
    """The layers and functions that each output of a model came through, the last first; layers as the calls that made
    them. [] for what is no model, or not seen."""
    if not isinstance(model, Call) or depth > MOST_NESTED:
        return []
    if is_call_of(model, "keras.Sequential"):
        held = layers_of_sequential(facts, model)
        made = [layer for layer in held if isinstance(layer, Call)]
        return [reversed(made)] if len(made) == len(held) else []
    own = class_of(model)
    call = own.find_method("call") if own is not None and own.kind == "model" else None
    returned = [] if call is None else facts.returns_of(call)
    values = [event.value for event in returned if may_be_reached_by(event.context, ())]
    given = model.argument(1, "outputs") if call is None and is_functional(model) else None
    outputs = values if given is None else [given]
    return [_steps_to(facts, tensor, depth + 1) for tensor in leaves(outputs[0])] if len(outputs) == 1 else []


def _steps_to(facts: SourceFacts, tensor: Value | None, depth: int = 0) -> Iterator[Call]:
    """The calls and layers that a tensor has gone through, the last first."""
    for _ in range(MOST_STEPS):
        if not isinstance(tensor, Call):
            return
        layer = tensor.callee if isinstance(tensor.callee, Call) else None
        inside = _steps_to_outputs(facts, layer, depth + 1)
        if inside:
            yield from inside[0] if len(inside) == 1 else ()
            return
        yield tensor if layer is None else layer
        tensor = first_of(tensor) if layer is None else tensor.argument(0, "inputs")


def _rounded(facts: SourceFacts, steps: Iterable[Call]) -> Rounded | None:
    """The step that computes them in 16 bits, where a later one makes them float32, and none between changes them."""
    is_cast_later = False
    for step in steps:
        activation, dtype = _activation(facts, step)
        if activation in PROBABILITIES:
            return Rounded(step, activation, dtype) if is_cast_later and dtype is not None else None
        if not _keeps_numbers(facts, step):
            return None
        is_cast_later = is_cast_later or _gives_float32(facts, step)
    return None


def _activation(facts: SourceFacts, step: Call) -> tuple[str, str | None]:
    """The activation of a step, and the 16-bit dtype in which it is computed, if it is for certain."""
    function = function_or_activation_named(step)
    if function:
        return function, precision_of(facts).half(first_of(step), step.context)
    second = known(step.argument(1, "activation")) if is_call_of(step, "keras.layers.Dense") else None
    return activation_given(step) or str(second), half_dtype_of_layer(facts, step)


def _keeps_numbers(facts: SourceFacts, step: Call) -> bool:
    if is_cast(step) or function_or_activation_named(step):
        return is_cast(step) or function_or_activation_named(step) in _KEEPING_NUMBERS
    name = public_name(step.callee.name).rpartition(".")[2] if isinstance(step.callee, Api) else ""
    is_linear = name == "Identity" or (name == "Activation" and known(step.argument(0, "activation")) == "linear")
    return is_linear or (hands_on(step) and not name.startswith(_AVERAGING)) or _is_lambda_that_casts(facts, step)


def _gives_float32(facts: SourceFacts, step: Call) -> bool:
    if is_cast(step):
        return dtype_named(step.argument(1, "dtype"), facts.keras) == "float32"
    return _is_lambda_that_casts(facts, step) or (
        not function_or_activation_named(step) and policies_of_layer(facts, step) == ("float32",)
    )


def _is_lambda_that_casts(facts: SourceFacts, step: Call) -> bool:
    """Whether it is `Lambda(lambda t: tf.cast(t, tf.float32))`."""
    function = step.argument(0, "function") if is_call_of(step, "keras.layers.Lambda") else None
    if not isinstance(function, Defined) or not isinstance(function.of, FunctionFacts):
        return False
    returned = [value for event in facts.returns_of(function.of) for value in options(event.value)]
    return bool(returned) and all(
        isinstance(value, Call)
        and is_cast(value)
        and isinstance(value.argument(0, "x"), Parameter)
        and _gives_float32(facts, value)
        for value in returned
    )


# --- logarithms -------------------------------------------------------------------------------------------------------
def unguarded_logarithms(facts: SourceFacts) -> Iterator[tuple[Call, Rounded]]:
    """The logarithms in a loss that a tape differentiates, and the 16-bit softmax that each is taken of. Not those that
    an action is drawn by, where -inf is as good as any small number."""
    logarithms = [call for call, name in functions_called(facts) if name == "log" and not asks_for_dtype(call.context)]
    if not logarithms:
        return
    in_losses = _ids_of_parts(call.argument(0, "target") for call in facts.method_calls("gradient"))
    sampled = _ids_of_parts(call.argument(0, "logits") for call in facts.calls_of(*SAMPLING))
    for call in logarithms:
        if id(call) in in_losses and id(call) not in sampled and not is_stopped_behind(facts, call):
            softmax = _softmax(facts, call.argument(0, "x"))
            if softmax is not None:
                yield call, softmax


def _ids_of_parts(values: Iterator[Value | None]) -> set[int]:
    """What all of these were made from; most share nearly all of it, which is gone over once."""
    waiting = [value for value in values if value is not None]
    seen = set(waiting)
    for item in waiting:  # which grows
        for part in item.parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)
    return set(map(id, seen))


def _softmax(facts: SourceFacts, value: Value | None, depth: int = 0) -> Rounded | None:
    """The softmax that a value is, or is picked out of."""
    choices = options(value)
    if len(choices) != 1 or depth > MOST_PICKED:
        return None
    (only,) = choices
    probabilities = probabilities_behind(facts, only)
    if probabilities is not None:
        return probabilities if probabilities.activation == "softmax" else None
    inner = _picked_out_of(only)
    return _softmax(facts, inner, depth + 1) if inner is not None else None


def _picked_out_of(value: Value) -> Value | None:
    """`p` of `p[:, action]`, of `tf.gather(p, action)` and of `tf.reduce_sum(p * tf.one_hot(action, n), 1)`."""
    if isinstance(value, Item):
        return value.of
    if not isinstance(value, Call):
        return None
    name = function_named(value)
    first = value.argument(0, "x") or value.keyword("params") or value.keyword("input_tensor")
    if name in SUMMING:
        return _beside_one_hot(first)
    return first if name in PICKING + PASSING else None


def _beside_one_hot(product: Value | None) -> Value | None:
    """`p` of `p * tf.one_hot(…)`."""
    factors: tuple[Value, ...] = ()
    for option in options(product):
        if isinstance(option, Operation) and option.operator == "*":
            factors = option.operands
        elif function_named(option) == "multiply" and isinstance(option, Call):
            factors = option.args
    others = [factor for factor in factors if not _is_one_hot(factor)]
    return others[0] if len(others) == 1 and len(factors) == 2 else None


def _is_one_hot(value: Value) -> bool:
    choices = [
        option.argument(0, "x") if isinstance(option, Call) and function_named(option) == "cast" else option
        for option in options(value)
    ]
    return bool(choices) and all(
        function_named(option) == "one_hot" for choice in choices for option in options(choice)
    )

"""What custom layers are called with: their first input, and those after it, which Keras 2 does not cast; and which
Lambda layers are given floats, which Keras casts, and not whole numbers; which functions layers call themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import JOINING as TENSORS
from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Value, known, options

WHOLE = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "bool")
MOST_PARTS = 30  # of a Lambda layer's input that are looked at
MOST_LAYERS = 4  # that hand a later input on to a layer inside
FUNCTION_GIVEN = {"Lambda": (0, "function"), "Activation": (0, "activation"), "Dense": (1, "activation")}
ACTIVATIONS = ("activation", "recurrent_activation")


def given(call: Call, own: ClassFacts, parameter: Parameter) -> Value | None:
    """The argument for a parameter of `call()`, where a layer of this class is called."""
    if own.find_method("call") is not parameter.function:
        return None
    return call.argument(parameter.index - 1 if parameter.index > 0 else None, parameter.name)


def is_later_input(value: Value) -> bool:
    """Whether it is a parameter of a `call()` behind the first input. Keyword-only ones have no position."""
    if not isinstance(value, Parameter) or value.function is None or value.function.name != "call":
        return False
    is_later = value.index > 1 or value.name in value.function.parameters[2:]
    return is_later and value.function.owner is not None


def given_to_call(facts: SourceFacts, value: Value) -> Iterator[Value]:
    """What a later input of a `call()` is, wherever the program calls a layer of that class; nothing for other
    values."""
    if not isinstance(value, Parameter) or not is_later_input(value):
        return
    for call in facts.calls:
        for layer in options(call.callee):
            own = class_of(layer) if isinstance(layer, Call) else None
            handed = given(call, own, value) if own is not None else None
            if handed is not None:
                yield from options(handed)


def given_further_out(facts: SourceFacts, value: Value, layers: int = MOST_LAYERS) -> Iterator[tuple[Call, Value]]:
    """What a later input of a `call()` is where the program calls such a layer, with that call; where a layer hands its
    own later input on, what that layer is called with."""
    if not isinstance(value, Parameter) or not is_later_input(value):
        return
    for call, own in _calls_of_own_layers(facts):
        for handed in options(given(call, own, value)):
            if layers and isinstance(handed, Parameter) and is_later_input(handed):
                yield from given_further_out(facts, handed, layers - 1)
            else:
                yield call, handed


def given_in_calls(facts: SourceFacts, value: Value) -> Iterator[Value]:
    """What a parameter of `call()`, or an element of one (`x, t = inputs`), is wherever the program calls such a layer
    or model, itself included (`self([x, t])` in a `train_step`)."""
    if isinstance(value, Item) and isinstance(value.of, Parameter) and value.index is not None:
        for held in given_in_calls(facts, value.of):
            element = held.entry(known(value.index)) if isinstance(held, Collection) else None
            yield from options(element)
    elif isinstance(value, Parameter) and value.is_of_call:
        for call, own in _calls_of_own_layers(facts):
            yield from options(given(call, own, value))


@lru_cache(maxsize=1)
def _calls_of_own_layers(facts: SourceFacts) -> tuple[tuple[Call, ClassFacts], ...]:
    """The calls of objects of the program's own layers and models, and their classes."""
    called = ((call, layer) for call in facts.calls for layer in options(call.callee))
    owned = ((call, class_of(layer)) for call, layer in called if not isinstance(layer, Api))
    return tuple((call, own) for call, own in owned if own is not None and own.find_method("call") is not None)


def is_tensor(facts: SourceFacts, parameter: Parameter) -> bool:
    """Whether a parameter of `call()` is a tensor: the first is; another may as well be a number (`dim`, `theta`),
    unless it is asked for its shape, or a layer or a function of tensors is given it, or the program calls such a layer
    with a tensor there, or it is the states of a recurrent cell."""
    if not parameter.is_of_call or parameter.index < 2 or id(parameter) in _used_as_tensors(facts):
        return True
    return _is_state_of_cell(parameter) or any(
        _is_float_tensor(facts, handed) for handed in given_in_calls(facts, parameter)
    )


def _is_state_of_cell(parameter: Parameter) -> bool:
    """Whether it is what keras.layers.RNN hands on from step to step, in the dtype of the cell."""
    owner = parameter.function.owner if parameter.function is not None else None
    lineage = owner.lineage() if owner is not None and parameter.index == 2 else ()
    return any("state_size" in above.body_names or "state_size" in above.attributes for above in lineage)


def _is_float_tensor(facts: SourceFacts, value: Value) -> bool:
    """Whether it is certainly a tensor of floating-point numbers: a keras.Input, the output of a layer."""
    if not isinstance(value, Call) or is_array(value) or is_number(value):
        return False
    return facts.dtype_at(value, value.context) in (AUTOCAST, "float32", "float16", "bfloat16", "float64")


@lru_cache(maxsize=1)
def _used_as_tensors(facts: SourceFacts) -> frozenset[int]:
    """Ids of the parameters that are used as tensors."""
    ids = {id(read.of) for read in facts.reads if read.name in ("shape", "dtype", "get_shape", "ndim")}
    for call in facts.calls:
        for given_tensor in _given_tensors(call):
            ids.update(
                id(item) for item in (given_tensor.items if isinstance(given_tensor, Collection) else (given_tensor,))
            )
    return frozenset(ids)


def _given_tensors(call: Call) -> tuple[Value, ...]:
    if not isinstance(call.callee, Api):
        return call.arguments(slice(1)) if isinstance(call.callee, (Call, Attribute)) else ()
    place, _, name = public_name(call.callee.name).rpartition(".")
    if not place.startswith(("tensorflow", "keras.ops", "keras.activations")):
        return ()
    if name in TENSORS:
        return call.arguments(TENSORS[name])
    return call.arguments(slice(1)) if name in KEEPING or name in ("cast", "shape") else ()


@lru_cache(maxsize=1)
def lambda_layers(facts: SourceFacts) -> tuple[tuple[int, Call], ...]:
    """Functions of the user's that Lambda layers call, or that layers call as their activations or as regularizers of
    their output, by id, and those layers. Cached for one program after the other: it is asked for each line of a
    layer."""
    return tuple(_lambda_layers(facts))


def _lambda_layers(facts: SourceFacts) -> Iterator[tuple[int, Call]]:
    for layer in facts.library_calls:
        place, _, name = public_name(layer.callee.name).rpartition(".") if isinstance(layer.callee, Api) else ("",) * 3
        if place == "keras.layers":
            for option in _functions_given(layer, name):
                if isinstance(option, Defined) and isinstance(option.of, FunctionFacts):
                    yield id(option.of), layer
            for regularizer in options(layer.keyword("activity_regularizer")):
                own = class_of(regularizer)
                called = own.find_method("__call__") if own is not None else None
                if called is not None:
                    yield id(called), layer


def _functions_given(layer: Call, name: str) -> Iterator[Value]:
    if name in FUNCTION_GIVEN:
        yield from options(layer.argument(*FUNCTION_GIVEN[name]))
    else:
        for keyword in ACTIVATIONS:
            yield from options(layer.keyword(keyword))


@lru_cache(maxsize=1)
def lambda_layers_by_function(facts: SourceFacts) -> dict[int, tuple[Call, ...]]:
    """The Lambda layers that call each function of the user's, by its id; without those that are given whole
    numbers."""
    whole = {id(layer) for call, layer in _calls_of_lambda_layers(facts) if _holds_whole_numbers(facts, call)}
    layers: dict[int, tuple[Call, ...]] = {}
    for function, layer in lambda_layers(facts):
        if id(layer) not in whole:
            layers[function] = (*layers.get(function, ()), layer)
    return layers


def _calls_of_lambda_layers(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    for call in facts.object_calls:
        for layer in options(call.callee):
            if isinstance(layer, Call) and is_call_of(layer, "keras.layers.Lambda"):
                yield call, layer


def _holds_whole_numbers(facts: SourceFacts, call: Call) -> bool:
    """Whether whole numbers are among what a layer is given, as they are or as other Lambda layers hand them on."""
    waiting = list(options(call.argument(0, "inputs")))
    for part in waiting:  # which grows
        if facts.dtype_of(part) in WHOLE:
            return True
        if len(waiting) < MOST_PARTS:
            waiting += [option for inner in _handed_on(part) for option in options(inner)]
    return False


def _handed_on(value: Value) -> tuple[Value, ...]:
    if isinstance(value, Operation):
        return value.operands
    if isinstance(value, (Item, Collection)):
        return value.parts
    if not isinstance(value, Call):
        return ()
    hands_on = isinstance(value.callee, Api) and value.method in KEEPING
    return value.arguments(slice(1)) if hands_on or is_call_of(value.callee, "keras.layers.Lambda") else ()

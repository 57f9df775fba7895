"""Operations in `call()` whose operands have different dtypes, which TensorFlow refuses."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import TypeGuard

from mpdoctor.facts.half_dtypes import HALF, SIXTEEN_BITS
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.meeting_tensors import JOINING, MEETING, MEETING_IN_KERAS2
from mpdoctor.knowledge.dtypes.result_dtypes import KEEPING
from mpdoctor.knowledge.layer_kinds import PREPROCESSING, WEIGHTLESS
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.dtypes.python_numbers import is_number
from mpdoctor.program.dtypes.tensor_dtypes import dtypes_with
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, options, walk
from mpdoctor.semantics.source.layers.call_dtypes import (
    builds_a_model,
    computes_in_half,
    policies_made_with,
    runs_in_some_call,
)
from mpdoctor.semantics.source.layers.later_inputs import is_tensor, lambda_layers_by_function
from mpdoctor.semantics.source.layers.precision import precision_of
from mpdoctor.semantics.source.layers.weight_values import weight_holder
from mpdoctor.semantics.source.operands.casts import is_cast
from mpdoctor.semantics.source.programs.backends import is_for_another_backend, runs_on_another_backend
from mpdoctor.semantics.source.programs.models import is_any_made_of_input
from mpdoctor.semantics.source.programs.running_functions import is_of_the_file

OPERATORS = frozenset(("+", "-", "*", "/", "//", "**", "@", "%", "<", "<=", ">", ">=", "==", "!="))
HANDED_ON = OPERATORS - frozenset(("<", "<=", ">", ">=", "==", "!="))
MATRIX_PRODUCTS = ("tensorflow.matmul", "tensorflow.tensordot", "tensorflow.matvec", "keras.backend.dot")
AS_OPERATOR = "tensorflow.divide"  # nothing but `/`, which asks its operands; `tf.truediv` makes tensors of them first
# Operators, `concat` and `matmul` promote behind it in each of its modes (TensorFlow 2.21).
PROMOTING = "tensorflow.experimental.numpy.experimental_enable_numpy_behavior"
MOST_SUMS = 3  # of lists inside one another that are looked into
MixedOperands = tuple[Operation | Call, tuple[Value, ...]]
# What passes a tensor on in its dtype and does nothing that a weight is for.
PASSING = frozenset(
    [
        "expand_dims",
        "reshape",
        "split",
        "unstack",
        "identity",
        "squeeze",
        "tile",
        "transpose",
        "broadcast_to",
        "convert_to_tensor",
        "stop_gradient",
    ]
)


@lru_cache(maxsize=1)
def mixed_operands(facts: SourceFacts) -> tuple[MixedOperands, ...]:
    """Every TensorFlow operation on several tensors, with the operands whose dtypes must agree; none under NumPy's
    promotion, nor on another backend of Keras 3, nor one that TensorFlow computes from two dtypes."""
    if any(True for _ in facts.calls_of(PROMOTING)) or runs_on_another_backend(facts):
        return ()
    here = (met for met in _mixed_operands(facts) if not is_for_another_backend(met[0].context))
    return tuple(met for met in here if not _is_product_in_bfloat16(facts, met))


def _mixed_operands(facts: SourceFacts) -> Iterator[MixedOperands]:
    for operation in facts.operations:
        if operation.operator in OPERATORS and len(operation.operands) == 2:
            yield operation, operation.operands
    meeting = MEETING if facts.keras.is_keras3 else MEETING_IN_KERAS2
    for call in facts.library_calls:
        if not isinstance(call.callee, Api):
            continue
        name = public_name(call.callee.name)
        if name in meeting:
            yield call, tuple(argument for argument in call.arguments(meeting[name]) if not isinstance(argument, Known))
        elif name in JOINING:
            joined = _joined(call.argument(*JOINING[name]))
            if joined:
                yield call, joined


def _joined(value: Value | None, depth: int = 0) -> tuple[Value, ...]:
    """The items of `[a, b]`; for `[a] + others` the operand `others` counts as one item."""
    if isinstance(value, Operation) and value.operator == "+" and depth < MOST_SUMS:
        parts = [(part, _joined(part, depth + 1)) for part in value.operands]
        joined = [item for part, items in parts for item in items or (part,)]
        return tuple(joined) if any(items for _, items in parts) else ()
    return value.items if isinstance(value, Collection) else ()


def may_raise(facts: SourceFacts, met: MixedOperands) -> bool:
    """Whether these operands raise if their dtypes differ. In Keras 2 they always do.

    In Keras 3 a weight is a Keras variable. It promotes as the first operand, and in arithmetic as the second one as
    well; as the second one of a comparison it does not. (In a graph, in which fit() trains; eagerly `+` and `@` raise
    where it is second. Keras 3.15, TensorFlow 2.21.) What is computed of a keras.Input, or in an `__init__` that joins
    layers of a functional model, are Keras 3's symbolic tensors, which promote as keras.ops do."""
    event, operands = met
    if not facts.keras.is_keras3 or not operands:
        return True
    if builds_a_model(facts, event.context) or is_any_made_of_input(facts, operands):
        return False
    operator = event.operator if isinstance(event, Operation) else "/" if is_call_of(event, AS_OPERATOR) else None
    if operator is None:
        return True
    takers = operands if operator in HANDED_ON else operands[:1]
    return not any(_is_keras_variable(option) for taker in takers for option in options(taker))


def _is_product_in_bfloat16(facts: SourceFacts, met: MixedOperands) -> bool:
    """Whether it is a matrix product whose 16-bit operands are bfloat16 in each run. Where two matrices have two axes
    each, TensorFlow computes that of bfloat16 and float32 in float32 (2.4 to 2.21)."""
    event, operands = met
    if not (event.operator == "@" if isinstance(event, Operation) else is_call_of(event, *MATRIX_PRODUCTS)):
        return False
    return {dtype for operand in operands for dtype in half_dtypes(facts, operand, event.context)} == {"bfloat16"}


def _is_keras_variable(value: Value) -> bool:
    """Whether it is a weight, of the layer's own or of Keras' layer that it is made from: `self.kernel`."""
    return is_weight(value) or weight_holder(value) is not None


def is_half(facts: SourceFacts, value: Value, context: Context) -> bool:
    """Whether a tensor is 16-bit in some run of the program."""
    return bool(half_dtypes(facts, value, context))


def half_dtypes(facts: SourceFacts, value: Value, context: Context) -> tuple[str, ...]:
    """The 16-bit dtypes that a tensor may have in some run of the program."""
    dtype = facts.dtype_at(value, context)
    if dtype in HALF:
        return (dtype,)
    if dtype is None:
        of_models = _half_dtype_of_models(facts, value, context)
        return (of_models,) if of_models is not None else _half_dtypes_in_lambda_layer(facts, value)
    return half_dtypes_of_autocast(facts, value, context) if dtype == AUTOCAST else ()


def half_dtypes_of_autocast(facts: SourceFacts, value: Value, context: Context) -> tuple[str, ...]:
    """The 16-bit dtypes that a tensor may have whose dtype comes of what layers cast."""
    behind = list(_tensors_behind(value))
    parameters = [part for part in behind if isinstance(part, Parameter) and not is_number(part)]
    if not _is_inside_a_layer(facts, value, context, parameters):
        return ()
    told = (parameter for parameter in parameters if facts.dtype_at(parameter, context) is not None)
    if not all(is_tensor(facts, parameter) for parameter in told):
        return ()
    made = [part for part in behind if isinstance(part, Call) and _has_weights(part)]
    outside = [policies_made_with(facts, layer, None) for layer in made if is_of_the_file(facts, layer.context)]
    return tuple(
        dtype
        for dtype in HALF
        if computes_in_half(facts, value, context, only=dtype)
        and all(dtype in map(SIXTEEN_BITS.get, names) for names in outside)
    )


def _is_inside_a_layer(facts: SourceFacts, value: Value, context: Context, parameters: list[Parameter]) -> bool:
    """Whether a tensor is made in a `call()`, as the parameters behind it or the line say; one without weights may be
    made anywhere."""
    is_given = any(parameter.is_of_call for parameter in parameters)
    return is_given or runs_in_some_call(facts, context) or not any(is_weight(inner) for inner in walk(value))


def _tensors_behind(value: Value) -> Iterator[Value]:
    """The value, and what it was made from as far as its dtype comes from that."""
    waiting, seen = [value], {value}
    for part in waiting:
        yield part
        for inner in _with_its_dtype(part):
            if inner is not None and inner not in seen:
                seen.add(inner)
                waiting.append(inner)


def _with_its_dtype(value: Value) -> tuple[Value | None, ...]:
    """The parts of a value that its dtype comes from. Of a layer's call this is the first argument alone, which the
    layer casts: neither `training` nor the positions for `tf.gather` matter. What was cast says nothing of the cast's
    dtype, and what was made a Python number nothing of the number's."""
    if isinstance(value, Call) and is_number(value):
        return ()
    if isinstance(value, Call) and isinstance(value.callee, Call) and _has_weights(value.callee):
        return (value.callee,)
    if isinstance(value, Call) and isinstance(value.callee, Call) and value.args:
        return (value.callee, value.args[0])
    if isinstance(value, Item):
        return (value.of,)
    if isinstance(value, Call) and is_cast(value):
        return (value.argument(1, "dtype"),)
    if isinstance(value, Call) and isinstance(value.callee, Api) and value.keyword("dtype") is not None:
        return (value.keyword("dtype"),)
    if isinstance(value, Call) and isinstance(value.callee, Api) and value.method in KEEPING and value.args:
        return value.args[:1]
    return value.parts


def _has_weights(layer: Call) -> bool:
    """Whether it makes a layer of Keras' that computes with weights, and so gives its compute dtype for any input."""
    place, _, name = public_name(layer.callee.name).rpartition(".") if isinstance(layer.callee, Api) else ("", "", "")
    return place == "keras.layers" and name not in WEIGHTLESS | PREPROCESSING | {"TimeDistributed"}


def _parameters_behind(value: Value) -> Iterator[Parameter]:
    """The parameters that a value is computed from and that may be tensors."""
    return (part for part in _tensors_behind(value) if isinstance(part, Parameter) and not is_number(part))


def _half_dtype_of_models(facts: SourceFacts, value: Value, context: Context) -> str | None:
    """The 16-bit dtype of a value that `call()` computes of the outputs of models and of chains of layers; else
    None."""
    precision = precision_of(facts)
    if not precision.runs_in_call(context):
        return None
    are_tensors = all(is_tensor(facts, parameter) for parameter in _parameters_behind(value))
    return precision.half(value, context) if are_tensors else None


def _half_dtypes_in_lambda_layer(facts: SourceFacts, value: Value) -> tuple[str, ...]:
    """The 16-bit dtypes of a value computed from the input of a Lambda layer's function: that input is cast as every
    layer's is."""
    layers = lambda_layers_by_function(facts)
    if not layers:
        return ()
    inputs = [part for part in walk(value) if _is_input_of_function(part, layers)]
    calling = [layer for part in inputs for layer in layers[id(part.function)]]
    if not calling or _dtypes_in_lambdas(facts)(value) != AUTOCAST:
        return ()
    dtypes = {SIXTEEN_BITS.get(policy) for layer in calling for policy in policies_made_with(facts, layer, None)}
    return tuple(dtype for dtype in HALF if dtypes == {dtype})


def _is_input_of_function(value: Value, layers: Mapping[int, tuple[Call, ...]]) -> TypeGuard[Parameter]:
    """Whether it is the parameter by which one of these Lambda layers hands its input to its function."""
    if not isinstance(value, Parameter) or value.function is None:
        return False
    return id(value.function) in layers and value.index == value.function.first_given


@lru_cache(maxsize=1)
def _dtypes_in_lambdas(facts: SourceFacts) -> Callable[[Value | None], str | None]:
    layers = lambda_layers_by_function(facts)

    def told(value: Value, dtype: str | None) -> str | None:
        return AUTOCAST if _is_input_of_function(value, layers) else dtype

    return dtypes_with(facts.keras, told)


def without_numbers(value: Value) -> Value:
    """The one tensor that is combined with Python numbers: `x` of `1.0 + 0.5 * x`."""
    while isinstance(value, Operation):
        tensors = [operand for operand in value.operands if not is_number(operand)]
        if len(tensors) != 1:
            break
        value = tensors[0]
    return value


def origin(value: Value, past_casts: bool = False) -> Value:
    """The tensor behind slices, reshapes and the like; with `past_casts` behind casts as well."""
    while True:
        inner: Value | None = None
        if isinstance(value, Item):
            inner = value.of
        elif isinstance(value, Call) and isinstance(value.callee, Attribute):
            inner = value.callee.of if value.callee.name in ("read_value", "value") else None
        elif isinstance(value, Call) and isinstance(value.callee, Api):
            name = public_name(value.callee.name).rpartition(".")[2]
            if name in PASSING or (past_casts and name == "cast"):
                inner = value.argument(0)
        if inner is None or isinstance(inner, Collection):
            return value
        choices = options(inner)
        value = choices[0] if len(choices) == 1 else inner
        if len(choices) != 1:
            return value

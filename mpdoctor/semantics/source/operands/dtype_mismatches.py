"""Operations outside `call()` on a 16-bit prediction, or a 16-bit tensor of a functional model, and a tensor of another
dtype, which TensorFlow refuses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import NamedTuple

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.knowledge.api_names import TAPE
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.array_dtypes import is_array
from mpdoctor.program.dtypes.layer_results import is_weight
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts, Parameter
from mpdoctor.program.values import Attribute, Known, Value, is_api, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype
from mpdoctor.semantics.source.layers.model_layers import half_policy_calls
from mpdoctor.semantics.source.layers.precision import Precision, precision_of
from mpdoctor.semantics.source.operands.float32_meetings import made_in_an_arm
from mpdoctor.semantics.source.operands.mixed_operands import mixed_operands
from mpdoctor.semantics.source.operands.numbers_first import is_compiled, numbers_before_tensors
from mpdoctor.semantics.source.programs.branches import exclude_each_other, is_for_float32, is_ruled_out
from mpdoctor.semantics.source.programs.losses_and_metrics import DATA, STEPS
from mpdoctor.semantics.source.programs.models import is_any_symbolic
from mpdoctor.semantics.source.programs.running_functions import functions_around, method_around

CASTING = ("cast", "astype", "convert_image_dtype", "convert_to_tensor", "constant", "asarray", "array", "TensorSpec")
WIDE = ("float32", "float64", DATA)
_NONE: frozenset[FunctionFacts] = frozenset()


class DtypeMismatch(NamedTuple):
    """A line that raises: the 16-bit tensor and its dtype, the other one and its dtype."""

    event: Operation | Call
    half: Value
    half_dtype: str
    wide: Value
    wide_dtype: str
    in_metric: bool


@lru_cache(maxsize=1)
def dtype_mismatches(facts: SourceFacts) -> tuple[DtypeMismatch, ...]:
    """The lines outside of layers that raise because their tensors have two dtypes. Cached for one program after the
    other: two rules ask."""
    return tuple(_dtype_mismatches(facts))


@lru_cache(maxsize=1)
def mismatches_in_functional_models(facts: SourceFacts) -> tuple[DtypeMismatch, ...]:
    """The lines that join the layers of a functional model of Keras 2, and raise because their tensors have two dtypes:
    no layer casts what an operation of TensorFlow is given. (Keras 3's symbolic tensors promote.) Measured in
    TensorFlow 2.4, 2.10 and 2.15 and in tf_keras 2.21."""
    return () if facts.keras.is_keras3 else tuple(_mismatches_in_functional_models(facts))


def _mismatches_in_functional_models(facts: SourceFacts) -> Iterator[DtypeMismatch]:
    precision = precision_of(facts)
    for event, operands in mixed_operands(facts):
        if event.context.guarded or is_ruled_out(event.context):
            continue
        if precision.runs_in_call(event.context) or not is_any_symbolic(facts, operands):
            continue
        pair = _half_and_wide(precision, event.context, operands)
        if pair is None or asks_for_dtype(event.context) or _is_without_policy(facts, event.context):
            continue
        (half, half_dtype), (wide, wide_dtype) = pair
        if wide_dtype != DATA:
            yield DtypeMismatch(event, half, half_dtype, wide, wide_dtype, in_metric=False)


def _dtype_mismatches(facts: SourceFacts) -> Iterator[DtypeMismatch]:
    precision = precision_of(facts)
    functions_behind = FunctionsBehind()
    training = _Training(facts, precision)
    for event, operands in mixed_operands(facts):
        # asked first, since most operations stand in no training, and a dtype takes longer to tell
        made_of = functions_behind(*operands) if precision.roles else ()
        if not training.runs(event.context) and not any(id(function) in precision.roles for function in made_of):
            continue
        pair = _half_and_wide(precision, event.context, operands)
        if pair is None or asks_for_dtype(event.context) or _is_without_policy(facts, event.context):
            continue
        (half, half_dtype), (wide, wide_dtype) = pair
        by_keras = any(id(function) in precision.roles for function in functions_behind(wide))
        is_by_name = not (by_keras and facts.dtype_of(wide) is None) and _is_cast_by_name(facts, half, wide_dtype)
        if not is_by_name and not _promotes(facts, operands):
            around = (event.context.function, *functions_around(facts, event.context))
            behind = [*functions_behind(half, wide), *around]
            of_loss = any(_is_loss(function, precision) for function in functions_behind(half))
            in_metric = any(function is not None and _is_metric(function, precision) for function in behind)
            yield DtypeMismatch(event, half, half_dtype, wide, wide_dtype, in_metric and not of_loss)
    yield from _numbers_first(facts, precision, functions_behind, training)


def _numbers_first(
    facts: SourceFacts, precision: Precision, functions_behind: FunctionsBehind, training: _Training
) -> Iterator[DtypeMismatch]:
    """In losses and metrics that Keras calls, and in training steps that run in a graph: a float before a 16-bit
    tensor, which is float32 there."""
    for call, number, tensor, _ in numbers_before_tensors(facts):
        behind = functions_behind(tensor) if precision.roles else ()
        given = [function for function in behind if id(function) in precision.roles]
        runs_in_graph = bool(given) or training.runs_in_graph(call.context)
        half = precision.half(tensor, call.context) if runs_in_graph else None
        if half is not None and not asks_for_dtype(call.context) and not _is_without_policy(facts, call.context):
            in_metric = bool(given) and not any(_is_loss(function, precision) for function in given)
            yield DtypeMismatch(call, tensor, half, number, "float32", in_metric)


def _is_without_policy(facts: SourceFacts, context: Context) -> bool:
    """Whether it stands in an arm that the program never enters where it sets its 16-bit policy."""
    calls = list(half_policy_calls(facts))
    excluded = bool(calls) and all(exclude_each_other(call.context, context) for call in calls)
    return excluded or is_for_float32(context)


def _half_and_wide(
    precision: Precision, context: Context, operands: tuple[Value, ...]
) -> tuple[tuple[Value, str], tuple[Value, str]] | None:
    """The first tensor in 16 bits and the first that is wider, each with its dtype; None where not both are there."""
    met = (operand for operand in operands if not isinstance(operand, Known))
    in_arms = (met_in if precision.dtype(met_in, context) else made_in_an_arm(met_in) for met_in in met)
    dtypes = ((operand, precision.dtype(operand, context)) for operand in in_arms)
    tensors = [(tensor, dtype) for tensor, dtype in dtypes if dtype]
    half = next(((tensor, dtype) for tensor, dtype in tensors if dtype in HALF), None)
    wide = next(((tensor, dtype) for tensor, dtype in tensors if dtype in WIDE and not is_array(tensor)), None)
    return (half, wide) if half is not None and wide is not None else None


def _is_cast_by_name(facts: SourceFacts, half: Value, wide_dtype: str) -> bool:
    """Whether the program chose the 16 bits itself (MP207), or may have cast its data to them. Not asked of what meets
    a float32 prediction or label as Keras hands it to a loss or metric: that raises under every policy."""
    return facts.dtype_of(half) in HALF or (wide_dtype == DATA and any(map(_casts_by_name, facts.calls)))


def _promotes(facts: SourceFacts, operands: tuple[Value, ...]) -> bool:
    """Whether the first of them is a variable of Keras 3, which promotes."""
    return facts.keras.is_keras3 and any(is_weight(option) for option in options(operands[0]))


def _casts_by_name(call: Call) -> bool:
    """Whether the program casts something to 16 bits by name: its data, perhaps. Outside of layers it may also do so by
    the compute dtype of a model or of the policy in force."""
    if call.method not in CASTING:
        return False
    given = [*call.arguments(slice(2)), *(value for name, value in call.keywords if name == "dtype")]
    function = call.context.function
    is_in_layer = function is not None and function.owner is not None and function.owner.is_layer
    named = [option for value in given for option in options(value)]
    return any(dtype_named(option) in HALF or (_is_compute_dtype(option) and not is_in_layer) for option in named)


def _is_compute_dtype(value: Value) -> bool:
    return isinstance(value, Attribute) and value.name == "compute_dtype"


def _is_metric(function: FunctionFacts, precision: Precision) -> bool:
    role = precision.roles.get(id(function))
    if role is not None:
        return role.is_metric
    return function.owner is not None and function.owner.kind == "metric"


def _is_loss(function: FunctionFacts, precision: Precision) -> bool:
    """Whether Keras calls the function as a loss. A mismatch in it counts as the loss's, even where it hands its
    predictions on to a metric."""
    role = precision.roles.get(id(function))
    return role is not None and not role.is_metric


def _is_step_of_model(function: FunctionFacts) -> bool:
    return function.name in STEPS and function.owner is not None and function.owner.kind == "model"


class FunctionsBehind:
    """The functions whose parameters a value was made from. Remembered, because each line of a long computation is made
    of all lines before it."""

    def __init__(self) -> None:
        self._known: dict[int, frozenset[FunctionFacts]] = {}

    def __call__(self, *values: Value) -> frozenset[FunctionFacts]:
        for value in values:
            self._find(value)
        return self._joined(values)

    def _joined(self, values: Iterable[Value]) -> frozenset[FunctionFacts]:
        """All functions of these values; where one value has them all, its own set, and no copy."""
        functions = {self._known[id(value)] for value in values} - {_NONE}
        return functions.pop() if len(functions) == 1 else _NONE.union(*functions)

    def _find(self, value: Value) -> None:
        """Find the functions behind a value, those behind its parts first; without recursion, which a long computation
        would exhaust."""
        waiting = [(value, False)]
        while waiting:
            current, parts_are_known = waiting.pop()
            if parts_are_known:
                behind = self._joined(current.parts)
                own = current.function if isinstance(current, Parameter) else None
                self._known[id(current)] = behind if own is None else behind | {own}
            elif id(current) not in self._known:
                self._known[id(current)] = _NONE  # should it be a part of itself
                waiting.append((current, True))
                waiting.extend((part, False) for part in current.parts)


class _Training:
    """Which code runs in a training outside of layers. All events of one context share the answer."""

    def __init__(self, facts: SourceFacts, precision: Precision) -> None:
        self._facts, self._precision = facts, precision
        self._known: dict[Context, bool] = {}
        functions = (call.context.function for call in facts.calls_of(TAPE))
        self._steps = frozenset(id(function) for function in functions if function is not None)

    def runs(self, context: Context) -> bool:
        """Whether code runs in a metric, in a train_step, under a GradientTape or beside one in the same function, or
        in a function that one of these calls. The `call()` of a layer is MP202's."""
        if context not in self._known:
            method = method_around(self._facts, context)
            is_in_metric = method is not None and method.owner is not None and method.owner.kind == "metric"
            self._known[context] = is_in_metric or (
                not self._precision.runs_in_call(context) and self._is_in_step(context)
            )
        return self._known[context]

    def runs_in_graph(self, context: Context) -> bool:
        """Whether code runs in a training step that is certainly a graph: a model's train_step, or a function that
        `tf.function` compiles."""
        around = filter(None, (context.function, *functions_around(self._facts, context)))
        return self.runs(context) and any(_is_step_of_model(function) or is_compiled(function) for function in around)

    def _is_in_step(self, context: Context) -> bool:
        if any(isinstance(manager, Call) and is_api(manager.callee, TAPE) for manager in context.withs):
            return True
        around = (context.function, *functions_around(self._facts, context))
        return any(
            function is not None and (function.name in STEPS or id(function) in self._steps) for function in around
        )

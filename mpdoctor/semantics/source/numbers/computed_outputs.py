"""Outputs of models that no layer is the last to make: a sum of two heads, a product with an embedding's weights."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import SIXTEEN_BITS
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Collection, Item, Known, Value, agreed, leaves, options
from mpdoctor.semantics.source.layers.call_dtypes import asks_for_dtype, policies_made_with
from mpdoctor.semantics.source.layers.output_layers import is_functional, output_layers
from mpdoctor.semantics.source.layers.precision import ARITHMETIC, Precision, precision_of
from mpdoctor.semantics.source.operands.value_parts import values_joined, values_kept
from mpdoctor.semantics.source.programs.branches import may_be_reached_by

Computed = Operation | Call


def computed_outputs(facts: SourceFacts, model: Call) -> Iterator[tuple[Computed, str]]:
    """The outputs of a model that an operation or a function of a library's computes in 16 bits, and in which."""
    precision = precision_of(facts)
    for part in output_layers(facts, model) or [model]:
        if is_functional(part):
            for tensor in leaves(part.argument(1, "outputs")):
                if _is_computed(tensor):
                    yield from _in_half(tensor, _dtype_of_all(precision, tensor, part.context))
        elif _is_made_in_half(facts, part):
            calls = _calls_giving(model, part)
            for tensor, context in _returned(facts, part):
                if may_be_reached_by(context, calls) and _is_computed(tensor) and not asks_for_dtype(context):
                    yield from _in_half(tensor, precision.half(tensor, context))


def _dtype_of_all(precision: Precision, tensor: Value, context: Context) -> str | None:
    """The 16-bit dtype of all that it is made of: Keras' own tensors promote."""
    return agreed(precision.half(operand, context) for operand in _operands(tensor))


def _in_half(tensor: Value, dtype: str | None) -> Iterator[tuple[Computed, str]]:
    computed = _without_slices(tensor)
    if dtype is not None and isinstance(computed, Computed):
        yield computed, dtype


def _without_slices(tensor: Value) -> Value:
    """The tensor of which a part is taken: `x` of `x[:, :8]`."""
    while isinstance(tensor, Item) and isinstance(tensor.index, Collection):
        tensor = tensor.of
    return tensor


def _is_made_in_half(facts: SourceFacts, part: Call) -> bool:
    """Whether this one of a class' layers or models computes in 16 bits; others of the class may be float32."""
    own = class_of(part)
    return own is not None and any(policy in SIXTEEN_BITS for policy in policies_made_with(facts, part, own))


def _calls_giving(model: Call, part: Call) -> list[Call]:
    """The calls of a layer that give outputs of a functional model; [] where they are not seen."""
    outputs = leaves(model.argument(1, "outputs")) if is_functional(model) else ()
    return [output for output in outputs if isinstance(output, Call) and output.callee is part]


def _returned(facts: SourceFacts, part: Call) -> Iterator[tuple[Value, Context]]:
    own = class_of(part)
    call = own.find_method("call") if own is not None and own.is_layer else None
    for event in facts.returns_of(call) if call is not None else ():
        yield from ((tensor, event.context) for tensor in leaves(event.value))


def _is_computed(tensor: Value) -> bool:
    tensor = _without_slices(tensor)
    if isinstance(tensor, Operation):
        return tensor.operator in ARITHMETIC
    return isinstance(tensor, Call) and isinstance(tensor.callee, Api)


def _operands(tensor: Value) -> Iterator[Value]:
    """The tensors that decide the tensor's dtype, behind operations and functions that keep it, without numbers and
    each once: forty lines of `x = x + tf.nn.relu(x)` hold the first one 2^40 times."""
    waiting, seen = [*options(tensor)], set[int]()
    while waiting:
        option = waiting.pop()
        if id(option) in seen:
            continue
        seen.add(id(option))
        inner = [leaf for part in _parts(option) for leaf in leaves(part) if not isinstance(leaf, Known)]
        waiting += inner
        if not inner and not isinstance(option, (Known, Collection)):
            yield option


def _parts(value: Value) -> tuple[Value, ...]:
    """The values whose dtype a value has: the operands of an operation, and what functions are given that keep it."""
    if isinstance(value, Collection):
        return value.items
    if isinstance(value, Operation):
        return value.operands if _is_computed(value) else ()
    return values_kept(value) + values_joined(value)

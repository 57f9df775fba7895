"""The shapes of tensors, as far as the program says them: of a model's input, and of what its layers, those of the
user's own too, make of it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts, Parameter
from mpdoctor.program.values import Attribute, Collection, Earlier, Item, Value, agreed, known, options, walk
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.layer_shapes import MERGING, Shape, shape_of_layer

DEEPEST = 60  # layers
MOST_NESTED = 6  # layers in layers
INPUTS = ("keras.Input", "keras.layers.Input", "keras.layers.InputLayer")
MADE = (
    *("tensorflow.zeros", "tensorflow.ones", "tensorflow.random.normal", "tensorflow.random.uniform"),
    *("keras.ops.zeros", "keras.ops.ones", "keras.random.normal", "keras.random.uniform", "numpy.zeros", "numpy.ones"),
)
SHAPES = ("tensorflow.shape", "keras.ops.shape", "keras.backend.shape", "keras.backend.int_shape")
ELEMENTWISE = (
    *("cast", "identity", "abs", "square", "sqrt", "exp", "log", "sin", "cos"),
    *("relu", "relu6", "elu", "gelu", "silu", "tanh", "sigmoid", "hard_sigmoid", "softplus", "leaky_relu", "softmax"),
    *("sign", "negative", "stop_gradient", "clip_by_value", "clip", "l2_normalize", "ones_like", "zeros_like"),
)


def shape_of(
    facts: SourceFacts, value: Value | None, depth: int = 0, shape_by_id: dict[int, Shape | None] | None = None
) -> Shape | None:
    """The shape of a tensor; None where it is not known, or where a value may be one of several with different shapes.
    In a loop it is that of the first round. `shape_by_id`: the shapes of values that were asked about on the way, since
    each residual connection leads twice to what is before it, and of the parameters of an own layer."""
    shape_by_id = {} if shape_by_id is None else shape_by_id
    if depth > DEEPEST:
        return None
    if id(value) not in shape_by_id:
        choices = options(value)
        firsts = [option for option in choices if not isinstance(option, Earlier)]
        shape_by_id[id(value)] = agreed(_one_shape(facts, option, depth, shape_by_id) for option in firsts)
    return shape_by_id[id(value)]


def _one_shape(facts: SourceFacts, value: Value, depth: int, shape_by_id: dict[int, Shape | None]) -> Shape | None:
    if isinstance(value, Parameter):
        return shape_by_id.get(id(value))
    if isinstance(value, Operation):
        tensors = [operand for operand in value.operands if not any(True for _ in numbers_from_value(operand))]
        return _broadcast([shape_of(facts, operand, depth + 1, shape_by_id) for operand in tensors])
    if not isinstance(value, Call):
        return None
    if isinstance(value.callee, Call):
        return _shape_of_called(facts, value, value.callee, depth, shape_by_id)
    name = function_named(value)
    if name == "reshape":
        return _written(value.argument(1, "shape"))
    if is_call_of(value, *MADE):
        return _written(value.argument(0, "shape"))
    return (
        shape_of(facts, value.argument(0, "x"), depth + 1, shape_by_id)
        if name in ELEMENTWISE
        else shape_of_input(value)
    )


def _shape_of_called(
    facts: SourceFacts, call: Call, layer: Call, depth: int, shape_by_id: dict[int, Shape | None]
) -> Shape | None:
    """The shape of the output of a layer, one of the user's own or a Sequential."""
    if class_of(layer) is not None:
        return _shape_of_own(facts, call, layer, depth, shape_by_id)
    given = _shape_given(facts, layer, call.argument(0, "query"), depth + 1, shape_by_id)
    if is_call_of(layer, "keras.Sequential"):
        for inner in layers_of_sequential(facts, layer):
            given = shape_of_layer(inner, given) if isinstance(inner, Call) else None
        return given
    return shape_of_layer(layer, given)


def _shape_of_own(
    facts: SourceFacts, call: Call, layer: Call, depth: int, shape_by_id: dict[int, Shape | None]
) -> Shape | None:
    """The shape that the `call()` of a user's own layer returns for these inputs, if all its returns agree."""
    own = class_of(layer)
    function = own.find_method("call") if own is not None else None
    returned = [] if function is None else [end.value for end in facts.returns_of(function)]
    parameters = {id(part): part for value in returned for part in walk(value) if _is_of(part, function)}
    shapes = {
        key: shape_of(facts, call.argument(part.index - 1, part.name), depth + 1, shape_by_id)
        for key, part in parameters.items()
        if isinstance(part, Parameter)
    }
    return agreed(shape_of(facts, value, depth + 1, dict(shapes)) for value in returned)


def _is_of(part: Value, function: FunctionFacts | None) -> TypeGuard[Parameter]:
    return isinstance(part, Parameter) and part.function is function and part.index > 0


def _broadcast(shapes: list[Shape | None]) -> Shape | None:
    """The shape to which these shapes broadcast; None where one of them is not known."""
    sides = [shape for shape in shapes if shape is not None]
    if len(sides) < len(shapes) or not sides:
        return None
    length = max(map(len, sides))
    padded = [(*[1] * (length - len(side)), *side) for side in sides]
    return tuple(_broadcast_size(sizes) for sizes in zip(*padded, strict=True))


def _broadcast_size(sizes: tuple[int | None, ...]) -> int | None:
    """The size to which these broadcast; None where one that is not known may decide. Beside a number above 1 it cannot
    be but 1 or that number."""
    largest = max((size for size in sizes if size is not None), default=None)
    return None if largest == 1 and None in sizes else largest


def _shape_given(
    facts: SourceFacts, layer: Call, given: Value | None, depth: int, shape_by_id: dict[int, Shape | None]
) -> Shape | None:
    if layer_name(layer) not in MERGING:
        return shape_of(facts, given, depth, shape_by_id)
    return (
        _broadcast([shape_of(facts, item, depth, shape_by_id) for item in given.items])
        if isinstance(given, Collection)
        else None
    )


def shape_of_input(value: Call) -> Shape | None:
    """The shape of an `Input`; None for anything else."""
    if not is_call_of(value, *INPUTS) or value.open:
        return None
    shape = _written(value.argument(0, "shape") or value.keyword("input_shape"))
    return None if shape is None else (None, *shape)


def first_shape(layer: Call) -> Shape | None:
    shape = _written(layer.keyword("input_shape"))
    return None if shape is None else (None, *shape)


def _written(shape: Value | None) -> Shape | None:
    """The shape as it is written out; -1 and unknown sizes are None."""
    if not isinstance(shape, Collection) or shape.open:
        return None
    return tuple(map(_size, shape.items))


def _size(value: Value) -> int | None:
    """The size that is written, or the default of the setting that holds it; None where it is not known."""
    return agreed(int(number) for number in numbers_from_value(value) if number >= 0 and number == int(number))


def sizes_named(facts: SourceFacts, value: Value | None) -> Iterator[int]:
    """What `x.shape[1]` and `tf.shape(x)[1]` are in a layer's `call(x)`, for each tensor that the layer is given."""
    for option in options(value):
        number = known(option.index) if isinstance(option, Item) else None
        if isinstance(option, Item) and isinstance(number, int):
            for shape in _shapes_named(facts, option.of):
                size = shape[number] if -len(shape) <= number < len(shape) else None
                if size is not None:
                    yield size


def _shapes_named(facts: SourceFacts, named: Value) -> Iterator[Shape]:
    for option in options(named):
        is_function = isinstance(option, Call) and is_call_of(option, *SHAPES)
        tensor = option.argument(0) if isinstance(option, Call) and is_function else None
        if isinstance(option, Attribute) and option.name == "shape":
            tensor = option.of
        yield from shapes_in_layer(facts, tensor)


def shapes_in_layer(facts: SourceFacts, tensor: Value | None, depth: int = 0) -> Iterator[Shape]:
    """The shapes of a tensor in a layer's `call(x)`, one for each first input that the layer is called with."""
    inputs = [part for part in walk(tensor) if isinstance(part, Parameter) and part.index == 1 and part.is_of_call]
    first = inputs[0] if inputs else tensor if isinstance(tensor, Parameter) and tensor.is_of_call else None
    outer = [None] if first is None else _shapes_of_parameter(facts, first, depth)
    for given in outer:
        shape = shape_of(facts, tensor, shape_by_id={id(first): given} if first is not None else {})
        if shape is not None:
            yield shape


def _shapes_of_parameter(facts: SourceFacts, parameter: Parameter, depth: int) -> Iterator[Shape]:
    owner = parameter.function.owner if parameter.function is not None else None
    makings = [] if owner is None or depth > MOST_NESTED else _makings_that_call(facts, owner, parameter.function)
    for call in facts.calls if makings else ():
        if any(call.callee is made for made in makings):
            yield from shapes_in_layer(facts, call.argument(parameter.index - 1, parameter.name), depth + 1)
    for model in facts.calls_of("keras.Sequential") if makings and parameter.index == 1 else ():
        for layer, shape in shapes_in_sequential(facts, model):
            if shape is not None and any(layer is made for made in makings):
                yield shape


def _makings_that_call(facts: SourceFacts, owner: ClassFacts, function: FunctionFacts | None) -> list[Call]:
    """The calls that make an instance of this class, or of a subclass, whose `call()` is this function."""
    makings = [(made, class_of(made)) for made in facts.makings_of(owner)]
    return [made for made, own in makings if own is not None and own.find_method("call") is function]


def shapes_in_sequential(facts: SourceFacts, model: Call) -> Iterator[tuple[Call, Shape | None]]:
    """Each layer of a Sequential, with the shape of its input."""
    shape: Shape | None = None
    for layer in layers_of_sequential(facts, model):
        if not isinstance(layer, Call):
            return
        shape = shape or first_shape(layer)
        yield layer, shape
        shape = shape_of_input(layer) or shape_of_layer(layer, shape)

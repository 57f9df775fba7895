"""The shapes of tensors, as far as the program says them: of a model's input, and of what its layers make of it."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.program.values import Attribute, Collection, Item, Value, known, options
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.layers.preceding_layers import layers_of_sequential
from mpdoctor.semantics.source.numbers.constants import numbers_from_value
from mpdoctor.semantics.source.numbers.epsilon_guards import function_named

Shape = tuple["int | None", ...]  # with the batch; None: as many as there are
DEEPEST = 60  # layers
INPUTS = ("keras.Input", "keras.layers.Input", "keras.layers.InputLayer")
KEEPING = (
    *("Activation", "Softmax", "ReLU", "LeakyReLU", "PReLU", "ELU", "Dropout", "AlphaDropout"),
    *("BatchNormalization", "LayerNormalization", "GroupNormalization", "GaussianNoise", "GaussianDropout"),
    *("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"),
)
CONVOLUTIONS = ("Conv1D", "Conv2D", "Conv3D", "SeparableConv1D", "SeparableConv2D", "DepthwiseConv2D")
MERGING = ("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract")
RECURRENT = ("LSTM", "GRU", "SimpleRNN")
SHAPES = ("tensorflow.shape", "keras.ops.shape", "keras.backend.shape", "keras.backend.int_shape")
ELEMENTWISE = (
    *("cast", "identity", "abs", "square", "sqrt", "exp", "log", "sin", "cos"),
    *("relu", "elu", "gelu", "tanh", "sigmoid", "softplus", "leaky_relu"),
)


def shape_of(value: Value | None, depth: int = 0, found: dict[int, Shape | None] | None = None) -> Shape | None:
    """None where it is not known; of a value that is one of several, where they are not alike. `found`: of the values
    that were asked about on the way. Each residual connection leads to what is before it twice."""
    found = {} if found is None else found
    if depth > DEEPEST:
        return None
    if id(value) not in found:
        shapes = {_one_shape(option, depth, found) for option in options(value)}
        found[id(value)] = shapes.pop() if len(shapes) == 1 else None
    return found[id(value)]


def _one_shape(value: Value, depth: int, found: dict[int, Shape | None]) -> Shape | None:
    if isinstance(value, Operation):
        tensors = [operand for operand in value.operands if not isinstance(known(operand), (int, float))]
        shapes = {shape_of(operand, depth + 1, found) for operand in tensors}
        return shapes.pop() if len(shapes) == 1 else None
    if not isinstance(value, Call):
        return None
    if isinstance(value.callee, Call):
        return shape_of_layer(value.callee, _shape_given(value.callee, value.argument(0), depth + 1, found))
    name = function_named(value)
    if name == "reshape":
        return _written(value.argument(1, "shape"))
    return shape_of(value.argument(0, "x"), depth + 1, found) if name in ELEMENTWISE else shape_of_input(value)


def _shape_given(layer: Call, given: Value | None, depth: int, found: dict[int, Shape | None]) -> Shape | None:
    if layer_name(layer) not in MERGING:
        return shape_of(given, depth, found)
    shapes = {shape_of(item, depth, found) for item in given.items} if isinstance(given, Collection) else set()
    return shapes.pop() if len(shapes) == 1 else None


def shape_of_input(value: Call) -> Shape | None:
    """Of what stands for the input of a model."""
    if not is_call_of(value, *INPUTS) or value.open:
        return None
    shape = _written(value.argument(0, "shape") or value.keyword("input_shape"))
    return None if shape is None else (None, *shape)


def first_shape(layer: Call) -> Shape | None:
    shape = _written(layer.keyword("input_shape"))
    return None if shape is None else (None, *shape)


def shape_of_layer(layer: Call, given: Shape | None) -> Shape | None:
    """Of what a layer puts out, where it keeps the positions."""
    name = layer_name(layer)
    if given is None or layer.open or layer.keyword("data_format") is not None:
        return None
    if name in KEEPING or name in MERGING:
        return given
    if name == "Dense":
        return (*given[:-1], None)
    if name == "Embedding":
        return (*given, None)
    if name in RECURRENT:
        return (*given[:-1], None) if known(layer.keyword("return_sequences")) is True else None
    return (*given[:-1], None) if _keeps_positions(layer) else None


def _keeps_positions(layer: Call) -> bool:
    """Whether a convolution puts out as many positions as it is given."""
    steps = layer.argument(1 if layer_name(layer) == "DepthwiseConv2D" else 2, "strides")
    is_same = known(layer.keyword("padding")) in ("same", "causal")
    return layer_name(layer) in CONVOLUTIONS and is_same and (steps is None or known(steps) == 1)


def _written(shape: Value | None) -> Shape | None:
    """As it stands there; -1, and what is not known, is None."""
    if not isinstance(shape, Collection) or shape.open:
        return None
    return tuple(map(_size, shape.items))


def _size(value: Value) -> int | None:
    """The size that is written, or the default of the setting that holds it; None where it is not known."""
    numbers = {int(number) for number in numbers_from_value(value) if number >= 0 and number == int(number)}
    return numbers.pop() if len(numbers) == 1 else None


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
        if isinstance(tensor, Parameter) and tensor.function is not None and tensor.function.name == "call":
            yield from _shapes_of_parameter(facts, tensor, tensor.function.owner)


def _shapes_of_parameter(facts: SourceFacts, parameter: Parameter, owner: ClassFacts | None) -> Iterator[Shape]:
    makings = [] if owner is None else facts.makings_of(owner)
    for call in facts.calls if makings else ():
        if any(call.callee is made for made in makings):
            shape = shape_of(call.argument(parameter.index - 1, parameter.name))
            if shape is not None:
                yield shape
    for model in facts.calls_of("keras.Sequential") if makings and parameter.index == 1 else ():
        for layer, shape in shapes_in_sequential(facts, model):
            if shape is not None and any(layer is made for made in makings):
                yield shape


def shapes_in_sequential(facts: SourceFacts, model: Call) -> Iterator[tuple[Call, Shape | None]]:
    """Each layer of a Sequential, with the shape of what it is given."""
    shape: Shape | None = None
    for layer in layers_of_sequential(facts, model):
        if not isinstance(layer, Call):
            return
        shape = shape or first_shape(layer)
        yield layer, shape
        shape = shape_of_input(layer) or shape_of_layer(layer, shape)

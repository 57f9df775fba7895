"""The shapes of tensors, as far as the program says them: of a model's input, and of what its layers make of it."""

from __future__ import annotations

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.values import Collection, Value, known, options
from mpdoctor.semantics.source.layers.model_layers import layer_name
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
        return shape_of_layer(value.callee, shape_of(value.argument(0), depth + 1, found))
    name = function_named(value)
    if name == "reshape":
        return _written(value.argument(1, "shape"))
    return shape_of(value.argument(0, "x"), depth + 1, found) if name in ELEMENTWISE else shape_of_input(value)


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
    if name in KEEPING:
        return given
    is_same = known(layer.keyword("padding")) == "same"
    steps = layer.argument(1 if name == "DepthwiseConv2D" else 2, "strides")
    if name not in CONVOLUTIONS or not is_same or not (steps is None or known(steps) == 1):
        return None
    return (*given[:-1], None)


def _written(shape: Value | None) -> Shape | None:
    """As it stands there; -1, and what is not known, is None."""
    if not isinstance(shape, Collection) or shape.open:
        return None
    sizes = [known(item) for item in shape.items]
    return tuple(size if isinstance(size, int) and size >= 0 else None for size in sizes)

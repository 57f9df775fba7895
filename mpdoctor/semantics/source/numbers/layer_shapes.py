"""The shape that a layer of Keras' makes of its input's, as far as its arguments say."""

from __future__ import annotations

import math

from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Value, agreed, known
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.numbers.constants import numbers_from_value

Shape = tuple["int | None", ...]  # with the batch; None: as many as there are
KEEPING = (
    *("Activation", "Softmax", "ReLU", "LeakyReLU", "PReLU", "ELU", "Dropout", "AlphaDropout"),
    *("BatchNormalization", "LayerNormalization", "GroupNormalization", "GaussianNoise", "GaussianDropout"),
    *("SpatialDropout1D", "SpatialDropout2D", "SpatialDropout3D"),
)
CONVOLUTIONS = ("Conv1D", "Conv2D", "Conv3D", "SeparableConv1D", "SeparableConv2D", "DepthwiseConv2D")
POOLING = tuple(f"{kind}{n}D" for kind in ("MaxPooling", "AveragePooling", "MaxPool", "AvgPool") for n in (1, 2, 3))
MERGING = ("Add", "Average", "Maximum", "Minimum", "Multiply", "Subtract")
RECURRENT = ("LSTM", "GRU", "SimpleRNN")
ATTENDING = ("MultiHeadAttention", "GroupQueryAttention", "GroupedQueryAttention")  # as the query, the first input


def shape_of_layer(layer: Call, given: Shape | None) -> Shape | None:
    """The shape of a layer's output; None where it is not known."""
    name = layer_name(layer)
    if given is None or layer.open or layer.keyword("data_format") is not None:
        return None
    if name in KEEPING or name in MERGING or (name in ATTENDING and layer.keyword("output_shape") is None):
        return given
    if name == "Dense":
        return (*given[:-1], _number(layer.argument(0, "units")))
    if name == "Embedding":
        return (*given, _number(layer.argument(1, "output_dim")))
    if name == "Flatten":
        return (given[0], None if None in given[1:] else math.prod(size or 1 for size in given[1:]))
    if name in RECURRENT:
        return (*given[:-1], None) if known(layer.keyword("return_sequences")) is True else None
    if name in CONVOLUTIONS:
        return _convolved(layer, given)
    return _pooled(layer, given) if name in POOLING else None


def _convolved(layer: Call, given: Shape) -> Shape | None:
    is_of_each = layer_name(layer) == "DepthwiseConv2D"
    kernel, steps, padding = ((0, 1, 2), (1, 2, 3))[not is_of_each]
    filters = None if is_of_each else _number(layer.argument(0, "filters"))
    positions = _positions(
        given[1:-1],
        layer.argument(kernel, "kernel_size"),
        layer.argument(steps, "strides"),
        layer.argument(padding, "padding"),
        is_spread=layer.keyword("dilation_rate") is not None,
    )
    return None if positions is None else (given[0], *positions, filters)


def _pooled(layer: Call, given: Shape) -> Shape | None:
    size, steps = layer.argument(0, "pool_size"), layer.argument(1, "strides")
    if size is None:
        return None if layer.args else _halved(layer, given) if steps is None else None
    positions = _positions(given[1:-1], size, steps or size, layer.argument(2, "padding"))
    return None if positions is None else (given[0], *positions, given[-1])


def _halved(layer: Call, given: Shape) -> Shape | None:
    """As a pooling without arguments does, over windows of 2."""
    if layer.keyword("padding") is not None:
        return None
    return (given[0], *(None if size is None else size // 2 for size in given[1:-1]), given[-1])


def _positions(
    sizes: Shape, window: Value | None, steps: Value | None, padding: Value | None, is_spread: bool = False
) -> Shape | None:
    """The positions at which a window stands; None where that is not known."""
    ends = "valid" if padding is None else known(padding)
    if ends not in ("valid", "same", "causal"):
        return None
    stepped = (1,) * len(sizes) if steps is None else _numbers(steps, len(sizes))
    if stepped is None:
        return None
    if ends != "valid":
        return tuple(None if size is None else -(-size // step) for size, step in zip(sizes, stepped, strict=True))
    widths = None if is_spread or window is None else _numbers(window, len(sizes))
    if widths is None:
        return None
    pairs = zip(sizes, widths, stepped, strict=True)
    return tuple(None if size is None else (size - width) // step + 1 for size, width, step in pairs)


def _numbers(value: Value, count: int) -> tuple[int, ...] | None:
    """`(3, 3)` of 3 and of (3, 3) in two dimensions; None where it is not known."""
    items = value.items if isinstance(value, Collection) and not value.open else (value,) * count
    numbers = [number for number in map(_number, items) if number is not None and number > 0]
    return tuple(numbers) if len(numbers) == len(items) == count else None


def _number(value: Value | None) -> int | None:
    """The whole number that is written, or the default of the setting that holds it; None where it is not known."""
    return agreed(int(number) for number in numbers_from_value(value) if number == int(number))

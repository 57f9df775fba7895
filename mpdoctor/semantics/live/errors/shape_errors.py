"""The shape errors of both Kerases and of TensorFlow, in words. Each was seen in Keras 3.15 or tf_keras 2.21."""

from __future__ import annotations

import re
from typing import NamedTuple

SHAPE = r"(?P<{}>[\(\[][^\)\]]*[\)\]])"


class ShapeError(NamedTuple):
    """What was expected, what came, both as texts, and what to do."""

    words: str
    expected: str
    actual: str
    remedy: str


DATA = "Give the data the shape of the model's Input, or the Input the shape of the data."
_LABELS = "Give the labels the shape of the predictions, or use the sparse form of the loss for class ids."
_RESHAPE = "Check the number of values before reshaping, or take the target shape from the input's own shape."
_OPERANDS = "Check this line for a missing axis (tf.expand_dims), or for two that are swapped."

_ONE_HOT = (
    "The sparse form of the loss takes one class id per sample: use np.argmax(labels, -1), or the loss without "
    "`sparse`."
)
_JOIN = "Give them the same shape, except along the axis where they are joined."
_SMALL = 'Give the layer a larger input, a smaller kernel or padding="same".'
_WEIGHTS = "Build the layer for the input that these weights were made for."
_INPUTS = "Pass one array for each of the model's inputs: a list in their order, or a dict by their names."
_BATCH = "Bring all samples to one shape before they are batched: padded_batch, or a resize or crop in map()."
_BETWEEN = r"Dimensions must be equal, but are \d+ and \d+ for '\{\{node "

# (pattern, words with {expected} and {actual}, remedy)
_KNOWN: tuple[tuple[str, str, str], ...] = (
    (
        r"expected axis (?P<axis>-?\d+) of input shape to have value (?P<expected>\w+),? but received input with shape "
        + SHAPE.format("actual"),
        "axis {axis} of the input should be {expected}, but the input has shape {actual}",
        DATA,
    ),
    (
        r"expected (?P<rank>min_ndim|max_ndim|ndim)=(?P<expected>\d+), found ndim=(?P<found>\d+)"
        r"\. Full shape received: " + SHAPE.format("actual"),
        "the input should have {expected} dimensions, but has shape {actual}",
        DATA,
    ),
    (
        r"expected shape=" + SHAPE.format("expected") + r", found shape=" + SHAPE.format("actual"),
        "the input should have shape {expected}, but has {actual}",
        DATA,
    ),
    (
        r"Expected shape " + SHAPE.format("expected") + r", but input has incompatible shape " + SHAPE.format("actual"),
        "the input should have shape {expected}, but has {actual}",
        DATA,
    ),
    (
        r"Input to reshape is a tensor with (?P<actual>\d+) values, but the requested shape "
        r"(?:has|requires a multiple of) (?P<expected>\d+)",
        "{actual} values cannot be reshaped: the new shape needs {expected}, or a multiple",
        _RESHAPE,
    ),
    (
        r"Dimension size must be evenly divisible by \d+ but is \d+ for .*Reshape.* with input shapes: "
        + SHAPE.format("actual") + r".* partial shapes: input\[1\] = " + SHAPE.format("expected"),
        "an input of shape {actual} cannot be reshaped to {expected}",
        _RESHAPE,
    ),
    (
        r"Dimension size must be evenly divisible by (?P<expected>\d+) but is (?P<actual>\d+) for .*Reshape",
        "{actual} values cannot be reshaped: the new shape needs {expected}, or a multiple",
        _RESHAPE,
    ),
    (
        r"Cannot reshape a tensor with (?P<actual>\d+) elements to shape (?P<target>\[[^\]]*\]) "
        r"\((?P<expected>\d+) elements\)",
        "{actual} values cannot be reshaped to {target}, which needs {expected}, or a multiple",
        _RESHAPE,
    ),
    (
        r"[Cc]annot reshape array of size (?P<actual>\d+) into shape " + SHAPE.format("expected"),
        "{actual} values cannot be reshaped to {expected}",
        _RESHAPE,
    ),
    (
        r"The total size of the tensor must be unchanged\. Received: input_shape=" + SHAPE.format("actual")
        + r", target_shape=" + SHAPE.format("expected"),
        "a sample of shape {actual} cannot be reshaped to {expected}",
        _RESHAPE,
    ),
    (
        r"total size of new array must be unchanged, input_shape = " + SHAPE.format("actual")
        + r", output_shape = " + SHAPE.format("expected"),
        "a sample of shape {actual} cannot be reshaped to {expected}",
        _RESHAPE,
    ),
    (
        r"must have the same (?:shape|rank \(ndim\))\. Received: target\.shape=" + SHAPE.format("actual")
        + r", output\.shape=" + SHAPE.format("expected"),
        "the labels have shape {actual}, the predictions {expected}",
        _LABELS,
    ),
    (
        r"`?logits`? and `?labels`? must have the same shape, received \(?" + SHAPE.format("expected")
        + r" vs " + SHAPE.format("actual"),
        "the labels have shape {actual}, the predictions {expected}",
        _LABELS,
    ),
    (
        r"`target\.ndim - 1`\. Received: target\.shape=" + SHAPE.format("actual")
        + r", output\.shape=" + SHAPE.format("expected"),
        "the labels have shape {actual}, the predictions {expected}",
        _ONE_HOT,
    ),
    (
        r"the same shape up until the last dimension: target\.shape=" + SHAPE.format("actual")
        + r", output\.shape=" + SHAPE.format("expected"),
        "the labels have shape {actual}, the predictions {expected}",
        _LABELS,
    ),
    (
        r"Received: labels\.shape=" + SHAPE.format("actual") + r" and logits\.shape=" + SHAPE.format("expected"),
        "the labels have shape {actual}, the predictions {expected}",
        _ONE_HOT,
    ),
    (
        r"Shapes " + SHAPE.format("actual") + r" and " + SHAPE.format("expected") + r" are incompatible",
        "{actual} and {expected} do not fit together",
        _LABELS,
    ),
    (
        r"Matrix size-incompatible: In\[0\]: " + SHAPE.format("actual") + r", In\[1\]: " + SHAPE.format("expected"),
        "a matrix of shape {actual} cannot be multiplied with one of shape {expected}",
        _OPERANDS,
    ),
    (
        r"Incompatible shapes: " + SHAPE.format("actual") + r" vs\.? " + SHAPE.format("expected"),
        "{actual} and {expected} do not fit together",
        _OPERANDS,
    ),
    (
        r"Inputs have incompatible shapes\. Received shapes " + SHAPE.format("actual")
        + r" and " + SHAPE.format("expected"),
        "{actual} and {expected} do not fit together",
        _OPERANDS,
    ),
    (
        r"In\[0\] and In\[1\] must have compatible batch dimensions: " + SHAPE.format("actual")
        + r" vs\. " + SHAPE.format("expected"),
        "a matrix of shape {actual} cannot be multiplied with one of shape {expected}",
        _OPERANDS,
    ),
    (
        r"matching shapes except for the concatenation axis\. Received: input_shape="
        r"\[" + SHAPE.format("actual") + ", " + SHAPE.format("expected"),
        "{actual} and {expected} cannot be joined",
        _JOIN,
    ),
    (
        r"ConcatOp : .*: shape\[0\] = " + SHAPE.format("actual") + r" vs\. shape\[\d+\] = " + SHAPE.format("expected"),
        "{actual} and {expected} cannot be joined",
        _JOIN,
    ),
    (
        r"Expected dimension (?P<expected>\d+) at axis (?P<axis>\d+) of the input shaped " + SHAPE.format("actual"),
        "axis {axis} of the input should be {expected}, but the input has shape {actual}",
        _OPERANDS,
    ),
    (
        r"Can not squeeze dim\[(?P<axis>-?\d+)\], expected a dimension of (?P<expected>1), got (?P<actual>\d+)",
        "axis {axis} cannot be squeezed, because it is {actual} long",
        _OPERANDS,
    ),
    (
        r"Cannot batch tensors with different shapes in component \d+\. First element had shape "
        + SHAPE.format("expected") + r" and element \d+ had shape " + SHAPE.format("actual"),
        "samples of shape {expected} and {actual} cannot be in one batch",
        _BATCH,
    ),
    (
        r"Computed output size would be zero or negative\. Received `inputs shape=" + SHAPE.format("actual")
        + r"`, `kernel shape=" + SHAPE.format("expected"),
        "a kernel of shape {expected} leaves nothing of an input of shape {actual}",
        _SMALL,
    ),
    (
        r"Negative dimension size caused by .* with input shapes: " + SHAPE.format("actual")
        + ", " + SHAPE.format("expected"),
        "a kernel of shape {expected} leaves nothing of an input of shape {actual}",
        _SMALL,
    ),
    (
        r"expects (?P<expected>\d+) (?:named )?input\(s\).*, but it received (?P<actual>\d+) input tensors",
        "the model has {expected} inputs, but gets {actual}",
        _INPUTS,
    ),
    (
        r"The variable shape " + SHAPE.format("expected") + r", and the assigned value shape " + SHAPE.format("actual"),
        "a value of shape {actual} cannot be assigned to a variable of shape {expected}",
        _OPERANDS,
    ),
    (
        r"weight shape " + SHAPE.format("expected") + r" is not compatible with provided weight shape "
        + SHAPE.format("actual"),
        "a weight of shape {expected} cannot take a value of shape {actual}",
        _WEIGHTS,
    ),
    (
        _BETWEEN + r"compile_loss/.* with input shapes: " + SHAPE.format("actual") + ", " + SHAPE.format("expected"),
        "in the loss, {actual} and {expected} do not fit together",
        _LABELS,
    ),
    (
        _BETWEEN + r"\S+\}\} = (?:Batch)?MatMul.* with input shapes: " + SHAPE.format("actual")
        + ", " + SHAPE.format("expected"),
        "a matrix of shape {actual} cannot be multiplied with one of shape {expected}",
        _OPERANDS,
    ),
    (
        _BETWEEN + r".* with input shapes: " + SHAPE.format("actual") + ", " + SHAPE.format("expected"),
        "{actual} and {expected} do not fit together",
        _OPERANDS,
    ),
    (
        r"[Dd]imensions must be equal, but are (?P<actual>\d+) and (?P<expected>\d+)",
        "two dimensions should be equal, but are {actual} and {expected}",
        _OPERANDS,
    ),
    (
        r"(?:Make sure all arrays contain the same number of samples|Data cardinality is ambiguous)",
        "the arrays contain different numbers of samples",
        "Give features, labels and weights the same length.",
    ),
    (
        r"[Cc]annot take the length of shape with unknown rank|as_list\(\) is not defined on an unknown TensorShape",
        "the shape of a tensor is not known while the model is traced",
        "Set it where the data is made: tensor.set_shape(...), or output_signature of the generator.",
    ),
)  # fmt: skip


def shape_error_from_message(message: str) -> ShapeError | None:
    """The shapes in the message of an error; None where the message is not about shapes."""
    for pattern, words, remedy in _KNOWN:
        match = re.search(pattern, message)
        if match:
            named = {"expected": "", "actual": "", **match.groupdict()}
            return ShapeError(words.format(**named), named["expected"], named["actual"], remedy)
    return None

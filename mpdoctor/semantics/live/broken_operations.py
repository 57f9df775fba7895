"""Describes TensorFlow operations in words: how one broke, and the remedy."""

from __future__ import annotations

import math

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.training import NamedOperand, OperationFacts
from mpdoctor.facts.written_numbers import capitalized, magnitude_text
from mpdoctor.knowledge.op_lists import READING_WEIGHTS

# The words for an operation on its inputs.
DOING = {
    "Square": "squaring",
    "SquaredDifference": "squaring a difference of",
    "Mul": "multiplying",
    "Pow": "raising to a power",
    "Sum": "summing",
    "Cumsum": "summing",
    "Mean": "averaging",
    "Prod": "multiplying all of",
    "L2Loss": "summing the squares of",
    "EuclideanNorm": "the norm of",
    "AddV2": "adding",
    "AddN": "adding",
    "Sub": "subtracting",
    "BiasAdd": "adding a bias to",
    "BiasAddGrad": "summing the gradients of a bias,",
    "MatMul": "multiplying matrices of",
    "BatchMatMulV2": "multiplying matrices of",
    "BatchMatMulV3": "multiplying matrices of",
    "Einsum": "multiplying matrices of",
    "Conv2D": "a convolution over",
    "Conv2DBackpropInput": "the gradient of a convolution over",
    "Conv2DBackpropFilter": "the gradient of a convolution's kernel over",
    "Exp": "exp() of",
    "Expm1": "exp() of",
    "Sinh": "sinh() of",
    "Cosh": "cosh() of",
    "RealDiv": "dividing",
    "Cast": "casting to float16",
}
# The words for an operation that a 0 among its inputs breaks.
AT_ZERO = {
    "Log": "log() of 0",
    "RealDiv": "a division by 0",
    "Div": "a division by 0",
    "Reciprocal": "1 / 0",
    "Inv": "1 / 0",
    "Rsqrt": "1 / sqrt(0)",
    "Xdivy": "a division by 0",
    "Xlogy": "log() of 0",
    "SqrtGrad": "the gradient of sqrt() at 0 is infinite",
    "RsqrtGrad": "the gradient of 1 / sqrt() at 0 is infinite",
    "ReciprocalGrad": "the gradient of a division at 0 is infinite",
    "InvGrad": "the gradient of a division at 0 is infinite",
    "Pow": "0 to a negative power",
}
# The guards against that 0. The gradient of a division divides by the divisor's square, so that no epsilon that float16
# holds is large enough.
GUARDS_AT_ZERO = {
    "RealDiv": "divide with `tf.math.divide_no_nan`: it returns 0 where the divisor is 0, with a gradient of 0",
    "Div": "divide with `tf.math.divide_no_nan`: it returns 0 where the divisor is 0, with a gradient of 0",
    "Xdivy": "divide with `tf.math.divide_no_nan`: it returns 0 where the divisor is 0, with a gradient of 0",
    "Reciprocal": "write `tf.math.reciprocal_no_nan`: for 0 it returns 0, with a gradient of 0",
    "Inv": "write `tf.math.reciprocal_no_nan`: for 0 it returns 0, with a gradient of 0",
    "Rsqrt": "add an epsilon that float16 holds under the root, 1e-3 (one below 3e-8 is 0)",
}
GUARD_AT_ZERO = "add an epsilon that float16 holds, 1e-4 (one below 3e-8 is 0)"
GIVEN = {"data": "the batch itself holds inf or NaN", "labels": "the labels hold inf or NaN"}
BELOW_ZERO = {
    "Sqrt": "sqrt() of a negative number",
    "Log": "log() of a negative number",
    "Rsqrt": "1 / sqrt() of a negative number",
}
ADDING = ("Sum", "L2Loss", "Cumsum")
SUMS = frozenset(("Sum", "Cumsum", "Mean", "Prod", "L2Loss", "EuclideanNorm", "Square", "SquaredDifference", "Exp"))


def is_overflow(operation: OperationFacts) -> bool:
    """Whether the true result is finite and too large: float32 would hold it."""
    return (
        operation.dtype == "float16"
        and operation.in_float32 is not None
        and FLOAT16_LIMIT < operation.in_float32 < math.inf
    )


def is_at_zero(operation: OperationFacts | None) -> bool:
    """Whether a 0 among its inputs broke it."""
    return operation is not None and operation.name in AT_ZERO and operation.holds_zero and not is_overflow(operation)


def is_of_input(operation: OperationFacts | None) -> bool:
    """Whether the model's input itself is beyond float16's range."""
    return operation is not None and operation.from_data and is_overflow(operation)


def is_power_at_zero(operation: OperationFacts) -> bool:
    """Whether it is the gradient of a power below 1, or of a root, where the base is 0: x to a negative power."""
    return operation.name == "Pow" and operation.where == "gradient" and operation.holds_zero


def is_emptied_softmax(operation: OperationFacts | None) -> bool:
    """Whether a softmax got a row in which everything is masked."""
    if operation is None or operation.name not in ("Softmax", "LogSoftmax"):
        return False
    return operation.masked and operation.result == "nan"


def is_of_a_label(operation: OperationFacts) -> bool:
    """Whether it is the loss of integer labels of which one is not below the number of classes. TensorFlow 2.21 gives
    NaN for it on a GPU and under XLA, and raises on a CPU; of finite logits and right labels it gave none."""
    finite = not operation.given and not operation.masked
    return finite and operation.name == "SparseSoftmaxCrossEntropyWithLogits" and operation.result == "nan"


def is_of_weights(operation: OperationFacts | None) -> bool:
    """Whether a weight was inf or NaN before the step, so that no layer caused it."""
    return operation is not None and operation.name in READING_WEIGHTS


def broke(operation: OperationFacts) -> str:
    """A clause: "squaring numbers up to 332 gives 110,556", "log() of 0 is -inf"."""
    if operation.given in GIVEN:
        return GIVEN[operation.given]
    if operation.name in READING_WEIGHTS:
        return "a weight is already inf or NaN"
    if is_of_a_label(operation):
        return (
            "a label names no class of the model's output, for which TensorFlow gives NaN on a GPU and raises on a CPU"
        )
    if operation.given == "constant":
        if operation.constant is not None:
            return _beyond_float16(operation.constant)
        beyond = "a constant beyond 65504, such as -1e9, is -inf in float16"
        return beyond if operation.masked else "a constant, or a weight that is read there, is already inf or NaN"
    if is_power_at_zero(operation):
        return "the gradient of a power at 0 is infinite"
    if is_at_zero(operation):
        clause = AT_ZERO[operation.name]
        return clause if " is " in clause else f"{clause} is {operation.result}"
    if operation.name in BELOW_ZERO and operation.result == "nan":
        return f"{BELOW_ZERO[operation.name]} is nan"
    doing = DOING.get(operation.name, f"`{operation.name}` of")
    numbers = f"{doing} numbers up to {magnitude_text(operation.largest)}"
    if operation.name == "Cast":
        return f"numbers up to {magnitude_text(operation.largest)} are cast to {operation.dtype}"
    if is_overflow(operation) and operation.in_float32 is not None:
        return f"{numbers} gives {magnitude_text(operation.in_float32)}"
    return f"{numbers} gives {operation.result}"


def _beyond_float16(constant: NamedOperand) -> str:
    """ "`self.factor` is 1e+07, and inf in float16"."""
    infinite = "-inf" if constant.largest < 0 else "inf"
    if constant.name[-1].isdigit() and not constant.name[0].isalpha():
        return f"{constant.name} is {infinite} in float16"
    return f"`{constant.name}` is {magnitude_text(constant.largest)}, and {infinite} in float16"


def _smaller_constant(constant: NamedOperand) -> str:
    return f"use a number that float16 holds, up to 65504, instead of `{constant.name}`"


def _remedy_of_constant(constant: NamedOperand, in_float32: str) -> str:
    other = _smaller_constant(constant)
    return f"{capitalized(other)}, or {in_float32}."


def _remedy_of_source(operation: OperationFacts, in_float32: str) -> str:
    """The remedy where an input of the operation was not finite: the data, a weight, a constant; "" otherwise."""
    if operation.given in GIVEN:
        given = operation.given
        return f"Find the NaN or inf in the {given}: `tf.debugging.assert_all_finite({given}, '{given}')`."
    if operation.name in READING_WEIGHTS:
        return (
            "Check its initial value, the steps before, and what a step assigns to weights by itself. A dynamic loss "
            "scale skips a step whose gradients are inf or NaN, and checks nothing else."
        )
    if operation.constant is not None and not operation.masked:
        return _remedy_of_constant(operation.constant, in_float32)
    if says_where_to_look(operation):
        return "Check the constants and weights that are read there: `tf.debugging.assert_all_finite(w, 'w')`."
    if operation.given == "constant" or (operation.name == "Cast" and operation.result == "-inf"):
        return "Use a constant that float16 holds, such as -1e4 or `scores.dtype.min`, and tf.where() instead of a sum."
    return ""


def remedy_from_operation(operation: OperationFacts, layer: str = "") -> str:
    """The remedy for a broken operation; `layer` is the layer that contains it, "" outside of all layers."""
    in_float32 = f'give `{layer}` dtype="float32"' if layer else "compute it in float32, `tf.cast(x, tf.float32)`"
    if of_source := _remedy_of_source(operation, in_float32):
        return of_source
    if is_of_a_label(operation):
        return (
            "Number the classes from 0 to one less than the units of the output layer, or give it more units: no dtype "
            "helps."
        )
    if is_power_at_zero(operation):
        return (
            "Keep the base of the power away from 0, `tf.pow(x + 1e-4, …)`: at 0 the gradient of a power below 1 is "
            "infinite, in float32 too, and an epsilon below 3e-8 is 0 in float16."
        )
    if operation.dtype == "float32":
        return _remedy_in_float32(operation)
    if operation.name in ("SqrtGrad", "RsqrtGrad"):
        return (
            "Keep the root away from 0, `tf.sqrt(x + 1e-4)`: at 0 its gradient is infinite, and an epsilon below 3e-8 "
            "is 0 in float16."
        )
    if is_at_zero(operation):
        guard = _guard_at_zero(operation)
        if not layer:  # a cast of what is 0 already changes nothing
            in_float32 = "compute what is 0 here in float32 from where it begins, `tf.cast(x, tf.float32)`"
        return f"{capitalized(guard)}, or {in_float32}."
    if operation.name in ("Exp", "Expm1", "Sinh", "Cosh") and not is_overflow(operation):
        return "Bound its input, `tf.clip_by_value(x, -10.0, 10.0)`: not even float32 holds this result."
    if operation.name == "Cast":
        return f"Scale these numbers down before they are cast, or keep them in float32: {in_float32}."
    sums = "average instead of summing, or " if operation.name in ADDING else ""
    text = f"{sums}{in_float32}" + ("" if layer else " before anything is squared, summed or divided") + "."
    return capitalized(text)


def says_where_to_look(operation: OperationFacts) -> bool:
    """Whether `remedy_from_operation` advises where to look instead of a change, because the bad number came from
    elsewhere."""
    of_a_constant = operation.given == "constant" and not operation.masked and operation.constant is None
    return operation.given in GIVEN or operation.name in READING_WEIGHTS or of_a_constant


def beside_float32(operation: OperationFacts) -> str | None:
    """The alternative, as a clause, where `remedy_from_operation` advises float32; "" if there is none. None where it
    advises something else."""
    advised = remedy_from_operation(operation)
    if "tf.cast(x, tf.float32)" not in advised:
        return None
    if operation.constant is not None:
        return _smaller_constant(operation.constant)
    if is_at_zero(operation):
        return _guard_at_zero(operation)
    if operation.name == "Cast":
        which = (
            " (labels, class weights or sample weights, where fit() is given them)" if operation.where == "loss" else ""
        )
        return f"scale these numbers down before they are cast{which}"
    return "average instead of summing" if operation.name in ADDING else ""


def _guard_at_zero(operation: OperationFacts) -> str:
    """The guard, as a clause that begins with a verb. A logarithm's gradient divides as well, and needs another one."""
    return GUARD_AT_ZERO if operation.where == "gradient" else GUARDS_AT_ZERO.get(operation.name, GUARD_AT_ZERO)


def _remedy_in_float32(operation: OperationFacts) -> str:
    """The remedy for an operation that breaks in float32, where more bits do not help."""
    if operation.name in AT_ZERO and operation.holds_zero:
        return "Add an epsilon such as 1e-7 to its input: it is already computed in float32, and breaks there too."
    if operation.name in BELOW_ZERO and operation.result == "nan":
        return "Keep its input from falling below 0: `tf.maximum(x, 1e-7)`."
    return "Make its input smaller: it is already computed in float32, which does not hold the result."

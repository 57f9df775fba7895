"""Gram matrices: the products of a picture's channels, summed over all of its positions."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.values import Collection, Value, known
from mpdoctor.semantics.source.function_names import function_named

TRANSPOSING = ("transpose", "permute_dimensions")


def einsum_gram(call: Call) -> Value | None:
    """x in einsum("bijc,bijd->bcd", x, x)."""
    equation, factors = known(call.argument(0)), call.arguments(slice(1, None))
    if not isinstance(equation, str) or len(factors) != 2 or factors[0] is not factors[1]:
        return None
    given, arrow, result = equation.replace(" ", "").partition("->")
    left, comma, right = given.partition(",")
    is_gram = bool(arrow and comma) and len((set(left) & set(right)) - set(result)) >= 2
    return factors[0] if is_gram else None


def is_gram_matrix(call: Call) -> bool:
    """Whether it is a product of a matrix with itself: of rows of positions, `matmul(x, x, transpose_a=True)`, or of
    rows of channels, `matmul(x, transpose(x))`."""
    return _is_of_positions(call) or _is_of_channels(call)


def _is_of_positions(call: Call) -> bool:
    """Whether it is matmul(x, x, transpose_a=True) of what was reshaped: a row for each position."""
    left, right = call.argument(0), call.argument(1)
    is_transposed = known(call.keyword("transpose_a")) is True
    if isinstance(left, Call) and function_named(left) == "transpose":
        left, is_transposed = left.argument(0), True
    return is_transposed and right is not None and left is right and function_named(right) == "reshape"


def _is_of_channels(call: Call) -> bool:
    left, right = call.argument(0), call.argument(1)
    is_transposed = known(call.keyword("transpose_b")) is True
    if isinstance(right, Call) and function_named(right) in TRANSPOSING:
        right, is_transposed = right.argument(0), True
    return is_transposed and left is not None and left is right and _is_row_for_each_channel(left)


def _is_row_for_each_channel(value: Value) -> bool:
    """Whether it is reshape(transpose(x, (2, 0, 1)), (channels, -1)), or with an axis of examples before these."""
    if not isinstance(value, Call) or function_named(value) not in ("reshape", "batch_flatten"):
        return False
    moved, shape = value.argument(0), value.argument(1, "shape")
    if not isinstance(moved, Call) or function_named(moved) not in TRANSPOSING:
        return False
    order = moved.argument(1, "perm") or moved.keyword("pattern") or moved.keyword("axes")
    axes = [known(axis) for axis in order.items] if isinstance(order, Collection) else []
    if function_named(value) == "reshape" and not (isinstance(shape, Collection) and known(shape.items[-1]) == -1):
        return False
    return len(axes) in (3, 4) and axes[-3] == len(axes) - 1

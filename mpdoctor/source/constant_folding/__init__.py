"""Constant folding: arithmetic, comparison and conversion of constants that the program writes out."""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable
from typing import Any

from mpdoctor.program.dtypes.compared_dtypes import compared_dtypes
from mpdoctor.program.values import MISSING, Api, Collection, Known, Value
from mpdoctor.source.constant_folding.texts import LONGEST, size_of, text_filled

_MOST_ELEMENTS = 1000  # of lists that are put together

OPERATORS: dict[type[ast.AST], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
    ast.Pow: "**",
    ast.MatMult: "@",
    ast.LShift: "<<",
    ast.RShift: ">>",
    ast.BitOr: "|",
    ast.BitAnd: "&",
    ast.BitXor: "^",
    ast.USub: "-",
    ast.UAdd: "+",
    ast.Invert: "~",
    ast.Not: "not",
    ast.Eq: "==",
    ast.NotEq: "!=",
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Is: "is",
    ast.IsNot: "is not",
    ast.In: "in",
    ast.NotIn: "not in",
    ast.And: "and",
    ast.Or: "or",
}

_BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "is": operator.is_,
    "is not": operator.is_not,
    "in": lambda left, right: left in right,
    "not in": lambda left, right: left not in right,
    "|": operator.or_,
    "&": operator.and_,
}
_UNARY: dict[str, Callable[[Any], Any]] = {
    "-": operator.neg,
    "+": operator.pos,
    "~": operator.invert,
    "not": operator.not_,
}
ASKING_OF_NUMBERS: dict[str, Callable[[float], bool]] = {
    f"{library}.{function.__name__}": function
    for function in (math.isinf, math.isnan, math.isfinite)
    for library in ("math", "numpy")
}
_FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    **{f"builtins.{function.__name__}": function for function in (float, int, str, bool, len)},
    **ASKING_OF_NUMBERS,
}
_NUMBERS = {
    "math.pi": math.pi,
    "math.e": math.e,
    "math.tau": math.tau,
    "numpy.pi": math.pi,
    "numpy.e": math.e,
    "math.inf": float("inf"),
    "math.nan": float("nan"),
    "numpy.inf": float("inf"),
    "numpy.Inf": float("inf"),
    "numpy.nan": float("nan"),
    "numpy.NaN": float("nan"),
}


def folded_binary(symbol: str, left: Value, right: Value) -> Value | None:
    """The constant or the longer list that an operator makes of two, None where it is not certain (or would
    raise)."""
    if symbol == "%" and isinstance(left, Known) and isinstance(left.value, str):
        return text_filled(left, right)
    if isinstance(left, Api) or isinstance(right, Api):
        return compared_dtypes(symbol, left, right)
    if isinstance(left, Known) and isinstance(right, Known):
        result = _result_of_operator(symbol, left.value, right.value)
        return None if result is MISSING else Known(left.location, result)
    if symbol in ("in", "not in") and isinstance(left, Known) and isinstance(right, Collection):
        return _is_among(symbol, left, right)
    if symbol == "+" and isinstance(left, Collection) and isinstance(right, Collection):
        return _put_together(left, right)
    return (_repeated(left, right) or _repeated(right, left)) if symbol == "*" else None


def _is_among(symbol: str, left: Known, right: Collection) -> Value | None:
    elements = right.keys if right.kind == "dict" else right.items
    held = [item.value for item in elements if isinstance(item, Known)]
    is_whole = not right.open and len(held) == len(elements)
    return Known(left.location, (left.value in held) == (symbol == "in")) if is_whole else None


def _put_together(left: Collection, right: Collection) -> Value | None:
    fits = left.kind == right.kind and left.kind in ("list", "tuple")
    if not fits or len(left.items) + len(right.items) >= _MOST_ELEMENTS:
        return None
    return list_of_both(left, right)


def list_of_both(left: Collection, right: Collection) -> Collection:
    """A list or tuple of the elements of the left one, followed by those of the right one."""
    is_open = left.open or right.open
    ending = (right.ending if right.open else left.ending + len(right.items)) if is_open else 0
    items, is_alike = left.items + right.items, is_open and left.shows_each and right.shows_each
    return Collection(left.location, left.kind, items, (), is_open, ending, alike=is_alike)


def _repeated(held: Value, times: Value) -> Value | None:
    """`[None] * 4`; a list of None can be repeated by nothing but a whole number, whatever that is."""
    if not isinstance(held, Collection) or held.kind not in ("list", "tuple") or held.open or not held.items:
        return None
    count = times.value if isinstance(times, Known) else None
    if isinstance(count, int) and 0 <= count * len(held.items) < _MOST_ELEMENTS:
        return Collection(held.location, held.kind, held.items * count)
    is_of_none = len(held.items) == 1 and isinstance(held.items[0], Known) and held.items[0].value is None
    return Collection(held.location, held.kind, held.items, open=True, uniform=True) if is_of_none else None


def folded_unary(symbol: str, operand: Value) -> Value | None:
    if not isinstance(operand, Known) or (symbol != "not" and not _is_number(operand.value)):
        return None
    try:
        return Known(operand.location, _UNARY[symbol](operand.value))
    except (TypeError, ValueError, OverflowError):
        return None


def constant_from_name(name: str) -> Any:
    """The constant that a name stands for: inf, nan and pi are numbers, and TYPE_CHECKING is false when a program runs;
    MISSING for other names."""
    if name == "typing.TYPE_CHECKING":
        return False
    return _NUMBERS.get(name, MISSING)


_EMPTY = {"builtins.int": 0, "builtins.float": 0.0, "builtins.str": "", "builtins.bool": False}


def constant_from_call(name: str, arguments: tuple[Value, ...]) -> Any:
    """float("inf"), int("8"), str(3), bool(0), len("mixed_") of constants, len(widths) of a tuple or a list; MISSING
    where it is not certain."""
    function = _FUNCTIONS.get(name)
    if not arguments and name in _EMPTY:
        return _EMPTY[name]
    if function is None or len(arguments) != 1:
        return MISSING
    argument = arguments[0]
    if name == "builtins.len" and isinstance(argument, Collection):
        return _length_of(argument)
    if not isinstance(argument, Known) or (isinstance(argument.value, (str, bytes)) and len(argument.value) > 100):
        return MISSING
    try:
        made = function(argument.value)
    except (TypeError, ValueError, OverflowError):
        return MISSING
    return made if is_computable(made) else MISSING


def _length_of(held: Collection) -> Any:
    """How many elements a tuple has, or a list that does not look like one to be filled later: with fewer than two it
    may be. MISSING of others."""
    is_whole = held.kind == "tuple" or (held.kind == "list" and len(held.items) > 1)
    return len(held.items) if is_whole and not held.open and not held.uniform else MISSING


def constant_from_numbers(name: str, held: Value | None) -> Any:
    """sum(…), max(…) and min(…) of numbers that are all known; MISSING for anything else."""
    if not isinstance(held, Collection) or held.open or held.uniform or held.kind == "set":
        return MISSING
    given = held.keys if held.kind == "dict" else held.items
    numbers = [item.value for item in given if isinstance(item, Known) and type(item.value) in (int, float)]
    if not numbers or len(numbers) < len(given):
        return MISSING
    made = sum(numbers) if name == "builtins.sum" else max(numbers) if name == "builtins.max" else min(numbers)
    return made if is_computable(made) else MISSING


def _result_of_operator(symbol: str, left: Any, right: Any) -> Any:
    if symbol == "**":
        return _power(left, right)
    function = _BINARY.get(symbol)
    if function is None or (symbol in ("%", "*") and not (_is_number(left) and _is_number(right))):
        return MISSING  # text formatting and repetition
    if size_of(left) > LONGEST or size_of(right) > LONGEST:
        return MISSING
    try:
        result = function(left, right)
    except (TypeError, ValueError, ArithmeticError):
        return MISSING
    return result if is_computable(result) else MISSING


def _power(left: Any, right: Any) -> Any:
    if not (_is_number(left) and _is_number(right)) or isinstance(left, complex) or isinstance(right, complex):
        return MISSING
    if isinstance(left, int) and isinstance(right, int) and abs(right) * max(left.bit_length(), 1) > LONGEST:
        return MISSING
    try:
        result = left**right
    except (ArithmeticError, ValueError):
        return MISSING
    return result if is_computable(result) else MISSING


def is_computable(constant: Any) -> bool:
    """Whether rules can compute with a constant: they use floats, of which the largest is below 2^1024."""
    return not isinstance(constant, int) or constant.bit_length() < 1024


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float, complex))

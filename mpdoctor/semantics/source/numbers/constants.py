"""Numbers that a program writes out, wherever it stores them, and their values in float16."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.command_line import without_command_line
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Api, Attribute, Known, Value, is_api, known, options

BELOW_ONE = {"float16": 2.0**-12, "bfloat16": 2.0**-9}  # 1 - what is not larger is rounded to 1
ONE_IN_FLOAT32 = 2.0**-25  # the same for float32

CASTS = (
    "tensorflow.cast",
    "tensorflow.saturate_cast",
    "keras.ops.cast",
    "keras.backend.cast",
    "keras.ops.saturate_cast",
)
MADE = (
    *CASTS,
    "builtins.float",
    "tensorflow.constant",
    "tensorflow.convert_to_tensor",
    "keras.ops.convert_to_tensor",
    "keras.ops.array",
    "keras.backend.constant",
    "numpy.array",
    "numpy.asarray",
    "numpy.float32",
    "numpy.float64",
)
FINFO = ("numpy.finfo", "tensorflow.experimental.numpy.finfo", "jax.numpy.finfo")
LIMITS = {"float32": 3.4028234663852886e38, "float64": 1.7976931348623157e308, "bfloat16": 3.3895e38}
SMALL = {
    ("float32", "eps"): 2.0**-23,
    ("float64", "eps"): 2.0**-52,
    ("float32", "tiny"): 2.0**-126,
    ("float64", "tiny"): 2.0**-1022,
}
OF_PYTHON = {"sys.float_info.epsilon": 2.0**-52, "sys.float_info.min": 2.0**-1022}


def numbers_from_value(value: Value | None, depth: int = 0) -> tuple[float, ...]:
    """Every number that a value may be: a literal, a constant of the module, the class or the configuration, a default
    that nobody overrides or only the command line may, what was made of one by tf.constant or tf.cast,
    np.finfo(np.float32).min. () if any of it is not known."""
    choices = [option for option in without_command_line(value) if not _is_of_nothing(option)]
    numbers = [_number(option, depth) for option in choices or options(value)]
    return tuple(number for number in numbers if number is not None) if numbers and None not in numbers else ()


def _is_of_nothing(value: Value) -> bool:
    """Whether it is an attribute of a parameter whose default is None and which nobody is seen to give: in `(given or
    Default()).mask` it is the other object's that counts."""
    holder = value.of if isinstance(value, Attribute) else None
    is_optional = isinstance(holder, Parameter) and holder.default is not None and known(holder.default) is None
    return (
        is_optional and isinstance(holder, Parameter) and holder.function is not None and holder.function.name != "call"
    )


def _number(value: Value, depth: int) -> float | None:
    if depth > 8:
        return None
    if isinstance(value, Known):
        is_number = isinstance(value.value, (int, float)) and not isinstance(value.value, bool)
        return _float(value.value) if is_number else None
    if isinstance(value, Parameter):
        return _number(value.default, depth + 1) if value.default is not None else None
    if isinstance(value, Operation) and value.operator == "-" and len(value.operands) == 1:
        inner = _single_number(value.operands[0], depth)
        return None if inner is None else -inner
    if isinstance(value, Operation) and value.operator in ("*", "/"):
        return _product(value, depth)
    if isinstance(value, Api) and value.name in OF_PYTHON:
        return OF_PYTHON[value.name]
    if isinstance(value, Api):  # tf.float32.min
        place, _, name = public_name(value.name).rpartition(".")
        return _limit(place.rpartition(".")[2], name)
    if isinstance(value, Attribute):
        return _limit(_dtype_described(value.of), value.name)
    return _number_from_call(value, depth) if isinstance(value, Call) else None


def _product(value: Operation, depth: int) -> float | None:
    """The number in `np.finfo(np.float32).min / 2` or `-0.7 * float(np.finfo(np.float32).max)`."""
    numbers = [_single_number(operand, depth) for operand in value.operands]
    if len(numbers) != 2 or numbers[0] is None or numbers[1] is None or (value.operator == "/" and numbers[1] == 0):
        return None
    return numbers[0] * numbers[1] if value.operator == "*" else numbers[0] / numbers[1]


def _number_from_call(call: Call, depth: int) -> float | None:
    """The number in `tf.constant(1e-9)`, `np.float32(1e-9)`, `limit.astype(…)` or `limit.item()`."""
    if is_api(call.callee, *MADE):
        return _single_number(call.argument(0) or call.keyword("value") or call.keyword("x"), depth)
    if call.method in ("astype", "item") and call.receiver is not None:
        return _single_number(call.receiver, depth)
    return None


def _single_number(value: Value | None, depth: int) -> float | None:
    numbers = numbers_from_value(value, depth + 1)
    return numbers[0] if len(numbers) == 1 else None


def _float(number: float) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def _dtype_described(value: Value) -> str | None:
    """The dtype that `np.finfo(np.float32)`, or a dtype itself, describes."""
    if isinstance(value, Call) and is_api(value.callee, *FINFO):
        return dtype_named(value.argument(0))
    return dtype_named(value)


def _limit(dtype: str | None, name: str) -> float | None:
    limit = LIMITS.get(dtype or "")
    signs = {"min": -1.0, "max": 1.0}
    return signs[name] * limit if limit is not None and name in signs else _small(dtype, name)


def _small(dtype: str | None, name: str) -> float | None:
    """The small number of a dtype that has this name: `eps`, or the smallest normal number, which has two."""
    return SMALL.get((dtype or "", "tiny" if name == "smallest_normal" else name))


def written(number: float) -> str:
    """1e-08, 3.4e+38: as short as a reader knows it."""
    return f"{number:.3g}"

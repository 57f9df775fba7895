"""Dtypes of the results of TensorFlow and Keras functions, by their tensor and `dtype` arguments."""

from __future__ import annotations

from functools import lru_cache
from typing import Callable, Sequence

from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.dtypes.result_dtypes import (
    ALWAYS_FLOAT32,
    BOOLEAN,
    BY_VALUE,
    CHOOSING,
    DECLARING,
    DEFAULTS,
    FLOATS_OF_INTEGERS,
    FOURIER,
    JOINING,
    KEEPING,
    KEEPS_DTYPE,
    MERGING,
    PARTS_OF_COMPLEX,
    PROMOTING,
    REAL_OF,
    REARRANGING,
    SHAPES,
    VALUE_NAMES,
)
from mpdoctor.program.command_line import without_command_line
from mpdoctor.program.dtypes.array_dtypes import dtype_of_array
from mpdoctor.program.dtypes.dtype_names import AUTOCAST, Dtypes
from mpdoctor.program.dtypes.promotion import are_integers, dtype_by_others, promoted
from mpdoctor.program.dtypes.python_numbers import are_floats, kind_of_number, leaves, spread
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import Api, Value, agreed, known, options

WIDE = ("float32", "float64", "int32", "int64", "bool")
_OF_TENSORS = ("tensorflow", "tensorflow.signal", "keras.ops")
_REFUSING = tuple(f"tensorflow.{name}" for name in ("matmul", "linalg.matmul", "concat", "stack"))  # mixed dtypes
# Modules whose functions treat dtypes as those of another one do.
_ALIKE = {
    **dict.fromkeys(
        ("tensorflow.nn", "tensorflow.math", "tensorflow.linalg", "tensorflow.image", "tensorflow.sparse"), "tensorflow"
    ),
    **dict.fromkeys(("tensorflow.random", "tensorflow.random.experimental", "tensorflow.debugging"), "tensorflow"),
    **dict.fromkeys(("keras.activations", "operator"), "tensorflow"),
    **dict.fromkeys(("keras.backend", "keras.ops.numpy", "keras.ops.nn", "keras.random"), "keras.ops"),
}


def dtype_of_library_call(dtypes: Dtypes, name: str, call: Call, depth: int) -> str | None:
    """The dtype of what a library's function gives, None where it is not certain. `name`: the function's public
    name."""
    of_one = _RESULTS.get(name)
    if of_one is not None:
        return of_one(dtypes, call, depth)
    if name in ALWAYS_FLOAT32:
        return _of_resized(dtypes, call, ALWAYS_FLOAT32[name], depth)
    if name in CHOOSING:
        return _of_either_branch(dtypes, call, CHOOSING[name], depth)
    place, function = _place_and_function(name)
    if place == "keras.layers" and function in MERGING:
        return _of_merged(dtypes, call, depth)
    default = default_of(name)
    if place in _OF_TENSORS and function in ("cast", "saturate_cast"):
        return dtypes.named(call.argument(1, "dtype"), depth)
    if default is not None:
        return _of_made_tensor(dtypes, call, *default, depth)
    if place == "tensorflow.signal" and function in FOURIER:
        return FOURIER[function].get(dtypes.of(call.argument(0), depth) or "")
    return _of_computed_tensor(dtypes, function, call, depth) if place in _OF_TENSORS else None


def _of_input(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    given = call.keyword("dtype")
    return "float32" if given is None else dtypes.named(given, depth)


def _of_list(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """The dtype on which the tensors of the first argument agree."""
    return dtypes.agreed(spread(call.args[0]), depth) if call.args else None


def _of_either_branch(dtypes: Dtypes, call: Call, places: slice, depth: int) -> str | None:
    """The dtype on which both branches of `tf.cond` agree: functions of the user's, or values."""
    names = ("true_fn", "false_fn", "then_expression", "else_expression", "x", "alt")
    branches = (*call.arguments(places), *(value for name, value in call.keywords if name in names))
    choices = [choice for branch in branches for choice in options(branch)]
    functions = [choice.of if isinstance(choice, Defined) else None for choice in choices]
    return agreed(
        dtypes.of_result(function, depth) if isinstance(function, FunctionFacts) else dtypes.of(choice, depth)
        for function, choice in zip(functions, choices)
    )


def _of_mapped(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """The dtype of what `tf.map_fn` stacks: of what its function gives for a row of a tensor. None where another dtype
    is declared, which raises."""
    declared, rows = call.keyword("fn_output_signature") or call.keyword("dtype"), call.argument(1, "elems")
    functions = call.argument(0, "fn")
    if dtypes.of(rows, depth) == AUTOCAST:
        given = agreed(
            dtypes.of_result_for_autocast(choice.of, depth)
            if isinstance(choice, Defined) and isinstance(choice.of, FunctionFacts)
            else None
            for choice in options(functions)
        )
    else:
        given = _of_functions(dtypes, functions, depth)
    return given if declared is None or dtypes.named(declared, depth) in (given, None) else None


def _of_functions(dtypes: Dtypes, given: Value | None, depth: int) -> str | None:
    """The dtype of what the user's functions return that a library's function is given."""
    choices = [choice.of if isinstance(choice, Defined) else None for choice in options(given)]
    return agreed(dtypes.of_result(choice, depth) if isinstance(choice, FunctionFacts) else None for choice in choices)


def _of_merged(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """AUTOCAST where a layer that joins tensors is given one that is, or one of 16 bits: it casts all floats, by the
    global policy."""
    parts = spread(call.args[0]) if call.args and call.keyword("dtype") is None and not call.open else ()
    return AUTOCAST if any(dtypes.of(part, depth) in (AUTOCAST, *HALF) for part in parts) else None


def _of_python_function(dtypes: Dtypes, call: Call, depth: int) -> str | None:
    """The one dtype that is declared. Of tensors of 16 bits it may make others, and raise where it gives them back."""
    declared, given = call.argument(2, "Tout"), call.argument(1, "inp")
    may_raise = given is None or any(dtypes.of(part, depth) not in WIDE for part in spread(given))
    return None if declared is None or may_raise else dtypes.named(declared, depth)


@lru_cache(maxsize=None)
def default_of(name: str) -> tuple[int | None, str] | None:
    """(position of the `dtype` argument, default dtype) of a function that makes tensors, by its public name."""
    return DEFAULTS.get(name) or DEFAULTS.get(".".join(_place_and_function(name)))


@lru_cache(maxsize=None)
def _place_and_function(name: str) -> tuple[str, str]:
    place, _, function = name.rpartition(".")
    return _ALIKE.get(place, place), function


def _of_resized(dtypes: Dtypes, call: Call, position: int | None, depth: int) -> str | None:
    """float32, unless the `method` at this position keeps the dtype."""
    given = call.argument(position, "method") if position is not None else None
    if given is None:
        return None if call.open else "float32"
    name = agreed(option.name if isinstance(option, Api) else known(option) for option in options(given))
    if not isinstance(name, str):
        return None
    return dtypes.of(call.argument(0), depth) if name.rpartition(".")[2] in KEEPS_DTYPE else "float32"


def _of_made_tensor(dtypes: Dtypes, call: Call, position: int | None, default: str, depth: int) -> str | None:
    """The result dtype of a function that makes tensors: its `dtype` argument, else its default."""
    given = call.argument(position, "dtype")
    if given is not None and known(given) is not None:
        return dtypes.named(given, depth)
    if call.open or call.keyword("dtype_hint") is not None:  # numbers take the dtype of the hint, tensors keep theirs
        return None
    return _by_literals(dtypes, call, BY_VALUE[default], depth) if default in BY_VALUE else default


def _of_computed_tensor(dtypes: Dtypes, function: str, call: Call, depth: int) -> str | None:
    """The result dtype of a function that computes with the tensors that it is given."""
    if function in BOOLEAN:
        return "bool"
    if function in SHAPES:
        return SHAPES[function]
    if function.endswith("_like"):
        given = call.keyword("dtype") or (call.argument(1) if function != "full_like" else None)
        return _of_single(dtypes, call.argument(0), call, depth) if given is None else dtypes.named(given, depth)
    if function in PARTS_OF_COMPLEX and (of := dtypes.of(call.argument(0), depth)) in REAL_OF:
        return REAL_OF[of]
    if function in KEEPING:
        return _of_kept_dtype(dtypes, function, call, depth)
    return _of_joined(dtypes, function, call, depth) if function in JOINING else None


def _of_kept_dtype(dtypes: Dtypes, function: str, call: Call, depth: int) -> str | None:
    """The result dtype of a function that keeps the dtype of its first argument: a tensor, a list of them, numbers."""
    first = call.argument(0) or (call.keywords[0][1] if call.keywords else None)
    if first is None:
        return _of_single(dtypes, None, call, depth)
    elements = spread(first)
    if are_floats(elements):
        return "float32"
    if function in FLOATS_OF_INTEGERS and _is_of_keras_ops(call) and are_integers(dtypes, elements, depth):
        return "float32"
    is_list = bool(elements) and elements[0] is not first
    return dtypes.agreed(elements, depth) if is_list else _of_single(dtypes, first, call, depth)


def _of_joined(dtypes: Dtypes, function: str, call: Call, depth: int) -> str | None:
    """The result dtype of a function that joins tensors: the dtype on which its arguments agree."""
    arguments = call.arguments(JOINING[function])
    joined = [part for argument in arguments for part in spread(argument)]
    name = public_name(call.callee.name) if isinstance(call.callee, Api) else ""
    if are_floats(joined):
        return None if name.startswith("operator.") else "float32"
    if function in PROMOTING and _is_of_keras_ops(call):
        is_of_list = JOINING[function] == slice(0, 1)
        return promoted(dtypes, function, joined if is_of_list else arguments, depth)
    dtype = dtypes.agreed(joined, depth)
    return dtype_by_others(dtypes, joined, depth) if dtype is None and name in _REFUSING else dtype


def _is_of_keras_ops(call: Call) -> bool:
    return isinstance(call.callee, Api) and public_name(call.callee.name).startswith("keras.ops.")


def tensors_met(call: Call) -> Sequence[Value]:
    """The tensors that a TensorFlow function combines, if they must have one dtype and none is promoted; else none."""
    name = public_name(call.callee.name) if isinstance(call.callee, Api) else ""
    place, function = _place_and_function(name)
    joined = call.arguments(JOINING[function]) if place == "tensorflow" and function in JOINING else ()
    return [part for argument in joined for part in spread(argument)]


def _by_literals(dtypes: Dtypes, call: Call, positions: tuple[int, int], depth: int) -> str | None:
    """The dtype that TensorFlow gives to Python numbers, float32 or int32; for tensors their own. Of an argument of the
    command line its default counts."""
    given = list(call.arguments(slice(*positions))) or [value for name, value in call.keywords if name in VALUE_NAMES]
    values = [leaf for item in given for leaf in leaves(item)]
    if not values:
        return None
    kinds = {kind_of_number(option) for leaf in values for option in without_command_line(leaf)}
    if None in kinds:
        return _of_single(dtypes, values[0], call, depth) if len(values) == 1 else dtypes.agreed(values, depth)
    if "float" in kinds and kinds <= {"float", "int"}:
        return "float32"
    return {"int": "int32", "bool": "bool", "str": "string"}.get(kinds.pop() or "") if len(kinds) == 1 else None


def _of_single(dtypes: Dtypes, value: Value | None, call: Call, depth: int) -> str | None:
    """The dtype of the tensor that TensorFlow makes of one value; for a function that is given as a variable's initial
    value, the dtype of what it returns."""
    own = value.of if isinstance(value, Defined) else None
    dtype = dtypes.of_result(own, depth) if isinstance(own, FunctionFacts) else dtypes.of(value, depth)
    makes_tensors = isinstance(call.callee, Api) and call.callee.name.startswith(("tensorflow.", "keras.ops."))
    if dtype is not None or not makes_tensors:
        return dtype
    return dtype_of_array(value, lambda named: dtypes.named(named, depth + 1))


# Functions whose results have dtypes by a rule of their own.
_RESULTS: dict[str, Callable[[Dtypes, Call, int], str | None]] = {
    "keras.Input": _of_input,
    "builtins.sum": lambda dtypes, call, depth: _of_list(dtypes, call, depth) if len(call.args) == 1 else None,
    "tensorflow.bincount": lambda dtypes, call, depth: promoted(
        dtypes, "add", [value for value in (call.argument(1, "weights"),) if value is not None], depth
    ),
    "builtins.abs": lambda dtypes, call, depth: dtypes.of(call.argument(0), depth),
    **dict.fromkeys(
        ("tensorflow.scan", "tensorflow.foldl", "tensorflow.foldr"),
        lambda dtypes, call, depth: _of_functions(dtypes, call.argument(0, "fn"), depth),
    ),
    **dict.fromkeys(("tensorflow.map_fn", "tensorflow.vectorized_map", "keras.backend.map_fn"), _of_mapped),
    **dict.fromkeys(REARRANGING, _of_list),
    **dict.fromkeys(DECLARING, _of_python_function),
}

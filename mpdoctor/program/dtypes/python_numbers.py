"""Python numbers, alone and in lists: they take the dtype of the other operand, or one by their type."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mpdoctor.program.command_line import without_command_line
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import (
    Api,
    Attribute,
    Collection,
    Earlier,
    Either,
    Item,
    Known,
    Value,
    agreed,
    is_api,
    known,
    options,
    walk,
)

_WHOLE = (
    *("math.ceil", "math.floor", "math.trunc", "math.factorial", "math.comb", "math.perm"),
    *("math.gcd", "math.lcm", "math.isqrt", "math.prod", "math.frexp", "math.modf"),
)
_NUMBERS = ("builtins.int", "builtins.float", "builtins.len", "builtins.round")
_DEPTH_OF_NUMBERS = 4
RANGE = "builtins.range"


def is_number(value: Value | None, depth: int = 0) -> bool:
    """Whether it is certainly a Python number (or another constant): a literal, a parameter whose default is a number,
    a setting of the command line, a length in a static shape, or computed from these."""
    if isinstance(value, Known):
        return True
    if isinstance(value, Either):
        return all(is_number(option, depth) for option in without_command_line(value))
    if isinstance(value, Item):
        is_numbered = isinstance(value.index, Known) and isinstance(value.index.value, int)
        return _is_loop_counter(value) or (is_numbered and _is_static_shape(value.of))
    if isinstance(value, Call) and isinstance(value.callee, Api):
        return value.callee.name in _NUMBERS or value.callee.root == "math"
    if isinstance(value, Operation):
        return depth < _DEPTH_OF_NUMBERS and all(is_number(operand, depth + 1) for operand in value.operands)
    if isinstance(value, Parameter):
        return _is_setting(value)
    return False


def _is_setting(parameter: Parameter) -> bool:
    """Whether its default is a number: of `__init__` any, of another function (`call(self, x, epsilon=1e-6)`) one with
    digits. A float32 tensor in its place would not meet the 16-bit input at all."""
    default = known(parameter.default)
    is_of_init = parameter.function is not None and parameter.function.name == "__init__"
    return type(default) is float or (is_of_init and type(default) is int)


def _is_loop_counter(item: Item) -> bool:
    """Whether it is the `i` of `for i in range(3)` or of `for i, block in enumerate(blocks)`; not of `range(n)` where a
    library's call makes `n`, because AutoGraph makes such an `i` a tensor."""
    if isinstance(item.of, Api):
        return item.of.name == RANGE
    if not isinstance(item.of, Call) or not isinstance(item.of.callee, Api) or item.of.callee.name != RANGE:
        return False
    return not _is_of_library(item.of)


@lru_cache(maxsize=64)
def _is_of_library(counting: Call) -> bool:
    """Whether a library's call makes one of the ends of a range. Each use of the counter asks."""
    made = (part for end in counting.args for part in walk(end) if isinstance(part, Call))
    return any(isinstance(call.callee, Api) and call.callee.root not in ("builtins", "math") for call in made)


def _is_static_shape(value: Value) -> bool:
    """Whether it is `x.shape`, `x.shape.as_list()` or `K.int_shape(x)`, or a shape that a layer's `build()` is told, of
    one input or of several: of `tf.shape(x)` the lengths are tensors."""
    if isinstance(value, Item) and isinstance(value.of, Parameter):
        value = value.of
    if isinstance(value, Parameter):
        return _is_of_build(value)
    if isinstance(value, Call):
        method = value.method
        of_shape = method == "as_list" and value.receiver is not None and _is_static_shape(value.receiver)
        return of_shape or method in ("get_shape", "int_shape")
    return isinstance(value, Attribute) and value.name == "shape"


def _is_of_build(parameter: Parameter) -> bool:
    function = parameter.function
    return function is not None and function.name == "build" and function.owner is not None and function.owner.is_layer


def kind_of_number(value: Value, depth: int = 0) -> str | None:
    """The Python type of a constant, and "float" of what `math.log(…)`, `float("-inf")` and the like give, and of what
    an object is made with where it is a float unless somebody says otherwise (`alpha=0.2`)."""
    if isinstance(value, Known):
        return type(value.value).__name__
    if isinstance(value, Either):  # a setting of the command line and its default
        return agreed(kind_of_number(option, depth) for option in without_command_line(value))
    if isinstance(value, Parameter):
        return "float" if _is_of_constructor(value) and isinstance(known(value.default), float) else None
    if isinstance(value, Item):
        return "int" if _is_loop_counter(value) else None
    if isinstance(value, Call):
        return _kind_of_result(value)
    is_computed = isinstance(value, Operation) and value.operator in "+-*/" and depth < _DEPTH_OF_NUMBERS
    return _kind_of_computed(value, depth) if is_computed and isinstance(value, Operation) else None


def _is_of_constructor(value: Parameter) -> bool:
    return value.function is not None and value.function.name == "__init__"


def _kind_of_result(call: Call) -> str | None:
    if not isinstance(call.callee, Api):
        return None
    if call.callee.root == "math":
        return None if call.callee.name in _WHOLE else "float"
    return "float" if call.callee.name == "builtins.float" else None


def _kind_of_computed(value: Operation, depth: int) -> str | None:
    kinds = {kind_of_number(operand, depth + 1) for operand in value.operands}
    is_float = value.operator == "/" or "float" in kinds
    return "float" if is_float and all(is_number(operand, depth + 1) for operand in value.operands) else None


def spread(value: Value) -> tuple[Value, ...]:
    """The elements of a list, of each list that the value may be: behind a loop that appends to it, it may be empty as
    well. The value alone where it is no list."""
    if isinstance(value, Call) and is_api(value.callee, "builtins.list", "builtins.tuple") and value.args:
        value = value.args[0]
    lists = [option for option in options(value) if isinstance(option, Collection)]
    if len(lists) < len(options(value)) or not lists:
        return (value,)
    return tuple(item for option in lists for item in option.items)


def leaves(value: Value, depth: int = 0) -> tuple[Value, ...]:
    """Each element of a nested list; one that occurs several times is listed once."""
    if isinstance(value, Collection) and depth < 6:
        distinct = {id(item): item for item in value.items[:64]}
        return tuple(leaf for item in distinct.values() for leaf in leaves(item, depth + 1))
    if isinstance(value, Operation) and value.operator == "*" and depth < 6:
        repeated = [operand for operand in value.operands if isinstance(operand, Collection)]
        times = [operand for operand in value.operands if not isinstance(operand, Collection)]
        if len(repeated) == 1 and len(times) == 1 and _is_length(times[0]):
            return leaves(repeated[0], depth + 1)
    return (value,)


def _is_length(value: Value) -> bool:
    """Whether it repeats a list, and does not multiply it as an array would: a number, a length of what `build()` is
    told of its input, or what an object is made with (`[1.0] * units`)."""
    if isinstance(value, Parameter):
        return _is_of_constructor(value)
    given_to = value.of.function if isinstance(value, Item) and isinstance(value.of, Parameter) else None
    return is_number(value) or (given_to is not None and given_to.name == "build")


def without_start(choices: Sequence[Value]) -> Sequence[Value]:
    """The values without the Python number that a loop starts a sum from (`total = 0.0`): the sum has the dtype of what
    is added to it."""
    numbers = [choice for choice in choices if type(known(choice)) in (int, float)]
    sums = [choice for choice in choices if isinstance(choice, Operation) and any(map(_is_carried, choice.operands))]
    return sums if numbers and len(numbers) + len(sums) == len(choices) and sums else choices


def _is_carried(operand: Value) -> bool:
    return any(isinstance(option, Earlier) for option in options(operand))


def are_floats(values: Sequence[Value]) -> bool:
    """Whether they are Python numbers, alone or in lists, and some of them floats: TensorFlow makes them float32."""
    kinds = {kind_of_number(leaf) for value in values for leaf in leaves(value)}
    return "float" in kinds and kinds <= {"float", "int"}


def may_be_floats(values: Sequence[Value]) -> bool:
    """Whether they are Python numbers, and not all of them certainly whole."""
    numbers = [leaf for value in values for leaf in leaves(value)]
    return all(map(is_number, numbers)) and not {kind_of_number(number) for number in numbers} <= {"int", "bool"}

"""Whether a value is a numpy array, and its dtype, which TensorFlow keeps in a tensor made of it without naming one."""

from __future__ import annotations

from typing import Callable, Iterable, Optional

from mpdoctor.knowledge.dtypes.array_functions import BY_VALUE, FLOAT64, JOINING, JOINING_PARTS, KEEPING, LIKE, RANDOM
from mpdoctor.program.dtypes.python_numbers import spread
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, agreed, is_api, known, options

Named = Callable[[Optional[Value]], Optional[str]]
FLOATING = ("float16", "float32", "float64")
_PLACE = "numpy."
_ENDS = ("min", "max")
_DTYPES = ("tensorflow.float16", "tensorflow.bfloat16", "tensorflow.float32", "tensorflow.float64")
_ENDS_OF_DTYPES = frozenset(f"{dtype}.{end}" for dtype in _DTYPES for end in _ENDS)
_DEEPEST = 30
_MOST_PARTS = 200


def dtype_of_array(value: Value | None, named: Named) -> str | None:
    """ "float32" for np.ones(3, np.float32), "float64" for np.array([0.5]) and what is computed of it; None where it is
    not certain to be a floating-point array. `named` tells which dtype a value denotes."""
    return _ArrayDtypes(named).of(value, 0)


def is_array(value: Value | None) -> bool:
    """Whether it is for certain a numpy array or scalar, which TensorFlow converts to the dtype of the tensor
    it meets."""
    waiting = [*options(value)]
    seen = set(waiting)
    for item in waiting:
        parts = _parts_of_an_array(item)
        if parts is None or len(waiting) > _MOST_PARTS:
            return False
        new = [part for part in parts if part not in seen]
        seen.update(new)
        waiting += new
    return bool(waiting)


class _ArrayDtypes:
    """One question: remembers what it was asked on the way, because values are shared."""

    def __init__(self, named: Named) -> None:
        self.named = named
        self.answers: dict[int, str | None] = {}

    def of(self, value: Value | None, depth: int) -> str | None:
        if value is None or depth > _DEEPEST:
            return None
        if id(value) not in self.answers:
            self.answers[id(value)] = None
            self.answers[id(value)] = agreed(self._of_uncached(option, depth + 1) for option in options(value))
        return self.answers[id(value)]

    def _of_uncached(self, value: Value, depth: int) -> str | None:
        if isinstance(value, Item):
            return None if isinstance(value.of, Collection) else self.of(value.of, depth)
        if isinstance(value, Operation):
            return self.agreed(value.operands, depth)
        if isinstance(value, Attribute):
            return self.of(value.of, depth) if value.name in KEEPING else None
        if isinstance(value, Call) and isinstance(value.callee, Attribute):
            if value.callee.name == "astype":
                return self._floating_dtype(value.argument(0, "dtype"))
            return self.of(value.callee.of, depth) if value.callee.name in KEEPING else None
        if isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.name.startswith(_PLACE):
            return self._of_function(value, value.callee.name[len(_PLACE) :], depth)
        return None

    def agreed(self, values: Iterable[Value], depth: int) -> str | None:
        """The dtype of arrays that meet; Python's numbers take that of the others."""
        return agreed(self.of(value, depth) for value in values if not isinstance(value, Known))

    def _of_function(self, call: Call, name: str, depth: int) -> str | None:
        if name in FLOATING:
            return name
        if name in FLOAT64:
            given = call.argument(FLOAT64[name], "dtype")
            return None if call.open else "float64" if given is None else self._floating_dtype(given)
        if name in BY_VALUE:
            return self._by_values(call, *BY_VALUE[name], depth)
        if name.startswith("random."):
            is_plain = name[len("random.") :] in RANDOM and call.keyword("dtype") is None
            return "float64" if is_plain else None
        if call.open or call.keyword("dtype") is not None:
            return None
        if name in LIKE:
            return self.agreed(call.args[:1], depth) if call.argument(LIKE[name]) is None else None
        if name in JOINING_PARTS:
            return self.agreed((element for argument in call.args[:1] for element in spread(argument)), depth)
        # a list among them is an array of float64 to numpy
        return self.agreed(call.args[: 2 if name in JOINING else 1 if name in KEEPING else 0], depth)

    def _by_values(self, call: Call, dtype: int, numbers: int, depth: int) -> str | None:
        given = call.argument(dtype, "dtype")
        if given is not None or call.open:
            return self._floating_dtype(given)
        held = call.argument(numbers, "object") or call.keyword("fill_value") or call.keyword("a")
        kinds = {type(leaf.value) if isinstance(leaf, Known) else None for leaf in _leaves_of_literal(held)}
        return "float64" if float in kinds and kinds <= {float, int} else self.of(held, depth)

    def _floating_dtype(self, value: Value | None) -> str | None:
        if known(value) == "float" or is_api(value, "builtins.float", "numpy.float"):
            return "float64"
        dtype = self.named(value)
        return dtype if dtype in FLOATING else None


def _leaves_of_literal(value: Value | None, depth: int = 0) -> list[Value]:
    if isinstance(value, Collection) and depth < 4:
        return [leaf for item in value.items[:64] for leaf in _leaves_of_literal(item, depth + 1)]
    return [] if value is None else [value]


def _parts_of_an_array(value: Value) -> tuple[Value, ...] | None:
    """What must be arrays as well for a value to be one; None where it is none for certain, or nobody knows."""
    if isinstance(value, Call):
        if isinstance(value.callee, Api):
            return () if value.callee.name.startswith("numpy.") else None
        return (value.callee.of,) if isinstance(value.callee, Attribute) else None
    if isinstance(value, Operation):
        return tuple([operand for operand in value.operands if not isinstance(operand, Known)]) or None
    if isinstance(value, Attribute):
        return () if value.name in _ENDS and _is_end_of_a_range(value) else (value.of,)
    if isinstance(value, Item):
        return (value.of,)
    return () if isinstance(value, Api) and value.name in _ENDS_OF_DTYPES else None


def _is_end_of_a_range(value: Attribute) -> bool:
    """Whether an attribute is one of a dtype, as `x.dtype.max` is: a numpy scalar, like `tf.float32.min`."""
    named = value.of
    return is_call_of(named, "tensorflow.as_dtype") or (isinstance(named, Attribute) and named.name == "dtype")

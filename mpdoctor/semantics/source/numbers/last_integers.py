"""The largest integer of a range that a program counts, or draws numbers from, as far as the source shows it."""

from __future__ import annotations

import math
from collections.abc import Iterator

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Collection, Item, Part, Value, is_api, options
from mpdoctor.semantics.source.function_names import function_named
from mpdoctor.semantics.source.layers.later_inputs import given_in_calls
from mpdoctor.semantics.source.numbers.constants import CASTS, numbers_from_value
from mpdoctor.semantics.source.numbers.tensor_shapes import sizes_named
from mpdoctor.semantics.source.programs.data.fed_elements import RANGE_OF_A_DATASET, given_by_training, given_to_map

DEEPEST = 12
RANGES = ("range", "arange")
# Functions that draw whole numbers, and the place of the end of their range.
DRAWING = {
    "tensorflow.random.uniform": (2, "maxval"),
    "keras.random.randint": (2, "maxval"),
    "numpy.random.randint": (1, "high"),
}
# The same of generators that numpy makes.
OF_A_GENERATOR = {"integers": ("numpy.random.default_rng",), "randint": ("numpy.random.RandomState",)}
PASSING = ("reshape", "expand_dims", "squeeze", "tile", "repeat", "broadcast_to", "identity", "transpose")
KEEPING_METHODS = ("astype", "reshape")
JOINING = ("meshgrid", "stack", "concat")


class LastIntegers:
    """Answers for the values of one program, each once: each line of a long computation contains the lines before
    it.

    of_data
        Whether what `fit()` and the like are given counts as well, and what `Dataset.map` applies its function to."""

    def __init__(self, facts: SourceFacts, of_data: bool = False) -> None:
        self._facts = facts
        self._of_data = of_data
        self._answers: dict[tuple[int, int], float] = {}

    def last(self, value: Value | None, depth: int = 0) -> float:
        """The largest number of a range of integers; 0 where it is no range, or its end is unknown."""
        for option in options(value):
            if (id(option), depth) not in self._answers:
                self._answers[id(option), depth] = self._last_of_one(option, depth + 1) if depth <= DEEPEST else 0
        return max((self._answers[id(option), depth] for option in options(value)), default=0)

    def _last_of_one(self, value: Value, depth: int) -> float:
        handed = [*given_in_calls(self._facts, value), *self._given_by_data(value)]
        if handed:
            return max(self.last(part, depth) for part in handed)
        if isinstance(value, Item):
            return min(self.last(value.of, depth), _last_taken(value))
        if isinstance(value, Operation) and value.operator == "-" and (taken := numbers_from_value(value.operands[-1])):
            return self._last_behind(value.operands[0], max(map(abs, taken)), depth)
        if isinstance(value, Collection) or (isinstance(value, Operation) and value.operator in ("+", "-")):
            return max((self.last(part, depth) for part in value.parts), default=0)
        if not isinstance(value, Call):
            return 0
        if isinstance(value.callee, Attribute) and value.method in KEEPING_METHODS:
            return self.last(value.receiver, depth)
        name = function_named(value)
        if name in (*PASSING, *JOINING) or (isinstance(value.callee, Api) and public_name(value.callee.name) in CASTS):
            return self.last(value.argument(0), depth)
        if name == "linspace":
            return _last_of_linspace(value)
        is_range = name in RANGES or is_api(value.callee, "numpy.arange", RANGE_OF_A_DATASET)
        return _last_of_range(self._facts, value) if is_range else _last_drawn(value)

    def _last_behind(self, counted: Value, taken: float, depth: int) -> float:
        """The distance from 0 of the farthest number of a range that begins at 0 and from which a number is taken:
        2048 for those up to 4095 less 2048."""
        last = self.last(counted, depth)
        return min(last, max(last - taken, taken))

    def _given_by_data(self, value: Value) -> Iterator[Value]:
        if self._of_data:
            yield from given_by_training(self._facts, value)
            yield from given_to_map(self._facts, value)


def _last_taken(item: Item) -> float:
    """The last of the places that a slice takes, 49 of `positions[:50]`; infinite where that is not known."""
    stop = item.index.taken.stop if isinstance(item.index, Part) and item.index.taken.step is None else None
    return stop - 1 if stop is not None and stop > 0 else math.inf


def _last_of_linspace(value: Call) -> float:
    """The distance from 0 of the farthest number, counted in steps of at least 1; 0 for others."""
    given = [value.argument(0, "start"), value.argument(1, "stop"), value.argument(2, "num")]
    numbers = [numbers_from_value(one) for one in given]
    if any(len(choices) != 1 for choices in numbers) or numbers[2][0] < 2:
        return 0
    start, stop, count = (choices[0] for choices in numbers)
    step = abs(stop - start) / (count - 1)
    return max(abs(start), abs(stop)) / step if step >= 1 else 0


def _last_drawn(value: Call) -> float:
    """The largest whole number that may be drawn at random, as timesteps are; 0 for other calls."""
    place = next((place for name, place in DRAWING.items() if is_api(value.callee, name)), None)
    if place is None and value.method in OF_A_GENERATOR and is_call_of(value.receiver, *OF_A_GENERATOR[value.method]):
        place = (1, "high")
    is_float = value.method == "uniform" and not (dtype_named(value.argument(3, "dtype")) or "").startswith("int")
    if place is None or is_float:
        return 0
    is_from_zero = place[1] == "high" and value.argument(*place) is None  # randint(1000)
    return max(numbers_from_value(value.argument(*((0, "low") if is_from_zero else place))), default=1) - 1


def _last_of_range(facts: SourceFacts, value: Call) -> float:
    named = value.keyword("limit") or value.keyword("stop")
    start = value.argument(0)
    position = 1 if value.argument(1) is not None and not named else 0
    given = value.argument(2, "delta") or value.keyword("step")
    step = numbers_from_value(given) if given is not None else (1.0,)
    if not step or abs(max(step)) < 1:
        return 0
    first = numbers_from_value(start) if position else (0.0,)
    end = named or value.argument(position)
    ends = numbers_from_value(end) or tuple(sizes_named(facts, end))
    grain = _common_power_of_two([*first, *step])
    return max(min(ends) - 1, *(abs(number) for number in first)) / grain if ends and first else 0


def _common_power_of_two(numbers: list[float]) -> int:
    """Multiples of 16 are held up to 16 times as far as whole numbers."""
    whole = math.gcd(*(int(number) for number in numbers)) if all(number == int(number) for number in numbers) else 1
    return max(whole & -whole, 1)

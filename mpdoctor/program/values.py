"""Symbolic values: what an expression of the user's stands for, and where it came from.

The source stage runs no code. It turns each expression into one of these values; together they form a graph
(a value may be part of many others), so they compare by identity. Rules match on them instead of on syntax:
`opt = wrap(Adam()); print(opt.lr)` and `mp.LossScaleOptimizer(Adam()).lr` read the same attribute of the same
value.

Calls and operations are events as well (`events.py`); classes and functions of the user's are in `user_definitions.py`.

Ask with `options` first, because a name may hold one of several things, then `isinstance(value, Call)`, `known(value)`,
`value.argument(…)`, `walk(value)`, and the questions of `instances.py`: `is_instance_of(value, …)`.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import Any, Callable, Iterable, Iterator, TypeVar

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name

Choice = TypeVar("Choice")
NOWHERE = Location("", 0)


class _Missing:
    """The answer "nobody knows" where None would be a possible value."""

    def __repr__(self) -> str:
        return "MISSING"

    def __bool__(self) -> bool:
        return False


MISSING = _Missing()


@dataclass(frozen=True, eq=False, repr=False)
class Value:
    """Base of all values. `location` is the expression that made it (not the place where it is used)."""

    location: Location = field(default=NOWHERE, repr=False)

    def __repr__(self) -> str:
        """Short, because a value may be part of many others: a full one could grow without end."""
        return f"<{type(self).__name__} {self.location.path}:{self.location.line}>"

    @property
    def parts(self) -> tuple[Value, ...]:
        """The values that it is directly made of."""
        return ()


@dataclass(frozen=True, eq=False, repr=False)
class Unknown(Value):
    """Something that the source stage does not follow."""


@dataclass(frozen=True, eq=False, repr=False)
class Earlier(Unknown):
    """What a name holds at the start of a loop's body, from the second time on.

    branches
        How many if arms surround the loop.
    ends
        What the body has made of the name when it ends, by the path that it took; () while it is walked.
    handed_on
        Those of them with which the body begins again: not what it leaves the loop with, by `break`."""

    branches: int = 0
    ends: list[Value] = field(default_factory=list, repr=False)
    handed_on: list[Value] = field(default_factory=list, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Others(Unknown):
    """Further values of an Either that has too many. Each is made like one of those before it: by the same expression,
    of the same class, with the same arguments but for numbers and names."""


@dataclass(frozen=True, eq=False, repr=False)
class Part(Unknown):
    """Which elements `of[start:stop]` takes: the index of an Item that is no single element. Its bounds are known."""

    taken: slice = field(default_factory=lambda: slice(None), repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Known(Value):
    """A constant: a literal, or simple arithmetic on literals (2**15, -1e9, "mixed_" + "float16")."""

    value: Any = None

    def __repr__(self) -> str:
        return f"<Known {self.value!r}>"


@dataclass(frozen=True, eq=False, repr=False)
class Answer(Known):
    """True or False as an `except` sets it that is prepared for a missing part of a library: `HAS_CONTRIB = False`."""


@dataclass(frozen=True, eq=False, repr=False)
class Api(Value):
    """A library's name, e.g. `tf.keras.layers.Dense`.

    name
        Canonical: "keras.layers.Dense" however it was imported (`tf.keras`, `tf_keras`,
        `tensorflow.python.keras`, `keras.api`, `keras.src` …), "tensorflow.cast", "numpy.float16",
        "os.environ", "builtins.print".
    root
        The top-level package as the program wrote it: "tensorflow", "keras", "tf_keras", "numpy", "builtins"
        …
    spelled
        The full dotted name as imported, aliases undone: "tensorflow.keras.layers.Dense". Tells private paths
        ("tensorflow.python.keras.…", "keras.src.…") from public ones.
    """

    name: str = ""
    root: str = ""
    spelled: str = ""

    def __repr__(self) -> str:
        return f"<Api {self.name}>"

    def is_(self, *names: str) -> bool:
        """Whether this is one of these library names, synonyms included."""
        return public_name(self.name) in _public_names(names)


@lru_cache(maxsize=None)
def _public_names(names: tuple[str, ...]) -> frozenset[str]:
    """The public names of these. Cached: rules ask with the same few tuples, millions of times in a large project."""
    return frozenset(map(public_name, names))


@dataclass(frozen=True, eq=False, repr=False)
class Attribute(Value):
    """`of.name`, where nothing better is known. (A library's own names become `Api`.)"""

    of: Value = field(default_factory=Unknown)
    name: str = ""

    @property
    def parts(self) -> tuple[Value, ...]:
        return (self.of,)


@dataclass(frozen=True, eq=False, repr=False)
class Item(Value):
    """`of[index]`, one part of an unpacked tuple (`index` is then a Known number), or, with `index` None,
    "one element of it": the variable of a `for` loop."""

    of: Value = field(default_factory=Unknown)
    index: Value | None = None

    @property
    def parts(self) -> tuple[Value, ...]:
        return (self.of,) if self.index is None else (self.of, self.index)


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Value):
    """A list, tuple, set or dict that the program writes out. `kind` is "list", "tuple", "set" or "dict".

    keys
        Of a dict, in the order of `items`; of a named tuple the names of its fields; () for the others.
    open
        True if it may hold more than is seen here (a `*rest`, an append in a loop).
    ending
        Of an open one: how many of its last items stand behind all that is not seen (`[*rest, head]`: 1).
    uniform
        True where one item stands for all elements, however many, as in what a comprehension makes.
    alike
        Of an open one: True where each element that is not seen is as one that is, as in a list that a loop goes on
        filling.
    default
        Of a `defaultdict`: the value of a key that it does not hold.
    """

    kind: str = "list"
    items: tuple[Value, ...] = ()
    keys: tuple[Value, ...] = ()
    open: bool = False
    ending: int = 0
    uniform: bool = False
    alike: bool = False
    default: Value | None = None

    def with_entries(self, keys: tuple[Value, ...], items: tuple[Value, ...], is_open: bool) -> Collection:
        """A copy of the dict with other entries, after the program has changed what it holds."""
        return Collection(self.location, "dict", items, keys, is_open, default=self.default)

    def entry(self, key: Any) -> Value | None:
        """The value of a literal key of a dict, or of a position; None where it is not seen."""
        if self.kind == "dict":
            items = [item for name, item in zip(self.keys, self.items) if known(name) == key]
            return items[-1] if items else None
        if not isinstance(key, int):
            return None
        first, end = (-self.ending, len(self.items) - self.ending) if self.open else (-len(self.items), len(self.items))
        return self.items[key] if first <= key < end else None

    @property
    def shows_each(self) -> bool:
        """Whether each element is seen, or is as one that is."""
        return not self.open or self.alike or self.uniform

    def field(self, name: str) -> Value | None:
        """What `settings.name` is, of a tree of settings or a named tuple; None where it is not seen."""
        if self.kind == "dict":
            return self.entry(name)
        items = [item for key, item in zip(self.keys, self.items) if known(key) == name]
        return items[0] if items else None

    @property
    def parts(self) -> tuple[Value, ...]:
        return (*self.keys, *self.items)


@dataclass(frozen=True, eq=False, repr=False)
class Either(Value):
    """One of several values, by the path that the program took. Never nested; never empty.

    default
        Of a setting of the command line or of a file: its value by default. None where the path alone decides."""

    options: tuple[Value, ...] = ()
    default: Value | None = None

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.options


def options(value: Value | None) -> tuple[Value, ...]:
    """The values that it may be: those of an Either, else itself alone; () for None."""
    if value is None:
        return ()
    return value.options if isinstance(value, Either) else (value,)


def leaves(value: Value | None, is_leaf: Callable[[Collection], bool] | None = None) -> Iterator[Value]:
    """What a structure of lists, tuples, sets and dicts holds, in order and each once: forty lines of `x = [x, x]` hold
    the first one 2^40 times. `is_leaf`: whether a list or the like counts as a whole."""
    waiting, seen = [*reversed(options(value))], set[int]()
    while waiting:
        option = waiting.pop()
        if id(option) in seen:
            continue
        seen.add(id(option))
        if isinstance(option, Collection) and not (is_leaf is not None and is_leaf(option)):
            waiting += [choice for item in reversed(option.items) for choice in reversed(options(item))]
        else:
            yield option


def by_default(value: Value | None) -> Value | None:
    """The value where the command line says nothing: of an option its default."""
    return value.default or value if isinstance(value, Either) else value


def known(value: Value | None) -> Any:
    """The Python constant that it is, of an option of the command line its default; else MISSING."""
    value = by_default(value)
    return value.value if isinstance(value, Known) else MISSING


def certainly_known(value: Value | None) -> Any:
    """The Python constant that it is whatever the command line says, else MISSING."""
    return value.value if isinstance(value, Known) else MISSING


def agreed(choices: Iterable[Choice]) -> Choice | None:
    """What each of them is; None where they differ, or there is none."""
    distinct = set(choices)
    return distinct.pop() if len(distinct) == 1 else None


def walk(value: Value | None) -> Iterator[Value]:
    """The value and everything that it was made from, each once, nearest first."""
    waiting = [value] if value is not None else []
    seen = set(waiting)
    for item in waiting:
        yield item
        for part in item.parts:
            if part not in seen:
                seen.add(part)
                waiting.append(part)


def is_api(value: Value | None, *names: str) -> bool:
    """Whether it is for certain one of these library names, synonyms included."""
    if isinstance(value, Api):  # asked for each call, by most rules
        return public_name(value.name) in _public_names(names)
    return isinstance(value, Either) and all(is_api(option, *names) for option in value.options)

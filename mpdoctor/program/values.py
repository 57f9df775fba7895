"""Symbolic values: what an expression of the user's stands for, and where it came from.

The source stage runs no code. It turns each expression into one of these values; together they form a graph
(a value may be part of many others), so they compare by identity. Rules match on them instead of on syntax:
`opt = wrap(Adam()); print(opt.lr)` and `mp.LossScaleOptimizer(Adam()).lr` read the same attribute of the same
value.

Ask with the functions below: `options` first, because a name may hold one of several things, then
`isinstance(value, Call)`, `known(value)`, `value.argument(…)`, `is_instance_of(value, …)`, `walk(value)`.
"""

from __future__ import annotations

from dataclasses import field
from functools import lru_cache
from typing import Any, Iterator, Mapping

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.api_parameters import PARAMETERS

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
        What the body has made of the name when it begins again, by the path that it took; () while it is walked."""

    branches: int = 0
    ends: list[Value] = field(default_factory=list, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Known(Value):
    """A constant: a literal, or simple arithmetic on literals (2**15, -1e9, "mixed_" + "float16")."""

    value: Any = None

    def __repr__(self) -> str:
        return f"<Known {self.value!r}>"


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
        """Whether this is one of these library names, synonyms included (see `facts.names.public_name`)."""
        return public_name(self.name) in _public_names(names)


@lru_cache(maxsize=None)
def _public_names(names: tuple[str, ...]) -> frozenset[str]:
    """Rules ask with the same few tuples, millions of times in a large project."""
    return frozenset(map(public_name, names))


@dataclass(frozen=True, eq=False, repr=False)
class Parameter(Value):
    """A parameter of a function of the user's whose callers are not known (so also: of `Layer.call`).

    index
        Its position, `self` counted, -1 for keyword-only ones, *args and **kwargs.
    default
        Its default value, None where it has none.
    """

    name: str = ""
    index: int = -1
    function: FunctionFacts | None = field(default=None, repr=False)
    default: Value | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False, repr=False)
class Call(Value):
    """A call, and also its result: an instance where a class is called.

    args, keywords
        Positional arguments without `*rest`; (name, value) pairs, with those of a literal `**{...}`.
    open
        True if `*rest` or `**rest` may hand over more arguments than are seen here.
    result
        Where a function of the user's own was followed: what it returned for these arguments. The expression
        that calls it then stands for that result, and this Call is only an event in `SourceFacts.calls`.
    yielded
        Of a generator of the user's own that was followed: what it gives, one after the other.
    dropped
        True if the call is a statement of its own, so that nobody keeps its result.
    order
        Position in program order, comparable with that of every other event.
    """

    callee: Value = field(default_factory=Unknown)
    args: tuple[Value, ...] = ()
    keywords: tuple[tuple[str, Value], ...] = ()
    context: Context = field(default_factory=lambda: Context(), repr=False)
    order: int = field(default=0, repr=False)
    open: bool = False
    dropped: bool = field(default=False, repr=False)
    result: Value | None = field(default=None, repr=False)
    yielded: Value | None = field(default=None, repr=False)

    def keyword(self, name: str) -> Value | None:
        """The value of one keyword argument, None where it is not given."""
        for key, value in self.keywords:
            if key == name:
                return value
        return None

    def argument(self, position: int | None, keyword: str | None = None) -> Value | None:
        """One argument by position (from 0, `self` not counted) or by name; None where it is not given. Of TensorFlow's
        and Keras' functions on tensors the names are known: `argument(0)` is `x` in tf.abs(x=…).

        With `open`, None means "not seen" and not "left out"."""
        if position is not None and position < len(self.args):
            return self.args[position]
        if not self.keywords:
            return None
        found = self.keyword(keyword) if keyword is not None else None
        return self._named(position) if found is None and position is not None else found

    @property
    def given(self) -> tuple[Value, ...]:
        """All arguments, those by position first."""
        return (*self.args, *(value for _, value in self.keywords))

    def arguments(self, positions: slice) -> tuple[Value, ...]:
        """Those at these positions that are given, in order, by position or by name. Rules ask for them and for
        `argument`, and never for `args[0]`: a call may have none."""
        if not self.keywords:
            return self.args[positions]
        asked = range(len(self.args) + len(self.keywords))[positions]
        return tuple(value for value in map(self.argument, asked) if value is not None)

    def _named(self, position: int) -> Value | None:
        names = PARAMETERS.get(public_name(self.callee.name), ()) if isinstance(self.callee, Api) else ()
        return self.keyword(names[position]) if position < len(names) else None

    @property
    def method(self) -> str:
        """The last part of what is called: "fit" for model.fit(…), "Dense" for keras.layers.Dense(…), else
        ""."""
        if isinstance(self.callee, Attribute):
            return self.callee.name
        if isinstance(self.callee, Api):
            return self.callee.name.rpartition(".")[2]
        return self.callee.of.name if isinstance(self.callee, Defined) else ""

    @property
    def receiver(self) -> Value | None:
        """`model` in model.fit(…); None for a call of a plain function or class. The receiver of a method of
        the user's own class is `callee.bound`, which is what this gives."""
        if isinstance(self.callee, Attribute):
            return self.callee.of
        return self.callee.bound if isinstance(self.callee, Defined) else None

    @property
    def parts(self) -> tuple[Value, ...]:
        if not self.keywords:
            return (self.callee, *self.args)
        return (self.callee, *self.args, *[argument for _, argument in self.keywords])


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
class Operation(Value):
    """`left + right`, `-x`, `a < b`, `not a`, `a and b`: operators as Python writes them, one or more
    operands.

    `x += y` is the operation "+" with `augmented` True."""

    operator: str = ""
    operands: tuple[Value, ...] = ()
    context: Context = field(default_factory=lambda: Context(), repr=False)
    order: int = field(default=0, repr=False)
    augmented: bool = False

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.operands


@dataclass(frozen=True, eq=False, repr=False)
class Collection(Value):
    """A list, tuple, set or dict that the program writes out. `kind` is "list", "tuple", "set" or "dict".

    keys
        Of a dict, in the order of `items`; () for the others.
    open
        True if it may hold more than is seen here (a `*rest`, an append in a loop).
    ending
        Of an open one: how many of its last items stand behind all that is not seen (`[*rest, head]`: 1).
    uniform
        True for what a comprehension makes where its one item stands for each element, whatever their number.
    """

    kind: str = "list"
    items: tuple[Value, ...] = ()
    keys: tuple[Value, ...] = ()
    open: bool = False
    ending: int = 0
    uniform: bool = False

    def entry(self, key: Any) -> Value | None:
        """The value of a literal key of a dict, or of a position; None where it is not seen."""
        if self.kind == "dict":
            found = [item for name, item in zip(self.keys, self.items) if known(name) == key]
            return found[-1] if found else None
        in_range = isinstance(key, int) and -len(self.items) <= key < len(self.items)
        return self.items[key] if in_range and not (self.open and key < 0) else None

    @property
    def parts(self) -> tuple[Value, ...]:
        return (*self.keys, *self.items)


@dataclass(frozen=True, eq=False, repr=False)
class Either(Value):
    """One of several values, by the path that the program took. Never nested; never empty."""

    options: tuple[Value, ...] = ()

    @property
    def parts(self) -> tuple[Value, ...]:
        return self.options


@dataclass(frozen=True, eq=False, repr=False)
class Defined(Value):
    """A class or function of the user's own (or a lambda). `bound` is the object whose method it is."""

    of: ClassFacts | FunctionFacts = field(default_factory=lambda: FunctionFacts())
    bound: Value | None = None

    @property
    def parts(self) -> tuple[Value, ...]:
        return () if self.bound is None else (self.bound,)


@dataclass(frozen=True, eq=False, repr=False)
class Instance(Value):
    """`self` in a method of the user's own class, whichever instance it is. What is known of it is in
    `of.attributes`."""

    of: ClassFacts = field(default_factory=lambda: ClassFacts())


@dataclass(frozen=True, eq=False)
class FunctionFacts:
    """A function, method or lambda of the user's.

    name, qualified
        "call" and "MyLayer.call"; a lambda is "<lambda>".
    parameters
        Names in order, `self` included, keyword-only ones last; `*args` and `**kwargs` with their stars.
    defaults
        Default value by parameter name.
    owner
        The class whose method it is.
    enclosing
        The function that it is defined in, if any.
    location
        Its name in the `def` line.
    """

    name: str = ""
    qualified: str = ""
    parameters: tuple[str, ...] = ()
    defaults: Mapping[str, Value] = field(default_factory=dict, repr=False)
    decorators: tuple[Value, ...] = field(default=(), repr=False)
    owner: ClassFacts | None = field(default=None, repr=False)
    enclosing: FunctionFacts | None = field(default=None, repr=False)
    location: Location = field(default=NOWHERE, repr=False)

    def decorated_by(self, *names: str) -> bool:
        """Whether one of these library names decorates it, called (`@tf.function(jit_compile=True)`) or
        not."""
        for decorator in self.decorators:
            made = decorator.callee if isinstance(decorator, Call) else decorator
            if isinstance(made, Api) and made.is_(*names):
                return True
        return False


@dataclass(frozen=True, eq=False)
class ClassFacts:
    """A class of the user's.

    bases
        As values: Api for a library's class, Defined for the user's own.
    kind
        What it is to Keras, through all its own bases: "layer", "model", "optimizer", "metric", "loss",
        "callback", or None. (A model is a layer to Keras; here it is a "model".)
    methods
        By name, only those that stand in this class; `find_method` looks into the user's own bases too.
    attributes
        What `self.x = …` assigned, in __init__ and build first, and what stands in the class body. Where
        instances differ or several lines assign it: an Either.
    base_arguments
        Keyword arguments of its `super().__init__(…)` call to a library's class: `dtype`, `autocast`, `name`
        …
    location
        Its name in the `class` line.
    """

    name: str = ""
    bases: tuple[Value, ...] = ()
    kind: str | None = None
    methods: Mapping[str, FunctionFacts] = field(default_factory=dict, repr=False)
    attributes: dict[str, Value] = field(default_factory=dict, repr=False)
    base_arguments: dict[str, Value] = field(default_factory=dict, repr=False)
    location: Location = field(default=NOWHERE, repr=False)

    def lineage(self) -> Iterator[ClassFacts]:
        """The class and its own bases, nearest first."""
        seen, waiting = set(), [self]
        while waiting:
            one = waiting.pop(0)
            if id(one) in seen:
                continue
            seen.add(id(one))
            yield one
            for base in one.bases:
                waiting.extend(o.of for o in options(base) if isinstance(o, Defined) and isinstance(o.of, ClassFacts))

    def base_argument(self, name: str) -> Value | None:
        """What it, or the nearest of the user's own bases that does, hands to `super().__init__(…)` by this name. For a
        parameter that is handed on this is its default."""
        for ancestor in self.lineage():
            given = ancestor.base_arguments.get(name)
            found = [v.default if isinstance(v, Parameter) and v.default is not None else v for v in options(given)]
            if found:
                return found[0] if len(found) == 1 else Either(found[0].location, tuple(found))
        return None

    def find_method(self, name: str) -> FunctionFacts | None:
        """The method as written in this class or in the nearest of the user's own bases."""
        return next((ancestor.methods[name] for ancestor in self.lineage() if name in ancestor.methods), None)

    def library_bases(self) -> Iterator[Api]:
        """Every library class that it derives from."""
        for ancestor in self.lineage():
            for base in ancestor.bases:
                yield from (option for option in options(base) if isinstance(option, Api))


@dataclass(frozen=True, eq=False)
class Branch:
    """One arm of an `if` that surrounds an event. `statement` tells apart two ifs; `taken` is False for the
    else arm. What follows an `if` of which one arm ends in return, raise, break … is in the other arm too;
    `only` is then True if the arm that ended raises or exits, so that the program comes here or nowhere.
    `parts` have the same answer as `test` where that is certain: both of `a and b` where it is taken, of `a or b`
    where it is not."""

    statement: int
    taken: bool
    test: Value = field(default_factory=Unknown, repr=False)
    only: bool = False
    parts: tuple[Value, ...] = field(default=(), repr=False)


@dataclass(frozen=True, eq=False)
class Context:
    """What surrounds an event.

    function, owner
        The function that it stands in, and that function's class.
    withs
        Values of the enclosing `with` statements, outermost first: a Call of tensorflow.GradientTape,
        strategy.scope() … Those of the callers of a followed function are included.
    guarded
        True if the program itself asks whether this works: inside a `try` with an `except`, behind hasattr,
        getattr, dir, isinstance or a version check, or in `pytest.raises`. Rules about missing names stay
        silent here.
    only_unwrapped
        True if that is nothing but the question whether an optimizer is a LossScaleOptimizer, and it is none here.
    branches
        The enclosing if arms, outermost first, callers' included.
    loops, comprehensions
        How many loops surround it, callers' included, and how many of them are comprehensions: what is made there is
        made once for each element, though one value stands for all.
    reached
        True if running the file gets here (module level, what it calls, what it hands to a library). False
        for functions that nobody calls: they are walked with `Parameter`s, and what came before them is not
        known.
    run
        0 for the program itself; another number for each function that was walked on its own.
    callers
        The calls that were followed to get here, outermost first.
    swallowed
        The `except` clause that would hide a failure here: it passes, or only tells. None where there is none.
    """

    function: FunctionFacts | None = None
    owner: ClassFacts | None = None
    withs: tuple[Value, ...] = ()
    guarded: bool = False
    branches: tuple[Branch, ...] = ()
    loops: int = 0
    reached: bool = True
    run: int = 0
    callers: tuple[Location, ...] = ()
    swallowed: Location | None = None
    comprehensions: int = 0
    only_unwrapped: bool = False

    @property
    def asks_what_exists(self) -> bool:
        return self.guarded and not self.only_unwrapped

    def but(self, **changes: Any) -> Context:
        """The same, some of it changed. (Asked for at each `if`; `dataclasses.replace` takes four times as long.)"""
        new, asks = changes.get, "guarded" in changes
        return Context(
            new("function", self.function),
            new("owner", self.owner),
            new("withs", self.withs),
            new("guarded", self.guarded),
            new("branches", self.branches),
            new("loops", self.loops),
            new("reached", self.reached),
            new("run", self.run),
            new("callers", self.callers),
            new("swallowed", self.swallowed),
            new("comprehensions", self.comprehensions),
            new("only_unwrapped", self.only_unwrapped and not asks),
        )


def options(value: Value | None) -> tuple[Value, ...]:
    """The values that it may be: those of an Either, else itself alone; () for None."""
    if value is None:
        return ()
    return value.options if isinstance(value, Either) else (value,)


def known(value: Value | None) -> Any:
    """The Python constant that it is for certain, else MISSING."""
    return value.value if isinstance(value, Known) else MISSING


def walk(value: Value | None) -> Iterator[Value]:
    """The value and everything that it was made from, each once, nearest first."""
    waiting = [value] if value is not None else []
    seen = {id(value)}
    for item in waiting:
        yield item
        for part in item.parts:
            if id(part) not in seen:
                seen.add(id(part))
                waiting.append(part)


def is_api(value: Value | None, *names: str) -> bool:
    """Whether it is for certain one of these library names, synonyms included."""
    if isinstance(value, Api):  # asked for each call, by most rules
        return public_name(value.name) in _public_names(names)
    return isinstance(value, Either) and all(is_api(option, *names) for option in value.options)


def is_call_of(value: Value | None, *names: str) -> bool:
    """Whether it is for certain the result of calling one of these library functions or classes itself."""
    if isinstance(value, Call):
        return is_api(value.callee, *names)
    return isinstance(value, Either) and all(is_call_of(option, *names) for option in value.options)


def is_instance_of(value: Value | None, *names: str) -> bool:
    """Whether it is for certain an instance of one of these library classes, or of a class of the user's own
    below it."""
    choices = options(value)
    return bool(choices) and all(_is_one_instance(option, names) for option in choices)


def may_be_instance_of(value: Value | None, *names: str) -> bool:
    """Whether at least one of the things that it may be is such an instance."""
    return any(_is_one_instance(option, names) for option in options(value))


def class_of(value: Value) -> ClassFacts | None:
    """The user's own class that it is an instance of."""
    if isinstance(value, Instance):
        return value.of
    made = value.callee if isinstance(value, Call) else None
    return made.of if isinstance(made, Defined) and isinstance(made.of, ClassFacts) else None


def _is_one_instance(value: Value, names: tuple[str, ...]) -> bool:
    if isinstance(value, Call) and is_api(value.callee, *names):
        return True
    own = class_of(value)
    return own is not None and any(base.is_(*names) for base in own.library_bases())

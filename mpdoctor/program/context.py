"""Where in the program an event stands: its function, and the branches, loops and `with` statements around it."""

from __future__ import annotations

from dataclasses import field, fields
from operator import attrgetter
from typing import Any, Iterator

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.program.values import Known, Unknown, Value, walk


@dataclass(frozen=True, eq=False)
class Branch:
    """One arm of an `if` that surrounds an event. `statement` tells apart two ifs; `taken` is False for the
    else arm. What follows an `if` of which one arm ends in return, raise, break … is in the other arm too;
    `only` is then True if the arm that ended raises or exits, so that the program comes here or nowhere.
    `parts` have the same answer as `test` where that is certain: both of `a and b` where it is taken, of `a or b`
    where it is not. `question` is what is asked, in words, and the answer in this arm, where `test` is a constant."""

    statement: int
    taken: bool
    test: Value = field(default_factory=Unknown, repr=False)
    only: bool = False
    parts: tuple[Value, ...] = field(default=(), repr=False)
    question: tuple[str, bool] | None = field(default=None, repr=False)


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
        True if it is guarded only by the question whether an optimizer is a LossScaleOptimizer, which it is not here.
    only_wrapped
        True if it is guarded only by the question for a method that only the LossScaleOptimizer of Keras 2 has
        (`hasattr(optimizer, "get_scaled_loss")`), which the optimizer has here: what a loop does with the loss scale,
        it does here or nowhere.
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
    runtime_swallowed
        The same of the `except` clause that would hide a RuntimeError, of TensorFlow's devices for one.
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
    runtime_swallowed: Location | None = None
    comprehensions: int = 0
    only_unwrapped: bool = False
    only_wrapped: bool = False

    @property
    def asks_what_exists(self) -> bool:
        return self.guarded and not self.only_unwrapped

    def asked(self) -> Iterator[Value]:
        """Everything that the tests of the `if`s around it are made of."""
        return (value for branch in self.branches for value in walk(branch.test))

    def still_inside(self, later: Context) -> Context:
        """The context behind a part of the program that entered a context manager by a call and did not leave it."""
        return self if later.withs is self.withs else self.but(withs=later.withs)

    def but(self, **changes: Any) -> Context:
        """A copy with these fields changed. (Needed at each `if`; `dataclasses.replace` takes ten times as long.)"""
        if "guarded" in changes:
            changes.setdefault("only_unwrapped", False)
            changes.setdefault("only_wrapped", False)
        copy = Context(*_values(self))
        for name, value in changes.items():
            setattr(copy, name, value)
        return copy


_values = attrgetter(*(field.name for field in fields(Context)))


@dataclass(frozen=True, eq=False, repr=False)
class Said(Known):
    """The name of a 16-bit policy as the program writes it out, and where: "mixed_float16" in `"mixed_float16" if
    args.mixed else "float32"`."""

    context: Context = field(default_factory=Context)

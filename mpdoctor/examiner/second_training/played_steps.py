"""Records the training calls and their batches in order, so that they can be repeated."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Callable, Iterable

import numpy as np
import tensorflow as tf

from mpdoctor.examiner.keras.private_state import given_learning_rate

if TYPE_CHECKING:
    from typing import List, Tuple

    from mpdoctor.examiner.keras.adapter import KerasOptimizer

    Rates = List[Tuple[KerasOptimizer, float]]

MOST_BYTES = 2**28  # of batches that are held: beyond, none are
ITERATES = ("IteratorGetNext", "IteratorGetNextSync", "ReduceDataset", "ScanDataset", "AnonymousIterator")


class PlayedStep:
    """One call.

    owner
        Whose call it is: the training call, or the tf.function itself.
    given
        What it was called with: a batch, or (args, kwargs).
    rates
        The learning rates that it was run with.
    moved
        Whether an optimizer took a step in it.
    """

    def __init__(self, owner: object, run: Callable[..., object], given: Any, rates: Rates, moved: bool) -> None:
        self.owner, self.given, self.rates, self.moved = owner, given, rates, moved
        self._run = run

    @property
    def is_function(self) -> bool:
        return hasattr(self.owner, "get_concrete_function")

    def run(self) -> None:
        for optimizer, rate in self.rates:
            if _rate_of(optimizer) != rate:
                optimizer.learning_rate = rate  # type: ignore[attr-defined]
        self._run(self.given)


class PlayedSteps:
    """problem: why they cannot be run once more, a clause; "" where they can."""

    def __init__(self) -> None:
        self.all: list[PlayedStep] = []
        self.problem = ""
        self._bytes = 0
        self._held: set[int] = set()  # tensors, by identity

    def note(self, step: PlayedStep) -> None:
        if self.problem:
            return
        given = step.given
        try:
            parts, own = tf.nest.flatten(given, expand_composites=True), tf.nest.map_structure(_own, given)
        except (TypeError, ValueError):  # a dictionary whose keys have no order
            self.give_up("what the step was given cannot be taken apart")
            return
        if any(map(_is_iterator, parts)):
            self.give_up("the step takes its batches from an iterator, which gives each of them once")
            return
        self._bytes += sum(map(self._bytes_held, parts))
        if self._bytes > MOST_BYTES:
            self.give_up(f"its batches take more than {MOST_BYTES >> 20} MB")
            return
        step.given = own
        self.all.append(step)

    def _bytes_held(self, value: object) -> int:
        """How many bytes it takes to hold this too; 0 of a tensor that is held already."""
        if isinstance(value, np.ndarray):
            return int(value.nbytes)
        if not isinstance(value, tf.Tensor) or id(value) in self._held:
            return 0
        self._held.add(id(value))
        return int((value.shape.num_elements() or 0) * value.dtype.size)

    def give_up(self, problem: str) -> None:
        self.problem = self.problem or problem
        self.all.clear()

    def takes_steps(self, owner: object) -> bool:
        """Whether calls of this owner hold steps of an optimizer."""
        return any(step.moved for step in self.all if step.owner is owner)

    def firsts(self) -> list[PlayedStep]:
        """The first call of each owner."""
        return list({id(step.owner): step for step in reversed(self.all)}.values())


def learning_rates(optimizers: Iterable[KerasOptimizer]) -> Rates:
    """The learning rates, as numbers, of the optimizers that have one and no schedule."""
    numbers = ((optimizer, _rate_of(optimizer)) for optimizer in optimizers)
    return [(optimizer, rate) for optimizer, rate in numbers if rate is not None]


def _rate_of(optimizer: KerasOptimizer) -> float | None:
    """The learning rate that the program gave as a number or variable; None for a schedule, or where replicas
    differ."""
    rate = given_learning_rate(optimizer)
    if callable(rate) or not hasattr(rate, "dtype"):
        return None
    try:
        return float(rate)
    except (TypeError, ValueError):  # a variable of which each replica has its own
        return None


def takes_from_data_set(step: PlayedStep) -> bool:
    """Whether the graph of a tf.function reads batches from a data set."""
    function: Any = step.owner
    args, kwargs = step.given
    graph = function.get_concrete_function(*args, **kwargs).graph.as_graph_def()
    inside = [node for inner in graph.library.function for node in inner.node_def]
    return any(node.op in ITERATES for node in [*graph.node, *inside])


def _is_iterator(value: object) -> bool:
    dtype = getattr(value, "dtype", None)  # an older NumPy's cannot be compared with TensorFlow's
    is_handle = isinstance(dtype, tf.DType) and dtype in (tf.resource, tf.variant)
    return (is_handle and not hasattr(value, "assign")) or hasattr(value, "__next__")


def _own(value: object) -> object:
    """A program may write its next batch into the same array."""
    return value.copy() if isinstance(value, np.ndarray) else value

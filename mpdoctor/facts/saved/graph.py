"""A saved inference graph without loss and optimizer: it can be inspected, but not trained."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass


@dataclass(frozen=True)
class TensorSpecFacts:
    """An input or output of a signature. None stands for an unknown dimension; `shape` is None where even their number
    is not known."""

    name: str
    dtype: str
    shape: tuple[int | None, ...] | None = None


@dataclass(frozen=True)
class SignatureFacts:
    """What the graph can be asked for by name."""

    name: str
    inputs: tuple[TensorSpecFacts, ...] = ()
    outputs: tuple[TensorSpecFacts, ...] = ()


@dataclass(frozen=True)
class SavedVariableFacts:
    """A variable that the graph reads. `size` is its number of elements."""

    name: str
    dtype: str
    size: int


@dataclass(frozen=True)
class OpFacts:
    """All operations of one kind that compute in one floating-point dtype.

    widened
        How many of them have a result that is cast to float32 or wider, and used in no other way.
    limited
        How many of them can't leave float16's range, because of what their input is: `exp(x - max(x))`, a mask.
    inner
        How many of them take what comes from the graph's inputs, and are no head: they hand their result on to another
        operation of TensorFlow's allow list, or take nothing that a 16-bit one gave.
    examples
        Names of the first few, those that are neither widened nor limited before the others.
    """

    op: str
    dtype: str
    count: int
    widened: int = 0
    limited: int = 0
    inner: int = 0
    examples: tuple[str, ...] = ()


@dataclass(frozen=True)
class CastFacts:
    """How many casts there are from one floating-point dtype to another."""

    source: str
    target: str
    count: int


@dataclass(frozen=True)
class SavedGraphFacts:
    """A SavedModel's graph: what its signatures reach (where it has none, its functions), library functions and the
    bodies of loops included.

    path
        The directory.
    because
        Why it is inspected and not trained, in words.
    saved_by
        TensorFlow's version, "" where the file does not say.
    tags
        Of the graph that was looked at, of those in the file.
    nodes
        How many operations are reached.
    """

    path: str
    because: str
    saved_by: str = ""
    tags: tuple[str, ...] = ()
    signatures: tuple[SignatureFacts, ...] = ()
    variables: tuple[SavedVariableFacts, ...] = ()
    ops: tuple[OpFacts, ...] = ()
    casts: tuple[CastFacts, ...] = ()
    nodes: int = 0

    def ops_in(self, dtype: str, names: frozenset[str]) -> tuple[OpFacts, ...]:
        """The facts of the operations with these names that compute in `dtype`, sorted by name."""
        return tuple(op for op in self.ops if op.dtype == dtype and op.op in names)

"""A recorded training as facts: rows of steps, what happened among them, and how it ended."""

from __future__ import annotations

from mpdoctor.facts.frozen import dataclass


@dataclass(frozen=True)
class StepsRow:
    """Steps in a row, to `last`, from 1 on: how many there are, how many of them were skipped, the loss scale after the
    last, the least and the largest."""

    last: int
    steps: int
    skipped: int
    scale: float
    low: float
    high: float

    @property
    def first(self) -> int:
        return self.last - self.steps + 1


@dataclass(frozen=True)
class RunEvent:
    """Something that happened between the steps of a recorded training.

    kind
        "stuck", "collapsing", "skipping", "recovered", "started", "not_measured", "end".
    since
        The first of the skipped steps that it tells of, 0 where there is none.
    text
        As the training told it. layer, variable, file, line: what the replayed batch named.
    how
        Of an end: "finished", "stopped", "raised ValueError".
    """

    kind: str
    step: int
    since: int = 0
    epoch: int | None = None
    text: str = ""
    layer: str = ""
    layer_class: str = ""
    variable: str = ""
    file: str = ""
    line: int = 0
    kept: str = ""
    how: str = ""
    not_replayed: str = ""


@dataclass(frozen=True)
class MeasuredPart:
    """A layer's output or a variable's gradient over the steps that were measured.

    dtype
        That it was computed in.
    first, last, largest
        The largest magnitude among its finite elements: in the first measured step, in the last, and in `largest_step`.
        Of gradients as the loss scale had scaled them.
    zero, subnormal
        The largest shares of its elements that were 0, or between 0 and float16's smallest normal number.
    not_finite, not_finite_step
        The largest share that was inf or NaN, and the first step with any; 0 where there was none.
    """

    name: str
    kind: str
    dtype: str
    first: float
    last: float
    largest: float
    largest_step: int
    zero: float = 0.0
    subnormal: float = 0.0
    not_finite: float = 0.0
    not_finite_step: int = 0


@dataclass(frozen=True)
class RunSeries:
    """The steps of one optimizer in one worker.

    keras
        Package and version: "keras 3.15.1", "tf_keras 2.21.0", "tf.keras 2.4.0".
    epochs
        (number from 0 on, its last step), of each that ended.
    passed_over
        Lines of the file that were none: cut by a job that was killed, or damaged.
    measured
        What was measured of layers and gradients, in the order in which a step computes them; `measured_steps` are how
        many steps of that are in the file.
    """

    file: str
    number: int
    model: str
    optimizer: tuple[str, ...]
    keras: str
    tensorflow: str
    initial_scale: float
    is_dynamic: bool
    worker: int
    every: int
    rows: tuple[StepsRow, ...]
    growth_interval: int | None = None
    floor: float | None = None
    events: tuple[RunEvent, ...] = ()
    epochs: tuple[tuple[int, int], ...] = ()
    passed_over: int = 0
    measured: tuple[MeasuredPart, ...] = ()
    measured_steps: int = 0

    @property
    def steps(self) -> int:
        return sum(row.steps for row in self.rows)

    @property
    def skipped(self) -> int:
        return sum(row.skipped for row in self.rows)

    @property
    def name(self) -> str:
        """The name of the model, with the worker's number for every worker but the first."""
        return f"{self.model} (worker {self.worker})" if self.worker else self.model

    def epoch_of(self, step: int) -> int | None:
        """The epoch of a step, counted from 0; for a step after the last finished epoch, the one after that."""
        if not self.epochs:
            return None
        return next((epoch for epoch, last in self.epochs if step <= last), self.epochs[-1][0] + 1)

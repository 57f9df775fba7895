"""Compared: the result of `mpdoctor compare`, a short training and timed steps under each dtype policy."""

from __future__ import annotations

from statistics import median

from mpdoctor.facts.examination import ProfileFacts, TimingFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Diagnosis, Probe


@dataclass(frozen=True)
class Ratio:
    """How many times as fast: the median of the rounds, and the lowest and the highest of them."""

    middle: float
    low: float
    high: float

    @property
    def is_clear(self) -> bool:
        """Whether it is not 1 in every round, to the same side."""
        return self.low > 1 or self.high < 1


@dataclass(frozen=True)
class PolicyRun:
    """One policy.

    diagnosis
        Of a check under it: the verdict, the losses, the layers.
    timings
        One a round; None where that round brought none.
    not_timed
        Why a round brought none, a clause; "" where each did.
    """

    policy: str
    diagnosis: Diagnosis
    timings: tuple[TimingFacts | None, ...] = ()
    not_timed: str = ""

    @property
    def probe(self) -> Probe | None:
        """The short training; of a program that trains several models, the first one."""
        return next(iter(self.diagnosis.probes), None)

    @property
    def known(self) -> list[TimingFacts]:
        return [timing for timing in self.timings if timing is not None]

    @property
    def seconds(self) -> float | None:
        """Seconds per training step: the median of the rounds' medians. None where nothing was timed."""
        return median(_seconds(timing) for timing in self.known) if self.known else None

    @property
    def between(self) -> float | None:
        """The share of a step that passes between two steps."""
        if not self.known:
            return None
        return median(median(between / took for took, between in timing.blocks) for timing in self.known)

    @property
    def profile(self) -> ProfileFacts | None:
        """The profile of the first timed round that has one."""
        return next((timing.profile for timing in self.known if timing.profile is not None), None)

    @property
    def casts(self) -> int | None:
        """Between 32 and 16 bits in the graph of the step."""
        return next((timing.casts for timing in self.known if timing.casts is not None), None)

    @property
    def resident_peak(self) -> int | None:
        return max((timing.resident_peak for timing in self.known if timing.resident_peak is not None), default=None)

    @property
    def resident_growth(self) -> int | None:
        """Bytes by which the process grew from the beginning of the training to its peak, at most over all rounds."""
        grown = [
            timing.resident_peak - timing.resident_before
            for timing in self.known
            if timing.resident_peak is not None and timing.resident_before is not None
        ]
        return max(grown, default=None)

    @property
    def device_peak(self) -> int | None:
        return max((timing.device_peak for timing in self.known if timing.device_peak is not None), default=None)

    @property
    def losses(self) -> list[float | None]:
        return [] if self.probe is None else [step.loss for step in self.probe.training.steps]


@dataclass(frozen=True)
class Compared:
    """`runs`: the first one is what the others are compared with."""

    runs: tuple[PolicyRun, ...]
    rounds: int

    @property
    def base(self) -> PolicyRun:
        return self.runs[0]

    def speed(self, run: PolicyRun) -> Ratio | None:
        """How many times as fast as the first one's its steps are; of the rounds that timed both."""
        both = [(first, own) for first, own in zip(self.base.timings, run.timings, strict=True) if first and own]
        if not both:
            return None
        ratios = [_seconds(first) / _seconds(own) for first, own in both]
        return Ratio(median(ratios), min(ratios), max(ratios))

    @property
    def exit_code(self) -> int:
        """3: mpdoctor itself broke. 2: fewer than two policies have a time or a training to compare."""
        if any(run.diagnosis.crashed for run in self.runs):
            return 3
        shown = [run for run in self.runs if run.known or any(loss is not None for loss in run.losses)]
        return 0 if len(shown) > 1 else 2


def _seconds(timing: TimingFacts) -> float:
    return median(took for took, _ in timing.blocks)

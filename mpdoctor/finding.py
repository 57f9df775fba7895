"""The results of mpdoctor: findings, skipped and crashed parts, and the diagnosis that holds them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import Enum
from typing import Any

from mpdoctor.facts.failure import MendedFacts
from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.processes import StartedProgram
from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.facts.saved.graph import SavedGraphFacts
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.recorded.run_facts import RunSeries

NO_RUN = ("MP002", "MP003", "MP004")  # the codes of findings that say why nothing, or not all, was run


class Severity(str, Enum):
    """How bad it is. ERROR: it raises, or training is silently wrong. WARNING: accuracy or speed is probably
    lost. INFO: advice, which never fails a run by default."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """The order of severities: 0 for info, 1 for warning, 2 for error."""
        return ("info", "warning", "error").index(self.value)


class Verdict(str, Enum):
    """What a short training looked like, in one word. `mpdoctor.semantics.live.verdict` says when it is which."""

    HEALTHY = "healthy"
    SETTLING = "settling"
    STUCK = "stuck"
    COLLAPSING = "collapsing"
    OVERFLOWING = "overflowing"
    NOT_FINITE = "not-finite"
    NO_UPDATE = "no-update"
    FAILED = "failed"
    INCONCLUSIVE = "inconclusive"


@dataclass(frozen=True)
class Excerpt:
    """Source lines around a finding; `first_line` is the number of the first of them."""

    first_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True)
class AlsoSeen:
    """Another sight of the same defect: by another rule, or by another stage."""

    code: str
    stage: str
    text: str
    path: str | None = None
    line: int | None = None
    cell: int = 0


@dataclass(frozen=True)
class Edit:
    """A span of a file and the text that takes its place. A span without width is where text is put in.

    text
        Its lines end in a line feed, whatever those of the file end in: they are written with the file's own."""

    location: Location
    text: str


@dataclass(frozen=True)
class Fix:
    """Edits of the source that mend a finding, all of them or none.

    title
        What they do, in a few words: "Read it from `inner_optimizer`".
    safe
        Whether the program means the same afterwards, or raised before. A fix that changes its numbers or its layers
        needs `--unsafe-fixes`."""

    title: str
    safe: bool
    edits: tuple[Edit, ...]


@dataclass(frozen=True)
class Finding:
    """One defect, told to the user.

    A rule gives message, help, location and evidence, and a severity only where it differs from the rule's own;
    the rest is filled in by the registry and the pipeline.

    message
        One or two plain sentences: the thing by name, then the consequence, in numbers where they are known.
    help
        The change to make, as concrete as it can be: best a line of code.
    fix
        The same as edits, where the rule knows them to the letter.
    remedies
        What was tried against it, on the batches of the training that failed.
    """

    message: str
    help: str
    location: Location | None = None
    model: str | None = None
    layer: str | None = None
    evidence: Mapping[str, Any] = field(default_factory=dict)
    severity: Severity | None = None
    code: str = ""
    name: str = ""
    stage: str = ""
    target: str = ""
    what_if: bool = False
    excerpt: Excerpt | None = None
    also_seen: tuple[AlsoSeen, ...] = ()
    fix: Fix | None = None
    fingerprint: str = ""
    remedies: tuple[RemedyFacts, ...] = ()

    def fails_a_run(self, fail_on: Severity) -> bool:
        """Whether this is bad enough. What would be under another policy never is."""
        return not self.what_if and self.severity is not None and self.severity.rank >= fail_on.rank


@dataclass(frozen=True)
class Skipped:
    """A rule or a stage that did not look, and why: "nothing ran" is not "passed"."""

    code: str
    reason: str


@dataclass(frozen=True)
class Crashed:
    """A rule or a reporter that broke. The other findings still stand."""

    code: str
    where: str
    error: str


@dataclass(frozen=True)
class Stage:
    """How one stage went: "done", "skipped" or "failed", and why."""

    status: str
    reason: str = ""


@dataclass(frozen=True)
class SecondProbe:
    """What the training looked like that was run once more with a remedy, by the same words."""

    verdict: Verdict
    why: str


@dataclass(frozen=True)
class Probe:
    """One short training and what it looked like. `second`: the verdict on `training.second`; None where there was no
    second training, or it was not tried. `advice`: what mpdoctor's own loss-scale optimizer would have done
    differently; "" for nothing. `mended`: the parts that were computed in float32, because they raise under the forced
    policy; `went_on`: the same as a sentence, "" without any."""

    training: TrainingFacts
    verdict: Verdict
    why: str
    advice: str = ""
    mended: tuple[MendedFacts, ...] = ()
    went_on: str = ""
    second: SecondProbe | None = None


@dataclass(frozen=True)
class RecordedRun:
    """A whole training as the user's own script recorded it, and how it stands at its end."""

    series: RunSeries
    verdict: Verdict
    why: str


@dataclass(frozen=True)
class TargetReport:
    """How the examination of one target went. `other_keras`: files that were judged by another Keras than the rest."""

    id: str
    path: str
    kind: str
    keras: Keras
    python: str = ""
    stages: Mapping[str, Stage] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    files_written: tuple[str, ...] = ()
    processes_started: tuple[StartedProgram, ...] = ()
    other_keras: tuple[tuple[Keras, tuple[str, ...]], ...] = ()


@dataclass(frozen=True)
class RuleSummary:
    """What a report says about a rule that it names."""

    code: str
    name: str
    summary: str
    url: str
    help_markdown: str
    severity: Severity = Severity.WARNING


@dataclass(frozen=True)
class Diagnosis:
    """Everything a reporter needs; nothing in it needs TensorFlow, the sources or the rules. `fail_on`: the least
    severity of a finding that fails the run. `redacted`: whether what is private was taken out."""

    targets: tuple[TargetReport, ...]
    findings: tuple[Finding, ...]
    models: tuple[tuple[str, ModelFacts], ...]  # (target id, model)
    probes: tuple[Probe, ...]
    rules: tuple[RuleSummary, ...]
    skipped: tuple[Skipped, ...]
    crashed: tuple[Crashed, ...]
    environment: Mapping[str, str]
    suppressed: int
    exit_code: int
    command: str
    version: str
    fail_on: Severity = Severity.WARNING
    graphs: tuple[tuple[str, SavedGraphFacts], ...] = ()  # (target id, graph)
    redacted: bool = False
    runs: tuple[RecordedRun, ...] = ()

    def count(self, severity: Severity) -> int:
        """How many findings have this severity; what-if findings are not counted."""
        return sum(1 for f in self.findings if f.severity is severity and not f.what_if)

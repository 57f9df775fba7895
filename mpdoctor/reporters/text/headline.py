"""The first line of a report: verdict, number of findings, the file, and the worst finding."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from enum import Enum
from pathlib import PurePath

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.written_numbers import count, number_text
from mpdoctor.finding import Diagnosis, Finding, Probe, Severity, TargetReport, Verdict
from mpdoctor.reporters.text.reference import fidelity_in_words
from mpdoctor.reporters.text.style import Style

GOOD, OPEN = (Verdict.HEALTHY, Verdict.SETTLING), (Verdict.INCONCLUSIVE,)
LONGEST_PLACE = 40
MOST_RULES = 3
SOURCE_ONLY = "source only"  # so end the reasons for which no code was run
UNNAMED = {".": "this directory", "-": "standard input"}  # what a shell has no other name for
BAD_PREDICTIONS = "its predictions are not finite"


class Mood(str, Enum):
    """How good it is, at a glance."""

    GOOD = "good"
    DOUBT = "doubt"
    BAD = "bad"

    def mark(self, look: Style) -> str:
        return look.sign(*{Mood.GOOD: ("✓", "ok"), Mood.DOUBT: ("▲", "!"), Mood.BAD: ("✗", "x")}[self])


@dataclass(frozen=True)
class Headline:
    """`tails`: what else is to be said, the longest first: one of them is enough."""

    mood: Mood
    words: str
    tails: tuple[str, ...]

    @property
    def whole(self) -> str:
        return self.words + next(iter(self.tails), "")


def headline_from_diagnosis(diagnosis: Diagnosis, look: Style) -> Headline:
    place = _place(diagnosis, look)
    if any(not finding.what_if for finding in diagnosis.findings):
        worst = _counts_by_rule(diagnosis) if _is_of_many(diagnosis) else [_worst(diagnosis, look)]
        words, tails = f"{_counts(diagnosis)} in {place}", [f": {text}" for text in worst]
    else:
        words, tails = f"{place}: {_nothing_found(diagnosis)}", _afterthoughts(diagnosis, look)
    return Headline(_mood(diagnosis), words, tuple(tails))


def mood_of_verdict(verdict: Verdict) -> Mood:
    if verdict in GOOD:
        return Mood.GOOD
    return Mood.DOUBT if verdict in OPEN else Mood.BAD


def _mood(diagnosis: Diagnosis) -> Mood:
    if diagnosis.count(Severity.ERROR) or diagnosis.exit_code > 1:
        return Mood.BAD
    verdicts = [*(probe.verdict for probe in diagnosis.probes), *(run.verdict for run in diagnosis.runs)]
    if diagnosis.count(Severity.WARNING) or any(verdict in OPEN for verdict in verdicts):
        return Mood.DOUBT
    verdicts = [*(probe.verdict for probe in _predictions(diagnosis)), *(run.verdict for run in diagnosis.runs)]
    if any(verdict not in GOOD for verdict in verdicts):
        return Mood.DOUBT
    return Mood.GOOD


def _place(diagnosis: Diagnosis, look: Style) -> str:
    if len(diagnosis.targets) != 1:
        return f"{len(diagnosis.targets)} targets"
    name = diagnosis.targets[0].id
    if name in UNNAMED:
        return UNNAMED[name]
    return look.name(name if len(name) <= LONGEST_PLACE else PurePath(name).name, LONGEST_PLACE)


def _counts(diagnosis: Diagnosis) -> str:
    numbers = [(diagnosis.count(severity), severity.value) for severity in Severity]
    return ", ".join(count(number, name) for number, name in numbers if number)


def _worst(diagnosis: Diagnosis, look: Style) -> str:
    """The worst thing to name in the headline: the verdict on a training before any finding, since findings often
    explain it. Not the verdict on the training under mixed_float16 of a program that is not mixed itself."""
    for run in diagnosis.runs:
        if run.verdict not in (*GOOD, *OPEN):
            return f"recorded training {run.verdict.value}"
    is_of_another_policy = any(finding.what_if for finding in diagnosis.findings)
    for verdict, say in _SAID_OF_TRAINING.items():
        for probe in () if is_of_another_policy else diagnosis.probes:
            if probe.verdict is verdict:
                name = look.name(probe.training.name, 24)
                return f"{name}: {say(probe)}" if name else say(probe)
    return max(_real(diagnosis), key=_rank).name.replace("-", " ")


def code_to_explain(diagnosis: Diagnosis) -> str:
    """The code of the worst finding, of many programs that of the rule which the first line names first; "" where
    nothing was found."""
    findings = _real(diagnosis) or list(diagnosis.findings)
    if not findings:
        return ""
    if _is_of_many(diagnosis):
        first = _rules_worst_first(findings)[0]
        return next(finding.code for finding in findings if finding.name == first)
    return max(findings, key=_rank).code


def _real(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.findings if not finding.what_if]


def _is_of_many(diagnosis: Diagnosis) -> bool:
    """Whether the findings belong to several independent programs."""
    return len(diagnosis.targets) != 1 or diagnosis.targets[0].kind == "directory"


def _counts_by_rule(diagnosis: Diagnosis) -> list[str]:
    """How many findings each rule has, the worst first, and of those the most frequent; then shorter ways to say it."""
    real = _real(diagnosis)
    counts = Counter(finding.name for finding in real)
    parts = [
        name.replace("-", " ") + (f" ({counts[name]})" if counts[name] > 1 else "") for name in _rules_worst_first(real)
    ]
    several = [parts[:most] for most in range(min(len(parts), MOST_RULES), 0, -1)]
    return [_with_others(shown, len(parts) - len(shown)) for shown in several]


def _rules_worst_first(findings: list[Finding]) -> list[str]:
    """The names of the rules that have these findings: the worst first, and of those the most frequent."""
    counts = Counter(finding.name for finding in findings)
    rank = {finding.name: _rank(finding) for finding in sorted(findings, key=_rank)}
    return sorted(counts, key=lambda name: (-rank[name], -counts[name], name))


def _with_others(parts: list[str], others: int) -> str:
    return ", ".join([*parts, *([f"and {count(others, 'other rule')}"] if others else [])])


def _rank(finding: Finding) -> int:
    return finding.severity.rank if finding.severity else 0


def _nothing_found(diagnosis: Diagnosis) -> str:
    nothing = "nothing else" if diagnosis.suppressed else "nothing"
    if diagnosis.crashed:
        return f"mpdoctor itself broke; {nothing} wrong until then"
    if diagnosis.targets and all(map(_only_read, diagnosis.targets)):
        return f"{nothing} found in the source; no code was run"
    what_if = sum(finding.what_if for finding in diagnosis.findings)
    if what_if:
        return f"{nothing} wrong as it is"
    if diagnosis.exit_code == 2:
        return "not examined"
    if any(probe.verdict not in (*GOOD, *OPEN) for probe in _predictions(diagnosis)):
        return BAD_PREDICTIONS
    if any(run.verdict not in GOOD for run in diagnosis.runs):
        return "recorded training " + next(r.verdict.value for r in diagnosis.runs if r.verdict not in GOOD)
    if diagnosis.graphs and not diagnosis.models:
        return f"{nothing} wrong in the graph"
    of_model = " in the model" if _why_not_trained(diagnosis) and not diagnosis.probes else ""
    return f"{nothing} wrong{of_model}"


def _only_read(target: TargetReport) -> bool:
    """Whether no code of it was run, because of --static or of what it is: a directory, several targets."""
    model = target.stages.get("model")
    return model is not None and model.status == "skipped" and model.reason.endswith(("--static", SOURCE_ONLY))


def _predictions(diagnosis: Diagnosis) -> list[Probe]:
    return [probe for probe in diagnosis.probes if probe.training.prediction is not None]


def _why_not_trained(diagnosis: Diagnosis) -> str:
    """Why the model of a single target was inspected but not trained; "" in other cases."""
    if len(diagnosis.targets) != 1:
        return ""
    stages = diagnosis.targets[0].stages
    model, training = stages.get("model"), stages.get("training")
    looked = model is not None and model.status == "done"
    return training.reason if looked and training is not None and training.status != "done" else ""


def _afterthoughts(diagnosis: Diagnosis, look: Style) -> list[str]:
    """Further parts of the first line, the longest first: the first that fits is taken."""
    what_if = sum(finding.what_if for finding in diagnosis.findings)
    if what_if:
        clause = f"; {count(what_if, 'finding')}"
        return [f"{clause} {how}" for how in ("if you turned on mixed_float16", "under mixed_float16", "if mixed")]
    if diagnosis.runs:
        run = diagnosis.runs[0]
        return [f": {look.name(run.why, 160)}", f"; verdict {run.verdict.value}"]
    predicted = _predictions(diagnosis)
    if predicted and len(predicted) == len(diagnosis.probes):
        whys = [probe.why for probe in sorted(predicted, key=lambda probe: probe.verdict in GOOD)]
        return [f"; {look.name(whys[0], 160)}".replace("`", ""), "; not trained"]
    not_trained = _why_not_trained(diagnosis)
    if diagnosis.graphs and not diagnosis.models and not_trained:
        return [f"; {look.name(not_trained, 160)}", "; not run"]
    if not diagnosis.probes and not_trained:
        return [f"; not trained: {look.name(not_trained, 160)}", "; not trained"]
    if len(diagnosis.probes) != 1:
        return _trainings_text(diagnosis, look)
    return _training_text(diagnosis.probes[0], look)


def _trainings_text(diagnosis: Diagnosis, look: Style) -> list[str]:
    """How many short trainings there were, with their names in the first of two forms; [] for none."""
    names = [look.name(probe.training.name, 20) for probe in diagnosis.probes if probe.training.name]
    trained = f"; {len(diagnosis.probes)} short trainings"
    return [f"{trained} ({', '.join(names)})", trained] if names else [trained] if diagnosis.probes else []


def _dtype_of_steps(training: TrainingFacts) -> str:
    """The 16-bit dtype in which a layer computes, else the one in which all do; the policy's where no layer is seen."""
    dtypes = [layer.compute_dtype for layer in training.model.layers if layer.follows_policy]
    half = [dtype for dtype in dtypes if dtype in HALF]
    return (half or dtypes)[0] if half or len(set(dtypes)) == 1 else training.policy.removeprefix("mixed_")


def _training_text(probe: Probe, look: Style) -> list[str]:
    dtype = look.name(_dtype_of_steps(probe.training), 12)
    device = look.name(probe.training.device, 20)
    steps = count(len(probe.training.steps), f"{dtype} step")
    verdict = f"verdict {probe.verdict.value}"
    reference = probe.training.reference
    fidelities = [] if reference is None else [fidelity_in_words(reference, look, worst) for worst in (True, False)]
    parts = [f"; {steps}, {verdict}, {fidelity}" for fidelity in dict.fromkeys(fidelities) if fidelity]
    parts += [f"; {verdict}, {fidelity}" for fidelity in fidelities[1:] if fidelity]
    return [*parts, f"; {steps} on the {device}, {verdict}", f"; {steps}, {verdict}", f"; {verdict}"]


def _collapse(probe: Probe) -> str:
    last = probe.training.steps[-1].loss_scale if probe.training.steps else None
    grew = last is not None and last > (probe.training.initial_scale or 0)
    return f"the loss scale {'grows' if grew else 'collapses'} to {number_text(last or 0)}"


def _where_it_fails(training: TrainingFacts) -> str:
    in_step = training.failure is None or training.failed_in.startswith("step ")
    return f"training fails at step {len(training.steps) + 1}" if in_step else f"{training.failed_in} fails"


def _skips(probe: Probe) -> str:
    skipped = sum(not step.applied for step in probe.training.steps)
    return f"{skipped} of {count(len(probe.training.steps), 'step')} skipped"


# The worst first: of several trainings it leads.
_SAID_OF_TRAINING: dict[Verdict, Callable[[Probe], str]] = {
    Verdict.FAILED: lambda probe: _where_it_fails(probe.training),
    Verdict.NOT_FINITE: lambda probe: probe.why if probe.training.prediction is None else BAD_PREDICTIONS,
    Verdict.COLLAPSING: _collapse,
    Verdict.STUCK: _skips,
    Verdict.NO_UPDATE: lambda probe: "the weights never change",
    Verdict.OVERFLOWING: _skips,
}

"""A recorded training judged: its verdict in one word, a finding where nothing is trained any more, and the diagnosis
that every reporter shows."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Sequence
from pathlib import Path

from mpdoctor import __version__
from mpdoctor.facts.half_dtypes import LOST_SCALE
from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras, KerasPackage
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis, Finding, RecordedRun, Severity, Stage, TargetReport, Verdict
from mpdoctor.judging.shown_findings import findings_for_report, rule_summaries
from mpdoctor.recorded.run_facts import RunEvent, RunSeries, StepsRow
from mpdoctor.rules.registry import rule_with_code

FEWEST_STEPS = 10
FEWEST_SKIPS = 20  # in a row, at the end of the run
MOST_UNEXPLAINED = 0.01  # of the steps
MOST_ROWS = 1000  # that a report holds: of a longer run several rows become one
CODES = {Verdict.STUCK: "MP902", Verdict.COLLAPSING: "MP903"}
KERASES: tuple[KerasPackage, ...] = ("keras", "tf_keras", "tf.keras")
TRAINED_WITH = "the recorded training used it"
TROUBLES = {"stuck": Verdict.STUCK, "collapsing": Verdict.COLLAPSING, "skipping": Verdict.OVERFLOWING}


def diagnosis_from_series(path: Path, series: Sequence[RunSeries], command: str) -> Diagnosis:
    """The diagnosis of a run file, together with those of the other workers. Nothing else is known of the training."""
    name = str(path)
    runs = tuple(judged(run) for run in series)
    findings = findings_for_report([f for run in runs for f in _findings(run, name)], {})
    target = TargetReport(name, name, "run", _keras(series), stages={"training": Stage("done")})
    return Diagnosis(
        targets=(target,),
        findings=tuple(findings),
        models=(),
        probes=(),
        rules=rule_summaries(findings),
        skipped=(),
        crashed=(),
        environment={"TensorFlow": series[0].tensorflow} if series and series[0].tensorflow else {},
        suppressed=0,
        exit_code=int(any(finding.fails_a_run(Severity.WARNING) for finding in findings)),
        command=command,
        version=__version__,
        runs=runs,
    )


def _keras(series: Sequence[RunSeries]) -> Keras:
    package, _, version = series[0].keras.partition(" ") if series else ("", "", "")
    kerases = (Keras(known, version, series[0].tensorflow, TRAINED_WITH) for known in KERASES if known == package)
    return next(kerases, Keras())


def judged(series: RunSeries) -> RecordedRun:
    verdict, why = verdict_from_series(series)
    return RecordedRun(dataclasses.replace(series, rows=thinned(series.rows, MOST_ROWS)), verdict, why)


def verdict_from_series(series: RunSeries) -> tuple[Verdict, str]:
    """The verdict and, in words, the numbers that it rests on: what counts is how the run stands at its end."""
    if series.steps < FEWEST_STEPS:
        return Verdict.INCONCLUSIVE, f"only {count(series.steps, 'step')} recorded, {FEWEST_STEPS} are needed"
    last, lost = series.rows[-1], _skipped_at_end(series.rows)
    if lost >= FEWEST_SKIPS:
        since = f"the last {lost:,} of {series.steps:,} steps were skipped"
        return _verdict_of_skipping(
            series, last.scale
        ), f"{since}; the loss scale {_state_of_scale(series, last.scale)}"
    if series.floor is None and series.is_dynamic and not LOST_SCALE <= last.scale < math.inf:
        return Verdict.COLLAPSING, f"the loss scale went to {last.scale:.3g}, where gradients below 1 lose their digits"
    unexplained = series.skipped - _skips_by_design(series)
    skipped = f"{series.skipped:,} of {series.steps:,} steps were skipped"
    if unexplained > max(FEWEST_SKIPS, MOST_UNEXPLAINED * series.steps):
        return (
            Verdict.OVERFLOWING,
            f"{skipped}; growth of the loss scale explains {series.skipped - unexplained:,} of them",
        )
    return Verdict.HEALTHY, skipped if series.skipped else f"{series.steps:,} steps, none skipped"


def _verdict_of_skipping(series: RunSeries, scale: float) -> Verdict:
    if not series.is_dynamic:
        return Verdict.OVERFLOWING
    if series.floor is not None:
        return Verdict.STUCK if scale <= series.floor else Verdict.OVERFLOWING
    return Verdict.COLLAPSING if scale < 1 or math.isinf(scale) else Verdict.OVERFLOWING


def _state_of_scale(series: RunSeries, scale: float) -> str:
    if series.floor is not None and scale <= series.floor:
        return f"is at its floor of {series.floor:g}"
    return f"is {scale:.3g}"


def _skipped_at_end(rows: Sequence[StepsRow]) -> int:
    """Steps in a row, all skipped, up to the last one."""
    number = 0
    for row in reversed(rows):
        if row.skipped < row.steps:
            return number
        number += row.steps
    return number


def _skips_by_design(series: RunSeries) -> int:
    """Skips by design: those of the first descent, and one for each time that the scale has grown."""
    before, grown, settling, settled = series.initial_scale, 0, 0, False
    for row in series.rows:
        settling += 0 if settled else row.skipped
        settled = settled or row.skipped < row.steps
        if 0 < before < row.high < math.inf:
            grown += round(math.log2(row.high / before))
        before = row.scale
    return min(series.skipped, settling + grown)


def thinned(rows: Sequence[StepsRow], most: int) -> tuple[StepsRow, ...]:
    """At most `most` rows, each joined from several, that keep the steps, skips, ends and extremes."""
    if len(rows) <= most:
        return tuple(rows)
    return tuple(_joined_row(rows[len(rows) * at // most : len(rows) * (at + 1) // most]) for at in range(most))


def _joined_row(rows: Sequence[StepsRow]) -> StepsRow:
    return StepsRow(
        rows[-1].last,
        sum(row.steps for row in rows),
        sum(row.skipped for row in rows),
        rows[-1].scale,
        min(row.low for row in rows),
        max(row.high for row in rows),
    )


# --- findings -------------------------------------------------------------------------------------------------------
def _findings(run: RecordedRun, target: str) -> Iterator[Finding]:
    """A finding for the trouble that the run ends in. Trouble that was over before is listed among the events only."""
    if run.verdict not in CODES:
        return
    troubles = [event for event in run.series.events if event.kind in TROUBLES]
    event = troubles[-1] if troubles else RunEvent("", run.series.steps)
    details = f"{_sentence_on_start(event, run.series)}{_sentence_on_replay(event)}"
    rule = rule_with_code(CODES[run.verdict])
    yield Finding(
        f"{_series_prefix(run.series)}{run.why}. Nothing is trained.{details}",
        _help(event),
        Location(event.file, event.line) if event.file and event.line else None,
        model=run.series.model or None,
        layer=event.layer or None,
        evidence={"skipped_since": event.since, "steps": run.series.steps, "skipped_steps": run.series.skipped},
        severity=rule.severity,
        code=rule.code,
        name=rule.name,
        stage="training",
        target=target,
    )


def _series_prefix(series: RunSeries) -> str:
    return f"`{series.name}`: " if series.name else ""


def _sentence_on_start(event: RunEvent, series: RunSeries) -> str:
    if not event.since:
        return ""
    epoch = series.epoch_of(event.since)
    return f" It started in step {event.since:,}" + (f", in epoch {epoch + 1}." if epoch is not None else ".")


def _sentence_on_replay(event: RunEvent) -> str:
    said = event.text.partition("In the replayed batch ")[2]
    return f" In the replayed batch {said}" if said else ""


def _help(event: RunEvent) -> str:
    if event.kept:
        return "`mpdoctor check --from-run` with this file and the script trains on the kept batch and tries float32."
    return (
        "Train with LossScaleMonitor(keep_batch=True): it keeps the batch that fails, and "
        "`mpdoctor check --from-run` trains on it and tries float32."
    )

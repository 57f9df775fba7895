"""A recorded training: its verdict, the loss scale over the whole of it, what happened in it and how it ended."""

from __future__ import annotations

from collections.abc import Callable

from rich.text import Text

from mpdoctor.facts.half_dtypes import FLOAT16_LIMIT
from mpdoctor.facts.written_numbers import count, magnitude_text, number_text
from mpdoctor.finding import Diagnosis, RecordedRun
from mpdoctor.recorded.run_facts import MeasuredPart, RunEvent, RunSeries, StepsRow
from mpdoctor.reporters.terminal.scale_plot import lines_from_scales, marks_under
from mpdoctor.reporters.terminal.style import LABEL, MOOD_STYLES, Paragraph, Style, indented, labelled, line
from mpdoctor.reporters.text.headline import mood_of_verdict

WIDEST = 60
MOST_EVENTS = 12
MOST_MEASURED = 3
MARKED_FROM = 0.05  # of a column's steps that were skipped


def paragraphs_from_runs(diagnosis: Diagnosis, look: Style) -> list[Paragraph]:
    return [paragraph_from_run(run, look) for run in diagnosis.runs]


def paragraph_from_run(run: RecordedRun, look: Style) -> Paragraph:
    series = run.series
    verdict = Text(run.verdict.value, style=MOOD_STYLES[mood_of_verdict(run.verdict)], overflow="fold")
    verdict.append_text(look.prose(f": {run.why}", style="not bold default"))
    name = f"Recorded training of {look.name(series.name, 40)} " if series.name else "Recorded training "
    lines: Paragraph = [labelled(name, verdict, style="bold", by=0)]
    lines.append(indented(Text(look.dot.join(_circumstances(series, look)), style="dim", overflow="fold")))
    lines += _course(series, look)
    lines += [line("skipped", f"{series.skipped:,} of {count(series.steps, 'step')}")]
    lines += _lines_on_measurements(series, look)
    lines += _events(series, look)
    return lines


def _circumstances(series: RunSeries, look: Style) -> list[str]:
    parts = [f"{series.steps:,} steps"]
    parts += [count(len(series.epochs), "epoch")] if series.epochs else []
    parts += [" around ".join(look.name(name, 40) for name in series.optimizer)] if series.optimizer else []
    parts += [f"TensorFlow {look.name(series.tensorflow, 20)}"] if series.tensorflow else []
    parts += [_ending_text(series, look)]
    lines = count(series.passed_over, "line")
    return parts + (
        [f"{lines} of {look.name(series.file, 40)} passed over: cut or damaged"] if series.passed_over else []
    )


def _ending_text(series: RunSeries, look: Style) -> str:
    after_start = [event for event in series.events if event.kind in ("end", "started")]
    if after_start and after_start[-1].kind == "end":
        return look.name(after_start[-1].how or "finished", 60)
    return "no end recorded: it was killed, or still runs"


def _course(series: RunSeries, look: Style) -> Paragraph:
    if not series.rows:
        return []
    low, high = min(row.low for row in series.rows), max(row.high for row in series.rows)
    first, last = series.initial_scale, series.rows[-1].scale
    if low == high == first:
        return [line("loss scale", f"{number_text(last)} throughout")]
    course = f"{number_text(first)} {look.arrow} {number_text(last)}"
    if low < min(first, last) or high > max(first, last):
        course += f", from {number_text(low)} to {number_text(high)} on the way"
    columns = columns_from_rows(series.rows, min(WIDEST, look.width - 14))
    bad = [column.skipped > MARKED_FROM * column.steps for column in columns]
    scales = [column.scale for column in columns]
    marks = [line("", marks_under(bad, look))] if any(bad) else []
    return [line("loss scale", course), *lines_from_scales(scales, bad, look), *marks]


def columns_from_rows(rows: tuple[StepsRow, ...], widest: int) -> list[StepsRow]:
    """The run in columns of equally many steps; a row that lies in several columns has its skips shared out."""
    start, total = rows[0].first - 1, sum(row.steps for row in rows)
    columns, at = [], 0
    for number in range(min(widest, total)):
        first, last = total * number // min(widest, total), total * (number + 1) // min(widest, total)
        while at < len(rows) - 1 and rows[at].last - start <= first:
            at += 1
        skipped, row, low, high, end = 0.0, rows[at], rows[at].low, rows[at].high, at
        while True:
            row = rows[end]
            inside = min(row.last - start, last) - max(row.last - start - row.steps, first)
            skipped += row.skipped * max(inside, 0) / row.steps
            low, high = min(low, row.low), max(high, row.high)
            if row.last - start >= last or end == len(rows) - 1:
                break
            end += 1
        scale = _scale_in(row, last - (row.last - start - row.steps))
        columns.append(StepsRow(start + last, last - first, round(skipped), scale, low, high))
    return columns


def _scale_in(row: StepsRow, steps: int) -> float:
    """The loss scale after so many steps of a row. Where all were skipped, each has halved it; of others the row knows
    how it ended only."""
    if row.skipped < row.steps or steps >= row.steps:
        return row.scale
    return max(row.scale, row.high * 0.5**steps)


def _lines_on_measurements(series: RunSeries, look: Style) -> Paragraph:
    """The layers nearest to the largest float16, and the gradients that float16 keeps least of."""
    if not series.measured:
        return []
    layers = [part for part in series.measured if part.kind == "layer"]
    gradients = [part for part in series.measured if part.kind == "gradient" and part.dtype == "float16"]
    halves = [part for part in layers if part.dtype == "float16"] or layers
    bad = [part for part in series.measured if part.not_finite_step]
    rows = [
        ("measured", [f"{count(series.measured_steps, 'step')} of this training"]),
        ("inf or NaN", [_not_finite(part, look) for part in _highest(bad, lambda part: -part.not_finite_step)]),
        ("largest", [_largest(part, look) for part in _highest(halves, lambda part: part.largest)]),
        (
            "underflow",
            [
                _underflow_text(part, look)
                for part in _highest(gradients, lambda part: part.subnormal)
                if part.subnormal
            ],
        ),
    ]
    return [
        labelled("" if number else label, look.prose(text), wide=LABEL)
        for label, texts in rows
        for number, text in enumerate(texts)
    ]


def _highest(parts: list[MeasuredPart], key: Callable[[MeasuredPart], float]) -> list[MeasuredPart]:
    return sorted(parts, key=key, reverse=True)[:MOST_MEASURED]


def _largest(part: MeasuredPart, look: Style) -> str:
    share = f", {part.largest / FLOAT16_LIMIT:.2g} of float16's largest" if part.dtype == "float16" else ""
    course = f"{number_text(part.first)} {look.arrow} {number_text(part.last)}"
    return (
        f"output of {look.name(part.name, 60)}: {magnitude_text(part.largest)} in step {part.largest_step:,}{share}"
        f" ({course})"
    )


def _underflow_text(part: MeasuredPart, look: Style) -> str:
    zero = f", {part.zero:.0%} 0" if part.zero else ""
    return f"gradient of {look.name(part.name, 60)}: up to {part.subnormal:.0%} subnormal in float16{zero}"


def _not_finite(part: MeasuredPart, look: Style) -> str:
    tensor = "output" if part.kind == "layer" else "gradient"
    share = f"up to {part.not_finite:.0%} of it, in step {part.not_finite_step:,} first"
    return f"{tensor} of {look.name(part.name, 60)}: {share}"


def _events(series: RunSeries, look: Style) -> Paragraph:
    shown = [event for event in series.events if event.kind != "end"]
    lines: Paragraph = [
        labelled("" if number else "events", look.prose(_event(event, series)), wide=LABEL)
        for number, event in enumerate(shown[:MOST_EVENTS])
    ]
    left = len(shown) - MOST_EVENTS
    return lines + ([line("", f"{look.more} and {count(left, 'more event')}")] if left > 0 else [])


def _event(event: RunEvent, series: RunSeries) -> str:
    at = event.since or event.step
    epoch = series.epoch_of(at)
    place = f"step {at:,}" + (f", epoch {epoch + 1}" if epoch is not None else "")
    said = {
        "started": "started again",
        "recovered": "recovered: 100 steps in a row were applied",
        "not_measured": f"no step is measured any more: the step {event.text}",
    }.get(event.kind)
    kept = f" The batch is kept in {event.kept}." if event.kept else ""
    why_not = f" The batch was not replayed: {event.not_replayed}" if event.not_replayed else ""
    return f"{place}: {said or event.text or event.kind}{kept}{why_not}"

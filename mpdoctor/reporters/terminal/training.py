"""A short training: what was trained, the loss scale, the loss, and the result."""

from __future__ import annotations

import math

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.written_numbers import number_text
from mpdoctor.finding import Probe
from mpdoctor.reporters.terminal.scale_plot import lines_from_scales, marks_under
from mpdoctor.reporters.terminal.style import LABEL, MOOD_STYLES, Paragraph, Style, indented, labelled, line
from mpdoctor.reporters.text.headline import GOOD, OPEN, mood_of_verdict
from mpdoctor.reporters.text.plot import columns_from_steps, sparkline
from mpdoctor.reporters.text.reference import lines as lines_from_reference
from mpdoctor.reporters.text.second_training import AFTER, BEFORE, compared, what_was_changed, why_not_tried
from mpdoctor.reporters.text.training import (
    circumstances,
    course_of_loss,
    failing_replicas,
    made_up,
    magnitudes,
    skipped_steps,
)

SPARK = 30


def paragraph_from_probe(probe: Probe, look: Style, *, short: bool) -> Paragraph:
    """`short`: right under a headline that tells the verdict."""
    training = probe.training
    lines: Paragraph = [] if short and probe.verdict in GOOD else [_heading(probe, look)]
    lines.append(indented(Text(circumstances(training, look, without_steps=not lines), style="dim", overflow="fold")))
    if training.data == "synthetic":
        lines.append(line("made up", made_up(training, look)))
    lines += _loss_scale(probe, look)
    lines += [line("replica", text) for text in failing_replicas(training, look)]
    lines += _loss(training, look)
    grew = magnitudes(training, look)
    if grew:
        label, text = grew
        lines.append(line(label, text))
    lines += [line(label, text) for label, text in lines_from_reference(training, look)]
    lines += _second_training(probe, look)
    if probe.advice:
        lines.append(indented(look.prose(probe.advice, style="italic")))
    if probe.went_on:
        lines.append(indented(look.prose(probe.went_on, style="italic")))
    return lines


def _second_training(probe: Probe, look: Style) -> Paragraph:
    second = probe.training.second
    if second is None:
        return []
    if probe.second is None:
        return [line("once more", why_not_tried(second, look))]
    table = Table.grid(padding=(0, 3, 0, 0))
    for _ in range(3):
        table.add_column(overflow="fold")
    table.add_row("", Text(BEFORE, style="dim"), Text(AFTER, style="dim"))
    for row in compared(probe, look):
        table.add_row(Text(row.what, style="dim"), row.before, row.after)
    return [
        line("once more", what_was_changed(second, look)),
        Padding(table, (0, 0, 0, LABEL + 2)),
    ]


def _heading(probe: Probe, look: Style) -> RenderableType:
    verdict = Text(probe.verdict.value, style=MOOD_STYLES[mood_of_verdict(probe.verdict)], overflow="fold")
    if probe.why:
        verdict.append_text(look.prose(f": {probe.why}", style="not bold default"))
    name = probe.training.name
    activity = "Training" if probe.training.prediction is None else "Predicting"
    return labelled(f"{activity} of {look.name(name, 40)} " if name else f"{activity} ", verdict, style="bold", by=0)


def _loss_scale(probe: Probe, look: Style) -> Paragraph:
    skipped = skipped_steps(probe.training, look)
    scales = [step.loss_scale for step in probe.training.steps]
    known = [scale for scale in scales if scale is not None]
    lines: Paragraph
    if not known:
        needed = scales and probe.training.policy in ("mixed_float16", "float16")
        lines = [line("loss scale", Text(_without_scale(probe.training, look)))] if needed else []
    elif all(scale == known[0] for scale in known):
        fixed = ", fixed" if probe.training.dynamic is False or probe.training.uses_loss_scale_factor else ""
        lines = [line("loss scale", Text(f"{number_text(known[0])} throughout{fixed}"))]
    else:
        return _moving_scale(probe, look, scales, known, skipped)
    return [*lines, *_skips(skipped)]


def _without_scale(training: TrainingFacts, look: Style) -> str:
    seen = training.scale_dependence
    if seen is not None and seen.scaled_by_another:
        return "none of its own: another optimizer scales the loss"
    optimizers = training.model.optimizer
    name = look.name(optimizers[0].class_name, 40) if optimizers else "the optimizer"
    return f"none: {name} is no LossScaleOptimizer"  # the program may scale by hand


def _moving_scale(probe: Probe, look: Style, scales: list[float | None], known: list[float], skipped: str) -> Paragraph:
    """A scale that goes well in one line; one that does not as a plot, which marks the skipped steps."""
    course = f"{number_text(known[0])} {look.arrow} {number_text(known[-1])}"
    if probe.verdict in (*GOOD, *OPEN) and all(scale > 0 and math.isfinite(scale) for scale in known):
        powers = [math.log2(scale) if scale else None for scale in scales]
        spark = sparkline(powers, SPARK, look.blocks)
        return [line("loss scale", Text.assemble(f"{course}  ", (spark, "blue"))), *_skips(skipped)]
    return [line("loss scale", Text(course)), *_plot(probe.training, look), *_skips(skipped, label="")]


def _skips(skipped: str, label: str = "skipped") -> Paragraph:
    return [line(label, skipped)] if skipped else []


def _plot(training: TrainingFacts, look: Style) -> Paragraph:
    """The scale as a filled curve; below it, a mark under each column in which a step was skipped."""
    widest = min(60, look.width - 14)
    columns = columns_from_steps(len(training.steps), widest)
    skipped = [any(not training.steps[step].applied for step in steps) for steps in columns]
    scales = [training.steps[steps[-1]].loss_scale for steps in columns]
    return [*lines_from_scales(scales, skipped, look), line("skipped", marks_under(skipped, look))]


def _loss(training: TrainingFacts, look: Style) -> Paragraph:
    course = course_of_loss(training, look)
    losses = [step.loss for step in training.steps]
    spark = sparkline(losses, SPARK, look.blocks) if look.arrow in course else ""
    if not course:
        return []
    return [line("loss", Text.assemble(f"{course}  ", (spark, "blue")) if spark else Text(course))]

"""A short training: what was trained, how the loss scale went, the loss, and what came of it."""

from __future__ import annotations

import math
from collections import Counter

from rich.console import RenderableType
from rich.text import Text

from mpdoctor.facts.training import StepFacts, TensorFacts, TrainingFacts
from mpdoctor.finding import Probe
from mpdoctor.reporters.terminal.look import (
    GOOD,
    OPEN,
    Look,
    Paragraph,
    count,
    indented,
    labelled,
    number_text,
    style_of_verdict,
)
from mpdoctor.reporters.terminal.plot import columns_from_steps, rows_from_scales, sparkline

ENDED = {"budget": "the time of --budget was spent", "script": "the script's own loop ended there"}
LABEL = 12
SPARK = 30


def paragraph_from_probe(probe: Probe, look: Look, *, short: bool) -> Paragraph:
    """`short`: right under a headline that tells the verdict."""
    training = probe.training
    told: Paragraph = [] if short and probe.verdict in GOOD else [_heading(probe, look)]
    told.append(indented(Text(_circumstances(training, look, steps_told=not told), style="dim", overflow="fold")))
    if training.data == "synthetic":
        told.append(_line("made up", Text(_made_up(training, look), overflow="fold")))
    told += _loss_scale(probe, look)
    told += _replicas(training, look)
    told += _loss(training.steps, look)
    told += _magnitudes(training, look)
    if probe.advice:
        told.append(indented(look.prose(probe.advice, style="italic")))
    return told


def _heading(probe: Probe, look: Look) -> RenderableType:
    verdict = Text(probe.verdict.value, style=style_of_verdict(probe.verdict), overflow="fold")
    if probe.why:
        verdict.append_text(look.prose(f": {probe.why}", style="not bold default"))
    name = probe.training.name
    return labelled(f"Training of {look.name(name, 40)} " if name else "Training ", verdict, style="bold", by=0)


def _circumstances(training: TrainingFacts, look: Look, *, steps_told: bool) -> str:
    done, wanted = len(training.steps), training.steps_wanted
    steps = count(done, "step") if done == wanted else f"{done} of {count(wanted, 'step')}"
    device, policy = look.name(training.device, 24), look.name(training.policy, 24)
    parts = [steps if not steps_told or done < wanted else "", _call(training, look), *_data(training)]
    parts += [policy] if steps_told else [device, policy]
    if training.ended in ENDED and done < wanted:
        parts.append(ENDED[training.ended])
    return look.dot.join(filter(None, parts))


def _call(training: TrainingFacts, look: Look) -> str:
    call = training.model.call
    if call.kind == "none":
        return ""
    place = f" at {look.name(call.location.path, 50)}:{call.location.line}" if call.location else ""
    return f"{call.kind}{place}"


def _data(training: TrainingFacts) -> list[str]:
    data = "real data" if training.data == "real" else f"data: {training.data}"
    replicas = [count(training.replicas, "replica")] if training.replicas > 1 else []
    return [data, *replicas, *(["jit_compile"] if training.jit_compile else [])]


def _made_up(training: TrainingFacts, look: Look) -> str:
    loss = f"; the loss, {look.name(training.made_up_loss, 60)}" if training.made_up_loss else ""
    return f"batches that fit the model's inputs and loss{loss}"


def _line(label: str, content: Text) -> RenderableType:
    return labelled(label, content, wide=LABEL)


def _loss_scale(probe: Probe, look: Look) -> Paragraph:
    training = probe.training
    told: Paragraph
    scales, skips = [step.loss_scale for step in training.steps], _skips(training, look)
    known = [scale for scale in scales if scale is not None]
    if not known:
        needed = scales and training.policy in ("mixed_float16", "float16")
        told = [_line("loss scale", Text("none: the loss is not scaled"))] if needed else []
        return told + ([_line("skipped", skips)] if skips else [])
    first, last = known[0], known[-1]
    if all(scale == first for scale in known):
        fixed = ", fixed" if training.dynamic is False or training.uses_loss_scale_factor else ""
        told = [_line("loss scale", Text(f"{number_text(first)} throughout{fixed}"))]
        return told + ([_line("skipped", skips)] if skips else [])
    course = f"{number_text(first)} {look.arrow} {number_text(last)}"
    if probe.verdict in (*GOOD, *OPEN) and all(scale > 0 and math.isfinite(scale) for scale in known):
        powers = [math.log2(scale) if scale else None for scale in scales]
        spark = sparkline(powers, SPARK, look.blocks)
        told = [_line("loss scale", Text.assemble(f"{course}  ", (spark, "blue")))]
        return told + ([_line("skipped", skips)] if skips else [])
    told = [_line("loss scale", Text(course)), *_plot(training, look)]
    return told + ([_line("", skips)] if skips else [])


def _plot(training: TrainingFacts, look: Look) -> Paragraph:
    """The scale as a filled curve; below it, a mark under each column in which a step was skipped."""
    widest = min(60, look.width - 14)
    columns = columns_from_steps(len(training.steps), widest)
    skipped = [any(not training.steps[step].applied for step in steps) for steps in columns]
    rows, labels = rows_from_scales([training.steps[steps[-1]].loss_scale for steps in columns], look.blocks)
    axis = look.sign("┤", "|")
    told: Paragraph = []
    for label, row in zip(labels, rows, strict=True):
        line = Text.assemble((f"{label:>{LABEL - 2}} {axis if label else look.sign('│', '|')}", "dim"), no_wrap=True)
        for character, bad in zip(row, skipped, strict=True):
            line.append(character, style="red" if bad else "green")
        told.append(indented(line))
    marks = "".join(look.sign("✗", "x") if bad else " " for bad in skipped)
    told.append(_line("skipped", Text(marks, style="red", no_wrap=True)))
    return told


def _skips(training: TrainingFacts, look: Look) -> Text | None:
    """Which steps were skipped, and because of what."""
    skipped = [(number, step) for number, step in enumerate(training.steps, 1) if not step.applied]
    if not skipped:
        return None
    numbers = [number for number, _ in skipped]
    which = f"step {_ranges(numbers, look)}" if len(numbers) == 1 else f"steps {_ranges(numbers, look)}"
    if len(numbers) == len(training.steps):
        which = f"all {count(len(numbers), 'step')}"
    causes = Counter(step.first_nonfinite for _, step in skipped if step.first_nonfinite)
    cause = ""
    if causes:
        named = look.listed([name for name, _ in causes.most_common()], most=2)
        cause = f"; inf or NaN first in the gradient of {named}"
    return Text(f"{which}{cause}", overflow="fold")


def _ranges(numbers: list[int], look: Look) -> str:
    """1–3, 34: at most five of them."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(first) if first == last else f"{first}{look.dash}{last}" for first, last in ranges]
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")


def _replicas(training: TrainingFacts, look: Look) -> Paragraph:
    """Which replica's gradients were not finite, and whether the step was applied nevertheless."""
    bad = [(number, step) for number, step in enumerate(training.steps, 1) if step.nonfinite_replicas]
    if not bad:
        return []
    told: Paragraph = []
    for replica in sorted({replica for _, step in bad for replica in step.nonfinite_replicas}):
        for applied in (True, False):
            steps = [n for n, step in bad if replica in step.nonfinite_replicas and step.applied is applied]
            if steps:
                done = "applied to the weights" if applied else "skipped"
                which = f"{replica} of {training.replicas} (0 is the first)"
                text = f"{which}: inf or NaN, {done}, in step {_ranges(steps, look)}"
                told.append(_line("replica", Text(text, overflow="fold")))
    return told


def _loss(steps: tuple[StepFacts, ...], look: Look) -> Paragraph:
    losses = [step.loss for step in steps if step.loss is not None]
    if not losses:
        return []
    if len(losses) == 1 or not any(math.isfinite(loss) for loss in losses):
        return [_line("loss", Text(number_text(losses[0]) + (" throughout" if len(losses) > 1 else "")))]
    spark = sparkline([step.loss for step in steps], SPARK, look.blocks)
    ends = f"{number_text(losses[0])} {look.arrow} {number_text(losses[-1])}"
    return [_line("loss", Text.assemble(f"{ends}  ", (spark, "blue")))]


def _magnitudes(training: TrainingFacts, look: Look) -> Paragraph:
    """How the numbers grew, layer by layer, until one was not finite; forwards, or on the way back."""
    culprit, gradient = training.culprit, training.gradient_culprit
    if culprit is not None:
        frames, step = culprit.frames, culprit.step
        last = _named(culprit.overflow, look)
        label = "largest"
    elif gradient is not None and gradient.layer:
        frames, step = gradient.frames, gradient.step
        last = look.name(gradient.layer, 30)
        label = "gradients"
    else:
        return []
    grew = [f"{_named(frame, look)} {number_text(frame.largest)}" for frame in frames[-4:]]
    steps = f" {look.arrow} ".join([*grew, f"{last} inf"])
    return [_line(label, Text(f"{steps}, in step {step + 1}", overflow="fold"))]


def _named(tensor: TensorFacts, look: Look) -> str:
    again = f" (call {tensor.call})" if tensor.call > 1 else ""
    return f"{look.name(tensor.layer, 30)}{again}"

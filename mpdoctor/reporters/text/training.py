"""A short training in words: its device and policy, skipped steps, growth of losses and weights."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace

from mpdoctor.facts.location import Location
from mpdoctor.facts.training import PredictionFacts, TensorFacts, TrainingFacts
from mpdoctor.facts.written_numbers import count, magnitude_text, number_text
from mpdoctor.reporters.printable import place_text
from mpdoctor.reporters.text.style import Style

ENDED = {"budget": "the time of --budget was spent", "script": "the script's own loop ended there"}


def circumstances(training: TrainingFacts, look: Style, *, without_steps: bool = False) -> str:
    """What was trained, on what and for how long, in one line. `without_steps`: where the line above has the steps and
    the device."""
    if training.prediction is not None:
        return _circumstances_of_prediction(training, training.prediction, look)
    done, wanted = len(training.steps), training.steps_wanted
    steps = count(done, "step") if done == wanted else f"{done} of {count(wanted, 'step')}"
    device, policy = look.name(training.device, 24), look.name(training.policy, 24)
    parts = [steps if not without_steps or done < wanted else "", _call(training, look), *_data(training)]
    parts += [policy] if without_steps else [device, policy]
    if training.ended in ENDED and done < wanted:
        parts.append(ENDED[training.ended] + _of_a_trial(training))
    return look.dot.join(filter(None, parts))


def _of_a_trial(training: TrainingFacts) -> str:
    """That steps of the script's loop are missing from those counted here, where they were run at two loss scales."""
    more = (training.script_steps or 0) - len(training.steps) if training.ended == "script" else 0
    return f", {more} steps later: these were run at two loss scales and changed nothing" if more > 0 else ""


def _circumstances_of_prediction(training: TrainingFacts, seen: PredictionFacts, look: Style) -> str:
    place = training.model.call.location
    where = f" at {_place(place, look)}" if place else ""
    times = count(seen.calls, "call")
    device, policy = look.name(training.device, 24), look.name(training.policy, 24)
    return look.dot.join([f"{times}, {look.name(seen.called)}{where}", *_data(training), device, policy])


def _call(training: TrainingFacts, look: Style) -> str:
    call = training.model.call
    if call.kind == "none":
        return ""
    place = f" at {_place(call.location, look)}" if call.location else ""
    return f"{call.kind}{place}"


def _place(place: Location, look: Style) -> str:
    return place_text(replace(place, path=look.name(place.path, 50)))


_DATA = {"real": "real data", "recorded": "the recorded batch and weights, in each step"}


def _data(training: TrainingFacts) -> list[str]:
    data = _DATA.get(training.data) or f"data: {training.data}"
    replicas = [count(training.replicas, "replica")] if training.replicas > 1 else []
    return [data, *replicas, *(["jit_compile"] if training.jit_compile else [])]


def made_up(training: TrainingFacts, look: Style) -> str:
    loss = f"; the loss, {look.name(training.made_up_loss, 60)}" if training.made_up_loss else ""
    return f"batches that fit the model's inputs and loss{loss}"


def skipped_steps(training: TrainingFacts, look: Style) -> str:
    """Which steps were skipped, and because of what."""
    skipped = [(number, step) for number, step in enumerate(training.steps, 1) if not step.applied]
    if not skipped:
        return ""
    numbers = [number for number, _ in skipped]
    steps = f"step {_ranges(numbers, look)}" if len(numbers) == 1 else f"steps {_ranges(numbers, look)}"
    if len(numbers) == len(training.steps):
        steps = f"all {count(len(numbers), 'step')}"
    causes = Counter(step.first_nonfinite for _, step in skipped if step.first_nonfinite)
    cause = ""
    if causes:
        named = look.listed([name for name, _ in causes.most_common()], most=2)
        cause = f"; inf or NaN first in the gradient of {named}"
    return f"{steps}{cause}"


def _ranges(numbers: list[int], look: Style) -> str:
    """1–3, 34: at most five of them."""
    ranges: list[list[int]] = []
    for number in numbers:
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    texts = [str(first) if first == last else f"{first}{look.dash}{last}" for first, last in ranges]
    return ", ".join(texts[:5]) + (f" and {len(texts) - 5} more" if len(texts) > 5 else "")


def skips(training: TrainingFacts) -> list[bool]:
    return [not step.applied for step in training.steps]


def updates(training: TrainingFacts) -> list[bool]:
    return [step.applied for step in training.steps]


def is_constant(training: TrainingFacts) -> bool:
    """Whether one loss scale held in every step that had one."""
    return len({step.loss_scale for step in training.steps if step.loss_scale is not None}) == 1


def course_of_scale(training: TrainingFacts, look: Style) -> str:
    """Where the loss scale began and ended, and which steps it cost; "" where there is none."""
    known = [step.loss_scale for step in training.steps if step.loss_scale is not None]
    if not known:
        return ""
    first, last = known[0], known[-1]
    fixed = ", fixed" if training.dynamic is False or training.uses_loss_scale_factor else ""
    course = f"{number_text(first)} {look.arrow} {number_text(last)}"
    if is_constant(training):
        course = f"{number_text(first)} throughout{fixed}"
    skipped = skipped_steps(training, look)
    return f"{course}. Skipped: {skipped}." if skipped else f"{course}. No step was skipped."


def course_of_loss(training: TrainingFacts, look: Style) -> str:
    losses = [step.loss for step in training.steps if step.loss is not None]
    if not losses:
        return ""
    if len(losses) == 1 or not any(math.isfinite(loss) for loss in losses):
        return number_text(losses[0]) + (" throughout" if len(losses) > 1 else "")
    return f"{number_text(losses[0])} {look.arrow} {number_text(losses[-1])}"


def failing_replicas(training: TrainingFacts, look: Style) -> list[str]:
    """Which replica's gradients were not finite, and whether the step was applied nevertheless."""
    bad = [(number, step) for number, step in enumerate(training.steps, 1) if step.nonfinite_replicas]
    if not bad:
        return []
    parts = []
    for replica in sorted({replica for _, step in bad for replica in step.nonfinite_replicas}):
        for applied in (True, False):
            steps = [n for n, step in bad if replica in step.nonfinite_replicas and step.applied is applied]
            if steps:
                done = "applied to the weights" if applied else "skipped"
                place = f"{replica} of {training.replicas} (0 is the first)"
                text = f"{place}: inf or NaN, {done}, in step {_ranges(steps, look)}"
                parts.append(text)
    return parts


def magnitudes(training: TrainingFacts, look: Style) -> tuple[str, str] | None:
    """A label, and how the numbers grew, layer by layer, until one was not finite; forwards, or on the way back."""
    culprit, gradient = training.culprit, training.gradient_culprit
    if culprit is not None:
        frames, step = culprit.frames, culprit.step
        last = _name_with_call(culprit.overflow, look)
        label = "largest"
    elif gradient is not None and gradient.layer:
        frames, step = gradient.frames, gradient.step
        last = look.name(gradient.layer, 30)
        label = "gradients"
    else:
        return None
    grew = [f"{_name_with_call(frame, look)} {magnitude_text(frame.largest)}" for frame in frames[-4:]]
    steps = f" {look.arrow} ".join([*grew, f"{last} inf"])
    return label, f"{steps}, {training.moment(step)}".replace("`", "")


def _name_with_call(tensor: TensorFacts, look: Style) -> str:
    again = f" (call {tensor.call})" if tensor.call > 1 else ""
    return f"{look.name(tensor.layer, 30)}{again}"


def frames_of_culprit(training: TrainingFacts) -> tuple[TensorFacts, ...]:
    """The tensors that led up to the first one that was not finite, with that one last; in the backward pass that one
    is unknown."""
    if training.culprit is not None:
        return (*training.culprit.frames, training.culprit.overflow)
    return training.gradient_culprit.frames if training.gradient_culprit is not None else ()

"""The report of `--reference` in words: what 16 bits lose against float32."""

from __future__ import annotations

from statistics import mean

from mpdoctor.facts.divergence import DivergenceFacts
from mpdoctor.facts.reference import ReferenceFacts, ScaleRoom, cosine_text, power_text
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.reporters.text.style import Style

MOST = 3
GOOD_SCALES = "good scales"


def fidelity_in_words(reference: ReferenceFacts, look: Style, worst: bool = True) -> str:
    """ "gradient fidelity 0.9997 (worst: conv/kernel 0.98)"; "" where it was not measured."""
    fidelity, variable = reference.fidelity, reference.worst_variable
    if fidelity is None:
        return ""
    named = ""
    if worst and variable is not None and variable.cosine is not None and variable.cosine < fidelity:
        named = f" (worst: {look.name(variable.path, 60)} {cosine_text(variable.cosine)})"
    return f"gradient fidelity {cosine_text(fidelity)}{named}"


def lines(training: TrainingFacts, look: Style) -> list[tuple[str, str]]:
    """(label, text); [] where `--reference` was not given."""
    reference = training.reference
    if reference is None:
        return []
    if reference.not_measured:
        return [("float32", f"not compared, because {look.name(reference.not_measured, 300)}")]
    rows = [("float32", _comparison_text(reference, look))]
    flushed = {v.path: v.flushed for step in reference.steps for v in step.variables if v.underflows}
    if flushed:
        shares = [f"{look.name(path, 60)} {share:.0%}" for path, share in list(flushed.items())[:MOST]]
        more = f" and {len(flushed) - MOST} more" if len(flushed) > MOST else ""
        rows.append(("became 0", ", ".join(shares) + more))
    if reference.no_time:
        rows.append((GOOD_SCALES, "not looked for: the time of --budget was spent"))
    elif reference.room is not None:
        rows.append((GOOD_SCALES, good_scales_text(reference, reference.room, look)))
    if reference.divergence is not None:
        rows.append(("both losses", _loss_text(reference.divergence, look)))
    return rows


def _loss_text(divergence: DivergenceFacts, look: Style) -> str:
    """How the losses of the repeated training compare in 16 bits and in float32."""
    if divergence.not_measured:
        return f"not compared over the training, because {look.name(divergence.not_measured, 300)}"
    last, steps = divergence.last_third, len(divergence.steps)
    half, single = (f"{mean(losses[last]):.4g}" for losses in (divergence.half, divergence.single))
    compared = f"{half} in {divergence.dtype}, {single} in float32: mean of the last {steps // 3} of {steps} steps"
    return f"{compared}, trained once more with the same random numbers"


def _comparison_text(reference: ReferenceFacts, look: Style) -> str:
    steps = look.listed([str(step.step + 1) for step in reference.steps])
    with_tf32 = ", with float32 multiplied in TF32 on this GPU" if reference.in_tf32 else ""
    compared = f"step{'s' if len(reference.steps) > 1 else ''} {steps} compared{with_tf32}"
    fidelity = fidelity_in_words(reference, look)
    return f"{fidelity}; {compared}" if fidelity else f"{compared}: in {reference.dtype} no gradient was finite"


def good_scales_text(reference: ReferenceFacts, room: ScaleRoom, look: Style) -> str:
    """ "2^9 to 2^17 on the batches tried; yours: 2^15"."""
    scale = reference.steps[-1].loss_scale if reference.steps else None
    yours = "" if scale is None else f"; yours: {power_text(scale)}"
    if room.overflows_above is None:
        return f"none: at every scale tried a gradient overflows, {look.listed(room.overflowing)}{yours}"
    if room.lowest is None or room.is_empty:
        above, over = power_text(2 * room.overflows_above), look.listed(room.overflowing)
        lost = f"; at the scales just below, 5% or more become 0 of {look.listed(room.flushed)}" if room.flushed else ""
        return f"none: at {above} the gradient of {over} overflows{lost}{yours}"
    assert room.highest is not None
    return f"{power_text(room.lowest)} to {power_text(room.highest)} on the batches tried{yours}"

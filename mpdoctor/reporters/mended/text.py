"""A mended program for people: before and after side by side, what was edited, what remains, and the patch.

No line above the patch begins as a line of a patch does, so that `git apply` takes all of the text."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator

from mpdoctor.facts.half_dtypes import HALF, MIXED
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.reference import ReferenceFacts
from mpdoctor.facts.written_numbers import count, number_text
from mpdoctor.finding import Diagnosis, Finding, Severity, Verdict
from mpdoctor.mended import Mended, NeededEdit
from mpdoctor.reporters.printable import place_text
from mpdoctor.reporters.text.style import Style
from mpdoctor.reporters.text.training import course_of_loss

ESCAPE = "\x1b"
BOLD, RED, GREEN, PLAIN = (f"{ESCAPE}[{number}m" for number in (1, 31, 32, 0))
COLORS = {"+": GREEN, "-": RED}
MOST_NAMED = 12
MOST_CODES = 5


def render(mended: Mended, *, width: int = 80, color: bool = False, blocks: bool = True) -> str:
    """The report on a mended program as text, without the patch."""
    look = Style(width, blocks)
    headline = _headline(mended, look)
    if color:
        headline = f"{BOLD}{GREEN if mended.is_healthy else RED}{headline}{PLAIN}"
    paragraphs = [
        [headline, *wrapped(_float32_alone(mended), look)],
        list(_table(mended, look)),
        wrapped([*_edits(mended, look), *_intended(mended)], look),
        wrapped([*remaining(mended.after, look), *_what_did_not_help(mended, look)], look),
        wrapped([*_stand_ins(mended, look), *_costs(mended), *_not_compared(mended)], look),
    ]
    return "\n".join("".join(f"{line}\n" for line in lines) for lines in paragraphs if lines)


def shown_patch(patch: str, color: bool = False) -> str:
    """Below an empty line; "" where there is none."""
    if not patch:
        return ""
    if not color:
        return f"\n{patch}"
    return "\n" + "".join(f"{COLORS.get(line[:1], PLAIN)}{line}{PLAIN}\n" for line in patch.split("\n")[:-1])


def wrapped(lines: Iterable[str], look: Style) -> list[str]:
    """Further lines of one are indented: none begins as a line of a patch does."""
    wrapped_lines: list[str] = []
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip()) + 2)
        wrapped_lines += textwrap.wrap(
            line, look.width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
        )
    return wrapped_lines


def _headline(mended: Mended, look: Style) -> str:
    name = look.name(mended.after.targets[0].id, 60) if len(mended.after.targets) == 1 else "the targets"
    under = f" under {mended.policy}" if mended.policy else ""
    edits = count(len(mended.edits), "edit")
    if mended.is_healthy and not mended.edits:
        return f"{name}: nothing to mend{under}."
    if mended.is_healthy:
        return f"{name} is mended{under} by {edits}{_proof(mended)}."
    left = what_remains(mended.after)
    problem = left or "its training is not sound, or too short to tell (--budget)"
    if mended.policy and not mended.policy_in_force:
        problem = f"{mended.policy} is not in force where it trains" + (f", and {problem}" if left else "")
    if not mended.edits:
        helps = "could be proved" if mended.stopped else "helps"
        return f"{name} is not mended: {problem}, and no edit {helps}."
    return f"{name} is not mended: {problem} after {edits}."


def _float32_alone(mended: Mended) -> Iterator[str]:
    """A reminder where the edits leave nothing of mixed precision, which nobody asked for."""
    before, after = _half_layers(mended.before), _half_layers(mended.after)
    if mended.is_healthy and not mended.policy and before and mended.after.models and not after:
        yield "None of its layers computes in 16 bits any more: with these edits it trains in float32 alone."


def what_remains(diagnosis: Diagnosis) -> str:
    """What the diagnosis after the edits still has: "1 error remains"; "" where nothing does."""
    left = counts_of_failing(diagnosis)
    verb = "remains" if left.startswith("1 ") and "," not in left else "remain"
    return f"{left} {verb}" if left else ""


def _proof(mended: Mended) -> str:
    unsure = [probe for probe in mended.after.probes if probe.verdict is Verdict.INCONCLUSIVE]
    if unsure:
        steps = count(len(unsure[0].training.steps), "step")
        return f", as far as {steps} of its training tell"
    if mended.after.probes:
        return f", proved by training with {'it' if len(mended.edits) == 1 else 'them'}"
    return ", proved by a second look at its source" if _is_source_only(mended.after) else ""


def _is_source_only(diagnosis: Diagnosis) -> bool:
    return all(target.stages.get("model") is None or target.stages["model"].status == "skipped"
               for target in diagnosis.targets)  # fmt: skip


# --- before and after -------------------------------------------------------------------------------------------------
def _table(mended: Mended, look: Style) -> Iterator[str]:
    if mended.edits:
        yield from before_and_after(mended.before, mended.after, look)


def before_and_after(before: Diagnosis, after: Diagnosis, look: Style) -> Iterator[str]:
    """Side by side; nothing where neither tells anything."""
    rows = [(label, *(tell(diagnosis, look) for diagnosis in (before, after))) for label, tell in ROWS]
    shown = [row for row in rows if any(row[1:])]
    if not shown:
        return
    wide = [max(len(row[column]) for row in (("", "before", "after"), *shown)) for column in range(3)]
    for label, old, new in (("", "before", "after"), *shown):
        yield f"  {label:<{wide[0]}}  {old or look.dash:<{wide[1]}}  {new or look.dash}".rstrip()


def _verdict(diagnosis: Diagnosis, look: Style) -> str:
    return ", ".join(probe.verdict.value for probe in diagnosis.probes)


def _skipped_steps(diagnosis: Diagnosis, look: Style) -> str:
    steps = [step for probe in diagnosis.probes for step in probe.training.steps]
    return f"{sum(not step.applied for step in steps)} of {len(steps)}" if steps else ""


def _scale(diagnosis: Diagnosis, look: Style) -> str:
    """The loss scale at the start, at the end, and its most frequent value."""
    parts = []
    for probe in diagnosis.probes:
        known = [step.loss_scale for step in probe.training.steps if step.loss_scale is not None]
        if known:
            longest, _ = Counter(known).most_common(1)[0]
            course = f"{number_text(known[0])} {look.arrow} {number_text(known[-1])}"
            rest = f", mostly {number_text(longest)}" if longest not in (known[0], known[-1]) else ""
            parts.append(f"{course}{rest}" if known[0] != known[-1] else f"{number_text(known[0])}{rest}")
    return "; ".join(parts)


def _loss(diagnosis: Diagnosis, look: Style) -> str:
    return "; ".join(filter(None, (course_of_loss(probe.training, look) for probe in diagnosis.probes)))


def _layers(diagnosis: Diagnosis, look: Style) -> str:
    """How many of the trained models' layers compute in 16 bits."""
    layers = [layer for _, model in diagnosis.models for layer in model.layers if _computes(layer)]
    return f"{_half_layers(diagnosis)} of {len(layers)}" if layers else ""


def _half_layers(diagnosis: Diagnosis) -> int:
    layers = (layer for _, model in diagnosis.models for layer in model.layers if _computes(layer))
    return sum(layer.compute_dtype in HALF for layer in layers)


def _computes(layer: LayerFacts) -> bool:
    return layer.follows_policy and not layer.is_model


def _findings(diagnosis: Diagnosis, look: Style) -> str:
    codes = list(dict.fromkeys(finding.code for finding in failing(diagnosis)))
    named = ", ".join(codes[:MOST_CODES]) + (f", {look.more}" if len(codes) > MOST_CODES else "")
    return f"{counts_of_failing(diagnosis) or 'none'}{f' ({named})' if codes else ''}"


ROWS: tuple[tuple[str, Callable[[Diagnosis, Style], str]], ...] = (
    ("verdict", _verdict),
    ("steps skipped", _skipped_steps),
    ("loss scale", _scale),
    ("loss", _loss),
    ("layers in 16 bits", _layers),
    ("findings", _findings),
)


def failing(diagnosis: Diagnosis) -> list[Finding]:
    return [finding for finding in diagnosis.findings if finding.fails_a_run(Severity.WARNING)]


def counts_of_failing(diagnosis: Diagnosis) -> str:
    severities = Counter(finding.severity for finding in failing(diagnosis))
    parts = [
        count(severities[severity], severity.value)
        for severity in (Severity.ERROR, Severity.WARNING)
        if severities[severity]
    ]
    return ", ".join(parts)


# --- what was edited, and what remains --------------------------------------------------------------------------------
def _edits(mended: Mended, look: Style) -> Iterator[str]:
    if mended.edits:
        yield "Edited, and each one is needed:" if len(mended.edits) > 1 else "Edited:"
    for needed in mended.edits:
        yield f"  {_place(needed)}: {look.name(needed.title)}{f' ({needed.code})' if needed.code else ''}"


def _intended(mended: Mended) -> Iterator[str]:
    """What `mpdoctor check` says of the mended program, and is as it is to be."""
    if mended.own_code_of:
        classes = " and ".join(f"`{name}`" for name in mended.own_code_of)
        yield (
            f"The layers inside {classes} follow the global policy as before, which is as it is to be: "
            "`mpdoctor check` warns of it (MP208)."
        )


def _place(needed: NeededEdit) -> str:
    return place_text(needed.edits[0].location) if needed.edits else ""


def remaining(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    left = failing(diagnosis)
    if left:
        yield "What remains:"
    for finding in left[:MOST_NAMED]:
        yield f"  {_finding_line(finding, look)}"
    if len(left) > MOST_NAMED:
        yield f"  {look.more} and {count(len(left) - MOST_NAMED, 'more finding')}: `mpdoctor check` names them."


def _finding_line(finding: Finding, look: Style) -> str:
    place = f"{place_text(finding.location)}: " if finding.location is not None else ""
    return f"{place}{finding.code} {look.name(finding.message, 400)}"


def _what_did_not_help(mended: Mended, look: Style) -> Iterator[str]:
    if mended.is_healthy:
        return
    if mended.tried:
        yield "Tried, and not proved:" if mended.stopped else "Tried without success:"
    for code, title in mended.tried[:MOST_NAMED]:
        yield f"  {look.name(title)}{f' ({code})' if code else ''}"
    if mended.stopped:
        yield "With that it stopped elsewhere, before any training:"
    for finding in mended.stopped[:MOST_NAMED]:
        yield f"  {_finding_line(finding, look)}"
    for reason in mended.hindered[:MOST_NAMED]:
        yield f"  No edit: {look.name(reason, 400)}."


def _stand_ins(mended: Mended, look: Style) -> Iterator[str]:
    made_up = [stand_in for target in mended.after.targets for stand_in in target.stand_ins]
    if made_up:
        yield f"Trained on stand-ins, because it could not be downloaded: {look.listed(made_up)}."


def _costs(mended: Mended) -> Iterator[str]:
    if mended.after.probes and mended.examinations > 1:
        with_edits = f"with {count(mended.rounds, 'round')} of edits"
        if mended.examinations > mended.rounds + 1:
            runs = f"as it was, {with_edits} and with single edits left out"
        else:
            runs = f"as it was, and {with_edits}"
        yield (
            f"It was run {mended.examinations} times up to its training: {runs}. "
            f"Whatever it does before its training call was done as often."
        )


def _not_compared(mended: Mended) -> Iterator[str]:
    """A reminder where no loss was compared with float32's, and why: a training that is sound under 16 bits need not
    learn as much."""
    trainings = [probe.training for probe in mended.after.probes]
    asked = [training.reference for training in trainings if training.reference is not None]
    if not trainings or not mended.is_healthy or not _is_in_16_bits(mended) or any(map(_is_compared, asked)):
        return
    reasons = list(dict.fromkeys(filter(None, map(_reason_against_comparing, asked))))
    why = "; ".join(reasons) if asked else "that takes --reference"
    yield f"Its loss was not held against float32's{f': {why}' if why else ''}."


def _is_compared(reference: ReferenceFacts) -> bool:
    return reference.divergence is not None and not reference.divergence.not_measured


def _reason_against_comparing(reference: ReferenceFacts) -> str:
    told = reference.not_measured or (reference.divergence.not_measured if reference.divergence is not None else "")
    return told or ("there was no time left" if reference.no_time else "")


def _is_in_16_bits(mended: Mended) -> bool:
    layers = (layer for _, model in mended.after.models for layer in model.layers)
    return mended.policy in MIXED or (not mended.policy and any(layer.computes_in_half for layer in layers))

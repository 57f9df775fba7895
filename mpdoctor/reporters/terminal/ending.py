"""The end of a report: what was not done and why, what the script wrote, what broke, and the command."""

from __future__ import annotations

from rich.text import Text

from mpdoctor.finding import Diagnosis, Stage, TargetReport
from mpdoctor.reporters.terminal.look import Look, Paragraph, count, indented, labelled
from mpdoctor.reporters.visible import one_line, shortened

LONGEST_REASON = 300


def stages(diagnosis: Diagnosis, look: Look) -> Paragraph:
    """Stages that were skipped or failed, rules that could not look, stand-ins for data, files written, what broke."""
    told: Paragraph = []
    lines = [line for target in diagnosis.targets for line in _target_lines(target, diagnosis, look)]
    told += [indented(Text(line, style="dim", overflow="fold")) for line in dict.fromkeys(lines)]
    for code, reason in dict.fromkeys((s.code, s.reason) for s in diagnosis.skipped):
        what = "not read" if code == "source" else f"{look.name(code)} did not look"
        line = f"{what}: {look.name(reason, LONGEST_REASON)}"
        told.append(indented(Text(line, style="dim", overflow="fold")))
    for broken in diagnosis.crashed:
        error = look.name(broken.error, LONGEST_REASON)
        text = f"{look.name(broken.code)} broke in {look.name(broken.where)}: {error}"
        told.append(Text.assemble(("mpdoctor itself: ", "bold red"), text, overflow="fold"))
    return told


def _target_lines(target: TargetReport, diagnosis: Diagnosis, look: Look) -> list[str]:
    # what is true of all targets needs no name
    alike = all(other.stages == target.stages for other in diagnosis.targets) and not target.files_written
    of = "" if alike or len(diagnosis.targets) == 1 else f"{look.name(target.id, 60)}: "
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, stage in target.stages.items():
        if stage.status != "done" and stage.reason:
            by_reason.setdefault((stage.status, stage.reason), []).append(name)
    lines = [
        f"{of}{' and '.join(names)} {status}: {look.name(reason, LONGEST_REASON)}"
        for (status, reason), names in by_reason.items()
    ]
    if target.stand_ins:
        lines.append(f"{of}stand-ins, because it could not be downloaded: {look.listed(target.stand_ins)}")
    if target.files_written:
        lines.append(f"{of}the script opened for writing: {look.listed(target.files_written, most=3)}")
    return lines


def ending(diagnosis: Diagnosis, look: Look) -> Paragraph:
    about = [_judged_by(target) for target in diagnosis.targets] + [
        f"Python {target.python}" for target in diagnosis.targets if target.python
    ]
    if diagnosis.suppressed:
        about.append(f"{count(diagnosis.suppressed, 'finding')} suppressed")
    if diagnosis.findings:
        about.append(f"more on a rule: mpdoctor explain {diagnosis.findings[0].code}")
    line = look.dot.join(dict.fromkeys(look.name(text, 100) for text in about))
    return [
        indented(Text(line, style="dim", overflow="fold")),
        labelled("run again:", Text(shortened(one_line(diagnosis.command), 600, look.more), overflow="fold")),
    ]


def _judged_by(target: TargetReport) -> str:
    """The Keras that ran, or by which the source was judged and why."""
    if target.stages.get("model", Stage("done")).status != "skipped":
        return str(target.keras)
    others = [f"{keras} for {count(len(files), 'file')}" for keras, files in target.other_keras]
    told = f"judged by {target.keras} ({target.keras.because})"
    return ", ".join([told, *others])

"""The end of a report: what was not done and why, what the script wrote, what broke, and the command."""

from __future__ import annotations

from rich.text import Text

from mpdoctor.finding import Diagnosis, TargetReport
from mpdoctor.reporters.terminal.look import Look, Paragraph, count, indented, labelled
from mpdoctor.reporters.visible import one_line, shortened

LONGEST_REASON = 300


def stages(diagnosis: Diagnosis, look: Look) -> Paragraph:
    """Stages that were skipped or failed, stand-ins for data, files that the script wrote, what broke."""
    told: Paragraph = []
    for target in diagnosis.targets:
        told += [indented(Text(line, style="dim", overflow="fold")) for line in _target_lines(target, diagnosis, look)]
    for broken in diagnosis.crashed:
        error = look.name(broken.error, LONGEST_REASON)
        text = f"{look.name(broken.code)} broke in {look.name(broken.where)}: {error}"
        told.append(Text.assemble(("mpdoctor itself: ", "bold red"), text, overflow="fold"))
    return told


def _target_lines(target: TargetReport, diagnosis: Diagnosis, look: Look) -> list[str]:
    of = f"{look.name(target.id, 60)}: " if len(diagnosis.targets) > 1 else ""
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
    about = [str(target.keras) for target in diagnosis.targets] + [
        f"Python {target.python}" for target in diagnosis.targets if target.python
    ]
    if diagnosis.suppressed:
        about.append(f"{count(diagnosis.suppressed, 'finding')} suppressed")
    if diagnosis.findings:
        about.append(f"more on a rule: mpdoctor explain {diagnosis.findings[0].code}")
    line = look.dot.join(dict.fromkeys(look.name(text, 60) for text in about))
    return [
        indented(Text(line, style="dim", overflow="fold")),
        labelled("run again:", Text(shortened(one_line(diagnosis.command), 600, look.more), overflow="fold")),
    ]

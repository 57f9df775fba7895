"""Skipped parts with reasons, the script's own output, and the Keras that the source was judged by, in words."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from mpdoctor.facts.machine.environment import CHOSEN, RUN_AS
from mpdoctor.facts.processes import STARTED, named
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis, Stage, TargetReport
from mpdoctor.reporters.text.style import Style

LONGEST_REASON = 300
MOST_REASONS = 2
MOST_GPUS = 8
OWN_FRAME = re.compile(r'File "[^"]*\b(mpdoctor/[^"]+)", line (\d+)')
# By the code of a Skipped that is no rule's.
NOT_DONE = {
    "source": "not read",
    "file": "not restored",
    "target": "not examined",
    "fit": "not looked at",
    "training": "not looked at",
    "policy": "policy not known",
}


def not_done(diagnosis: Diagnosis, look: Style) -> list[str]:
    """Stages that were skipped or failed, stand-ins for data, files written, rules that could not look."""
    # what is true of all targets needs no name
    alike = all(target.stages == diagnosis.targets[0].stages for target in diagnosis.targets)
    several = len(diagnosis.targets) > 1
    parts = []
    for target in diagnosis.targets:
        differs = target.files_written or target.processes_started or not alike
        of = f"{look.name(target.id, 60)}: " if several and differs else ""
        parts += [of + line for line in _target_lines(target, look)]
        parts += [of + line for line in _started(target, diagnosis, look)]
    for skipped in diagnosis.skipped:
        missing = NOT_DONE.get(skipped.code) or f"{look.name(skipped.code)} did not look"
        parts.append(f"{missing}: {look.name(skipped.reason, LONGEST_REASON)}")
    return list(dict.fromkeys(parts))


def broken(diagnosis: Diagnosis, look: Style) -> list[str]:
    """What broke in mpdoctor itself."""
    return [
        f"{look.name(crash.code)} broke in {look.name(crash.where)}: "
        f"{look.name(_error_and_line(crash.error), LONGEST_REASON)}"
        for crash in diagnosis.crashed
    ]


def _error_and_line(error: str) -> str:
    """For a traceback the error and the line of mpdoctor that raised it; other texts unchanged."""
    if not error.startswith("Traceback"):
        return error
    own_lines = OWN_FRAME.findall(error)
    raised = error.rstrip().rpartition("\n")[2]
    return f"{raised} ({own_lines[-1][0]}, line {own_lines[-1][1]})" if own_lines else raised


def about(diagnosis: Diagnosis, look: Style) -> list[str]:
    """The Kerases and Pythons of all targets, what else computed there, and how much was suppressed."""
    parts = judged_by(diagnosis.targets)
    tensorflow = diagnosis.environment.get("TensorFlow")
    parts += [f"TensorFlow {tensorflow}"] if tensorflow else []
    parts += [f"Python {target.python}" for target in diagnosis.targets if target.python]
    chosen = diagnosis.environment.get(CHOSEN)
    parts += [f"run by {chosen}"] if chosen else []
    run_as = diagnosis.environment.get(RUN_AS)
    parts += [f"run as {run_as}"] if run_as else []
    parts += [diagnosis.environment[f"GPU {n}"] for n in range(MOST_GPUS) if f"GPU {n}" in diagnosis.environment]
    if diagnosis.suppressed:
        parts.append(f"{count(diagnosis.suppressed, 'finding')} suppressed")
    return [look.name(text, LONGEST_REASON) for text in dict.fromkeys(parts)]


def _target_lines(target: TargetReport, look: Style) -> list[str]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for name, stage in target.stages.items():
        if stage.status != "done" and stage.reason:
            by_reason.setdefault((stage.status, stage.reason), []).append(name)
    lines = [
        f"{' and '.join(names)} {status}: {look.name(reason, LONGEST_REASON)}"
        for (status, reason), names in by_reason.items()
    ]
    if target.stand_ins:
        lines.append(f"stand-ins, because it could not be downloaded: {look.listed(target.stand_ins)}")
    if target.files_written:
        lines.append(f"the script opened for writing: {look.listed(target.files_written, most=3)}")
    return lines


def _started(target: TargetReport, diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    """The line about other processes, unless a finding says so. Where a training was examined, a program that cannot
    train has nothing to do with it."""
    examined = target.stages.get("training", Stage("done")).status == "done"
    told = [program for program in target.processes_started if program.may_train or not examined]
    in_finding = any(STARTED in each.evidence for each in diagnosis.findings if each.target in ("", target.id))
    if told and not in_finding:
        examine = next((program.examine for program in told if program.examine), "")
        how = f"; if that trains: mpdoctor check {examine}" if examine else ""
        yield look.name(f"started, and not examined: {named(told)}{how}", LONGEST_REASON)


def judged_by(targets: Sequence[TargetReport]) -> list[str]:
    """The Kerases that ran, and those by which source was judged: each once, with why, or for how many files."""
    ran = [str(target.keras) for target in targets if _was_run(target)]
    reasons: dict[str, list[str]] = {}
    files: Counter[str] = Counter()
    for target in targets:
        if not _was_run(target):
            reasons.setdefault(str(target.keras), []).append(target.keras.because)
            for keras, paths in target.other_keras:
                files[str(keras)] += len(paths)
    parts = [f"judged by {keras} ({_first_reasons(list(dict.fromkeys(why)))})" for keras, why in reasons.items()]
    others = [f"{keras} for {count(number, 'file')}" for keras, number in files.items()]
    return [*ran, *([", ".join([*parts[:1], *others])] if parts else []), *parts[1:]]


def _was_run(target: TargetReport) -> bool:
    return target.stages.get("model", Stage("done")).status != "skipped"


def _first_reasons(reasons: list[str]) -> str:
    more = len(reasons) - MOST_REASONS
    return "; ".join(reasons[:MOST_REASONS]) + (f"; {more} more" if more > 0 else "")

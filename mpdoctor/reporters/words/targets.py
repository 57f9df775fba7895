"""What was not done and why, what the script wrote, and which Keras judged."""

from __future__ import annotations

from mpdoctor.finding import Diagnosis, Stage, TargetReport
from mpdoctor.reporters.words.look import Look, count

LONGEST_REASON = 300
MOST_GPUS = 8
NOT_DONE = {"source": "not read", "file": "not restored"}  # by the code of a Skipped that is no rule's


def not_done(diagnosis: Diagnosis, look: Look) -> list[str]:
    """Stages that were skipped or failed, stand-ins for data, files written, rules that could not look."""
    told = [line for target in diagnosis.targets for line in _target_lines(target, diagnosis, look)]
    for skipped in diagnosis.skipped:
        what = NOT_DONE.get(skipped.code) or f"{look.name(skipped.code)} did not look"
        told.append(f"{what}: {look.name(skipped.reason, LONGEST_REASON)}")
    return list(dict.fromkeys(told))


def broken(diagnosis: Diagnosis, look: Look) -> list[str]:
    """What broke in mpdoctor itself."""
    return [
        f"{look.name(one.code)} broke in {look.name(one.where)}: {look.name(one.error, LONGEST_REASON)}"
        for one in diagnosis.crashed
    ]


def about(diagnosis: Diagnosis, look: Look) -> list[str]:
    """The Kerases and Pythons of all targets, what else computed there, and how much was suppressed."""
    told = [judged_by(target) for target in diagnosis.targets]
    tensorflow = diagnosis.environment.get("TensorFlow")
    told += [f"TensorFlow {tensorflow}"] if tensorflow else []
    told += [f"Python {target.python}" for target in diagnosis.targets if target.python]
    told += [diagnosis.environment[f"GPU {n}"] for n in range(MOST_GPUS) if f"GPU {n}" in diagnosis.environment]
    if diagnosis.suppressed:
        told.append(f"{count(diagnosis.suppressed, 'finding')} suppressed")
    return [look.name(text, 100) for text in dict.fromkeys(told)]


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


def judged_by(target: TargetReport) -> str:
    """The Keras that ran, or by which the source was judged and why."""
    if target.stages.get("model", Stage("done")).status != "skipped":
        return str(target.keras)
    others = [f"{keras} for {count(len(files), 'file')}" for keras, files in target.other_keras]
    told = f"judged by {target.keras} ({target.keras.because})"
    return ", ".join([told, *others])

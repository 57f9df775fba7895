"""Sick scripts given to `mpdoctor mend`: how many it mends, and whether plain Keras trains what it made of them."""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from written_edits import edit_from_json

from mpdoctor.fixes.texts import edited

from .comparing import ROOT, PlainKeras
from .generator import Script
from .results import Results
from .verdicts import number_from_json

STEPS = 50
PATIENCE = 1800
# Defects that neither a dtype nor a loss scale nor the way it is handled has to do with: there is nothing to mend.
OF_NO_PRECISION = (
    *("NaN or inf in the data", "NaN or inf in the labels", "learning rate 0", "dead ReLU", "divergence"),
)


@dataclass(frozen=True)
class Mend:
    """One sick script. `exit_code` and the next seven are of mend's own report.

    before, after
        Verdicts, and codes at warning and above.
    edits, tried
        Titles of the needed edits, and of those that brought nothing.
    trains
        Whether plain Keras trains the mended script 50 steps without a loss that is not finite, and without losing one
        of the last ten; None where it is not mended.
    """

    seed: int
    number: int
    keras: str
    disease: str
    exit_code: int
    mended: bool
    rounds: int
    examinations: int
    before: list[str]
    after: list[str]
    edits: list[str]
    tried: list[str]
    trains: bool | None = None

    @property
    def is_of_precision(self) -> bool:
        return self.disease not in OF_NO_PRECISION


def mends(scripts: Iterable[Script], folder: Path, path: Path) -> Iterator[Mend]:
    """The results of those scripts that the file of results does not hold yet."""
    results = Results(path, Mend)
    folder.mkdir(parents=True, exist_ok=True)
    with PlainKeras(folder) as plain:
        for script in scripts:
            if not results.holds(script.seed, script.number):
                yield results.added(_mend(script, plain))


def _mend(script: Script, plain: PlainKeras) -> Mend:
    path = plain.folder / f"{script.name}.py"
    path.write_text(script.text, encoding="utf-8")
    exit_code, report = _report_of(path)
    (plain.folder / f"{script.name}.mended.json").write_text(json.dumps(report), encoding="utf-8")
    row = Mend(
        *(script.seed, script.number, script.keras, script.truth.disease, exit_code),
        *(report["mended"], report["rounds"], report["examinations"]),
        *(seen(report["before"]), seen(report["after"])),
        list(dict.fromkeys(edit["title"] for edit in report["edits"])),
        [tried["title"] for tried in report["tried"]],
    )
    if not row.mended:
        return row
    mended = plain.folder / f"{script.name}_mended.py"
    mended.write_text(edited(script.text, map(edit_from_json, report["edits"])), encoding="utf-8")
    return replace(row, trains=trains(plain.record(script, mended)))


def _report_of(path: Path) -> tuple[int, dict[str, Any]]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    command = ("mend", path.name, "--output-format", "json", "--steps", str(STEPS), "--budget", "300")
    done = subprocess.run(
        [sys.executable, "-m", "mpdoctor", *command],
        cwd=path.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    try:
        return done.returncode, json.loads(done.stdout)
    except ValueError as error:
        raise RuntimeError(f"{path.name}: mend printed no JSON, exit {done.returncode}\n{done.stderr}") from error


def seen(diagnosis: dict[str, Any]) -> list[str]:
    verdicts = [probe["verdict"] for probe in diagnosis["probes"]]
    loud = (found["code"] for found in diagnosis["findings"] if found["severity"] != "info" and not found["what_if"])
    return [*verdicts, *sorted(set(loud))]


def trains(record: dict[str, Any]) -> bool:
    if record["raised"] is not None:
        return False
    if not record["optimizers"]:
        return not any(isinstance(value, str) for value in record.get("loss", ()))
    row = record["optimizers"][0]
    losses = [number_from_json(loss) for loss in row["loss"][:STEPS]]
    lost = [step for step, finite in enumerate(row["finite"][:STEPS]) if row["dynamic"] and not finite]
    return all(map(math.isfinite, losses)) and not any(step >= len(losses) - 10 for step in lost)


def told(rows: list[Mend]) -> str:
    """The counts, in Markdown."""
    lines = ["| Defect | Scripts | Mended | Train in plain Keras | Examinations, rounds |", "|---|---|---|---|---|"]
    for is_of_precision, subject in ((True, "all that precision has to do with"), (False, "all others")):
        of_subject = [row for row in rows if row.is_of_precision is is_of_precision]
        for disease in sorted({row.disease for row in of_subject}):
            lines.append(_line(disease, [row for row in of_subject if row.disease == disease]))
        lines.append(_line(f"**{subject}**", of_subject))
    return "\n".join(lines)


def _line(name: str, rows: list[Mend]) -> str:
    mended = [row for row in rows if row.mended]
    trained = f"{sum(row.trains is True for row in mended)} of {len(mended)}" if mended else "–"
    cost = f"{sum(row.examinations for row in rows)}, {sum(row.rounds for row in rows)}"
    return f"| {name} | {len(rows)} | {len(mended)} | {trained} | {cost} |"

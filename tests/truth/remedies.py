"""Remedies that mpdoctor tried, really made: the edit in the source, 50 steps by plain Keras, and beside it what the
second training had said."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from remedy_edits import edited

from .comparing import PlainKeras, report_of
from .generator import Script
from .results import Results
from .table import share_of
from .verdicts import number_from_json

STEPS = 50
FLOAT32 = "float32-layers"


@dataclass(frozen=True)
class Made:
    """One sick script.

    tried
        What came of float32 layers: "healed", "failed", "not-tried", "contradicted" by the second training, or "none".
    again
        The verdict of the second training, or why there was none.
    heals
        Whether plain Keras trains the edited script without a loss that is not finite; None where nothing was edited.
    same
        Whether the second training skipped the very steps that plain Keras skips; None where there was none.
    skipped
        Steps that plain Keras skips of the edited script.
    """

    seed: int
    number: int
    keras: str
    disease: str
    tried: str
    layers: list[str]
    again: str = ""
    heals: bool | None = None
    same: bool | None = None
    skipped: int | None = None


def made(scripts: Iterable[Script], folder: Path, path: Path) -> Iterator[Made]:
    """The results of those scripts that the file of results does not hold yet."""
    results = Results(path, Made)
    folder.mkdir(parents=True, exist_ok=True)
    with PlainKeras(folder) as plain:
        for script in scripts:
            if not results.holds(script.seed, script.number):
                yield results.added(_made(script, plain))


def _made(script: Script, plain: PlainKeras) -> Made:
    path = plain.folder / f"{script.name}.py"
    path.write_text(script.text, encoding="utf-8")
    report = report_of(script, path)
    remedy = _remedy(report)
    known = Made(script.seed, script.number, script.keras, script.truth.disease, "none", [])
    if remedy is None:
        return known
    second = (report["probes"] or [{}])[0].get("second_training") or {}
    contradicted = remedy["tried"] == "failed" and str(remedy["reason"]).startswith("finite on these batches")
    known = replace(
        known,
        tried="contradicted" if contradicted else remedy["tried"],
        layers=remedy["layers"],
        again=second.get("verdict") or second.get("not_tried") or "",
    )
    if known.tried not in ("healed", "contradicted"):
        return known
    mended = plain.folder / f"{script.name}_mended.py"
    mended.write_text(edited(script.text, remedy, report["models"]), encoding="utf-8")
    record = plain.record(script, mended)
    if record["raised"] is not None or not record["optimizers"]:
        return replace(known, heals=False)
    row = record["optimizers"][0]
    skipped = [step for step, finite in enumerate(row["finite"][:STEPS]) if row["dynamic"] and not finite]
    losses = [number_from_json(loss) for loss in row["loss"][:STEPS]]
    same = None if "steps" not in second else second["skipped_steps"] == [s for s in skipped if s < second["steps"]]
    return replace(known, heals=all(map(math.isfinite, losses)), same=same, skipped=len(skipped))


def _remedy(report: dict[str, Any]) -> dict[str, Any] | None:
    remedies = (remedy for finding in report["findings"] for remedy in finding["remedies"])
    return next((remedy for remedy in remedies if remedy["kind"] == FLOAT32), None)


def told(results: list[Made]) -> str:
    """The counts, in Markdown."""
    lines = [f"{len(results)} sick scripts. Float32 layers, tried on their failing batches:", ""]
    lines += ["| Tried | Scripts | Edit heals in plain Keras | Second training skipped the same steps | Its verdict |"]
    lines += ["|---|---|---|---|---|"]
    for tried in ("healed", "contradicted", "failed", "not-tried", "none"):
        of_kind = [result for result in results if result.tried == tried]
        again = ", ".join(
            f"{count} {verdict}"
            for verdict, count in Counter(result.again for result in of_kind if result.again).items()
        )
        healed, same = (share_of(of_kind, claim) for claim in ("heals", "same"))
        lines.append(f"| {tried} | {len(of_kind)} | {healed} | {same} | {again or '–'} |")
    return "\n".join(lines)

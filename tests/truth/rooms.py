"""Do the loss scales that `check --reference` recommends hold? Judged in plain Keras, at both ends of each room.

The three batches that it compared are run again at both ends, and in a model that is built anew in float32 with the
same weights: nothing may overflow, and of no variable may more be flushed than is said. Then the script is trained for
50 steps at the upper end, and none may be skipped.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import shlex
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .generator import script_from_seed
from .results import Results
from .writing import FLOAT16, KERAS3, LOOPS, TF_KERAS

ROOT = Path(__file__).parents[2]
REPLAYED = Path(__file__).parent / "replayed_steps.py"
PATIENCE = 1200
RELEVANT, FLUSHED_TOO_MUCH = 1e-4, 0.05  # as docs/reports.md says


class NotReplayed(Exception):
    """In plain Keras; the text is why."""


@dataclass(frozen=True)
class Model:
    """A script and how it is run."""

    name: str
    path: Path
    keras: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """What came of one script.

    lowest, highest
        None where no room is told, or it was not tried: `why`.
    flushed
        The largest share of a relevant variable, over the batches, at the lower and at the upper end.
    overflows
        Variables that are not finite, over the batches, at the lower and at the upper end.
    flushed_below
        The same share at `flushes_below`, which has nothing to spare and is not recommended.
    trained, skipped
        Steps at the upper end; None where the loss scale is a fixed one, which skips none.
    """

    name: str
    keras: str
    why: str = ""
    lowest: float | None = None
    highest: float | None = None
    flushed: Sequence[float] = (0.0, 0.0)
    overflows: Sequence[int] = (0, 0)
    flushed_below: float = 0.0
    trained: int | None = None
    skipped: int | None = None

    @property
    def holds(self) -> bool | None:
        """None where there is no room to judge."""
        if self.lowest is None:
            return None
        return max(self.flushed) < FLUSHED_TOO_MUCH and not any(self.overflows) and not self.skipped


def rooms(models: Iterable[Model], folder: Path, path: Path) -> Iterator[Room]:
    """The rooms of those models that the file of results does not hold yet."""
    results = Results(path, Room, keys=("name", "keras"))
    folder.mkdir(parents=True, exist_ok=True)
    for model in models:
        if not results.holds(model.name, model.keras):
            try:
                row = room_of(model, folder)
            except NotReplayed as reason:
                row = Room(model.name, model.keras, f"not replayed: {reason}")
            yield results.added(row)


def room_of(model: Model, folder: Path) -> Room:
    report = _report_of(model)
    why = _no_room(report)
    if why:
        return Room(model.name, model.keras, why)
    (probe,) = report["probes"]
    reference = probe["reference"]
    room = reference["room"]
    ends = [room["lowest"], room["highest"]]
    scales = [*ends, room["flushes_below"]]
    told = {"steps": [step["step"] for step in reference["steps"]], "scales": scales}
    half = _replayed(model, folder, "half", told)
    single = _replayed(model, folder, "single", told)
    seen = [[_judged(half[step, end], single[step, None]) for step in told["steps"]] for end in scales]
    *flushed, below = (max(share for share, _ in batches) for batches in seen)
    overflows = [max(count for _, count in batches) for batches in seen[:2]]
    trained = skipped = None
    if probe["dynamic"]:
        trained, skipped = _replayed(model, folder, "train", {"scales": ends[1:]})
    return Room(model.name, model.keras, "", ends[0], ends[1], flushed, overflows, below, trained, skipped)


def _no_room(report: dict[str, Any]) -> str:
    """Why there is nothing to judge; "" where there is."""
    if len(report["probes"]) != 1:
        return f"{len(report['probes'])} trainings"
    reference = report["probes"][0]["reference"]
    if reference is None or reference["not_measured"]:
        return "not measured" if reference is None else str(reference["not_measured"])
    room = reference["room"]
    if room is None:
        return "the budget was spent" if reference["no_time"] else "no loss scale that can be set, or none overflows"
    if room["lowest"] is None or room["lowest"] > room["highest"]:
        return f"no loss scale fits: {', '.join([*room['overflowing'], *room['flushed']])}"
    return ""


def _judged(half: list[Any], single: list[Any]) -> tuple[float, int]:
    """(the largest share of a relevant variable that is flushed, variables that overflow) of one step."""
    import numpy as np

    assert [g.shape for g in half] == [g.shape for g in single]
    norms = [float(np.linalg.norm(g.astype(np.float64))) for g in single]
    whole = float(np.linalg.norm(norms))
    flushed = (
        np.count_nonzero((a == 0) & (b != 0)) / np.count_nonzero(b)
        for a, b, norm in zip(half, single, norms, strict=True)
        if norm >= RELEVANT * whole and np.any(b)
    )
    return float(max(flushed, default=0.0)), sum(not np.isfinite(g).all() for g in half)


# --- processes ----------------------------------------------------------------------------------------------------
def _environment(keras: str) -> dict[str, str]:
    more = {"TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": "01"[keras != "3"]}
    return {**os.environ, **more}


def _report_of(model: Model) -> dict[str, Any]:
    options = ("--reference", "--no-second-training", "--budget", "300", "--no-cache", "--output-format", "json")
    arguments = ("--", *model.arguments) if model.arguments else ()
    done = _run(["-m", "mpdoctor", "check", model.path.name, *options, *arguments], model)
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def _replayed(model: Model, folder: Path, do: str, more: dict[str, Any]) -> Any:
    kept = folder / f"{model.name}-{model.keras}"
    job, result = kept.with_suffix(f".{do}.json"), kept.with_suffix(f".{do}.result")
    told = {"script": str(model.path), "arguments": model.arguments, "keras": model.keras, "do": do, **more}
    files = {"state": str(kept.with_suffix(".state")), "result": str(result)}
    job.write_text(json.dumps({**told, **files}), encoding="utf-8")
    done = _run([str(REPLAYED), str(job)], model)
    if done.returncode:
        (folder / f"{model.name}-{model.keras}.err").write_text(done.stderr, encoding="utf-8")
        raise NotReplayed(f"{do}: {done.stderr.strip().splitlines()[-1]}")
    return pickle.loads(result.read_bytes())


def _run(command: list[str], model: Model) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *command],
        cwd=model.path.parent,
        env=_environment(model.keras),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


# --- the counts ---------------------------------------------------------------------------------------------------
def told(rows: list[Room]) -> str:
    """In Markdown."""
    lines = ["| Script | Keras | Room | Flushed at its ends | Overflow | Skipped | |", "|---|---|---|---|---|---|---|"]
    for row in rows:
        if row.holds is None:
            lines.append(f"| {row.name} | {row.keras} | {row.why} | | | | |")
            continue
        ends = " to ".join(f"2^{math.log2(end):g}" for end in (row.lowest, row.highest) if end)
        flushed, over = (" and ".join(map(str, pair)) for pair in ([f"{s:.1%}" for s in row.flushed], row.overflows))
        skipped = "–" if row.trained is None else f"{row.skipped} of {row.trained}"
        verdict = "" if row.holds else "does not hold"
        lines.append(f"| {row.name} | {row.keras} | {ends} | {flushed} | {over} | {skipped} | {verdict} |")
    judged = [row for row in rows if row.holds is not None]
    kinds = [f"{sum(row.keras == keras for row in judged)} in {keras}" for keras in ("3", "tf_keras")]
    held = sum(bool(row.holds) for row in judged)
    bare = sum(row.flushed_below >= FLUSHED_TOO_MUCH for row in judged)
    counts = (
        f"{held} of {len(judged)} hold ({', '.join(kinds)}); {len(rows) - len(judged)} have none, or were not tried",
        f"without powers to spare the lower end would lose more than said in {bare}",
    )
    return "\n".join([*lines, "", *counts])


# --- the scripts --------------------------------------------------------------------------------------------------
def of_battery() -> list[Model]:
    """Its healthy scripts."""
    from marks import marks_from_source

    found = []
    for path in sorted((ROOT / "fixtures" / "battery" / "healthy").glob("*.py")):
        marks = marks_from_source(path.read_text(encoding="utf-8"))
        found += [Model(path.stem, path, keras, tuple(shlex.split(marks.setting("args")))) for keras in marks.keras]
    return found


def of_generator(seed: int, numbers: Iterable[int], folder: Path) -> Iterator[Model]:
    """Healthy scripts in mixed_float16 that leave the steps to Keras."""
    for number in numbers:
        script = script_from_seed(seed, number)
        training = script.style.split(", ")[1]
        if script.truth.is_healthy and FLOAT16 in script.text and training not in LOOPS:
            yield Model(script.name, _written(folder / f"{script.name}.py", script.text), script.keras)


def of_precision(seeds: Iterable[int], folder: Path) -> Iterator[Model]:
    """Those of tests/support/lost_precision.py, in both Kerases."""
    from lost_precision import healthy, script

    for seed in seeds:
        path = _written(folder / f"precision_{seed}.py", script(healthy(seed), seed=seed))
        yield from (Model(path.stem, path, keras) for keras in (KERAS3, TF_KERAS))


def _written(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path

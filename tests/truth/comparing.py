"""Plain Keras and mpdoctor on one script, side by side: what each did and said, and whether they agree."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .verdicts import history_from_record, number_from_json, verdict_of
from .writing import Script

ROOT = Path(__file__).parents[2]
INSTRUMENTED = Path(__file__).parent / "instrumented.py"
PATIENCE = 400
LOUD = ("error", "warning")


@dataclass(frozen=True)
class Outcome:
    """One script: what plain Keras did, what mpdoctor said, and a yes or no for each claim; None where the script makes
    none. `as_meant`: whether plain Keras shows what the construction promised."""

    seed: int
    number: int
    keras: str
    kind: str
    twin: str
    disease: str
    style: str
    steps: int
    plain_verdict: str
    plain_verdict_of_all: str
    plain_raised: str | None
    verdict: str
    why: str
    named: str
    said: list[str]
    as_meant: bool
    silent: bool | None
    steps_equal: bool | None
    verdict_equal: bool
    culprit_right: bool | None
    cause_right: bool | None
    difference: str = ""
    seconds: float = 0.0

    @property
    def wrong(self) -> list[str]:
        claims = ("as_meant", "silent", "steps_equal", "verdict_equal", "culprit_right", "cause_right")
        return [claim for claim in claims if getattr(self, claim) is False]


class PlainKeras:
    """A process for each Keras, started when it is first asked for, that has imported TensorFlow and forks."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._servers: dict[str, subprocess.Popen[str]] = {}

    def __enter__(self) -> PlainKeras:
        return self

    def __exit__(self, *_: object) -> None:
        for server in self._servers.values():
            server.stdin.close()  # type: ignore[union-attr]
            server.wait(60)

    def record(self, script: Script, path: Path) -> dict[str, Any]:
        server = self._servers.get(script.keras) or self._started(script.keras)
        record = self.folder / f"{script.name}.record.json"
        print(json.dumps([str(path), str(record)]), file=server.stdin, flush=True)
        ended = server.stdout.readline().strip()  # type: ignore[union-attr]
        if ended != "0":
            raise RuntimeError(f"{path.name} in plain Keras ended with {ended!r}; see {self.folder / 'plain.err'}")
        found: dict[str, Any] = json.loads(record.read_text(encoding="utf-8"))
        return found

    def _started(self, keras: str) -> subprocess.Popen[str]:
        errors = (self.folder / "plain.err").open("a", encoding="utf-8")
        environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": "01"[keras != "3"]}
        self._servers[keras] = subprocess.Popen(
            [sys.executable, str(INSTRUMENTED), keras],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=environment,
            cwd=self.folder,
        )
        return self._servers[keras]


def report_of(script: Script, path: Path) -> dict[str, Any]:
    """What `mpdoctor check` says of it, as JSON."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    environment.pop("TF_USE_LEGACY_KERAS", None)
    command = ("check", "--output-format", "json", "--no-cache", "--steps", str(script.steps), "--budget", "300")
    done = subprocess.run(
        [sys.executable, "-m", "mpdoctor", *command, path.name],
        cwd=path.parent,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise RuntimeError(f"{path.name}: mpdoctor printed no JSON, exit {done.returncode}\n{done.stderr}") from error
    return report


def outcome_of(script: Script, plain: PlainKeras) -> Outcome:
    path = plain.folder / f"{script.name}.py"
    path.write_text(script.text, encoding="utf-8")
    started = time.monotonic()
    record, report = plain.record(script, path), report_of(script, path)
    (plain.folder / f"{script.name}.report.json").write_text(json.dumps(report), encoding="utf-8")
    return compared(script, record, report, time.monotonic() - started)


def compared(script: Script, record: dict[str, Any], report: dict[str, Any], seconds: float = 0.0) -> Outcome:
    truth, probe = script.truth, (report["probes"] or [{}])[0]
    steps = probe.get("steps") or script.steps
    history = history_from_record(script.keras, record, steps, truth.unfit, truth.device_alone)
    all_of_it = history_from_record(script.keras, record, 320, truth.unfit, truth.device_alone)
    plain_verdict, verdict = verdict_of(history), probe.get("verdict", "not trained")
    loud = [f for f in report["findings"] if f["severity"] in LOUD and not f["what_if"]]
    said = [told(finding) for finding in loud]
    difference = difference_of_steps(record, probe) if record["raised"] is None else ""
    named = place_named(probe)
    return Outcome(
        script.seed,
        script.number,
        script.keras,
        script.kind,
        script.twin,
        truth.disease,
        script.style,
        steps,
        plain_verdict,
        verdict_of(all_of_it),
        record["raised"],
        verdict,
        probe.get("why", ""),
        named,
        said,
        as_meant=record["raised"] is None and (not truth.verdicts or plain_verdict in truth.verdicts),
        silent=not said if truth.is_healthy else None,
        steps_equal=not difference,
        verdict_equal=verdict == plain_verdict,
        culprit_right=named in truth.culprits if truth.culprits else None,
        cause_right=cause_is_right(truth, loud, report) if not truth.is_healthy else None,
        difference=difference,
        seconds=round(seconds, 1),
    )


def told(finding: dict[str, Any]) -> str:
    place = f" line {finding['line']}" if finding["line"] else ""
    also = "".join(f" [also {also['code']}: {also['text']}]" for also in finding["also_seen"])
    return f"{finding['code']}{place}: {finding['message']} {finding['help']}{also}"


def cause_is_right(truth: Any, loud: list[dict[str, Any]], report: dict[str, Any]) -> bool:
    """Whether a finding among those that name the cause is there and names it, and none names another."""
    texts = [(f["code"], f"{f['message']} {f['help']}") for f in loud]
    names = any(code in truth.codes and re.search(truth.words, text, re.I) for code, text in texts)
    return names and not (truth.never and any(re.search(truth.never, text) for _, text in texts))


def place_named(probe: dict[str, Any]) -> str:
    """The layer that is named first, "(data)", "(loss)", or "" where no place is."""
    culprit, gradient, loss = (
        probe.get("culprit"),
        (probe.get("gradients") or {}).get("culprit"),
        probe.get("loss_culprit"),
    )
    given = [(found.get("operation") or {}).get("given") for found in (culprit, gradient) if found]
    given += [loss.get("given")] if loss else []
    if "data" in given or "labels" in given:
        return "(data)"
    if culprit:
        return str(culprit["overflow"]["layer"]).rsplit("/", 1)[-1]
    if gradient and gradient.get("layer"):
        return str(gradient["layer"]).rsplit("/", 1)[-1]
    return "(loss)" if loss or (gradient and gradient.get("where") == "loss") else ""


def difference_of_steps(record: dict[str, Any], probe: dict[str, Any]) -> str:
    """The first step at which the loss scale or the skipping differ, "" where none does."""
    if not probe.get("steps") or not record["optimizers"]:
        return "" if not probe.get("steps") and not record["optimizers"] else "one of them saw no step"
    row, skipped = record["optimizers"][0], set(probe["skipped_steps"])
    scales = probe["loss_scale"]
    for step in range(min(len(row["finite"]), probe["steps"], len(scales))):
        ours, theirs = number_from_json(scales[step]), number_from_json(row["scale"][step])
        if ours != theirs and not (ours is not None and theirs is not None and _almost(ours, theirs)):
            return f"step {step + 1}: the loss scale is {ours}, in plain Keras {theirs}"
        if (step in skipped) != (row["dynamic"] and not row["finite"][step]):
            return f"step {step + 1}: {'skipped' if step in skipped else 'applied'} by mpdoctor alone"
    return ""


def _almost(one: float, other: float) -> bool:
    return abs(one - other) <= 1e-6 * abs(other)


def run_and_write(scripts: Iterable[Script], folder: Path, results: Path) -> Iterator[Outcome]:
    """Those that `results` does not hold yet; a line is written as soon as its script is done."""
    done = {(o.seed, o.number) for o in outcomes_from_files([results])} if results.exists() else set()
    folder.mkdir(parents=True, exist_ok=True)
    with PlainKeras(folder) as plain, results.open("a", encoding="utf-8") as written:
        for script in scripts:
            if (script.seed, script.number) not in done:
                outcome = outcome_of(script, plain)
                print(line_from_outcome(outcome), file=written, flush=True)
                yield outcome


def outcomes_from_files(paths: Iterable[Path]) -> list[Outcome]:
    """Where a script was run more than once, the last time counts."""
    lines = [line for path in paths for line in path.read_text(encoding="utf-8").splitlines() if line]
    last = {(outcome.seed, outcome.number): outcome for outcome in map(outcome_from_line, lines)}
    return list(last.values())


def line_from_outcome(outcome: Outcome) -> str:
    return json.dumps(asdict(outcome))


def outcome_from_line(line: str) -> Outcome:
    return Outcome(**json.loads(line))

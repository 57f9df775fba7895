"""How near `check --reference` comes to a calculation that builds each float32 model anew: one row for each model.

python -m benchmarks.fidelity [--python PYTHON] [--legacy] [--budget SECONDS]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TARGET = Path(__file__).parent / "fidelity_models.py"
NEAR = 1e-3
RELEVANT = 1e-4

Row = tuple[Any, ...]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--python", default=sys.executable, help="the interpreter with TensorFlow")
    parser.add_argument("--legacy", action="store_true", help="tf_keras in place of Keras 3")
    parser.add_argument("--budget", default="8", help="seconds for each model; more where the machine is busy")
    given = parser.parse_args()
    environment = {**os.environ, "TF_USE_LEGACY_KERAS": "1" if given.legacy else "0", "TF_CPP_MIN_LOG_LEVEL": "3"}
    rows: list[Row] = []
    missing: list[str] = []
    while missing or not rows:  # a run ends early where the end of a fit() takes too long: the others are run anew
        found, names = run(given, environment, missing)
        rows += found
        missing = [name for name in names if name not in {row[0] for row in rows}]
        if not found:
            break
    print("| Model | Scale | Fidelity | Flushed, worst | Furthest apart: share flushed | cosine |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(row[:6]) + " |")
    apart = sum(not row[6] for row in rows)
    print(f"{len(rows)} models of {len(rows) + len(missing)}, {apart} further apart than {NEAR}")
    return 1 if apart or missing else 0


def run(given: argparse.Namespace, environment: dict[str, str], only: list[str]) -> tuple[list[Row], list[str]]:
    """One check: a row for each model that it reached, and the names of all models there are."""
    options = ["--reference", "--all-fits", "--steps", "3", "--budget", given.budget, "--no-second-training"]
    options += ["--timeout", "1500", "--output-format", "json", "--python", given.python]
    with tempfile.TemporaryDirectory() as folder:
        numbers = Path(folder) / "numbers.json"
        command = [sys.executable, "-m", "mpdoctor", "check", str(TARGET), *options, "--", str(numbers), *only]
        ran = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
        report, written = json.loads(ran.stdout), json.loads(numbers.read_text())
    pairs = zip(written["expected"].items(), report["probes"], strict=False)  # the last may have no probe
    return [_row(name, told, probe) for (name, told), probe in pairs], written["models"]


def _row(name: str, expected: dict[str, Any], probe: dict[str, Any]) -> Row:
    reference = probe["reference"]
    if reference is None or reference["not_measured"]:
        return (
            name,
            "",
            f"not measured: {probe['why'] if reference is None else reference['not_measured']}",
            *[""] * 3,
            0,
        )
    step = reference["steps"][0]
    assert step["loss_scale"] == expected["scale"], (name, step["loss_scale"])
    variables = step["variables"]
    assert len(variables) == len(expected["flushed"]), name
    pairs = zip(variables, expected["flushed"], expected["cosine"], strict=True)
    judged = [(v, share, c) for v, share, c in pairs if v["norm_share"] >= RELEVANT]
    flushed = max(abs(v["flushed"] - share) for v, share, _ in judged)
    known = [abs(v["cosine"] - c) for v, _, c in judged if None not in (v["cosine"], c)]
    cosines = max([abs(step["cosine"] - expected["fidelity"]), *known])
    both_none = all((v["cosine"] is None) == (c is None) for v, _, c in judged)
    worst = max(v["flushed"] for v, _, _ in judged)
    told = f"{expected['scale']:g}", f"{step['cosine']:.6f}", f"{worst:.1%}", f"{flushed:.1e}", f"{cosines:.1e}"
    return (name, *told, flushed <= NEAR and cosines <= NEAR and both_none)


if __name__ == "__main__":
    sys.exit(main())

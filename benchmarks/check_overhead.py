"""What does `mpdoctor check` cost beside the training itself?

For fixture projects in both Kerases: wall time of `mpdoctor check` beside that of the same script, run as it is, under
the same policy and with the same number of steps. The two alternate, so that a busy machine slows both; it
prints medians and their ratio.

    python benchmarks/check_overhead.py --runs 5
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path

PROJECTS = Path(__file__).parents[1] / "fixtures" / "projects"
AIM = 1.5


@dataclass(frozen=True)
class Case:
    """A project, and how many steps its script trains when it is left alone."""

    script: str
    keras: str
    steps: int


CASES = (
    Case("healthy_transformer.py", "3", 60),
    Case("healthy_transformer.py", "tf_keras", 60),
    Case("healthy_loop_keras3.py", "3", 100),
    Case("healthy_train_step_tf_keras.py", "tf_keras", 60),
)


def seconds(command: list[str], keras: str) -> tuple[float, bytes]:
    """Wall time of a command, and what it printed. Raises CalledProcessError where it fails."""
    environment = {
        **os.environ,
        "TF_CPP_MIN_LOG_LEVEL": "3",
        "TF_USE_LEGACY_KERAS": str(int(keras == "tf_keras")),
    }
    start = time.perf_counter()
    done = subprocess.run(command, cwd=PROJECTS, env=environment, capture_output=True, check=True)
    return time.perf_counter() - start, done.stdout


def measure(case: Case, runs: int) -> tuple[float, float]:
    """Median seconds of (the script alone, mpdoctor check)."""
    alone, checked = [], []
    for _ in range(runs):
        alone.append(seconds([sys.executable, case.script], case.keras)[0])
        command = [sys.executable, "-m", "mpdoctor", "check", case.script, "--steps", str(case.steps)]
        spent, report = seconds([*command, "--output-format", "json"], case.keras)
        (probe,) = json.loads(report)["probes"]
        if probe["steps"] != case.steps:
            raise SystemExit(f"{case.script}: {probe['steps']} steps were examined, not {case.steps}")
        checked.append(spent)
    return statistics.median(alone), statistics.median(checked)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5, help="runs of each, alternating (default 5)")
    runs = parser.parse_args().runs
    print(f"{'project':34}{'Keras':>9}{'steps':>7}{'alone':>9}{'check':>9}{'ratio':>8}")
    ratios = []
    for case in CASES:
        alone, checked = measure(case, runs)
        ratios.append(checked / alone)
        print(
            f"{case.script:34}{case.keras:>9}{case.steps:>7}{alone:>8.2f}s{checked:>8.2f}s{ratios[-1]:>8.2f}",
            flush=True,
        )
    print(f"largest ratio {max(ratios):.2f}, aim {AIM} or less; medians of {runs} alternating runs")


if __name__ == "__main__":
    main()

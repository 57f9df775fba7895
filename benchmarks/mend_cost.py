"""What does `mpdoctor mend` cost beside the check of the same script?

For each script, in turn, so that a busy machine slows both: processor time of `mpdoctor check` and of `mpdoctor mend`
(with what they start), their ratio, and how often `mend` made edits (rounds) and examined the program. The aim is a
cost of at most rounds + 1 checks; the last line sums both over all scripts that were mended.

    python benchmarks/mend_cost.py fixtures/battery/sick/*.py
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

KERAS = re.compile(r"^# keras: (?P<first>[\w.]+)", re.MULTILINE)


class Cost(NamedTuple):
    """Processor seconds of both, and what `mend` said."""

    check: float
    mend: float
    mended: bool
    rounds: int
    examinations: int

    @property
    def allowed(self) -> float:
        return (self.rounds + 1) * self.check


def processor_seconds(command: list[str], keras: str) -> tuple[float, dict[str, Any]]:
    """Of a command and all that it starts, and the JSON that it prints."""
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": str(int(keras != "3"))}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    printed: dict[str, Any] = json.loads(done.stdout)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, printed


def cost(script: Path) -> Cost:
    keras = KERAS.search(script.read_text(encoding="utf-8"))
    version = keras["first"] if keras else "3"
    mpdoctor = [sys.executable, "-m", "mpdoctor"]
    check, _ = processor_seconds([*mpdoctor, "check", str(script), "--output-format", "json"], version)
    mend, said = processor_seconds([*mpdoctor, "mend", str(script), "--output-format", "json"], version)
    return Cost(check, mend, said["mended"], said["rounds"], said["examinations"])


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("scripts", nargs="+", type=Path)
    costs = []
    print(f"{'check':>7} {'mend':>7} {'ratio':>6} {'rounds':>6} {'examinations':>12}")
    for script in parser.parse_args().scripts:
        found = cost(script)
        ratio = found.mend / found.check
        result = "" if found.mended else "  not mended"
        print(
            f"{found.check:6.1f}s {found.mend:6.1f}s {ratio:6.2f} {found.rounds:6} {found.examinations:12}  "
            f"{script.stem}{result}",
            flush=True,
        )
        costs.append(found)
    mended = [program for program in costs if program.mended]
    within = sum(program.mend <= program.allowed for program in mended)
    seconds, allowed = sum(program.mend for program in mended), sum(program.allowed for program in mended)
    print(
        f"{len(mended)} of {len(costs)} mended, in {seconds:.0f} s; rounds + 1 checks are {allowed:.0f} s, and "
        f"{within} stay within theirs"
    )


if __name__ == "__main__":
    main()

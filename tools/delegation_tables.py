"""The tables in docs/training.md of what a LossScaleOptimizer delegates, measured in each Keras.

`python -m tools.delegation_tables` writes those of Keras 3 and tf_keras, and of the older TensorFlow of each
interpreter that it is given.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "training.md"
SCRIPT = ROOT / "tests" / "support" / "live_loss_scaling.py"
TABLE = re.compile(r"(<!-- delegated: [^>]+ -->)\n.*?<!-- end -->", re.DOTALL)


def with_table(text: str, table: str) -> str:
    """A page with this table, which begins and ends with its marks, in the place of the one with the same marks. Raises
    ValueError where the page has none."""
    begin = table.partition("\n")[0]
    if begin not in text:
        raise ValueError(f"{PAGE.name} has no {begin}")
    return TABLE.sub(lambda found: table if found[1] == begin else found[0], text)


def measured(python: str, legacy: bool) -> str:
    """The table of one Keras. Raises CalledProcessError where the measurement fails."""
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "TF_USE_LEGACY_KERAS": str(int(legacy))}
    command = [python, str(SCRIPT), "--delegated"]
    said = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return said[said.index("<!-- delegated: ") :].strip()


def main(older: Sequence[str]) -> None:
    text = PAGE.read_text(encoding="utf-8")
    for python, legacy in [(sys.executable, False), (sys.executable, True), *((python, False) for python in older)]:
        text = with_table(text, measured(python, legacy))
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])

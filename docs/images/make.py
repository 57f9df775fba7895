"""Make the pictures of reports that the README shows, with a Python that has TensorFlow and mpdoctor:

python docs/images/make.py            examine the three scripts again, and draw
python docs/images/make.py --draw     draw again what was found then, which needs no TensorFlow
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from pathlib import Path

from mpdoctor.reporters import json, svg
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json

HERE = Path(__file__).parent
NAMES = ("healthy", "one_defect", "collapsing")


def examine(folder: Path) -> None:
    command = [sys.executable, "-m", "mpdoctor", "check", "train.py", "--output-format", "json", "--device", "cpu"]
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, check=False)
    diagnosis = diagnosis_from_json(done.stdout)
    # what a reader would type; and whose machine it was is nobody's business
    shown = dataclasses.replace(diagnosis, command="mpdoctor check train.py", environment={})
    (folder / "diagnosis.json").write_text(json.render(shown), encoding="utf-8")


def picture(folder: Path) -> str:
    return svg.render(diagnosis_from_json((folder / "diagnosis.json").read_bytes()))


if __name__ == "__main__":
    for name in NAMES:
        if "--draw" not in sys.argv:
            examine(HERE / name)
        (HERE / f"{name}.svg").write_text(picture(HERE / name), encoding="utf-8", newline="\n")

"""The script that the README begins with: the change that its report tells ends it healthy."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, needs_keras

pytestmark = [pytest.mark.slow, needs_keras("3")]

ROOT = Path(__file__).parents[2]
EXAMPLE = "docs/images/collapsing/train.py"


def test_its_remedy_heals(tmp_path: Path) -> None:
    assert f"mpdoctor check {EXAMPLE}" in (ROOT / "README.md").read_text(encoding="utf-8")
    text = (ROOT / EXAMPLE).read_text(encoding="utf-8")
    (tmp_path / "train.py").write_text(text, encoding="utf-8")
    told = check("train.py", directory=tmp_path, keras="3").finding("MP904")
    made = text.split("\n")[int(told["help"].partition("(line ")[2].partition(")")[0]) - 1]
    assert made.strip() == 'Energy(name="energy"),' and 'dtype="float32"' in told["help"]
    mended = text.replace('Energy(name="energy")', 'Energy(name="energy", dtype="float32")')
    (tmp_path / "train.py").write_text(mended, encoding="utf-8")
    done = check("train.py", directory=tmp_path, keras="3")
    assert done.codes() == [] and done.report["probes"][0]["verdict"] == "healthy"

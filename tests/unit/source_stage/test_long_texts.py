"""A source of very many empty lines costs what its length allows: no pattern searches anew from every one of them."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from judging import KERASES

from mpdoctor.diagnosis import diagnose
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

LINES = 100_000
SECONDS = 4  # of the processor; some of these took 25 and more
SOURCE = (
    "import os\nfrom tensorflow import keras\n{}\n"
    "os.environ['KERAS_BACKEND'] = 'tensorflow'\nos.environ['TF_USE_LEGACY_KERAS'] = '1'\n"
    "keras.mixed_precision.set_global_policy('mixed_float16')\n"
)


@pytest.mark.parametrize("keras", [None, KERASES["3"], KERASES["2.10"]], ids=["none named", "3", "2.10"])
@pytest.mark.parametrize("line", ["", " ", "#", "\t\f"])
def test_empty_lines_cost_little(tmp_path: Path, line: str, keras: object) -> None:
    path = tmp_path / "train.py"
    path.write_text(SOURCE.format(f"'''{(line + chr(10)) * LINES}'''"), encoding="utf-8")
    started = time.process_time()
    diagnosis = diagnose(
        Settings((target_from_text(str(path)),), static=True, keras=keras, cache=False),  # type: ignore[arg-type]
        SilentProgress(),
    )
    assert time.process_time() - started < SECONDS
    assert not diagnosis.crashed


@pytest.mark.parametrize("setting", ["KERAS_BACKEND", "TF_USE_LEGACY_KERAS"])
@pytest.mark.parametrize("name", ["Dockerfile", "run.sh", ".env"])
def test_a_setting_before_blanks_costs_little(tmp_path: Path, setting: str, name: str) -> None:
    (tmp_path / "train.py").write_text(SOURCE.format(""), encoding="utf-8")
    (tmp_path / name).write_text(f"ENV {setting}{' ' * LINES}!\n", encoding="utf-8")
    started = time.process_time()
    diagnose(Settings((target_from_text(str(tmp_path / "train.py")),), static=True, cache=False), SilentProgress())
    assert time.process_time() - started < SECONDS

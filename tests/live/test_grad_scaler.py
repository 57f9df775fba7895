"""torch's GradScaler beside `mpdoctor.training.LossScaleOptimizer`: tests/support/live_grad_scaler.py."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import needs_keras

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "tests" / "support" / "live_grad_scaler.py"


@pytest.mark.slow
@needs_keras("3")
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="there is no torch: pip install '.[torch]'")
def test_our_wrapper_moves_its_scale_and_skips_steps_as_torchs_grad_scaler_does(pytestconfig: pytest.Config) -> None:
    seed = str(pytestconfig.option.sample_seed % 2**31)
    done = subprocess.run(
        [sys.executable, str(SCRIPT), "--sequences", "40", "--seed", seed],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]), "TF_USE_LEGACY_KERAS": "0"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert json.loads(done.stdout.splitlines()[-1]) == []

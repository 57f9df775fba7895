"""Fixtures with all edits made, run in the Keras that they are for: what ran before runs afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from checking import PATIENCE, needs_keras
from sampling import Sample
from test_fixes_of_rules import cases, found_in, in_rounds, text_of

pytestmark = pytest.mark.slow
# With `use_ema` read from SGD the program comes to a line that was dead before, and wrong: the optimizer is not built.
# The override that is called now takes the number of a step that is being traced.
DEAD_BEFORE = ("mp302/flagged_keras3_own_reads.py", "mp305/flagged_compiled.py")

# Switches eager execution off, which has to come before all else: alone it runs, not behind the import that all share.
TO_RUN_ALONE = ("mp116/flagged_graph_rewrite.py",)


@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")])
def test_what_ran_runs_with_all_edits_made(keras: str, sample: Sample, tmp_path: Path) -> None:
    names = [
        name
        for name, case_keras in cases()
        if case_keras == keras and any(f.fix for f in found_in(text_of(name), keras))
    ]
    names = [name for name in names if name not in DEAD_BEFORE + TO_RUN_ALONE]
    chosen = sample(names, 12)
    before = ran({name: text_of(name) for name in chosen}, keras, tmp_path)
    running = [name for name in chosen if not before[name]]
    after = ran({name: in_rounds(text_of(name), keras, unsafe=True) for name in running}, keras, tmp_path)
    assert {name: error for name, error in after.items() if error} == {}
    assert running


def ran(texts: dict[str, str], keras: str, directory: Path) -> dict[str, str]:
    environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TF_USE_LEGACY_KERAS": str(int(keras == "tf_keras"))}
    done = subprocess.run(
        [sys.executable, str(Path(__file__).parents[1] / "support" / "live_texts.py")],
        input=json.dumps(texts),
        capture_output=True,
        text=True,
        cwd=directory,
        env={**environment, "TMPDIR": str(directory)},
        timeout=PATIENCE,
        check=True,
    )
    told: dict[str, str] = json.loads(done.stdout.splitlines()[-1])
    return told

"""Reading source and judging it load neither TensorFlow nor the libraries of the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_no_library_is_loaded_and_no_code_is_run(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_text("import tensorflow, numpy, keras\nopen('proof', 'w')\nraise SystemExit(9)\n")
    program = (
        "import sys; from pathlib import Path; from mpdoctor.source import facts_with_imports\n"
        f"(facts,) = facts_with_imports(Path({str(script)!r})).values()\n"
        "assert len(facts.uses) == 3, facts\n"
        "print(sorted({'tensorflow', 'numpy', 'keras', 'rich', 'typer'} & set(sys.modules)))\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    ended = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert (ended.stdout, ended.stderr) == ("[]\n", "")
    assert not (tmp_path / "proof").exists()


def test_rules_need_no_tensorflow() -> None:
    script = (
        "import sys; from mpdoctor.rules.registry import all_rules; all_rules(); "
        "print(*{'tensorflow', 'keras', 'tf_keras', 'numpy', 'rich', 'typer'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.split() == []

"""What a start imports: every module is waited for, on each save of a file. Counted, because seconds differ."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import mpdoctor

MIXED = """import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(10, activation="softmax")])
model.compile("adam", "sparse_categorical_crossentropy")
model.fit(tf.random.normal((8, 4)), tf.zeros(8))
"""
PLAIN = "import json\n\nprint(json.dumps({}))\n"
PROGRAM = """import sys
bare = frozenset(sys.modules)
import typer
typed = frozenset(sys.modules) - bare
import mpdoctor.cli
try: mpdoctor.cli.main({arguments!r})
except SystemExit as end: assert end.code in (0, 1), end.code
new = frozenset(sys.modules) - bare - typed
print(len(new), *sorted(new), file=sys.stderr)
"""


def imported(arguments: list[str], directory: Path) -> list[str]:
    """The modules beyond those that Python and typer bring along. A dependency counts as one: how many modules it has
    depends on its release."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = [sys.executable, "-c", PROGRAM.format(arguments=arguments)]
    done = subprocess.run(program, capture_output=True, text=True, cwd=directory, env=environment)
    assert done.returncode == 0, done.stderr
    names = done.stderr.splitlines()[-1].split()[1:]
    dependencies = ("platformdirs", "rich", "typer")
    return sorted({name.partition(".")[0] if name.startswith(dependencies) else name for name in names})


@pytest.mark.parametrize(
    ("arguments", "most"),
    [
        (["--version"], 8),
        (["explain", "MP201"], 153),
        (["rules"], 422),
        (["check", "--static", "--output-format=concise", "mixed.py"], 501),
        (["check", "--static", "--output-format=concise", "."], 520),
        (["check", "--static", "--output-format=concise", "plain"], 198),
    ],
    ids=lambda given: " ".join(given) if isinstance(given, list) else str(given),
)
def test_a_start_imports_no_more_than_it_needs(arguments: list[str], most: int, tmp_path: Path) -> None:
    write_files(tmp_path)
    found = imported(arguments, tmp_path)
    assert len(found) <= most, f"{len(found)}: {found}"


def test_what_has_not_changed_is_told_without_rules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_files(tmp_path)
    for name in ("XDG_CACHE_HOME", "XDG_DATA_HOME"):
        monkeypatch.setenv(name, str(tmp_path / name))
    first, again = (imported(["check", "--static", "--output-format=concise", "."], tmp_path) for _ in range(2))
    assert len(first) > 400 and len(again) <= 90, f"{len(again)}: {again}"
    assert not [name for name in again if name.startswith(("mpdoctor.rules", "mpdoctor.source"))]


def write_files(directory: Path) -> None:
    (directory / "mixed.py").write_text(MIXED)
    (directory / "plain").mkdir()
    (directory / "plain" / "one.py").write_text(PLAIN)


def test_the_version_is_told_without_typer(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = (
        "import sys, mpdoctor.cli\ntry: mpdoctor.cli.main(['--version'])\n"
        "except SystemExit as end: print(end.code, 'typer' in sys.modules)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.stdout == f"mpdoctor {mpdoctor.__version__}\n0 False\n", done.stderr


def test_the_end_does_not_go_over_all_that_a_run_made(tmp_path: Path) -> None:
    """Python's last collection would: it took a quarter of a check of one file. Who registers first is asked last."""
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    program = (
        "import atexit, gc\natexit.register(lambda: print(gc.get_freeze_count() > 0))\n"
        "import mpdoctor.cli\nmpdoctor.cli.main(['--version'])\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.stdout.splitlines()[1:] == ["True"], done.stderr

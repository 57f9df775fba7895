"""A check in its commonest forms is read without typer, and means what typer would have made of it."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import typer

from mpdoctor.cli.app import app_for
from mpdoctor.cli.quick_arguments import CHOICES, FLAGS, LISTS, parameters_of_check

QUICK = [
    [],
    ["train.py"],
    ["src", "tests/one.py"],
    *([flag] for flag in FLAGS),
    *([option, "MP304,tests/*"] for option in LISTS),
    *([f"{option}=MP304", "train.py", option, "a=b"] for option in LISTS),
    *([option, value] for option in CHOICES for value in ("auto", "never", "json", "concise", "info")),
    *(list(pair) for pair in itertools.permutations(["--static", "-q", "a.py", "--select=MP1"], 3)),
    ["--assume-mixed", "--no-assume-mixed"],
    ["--output-format=json", "--output-format", "concise"],
]
FOR_TYPER = [
    ["--help"],
    ["-h"],
    ["-"],
    [""],
    ["--fix"],
    ["--watch", "--static"],
    ["--stat"],
    ["--static=1"],
    ["-qq"],
    ["--select"],
    ["--select="],
    ["--select", "--static"],
    ["--output-format", "xml"],
    ["--output-format", "JSON"],
    ["--fail-on", "critical"],
    ["--steps", "3"],
    ["--unknown", "a.py"],
]


@pytest.fixture(scope="module")
def command() -> Any:
    return typer.main.get_command(app_for(("check",))).commands["check"]  # type: ignore[attr-defined]


@pytest.mark.parametrize("arguments", QUICK, ids=" ".join)
def test_typer_makes_the_same_of_it(arguments: list[str], command: Any) -> None:
    quick = parameters_of_check(("check", *arguments))
    try:
        read = command.make_context("check", list(arguments)).params
    except Exception:
        assert quick is None
        return
    assert quick is not None
    assert {**_as_given(command.make_context("check", []).params), **quick} == _as_given(read)


def _as_given(parameters: dict[str, Any]) -> dict[str, Any]:
    """The parameters as typer hands them to a command: a list, or None for an option that was not given."""
    return {name: list(value) or None if isinstance(value, tuple) else value for name, value in parameters.items()}


@pytest.mark.parametrize("arguments", FOR_TYPER, ids=" ".join)
def test_what_is_less_common_is_for_typer(arguments: list[str]) -> None:
    assert parameters_of_check(("check", *arguments)) is None


def test_completion_is_for_typer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("_MPDOCTOR_COMPLETE", "complete_bash")
    assert parameters_of_check(("check", "train.py")) is None


def test_a_check_is_made_without_typer(tmp_path: Path) -> None:
    (tmp_path / "one.py").write_text("import tensorflow as tf\ntf.keras.mixed_precision.set_policy('mixed_float16')\n")
    program = (
        "import sys, mpdoctor.cli\ntry: mpdoctor.cli.main(['check', '--static', '--output-format=concise', 'one.py'])\n"
        "except SystemExit as end: print(end.code, 'typer' in sys.modules)\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])}
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, env=environment
    )
    assert done.stdout.splitlines()[-1] == "1 False", done.stderr
    assert "one.py:2:" in done.stdout

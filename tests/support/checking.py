"""Runs `mpdoctor check` as a user does: in a process of its own, the Keras set by the environment."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

import mpdoctor

ROOT = Path(__file__).parents[2]
# No check of these tests comes near it: a run that does not end must not hang the tests.
PATIENCE = 400
PACKAGES = {"3": "keras", "tf_keras": "tf_keras"}


def keras_is_missing(keras: str) -> str:
    """Why nothing can be run in this Keras here; "" where it can."""
    for package in ("tensorflow", PACKAGES[keras]):
        if importlib.util.find_spec(package) is None:
            return f"{package} is not installed in {sys.executable}"
    return ""


def needs_keras(keras: str) -> pytest.MarkDecorator:
    reason = keras_is_missing(keras)
    return pytest.mark.skipif(bool(reason), reason=reason)


needs_tensorflow = needs_keras("3")


@dataclass(frozen=True)
class Check:
    """What one run of mpdoctor left: its exit status, what it printed, and the report if that was JSON."""

    exit_code: int
    stdout: str
    stderr: str

    @property
    def report(self) -> dict[str, Any]:
        try:
            return json.loads(self.stdout)
        except ValueError as error:
            raise AssertionError(f"stdout is no JSON ({error}), exit {self.exit_code}\n{self}") from error

    @property
    def said(self) -> str:
        """Everything that a user can read, whichever way it came."""
        return self.stdout + self.stderr

    def codes(self) -> list[str]:
        return [finding["code"] for finding in self.report["findings"]]

    def finding(self, code: str) -> dict[str, Any]:
        """The one finding with this code."""
        found = [finding for finding in self.report["findings"] if finding["code"] == code]
        assert len(found) == 1, f"{code} was found {len(found)} times\n{self}"
        return found[0]

    def __str__(self) -> str:
        """Enough of it to see what went wrong."""
        try:
            report = json.loads(self.stdout)
        except ValueError:
            told = [self.stdout[:4000]]
        else:
            told = [
                f"{finding['code']} {finding['path']}:{finding['line']} {finding['message']}"
                + (" (what if)" if finding["what_if"] else "")
                for finding in report["findings"]
            ]
            told += [f"probe: {probe['verdict']} after {probe['steps']} steps" for probe in report["probes"]]
            told += [f"stages: {target['stages']}" for target in report["targets"]]
            told += [f"crashed: {crash}" for crash in report["crashed"]]
        return "\n".join([f"exit {self.exit_code}", *told, "--- stderr", self.stderr[-3000:]])


def check(
    *arguments: str,
    directory: Path,
    keras: str | None = "3",
    output_format: str = "json",
    environment: Mapping[str, str] | None = None,
    launcher: tuple[str, ...] = ("-m", "mpdoctor"),
) -> Check:
    """Run `mpdoctor check ARGUMENTS`. `keras` None leaves the choice to the script; `launcher` is what Python runs as
    mpdoctor."""
    surroundings = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", **(environment or {})}
    if Path(mpdoctor.__file__).parents[1] == ROOT:
        surroundings["PYTHONPATH"] = str(ROOT)  # a working tree that is not installed is tested as it stands
    surroundings.pop("TF_USE_LEGACY_KERAS", None)
    surroundings.pop("KERAS_BACKEND", None)
    if keras == "tf_keras":
        surroundings["TF_USE_LEGACY_KERAS"] = "1"
    formatted = () if output_format == "terminal" else ("--output-format", output_format)
    done = subprocess.run(
        # The arguments of the script come last, after "--".
        [sys.executable, *launcher, "check", *formatted, *arguments],
        cwd=directory,
        env=surroundings,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=PATIENCE,
        check=False,
    )
    return Check(done.returncode, done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace"))


def contents(directory: Path) -> dict[str, str]:
    """Every file below a directory with a hash of its bytes; caches that Python itself keeps are left out."""
    return {
        str(path.relative_to(directory)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and "__pycache__" not in path.parts
    }

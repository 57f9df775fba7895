"""A defect of mpdoctor's own on one file: it is reported once for that file, and the other files are judged."""

from __future__ import annotations

import ast
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from mpdoctor import source_stage
from mpdoctor.diagnosis import diagnose
from mpdoctor.finding import Diagnosis
from mpdoctor.judging import suppressions
from mpdoctor.program import source_facts
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings
from mpdoctor.source import modules, prefilter, program
from mpdoctor.source.interpreter import statements
from mpdoctor.source_stage import judged_files, worker

WRONG = "import tensorflow as tf\nopt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
FILES = {
    "bad.py": WRONG + "burst()  # mpdoctor: ignore[MP302]\n",
    "good.py": WRONG,
    "train.py": "import bad\n" + WRONG,
    "without.py": "x = 1\n",
}
STEPS: dict[str, tuple[Any, str, Callable[..., object]]] = {
    "what it imports": (prefilter, "imported_names", lambda text, package: b"burst" in text),
    "parsing": (modules, "source_from_text", lambda data, shown_as: b"burst" in data),
    "the walk": (statements, "evaluate_call", lambda state, node, dropped=False: ast.unparse(node) == "burst()"),
    "signs of mixed precision": (
        source_facts,
        "signs_of_mixed_precision",
        lambda calls, *_: any(call.location.path == "bad.py" for call in calls),
    ),
    "judging": (judged_files, "findings_from_facts", lambda kind, facts, *_: "burst" in facts.text),
    "comments": (suppressions, "suppressions_from_facts", lambda facts: "burst" in facts.text),
}


def break_at(step: str, patch: pytest.MonkeyPatch) -> None:
    owner, name, is_meant = STEPS[step]
    original = getattr(owner, name)

    def breaks(*given: Any, **named: Any) -> Any:
        if is_meant(*given, **named):
            raise ZeroDivisionError("as planned")
        return original(*given, **named)

    patch.setattr(owner, name, breaks)


def diagnosed(directory: Path, patch: pytest.MonkeyPatch, target: str = ".") -> Diagnosis:
    for name, text in FILES.items():
        (directory / name).write_text(text)
    patch.chdir(directory)
    return diagnose(Settings((target_from_text(target),), static=True, cache=False), SilentProgress())


def told(diagnosis: Diagnosis) -> list[tuple[str, str]]:
    return [(finding.code, finding.location.path) for finding in diagnosis.findings if finding.location]


@pytest.mark.parametrize("processes", [1, 3])
@pytest.mark.parametrize("step", STEPS)
def test_one_file_that_breaks_a_step_is_told_once_and_the_others_go_on(
    step: str, processes: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "cpu_count", lambda: processes)
    monkeypatch.setattr(source_stage, "WORTH_A_PROCESS", 10)
    break_at(step, monkeypatch)
    diagnosis = diagnosed(tmp_path, monkeypatch)
    (crash,) = diagnosis.crashed
    assert (crash.code, crash.error) == ("source", "ZeroDivisionError: as planned")
    assert crash.where.startswith("bad.py (")
    assert {("MP101", "good.py"), ("MP101", "train.py")} <= set(told(diagnosis))
    assert diagnosis.exit_code == 3
    if step in ("parsing", "the walk"):
        assert "bad.py" not in [path for _, path in told(diagnosis)], "nobody knows whether its comments are of use"


@pytest.mark.parametrize("step", ["parsing", "the walk", "judging", "comments"])
def test_of_a_program_that_imports_what_breaks_the_rest_is_told(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_at(step, monkeypatch)
    diagnosis = diagnosed(tmp_path, monkeypatch, "train.py")
    assert [crash.where.partition(" (")[0] for crash in diagnosis.crashed] == ["bad.py"]
    assert ("MP101", "train.py") in told(diagnosis)
    assert diagnosis.exit_code == 3


def test_a_process_that_ends_takes_one_file_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def walk(self: worker.Worker, path: Path, guarded: bool = False) -> None:
        if path.name == "bad.py":
            os._exit(9)
        original(self, path, guarded)

    original = worker.Worker._walk
    monkeypatch.setattr(worker.Worker, "_walk", walk)
    monkeypatch.setattr(os, "cpu_count", lambda: 3)
    monkeypatch.setattr(source_stage, "WORTH_A_PROCESS", 10)
    diagnosis = diagnosed(tmp_path, monkeypatch)
    assert [crash.where for crash in diagnosis.crashed] == ["bad.py (another process)"]
    assert {("MP101", "good.py"), ("MP101", "train.py")} <= set(told(diagnosis))


def test_what_broke_is_not_remembered_as_silent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(2):
        with monkeypatch.context() as patch:
            break_at("the walk", patch)
            diagnosed(tmp_path, patch)
            settings = Settings((target_from_text("."),), static=True)
            assert len(diagnose(settings, SilentProgress()).crashed) == 1


def test_a_file_that_is_not_followed_to_its_end_is_named_each_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "MOST_EVENTS", 20)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "long.py").write_text(WRONG * 20)
    (tmp_path / "short.py").write_text(WRONG)
    for _ in range(2):  # the second time from what was kept
        diagnosis = diagnose(Settings((target_from_text("."),), static=True), SilentProgress())
        (skipped,) = [skipped for skipped in diagnosis.skipped if "followed" in skipped.reason]
        assert skipped.reason == "long.py does more than is followed in one file: it is judged only in part."


RING = {  # `first` goes on behind its import of `second`, which breaks after it has imported `first` again
    "first": "import {other}\n" + WRONG,
    "second": "import {other}\nburst()\n",
}


@pytest.mark.parametrize("names", [("ring_a", "ring_b"), ("ring_b", "ring_a")])
def test_what_imports_a_broken_file_of_a_ring_goes_on_where_it_was(
    names: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    break_at("the walk", monkeypatch)
    monkeypatch.chdir(tmp_path)
    for name, other, text in zip(names, names[::-1], RING.values(), strict=True):
        (tmp_path / f"{name}.py").write_text(text.format(other=other))
    (tmp_path / "a_script.py").write_text(f"from {names[0]} import opt\nopt.apply_gradients([])\n")
    diagnosis = diagnose(Settings((target_from_text("."),), static=True, cache=False), SilentProgress())
    assert [crash.where.partition(" (")[0] for crash in diagnosis.crashed] == [f"{names[1]}.py"]
    assert ("MP101", f"{names[0]}.py") in told(diagnosis)
    assert f"{names[1]}.py" not in [path for _, path in told(diagnosis)]

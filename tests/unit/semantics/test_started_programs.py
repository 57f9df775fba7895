"""Programs that an examined one started: which may train, and what to give `mpdoctor check` for each."""

from __future__ import annotations

from pathlib import Path

import pytest

from mpdoctor.facts.processes import StartedProcess, named, remedy
from mpdoctor.semantics.live.started_programs import started_programs

pytestmark = pytest.mark.fast
PYTHON = "/usr/lib/venv/bin/python3.11"


@pytest.mark.parametrize(
    ("arguments", "examine"),
    [
        ((PYTHON, "train.py"), "train.py"),
        ((PYTHON, "-u", "-W", "ignore", "train.py", "--lr", "1 e"), "train.py -- --lr '1 e'"),
        ((PYTHON, "-m", "package.train", "-x"), "package/train.py -- -x"),
        ((PYTHON, "-m", "package"), "package/__main__.py"),
        (("nohup", "python", "train.py"), "train.py"),
        (("./train.py", "3"), "train.py -- 3"),
        (("mpirun", "-np", "2", "python", "train.py"), "train.py"),
        ("cd x && CUDA_VISIBLE_DEVICES=0 python train.py --lr 1 > log 2>&1 &", "train.py -- --lr 1"),
        ("git pull; pypy3 train.py", "train.py"),
    ],
)
def test_a_python_that_may_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, arguments: tuple[str, ...] | str, examine: str
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "package").mkdir()
    for name in ("train.py", "__main__.py"):
        (tmp_path / "package" / name).touch()
    is_line = isinstance(arguments, str)
    given = (arguments,) if isinstance(arguments, str) else arguments
    (program,) = started_programs([StartedProcess("shell" if is_line else "command", given, str(tmp_path))])
    assert (program.may_train, program.examine) == (True, examine)


@pytest.mark.parametrize(
    "arguments",
    [
        ("git", "status"),
        ("nvidia-smi",),
        (PYTHON, "-c", "import train"),
        (PYTHON, "-m", "pip", "install", "x"),
        (PYTHON, "-m", "http.server"),
        (PYTHON, "--version"),
        (PYTHON, "-"),
        (PYTHON,),
        ("cp", "train.py", "kept.py"),
        (),
        "cat train.py | python",
        "vim 'train.py",
        "",
    ],
)
def test_what_trains_nothing(arguments: tuple[str, ...] | str) -> None:
    is_line = isinstance(arguments, str)
    given = (arguments,) if isinstance(arguments, str) else arguments
    (program,) = started_programs([StartedProcess("shell" if is_line else "command", given)])
    assert not program.may_train and program.examine == ""


def test_a_module_that_lies_elsewhere_has_no_file_to_examine(tmp_path: Path) -> None:
    (program,) = started_programs([StartedProcess("command", (PYTHON, "-m", "somewhere"), str(tmp_path))])
    assert program.may_train and program.examine == ""


def test_each_command_is_named_once_those_that_may_train_first() -> None:
    git, fold = StartedProcess("command", ("git", "x")), StartedProcess("command", (PYTHON, "a.py"))
    work, pool = StartedProcess("multiprocessing", ("work",)), StartedProcess("multiprocessing", ("",))
    programs = started_programs([git, fold, fold, work, pool])
    assert [(program.command, program.count) for program in programs] == [
        ("python a.py", 2),
        ("work", 1),
        ("", 1),
        ("git x", 1),
    ]
    assert named(programs) == "5 processes (`python a.py`, `work` through multiprocessing and 2 more)"
    assert remedy(programs) == "Examine that program: mpdoctor check a.py"
    assert named(programs[:1]) == "`python a.py` 2 times"
    assert remedy(programs[1:]).startswith("Call `work` in the first process")
    assert remedy(programs[3:]) == ""

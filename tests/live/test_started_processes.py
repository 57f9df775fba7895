"""Programs that start other processes, examined in this Python; most of them need no TensorFlow for that."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checking import PATIENCE, ROOT, check, needs_tensorflow

HEAD = "import concurrent.futures, multiprocessing, os, platform, subprocess, sys, threading\n"
MAIN = "def work(): pass\n\n\nif __name__ == '__main__':\n    "
SPAWN = "multiprocessing.get_context('spawn')"
COMMAND = "python fold.py 3"


def started(tmp_path: Path, text: str) -> list[tuple[Any, ...]]:
    (tmp_path / "train.py").write_text(HEAD + text)
    (tmp_path / "fold.py").write_text("print('trains')\n")
    report = check("train.py", directory=tmp_path).report
    programs = report["targets"][0]["processes_started"]
    return [(each["how"], each["command"], each["count"], each["may_train"]) for each in programs]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("subprocess.run([sys.executable, 'fold.py', '3'])", ("command", COMMAND, 1, True)),
        ("subprocess.check_output([sys.executable, b'fold.py', '3'], cwd=os.getcwd())", ("command", COMMAND, 1, True)),
        ("subprocess.run('exit 0', shell=True)", ("shell", "exit 0", 1, False)),
        ("os.popen('exit 0').read()", ("shell", "exit 0", 1, False)),
        ("os.system('exit 0')", ("shell", "exit 0", 1, False)),
        ("os.spawnv(os.P_WAIT, sys.executable, ['python', 'fold.py', '3'])", ("command", COMMAND, 1, True)),
        (
            "os.waitpid(os.posix_spawn(sys.executable, ['python', 'fold.py', '3'], os.environ), 0)",
            ("command", COMMAND, 1, True),
        ),
        ("os.execv(sys.executable, ['python', 'fold.py', '3'])", ("replaced", COMMAND, 1, True)),
        (
            "if os.fork() == 0:\n    os.execlp(sys.executable, 'python', 'fold.py', '3')\nos.wait()",
            ("command", COMMAND, 1, True),
        ),
        (
            "with concurrent.futures.ThreadPoolExecutor() as pool:\n"
            "    list(pool.map(subprocess.run, [[sys.executable, 'fold.py', '3']] * 2))",
            ("command", COMMAND, 2, True),
        ),
        (
            MAIN + f"process = {SPAWN}.Process(target=work); process.start(); process.join()",
            ("multiprocessing", "work", 1, True),
        ),
        (
            MAIN + f"with concurrent.futures.ProcessPoolExecutor(1, {SPAWN}) as pool: pool.submit(work).result()",
            ("multiprocessing", "", 1, True),
        ),
    ],
)  # fmt: skip
def test_what_a_program_starts_is_told(tmp_path: Path, text: str, expected: tuple[Any, ...]) -> None:
    assert started(tmp_path, text) == [expected]


def test_an_installed_mpdoctor_tells_the_same(tmp_path: Path) -> None:
    """It lies among the libraries then, and its hooks between the program's line and the process."""
    packages = tmp_path / "site-packages"
    shutil.copytree(ROOT / "mpdoctor", packages / "mpdoctor", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "train.py").write_text(f"{HEAD}{MAIN}process = {SPAWN}.Process(target=work); process.start()\n")
    done = subprocess.run(
        [sys.executable, "-m", "mpdoctor", "check", "train.py"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(packages)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert "It started `work` through multiprocessing" in " ".join(done.stdout.split()), done


@pytest.mark.parametrize(
    "text",
    [
        "platform.uname().processor",
        "if os.fork() == 0:\n    os._exit(0)\nos.wait()",
        MAIN + "process = multiprocessing.get_context('fork').Process(target=work); process.start(); process.join()",
        "try:\n    os.execvp('no-such-program', ['x'])\nexcept OSError:\n    pass",
    ],
)
def test_what_no_line_of_the_program_starts_and_forks_are_not(tmp_path: Path, text: str) -> None:
    assert started(tmp_path, text) == []


def test_a_program_that_starts_itself_anew_is_told_what_to_set_before(tmp_path: Path) -> None:
    text = (
        "import os, sys\nif 'SEEN' not in os.environ:\n    os.environ['SEEN'] = '1'\n"
        "    os.execv(sys.executable, ['python', *sys.argv])\n"
    )
    (tmp_path / "train.py").write_text(text)
    (finding,) = check("train.py", directory=tmp_path).report["findings"]
    assert finding["code"] == "MP002" and "made way for `python " in finding["message"]
    assert "What it had changed before: SEEN." in finding["message"]
    assert finding["help"].startswith("Set these environment variables")


@needs_tensorflow
@pytest.mark.slow
def test_where_a_training_was_examined_tools_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "fold.py").touch()
    (tmp_path / "train.py").write_text(
        HEAD + "import numpy as np\nimport tensorflow as tf\n"
        "subprocess.run(['true'])\n"
        "if 'fold' in sys.argv:\n    subprocess.run([sys.executable, 'fold.py'])\n"
        "model = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1)])\n"
        "model.compile('sgd', 'mse')\nmodel.fit(np.ones((32, 4)), np.ones((32, 1)), verbose=0)\n"
    )
    quiet = check("train.py", directory=tmp_path, output_format="terminal")
    assert "not examined" not in quiet.said
    told = check("train.py", "--", "fold", directory=tmp_path, output_format="terminal")
    assert "started, and not examined: `python fold.py`; if that trains: mpdoctor check fold.py" in " ".join(
        told.said.split()
    )

"""Bad targets and failing scripts: each gets one clear message and the right exit status, and no file of the user's
changes."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet
from checking import Check, check, contents, needs_tensorflow

# A small model under mixed_float16; its float16 output (MP201) shows which stages still looked at it.
MODEL = """\
import numpy as np
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
model = tf.keras.Sequential()
model.add(tf.keras.layers.Input(shape=(6,)))
model.add(tf.keras.layers.Dense(8, activation="relu"))
model.add(tf.keras.layers.Dense(1))
model.compile(optimizer="adam", loss="mse")
"""
OUTPUT_LINE = 8
TRAIN = """\
model.fit(np.random.rand(160, 6), np.random.rand(160, 1), batch_size=16, epochs=6, verbose=0)
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The user's directory."""
    directory = tmp_path / "project"
    directory.mkdir()
    return directory


def write(directory: Path, text: str, name: str = "train.py") -> str:
    (directory / name).write_text(textwrap.dedent(text), encoding="utf-8")
    return name


def examine(directory: Path, *arguments: str, **options: object) -> Check:
    """A check that must leave the user's files alone, print no traceback and break no rule."""
    before = contents(directory)
    done = check(*arguments, directory=directory, **options)  # type: ignore[arg-type]
    assert contents(directory) == before
    assert "Traceback (most recent call last)" not in done.stderr, str(done)
    assert done.exit_code in (0, 1, 2), str(done)
    if done.stdout.strip():
        assert not done.report["crashed"], str(done)
    return done


def slow(*row: object) -> ParameterSet:
    return pytest.param(*row, marks=pytest.mark.slow)


def only_finding(done: Check, code: str) -> dict:
    assert done.codes() == [code], str(done)
    return done.finding(code)


# --- files that are not there, or not what they seem --------------------------------------------------------


@pytest.mark.parametrize("name", ["train.py", "model.keras", "src/", "train.py:build_model"])
def test_a_missing_file_is_named(project: Path, name: str) -> None:
    done = examine(project, name)
    assert done.exit_code == 2, str(done)
    assert name.split(":")[0].rstrip("/") in done.said


def test_a_directory_without_python_says_so(project: Path) -> None:
    write(project, "no code here", "README.txt")
    done = examine(project, ".")
    assert done.exit_code == 2, str(done)
    assert "Python" in done.said


def test_a_syntax_error_is_shown_at_its_line(project: Path) -> None:
    done = examine(project, write(project, "import tensorflow as tf\n\nmodel = tf.keras.Sequential([\n"))
    assert done.exit_code == 2
    assert only_finding(done, "MP001")["line"] == 3


def test_a_file_that_is_not_utf_8_is_told_as_such(project: Path) -> None:
    (project / "train.py").write_bytes("naïve = 'é'\n".encode("latin-1"))
    done = examine(project, "train.py")
    assert done.exit_code == 2
    assert only_finding(done, "MP001")["path"] == "train.py"


@needs_tensorflow
def test_a_truncated_model_file_is_told_to_be_broken(saved_models, project: Path) -> None:
    whole = (saved_models("3") / "healthy.keras").read_bytes()
    (project / "model.keras").write_bytes(whole[: len(whole) // 2])
    done = examine(project, "model.keras")
    assert done.exit_code == 2
    assert "model.keras" in only_finding(done, "MP002")["message"]


@needs_tensorflow
@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 this is no zip", b"\x89HDF\r\n\x1a\n"])
def test_a_model_file_that_is_no_zip_is_told_to_be_none(project: Path, content: bytes) -> None:
    (project / "model.keras").write_bytes(content)
    done = examine(project, "model.keras")
    assert done.exit_code == 2
    assert "model.keras" in only_finding(done, "MP002")["message"]


@needs_tensorflow
def test_a_zip_that_holds_no_model_is_told_as_such(project: Path) -> None:
    with zipfile.ZipFile(project / "model.keras", "w") as archive:
        archive.writestr("holiday.txt", "sun")
    done = examine(project, "model.keras")
    assert done.exit_code == 2
    assert "model.keras" in only_finding(done, "MP002")["message"]


# --- scripts that end before they train ---------------------------------------------------------------------


@needs_tensorflow
def test_a_script_that_raises_is_shown_at_its_line(project: Path) -> None:
    script = write(
        project,
        """\
        import tensorflow as tf

        with open("measurements.csv") as file:
            rows = file.read()
        """,
    )
    done = examine(project, script)
    assert done.exit_code == 2
    finding = only_finding(done, "MP002")
    assert (finding["path"], finding["line"]) == (script, 3)
    assert "measurements.csv" in finding["message"]


@needs_tensorflow
def test_a_script_that_raises_after_its_model_keeps_what_was_seen(project: Path) -> None:
    script = write(project, MODEL + 'rows = open("measurements.csv").read()\n')
    done = examine(project, script)
    assert [(finding["code"], finding["line"]) for finding in done.report["findings"]] == [
        ("MP201", OUTPUT_LINE),
        ("MP002", MODEL.count("\n") + 1),
    ]
    assert done.exit_code == 1, str(done)


@pytest.mark.slow
@pytest.mark.slow
@needs_tensorflow
def test_an_exception_that_cannot_be_shown_is_told_by_its_class(project: Path) -> None:
    odd = "class Odd(BaseException):\n    def __str__(self):\n        raise self\n\nraise Odd\n"
    done = examine(project, write(project, MODEL + odd))
    assert done.report["crashed"] == []
    assert "Odd: (its text cannot be shown: Odd)" in done.finding("MP002")["message"], str(done)


@needs_tensorflow
def test_a_missing_package_is_named(project: Path) -> None:
    done = examine(project, write(project, "import tensorflow\nimport no_such_package_of_mine\n"))
    assert done.exit_code == 2
    finding = only_finding(done, "MP002")
    assert finding["line"] == 2
    assert "no_such_package_of_mine" in finding["message"]


@needs_tensorflow
def test_a_script_that_never_trains_has_its_model_examined(project: Path) -> None:
    done = examine(project, write(project, MODEL + "model.summary()\n"))
    assert done.exit_code == 1
    assert only_finding(done, "MP201")["line"] == OUTPUT_LINE
    assert len(done.report["models"]) == 1
    stage = done.report["targets"][0]["stages"]["training"]
    assert stage["status"] == "skipped"
    assert "no training call" in stage["reason"]


@pytest.mark.slow
@needs_tensorflow
def test_a_healthy_script_that_never_trains_is_no_error(project: Path) -> None:
    done = examine(project, write(project, MODEL.replace("Dense(1)", 'Dense(1, dtype="float32")')))
    assert (done.exit_code, done.codes()) == (0, []), str(done)
    assert "no training call" in done.report["targets"][0]["stages"]["training"]["reason"]


@needs_tensorflow
@pytest.mark.parametrize("script", ["print('hello')\n", slow("import tensorflow as tf\nprint(tf.ones(3))\n"), ""])
def test_a_script_that_never_builds_a_model_says_so(project: Path, script: str) -> None:
    done = examine(project, write(project, script))
    assert done.exit_code == 2, str(done)
    assert "no model" in done.said.lower()


@needs_tensorflow
@pytest.mark.parametrize("status", ["0", slow("3"), slow("'data is missing'")])
def test_a_script_that_exits_before_its_model_says_so(project: Path, status: str) -> None:
    done = examine(project, write(project, f"import sys\nimport tensorflow\nsys.exit({status})\n" + MODEL))
    assert done.exit_code == 2, str(done)
    finding = done.finding("MP002")
    assert finding["line"] == 3
    assert "exit" in finding["message"] or "ended" in finding["message"]


@pytest.mark.slow
@needs_tensorflow
def test_a_script_that_exits_after_its_model_has_it_examined(project: Path) -> None:
    done = examine(project, write(project, MODEL + "raise SystemExit\n" + TRAIN))
    assert done.exit_code == 1, str(done)
    assert done.codes() == ["MP201"]


@needs_tensorflow
@pytest.mark.parametrize(
    ("factory", "words"),
    [
        slow("build", "build"),
        slow("needs_a_width", "width"),
        ("gives_nothing", "None"),
        slow("raises", "out of luck"),
    ],
)
def test_a_factory_that_gives_no_model_is_told_why(project: Path, factory: str, words: str) -> None:
    write(
        project,
        """\
        import tensorflow as tf

        def needs_a_width(width):
            return tf.keras.Sequential([tf.keras.layers.Dense(width)])

        def gives_nothing():
            tf.keras.Sequential([tf.keras.layers.Dense(1)])

        def raises():
            raise RuntimeError("out of luck")
        """,
        "models.py",
    )
    done = examine(project, f"models.py:{factory}")
    assert done.exit_code == 2, str(done)
    assert words in only_finding(done, "MP002")["message"]


# --- scripts that do not end well ---------------------------------------------------------------------------


@needs_tensorflow
@pytest.mark.slow
def test_a_script_that_never_ends_is_ended_and_its_model_examined(project: Path) -> None:
    done = examine(project, write(project, MODEL + "while True:\n    pass\n"), "--timeout", "20")
    assert done.exit_code == 1, str(done)
    assert sorted(done.codes()) == ["MP003", "MP201"]
    assert "20" in done.finding("MP003")["message"]


@needs_tensorflow
def test_a_script_that_waits_for_ever_before_its_model_is_ended(project: Path) -> None:
    done = examine(project, write(project, "import threading\nthreading.Event().wait()\n" + MODEL), "--timeout", "5")
    assert done.exit_code == 2, str(done)
    assert "MP003" in done.codes()


@needs_tensorflow
def test_a_script_that_asks_gets_no_answer_and_does_not_hang(project: Path) -> None:
    done = examine(project, write(project, 'epochs = int(input("How many epochs? "))\n' + MODEL))
    assert done.exit_code == 2, str(done)
    assert done.finding("MP002")["line"] == 1


@needs_tensorflow
@pytest.mark.parametrize("built", [True, slow(False)])
def test_a_script_that_kills_itself_is_told_with_its_signal(project: Path, built: bool) -> None:
    start = MODEL if built else "import tensorflow\n"
    done = examine(project, write(project, start + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n"))
    assert done.exit_code == (1 if built else 2), str(done)
    assert sorted(done.codes()) == (["MP004", "MP201"] if built else ["MP004"])
    assert "SIGKILL" in done.finding("MP004")["message"]


@needs_tensorflow
def test_a_segmentation_fault_leaves_its_last_words(project: Path) -> None:
    script = write(
        project,
        """\
        import ctypes
        import sys

        print("about to read the address 0", file=sys.stderr, flush=True)
        ctypes.string_at(0)
        """,
    )
    done = examine(project, script)
    assert done.exit_code == 2, str(done)
    finding = only_finding(done, "MP004")
    assert "SIGSEGV" in finding["message"]
    assert "about to read the address 0" in str(finding)


# --- scripts that make trouble and train all the same -------------------------------------------------------


def healthy_but_for_its_output(done: Check) -> None:
    assert done.exit_code == 1, str(done)
    finding = only_finding(done, "MP201")
    assert finding["line"] is not None
    (probe,) = done.report["probes"]
    assert (probe["verdict"], probe["steps"]) == ("healthy", 50), str(done)


@needs_tensorflow
def test_a_hundred_megabytes_of_prints_are_let_pass(project: Path) -> None:
    noise = """\
import sys
for _ in range(50_000):
    print("x" * 1000)
    print("y" * 1000, file=sys.stderr)
"""
    healthy_but_for_its_output(examine(project, write(project, MODEL + noise + TRAIN)))


@pytest.mark.slow
@needs_tensorflow
def test_a_script_that_closes_every_file_is_still_heard(project: Path) -> None:
    closing = "import os\nos.closerange(0, 4096)\n"
    healthy_but_for_its_output(examine(project, write(project, closing + MODEL + TRAIN)))


@pytest.mark.slow
@needs_tensorflow
def test_a_script_that_goes_elsewhere_is_still_found(project: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = examine(project, write(project, f"import os\nos.chdir({str(elsewhere)!r})\n" + MODEL + TRAIN))
    healthy_but_for_its_output(done)
    assert done.finding("MP201")["path"] == "train.py"


@pytest.mark.slow
@needs_tensorflow
def test_a_script_that_deletes_itself_is_still_shown(project: Path) -> None:
    script = write(project, "import os\nos.remove(__file__)\n" + MODEL + TRAIN)
    done = check(script, directory=project)  # the file that is missing afterwards was removed by the script
    healthy_but_for_its_output(done)
    assert "Dense(1)" in str(done.finding("MP201")["excerpt"])


@needs_tensorflow
def test_a_script_that_swallows_every_exception_ends_at_its_training_call(project: Path) -> None:
    trying = f"for _ in range(3):\n    try:\n        {TRAIN}    except BaseException:\n        pass\n"
    healthy_but_for_its_output(examine(project, write(project, MODEL + trying)))


# --- the interpreter ----------------------------------------------------------------------------------------


def test_an_interpreter_without_tensorflow_is_named(project: Path, tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare" / "bin" / "python"
    done = examine(project, write(project, MODEL + TRAIN), "--python", str(python))
    assert done.exit_code == 2, str(done)
    assert str(python) in done.said
    assert "--python" in done.said
    assert [finding["line"] for finding in done.report["findings"] if finding["code"] == "MP201"] == [OUTPUT_LINE]


def test_an_interpreter_that_does_not_exist_is_named(project: Path) -> None:
    done = examine(project, write(project, MODEL + TRAIN), "--python", "/no/such/python3")
    assert done.exit_code == 2, str(done)
    assert "/no/such/python3" in done.said


@pytest.mark.slow
@needs_tensorflow
def test_a_model_whose_constructor_raises_is_no_model(project: Path) -> None:
    script = write(
        project,
        """\
        import tensorflow as tf


        class Unmade(tf.keras.Model):
            def __init__(self):
                self.size = 1 / 0
                super().__init__()


        Unmade()
        """,
    )
    done = examine(project, script)
    assert (done.exit_code, only_finding(done, "MP002")["line"]) == (2, 6), str(done)

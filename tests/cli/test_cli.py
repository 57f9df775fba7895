"""The command line: exit codes, messages, and what is not loaded."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import mpdoctor
from mpdoctor.cli.argument_split import invocation_from_arguments
from mpdoctor.rules.registry import all_rules

INSTALLED = Path(mpdoctor.__file__).parent.parent
README = Path(__file__).parents[2] / "README.md"
RIGHT = "import keras\n\nkeras.mixed_precision.set_global_policy('mixed_float16')\n"
WRONG = "import tensorflow as tf\n\nopt = tf.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())\n"
HEAVY = ("tensorflow", "keras", "tf_keras", "numpy", "cattrs", "jinja2")


def run(*arguments: str | Path, cwd: Path | None = None, **environment: str) -> subprocess.CompletedProcess[str]:
    inherited = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    return subprocess.run(
        [sys.executable, "-m", "mpdoctor", *map(str, arguments)],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        env={**inherited, "PYTHONPATH": str(INSTALLED), "PYTHONIOENCODING": "utf-8", **environment},
        timeout=300,
    )


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(WRONG)
    return tmp_path


def test_version() -> None:
    assert run("--version").stdout == f"mpdoctor {mpdoctor.__version__}\n"


@pytest.mark.parametrize(
    "arguments", [(), ("--help",), ("check", "--help"), ("show", "--help"), ("explain", "-h"), ("rules", "-h")]
)
def test_help_fits_and_goes_to_someone(arguments: tuple[str, ...]) -> None:
    done = run(*arguments)
    assert "Usage: mpdoctor" in done.stdout + done.stderr
    assert max(len(line) for line in done.stdout.splitlines() or [""]) <= 80


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["--version"],
        ["rules"],
        ["explain", "MP101"],
        ["check", "--static", "train.py"],
        ["check", "--static", "--output-format", "json", "train.py"],
    ],
)
def test_nothing_heavy_is_loaded(script: Path, arguments: list[str]) -> None:
    program = (
        "import sys, mpdoctor.cli\n"
        f"try: mpdoctor.cli.main({arguments!r})\n"
        "except SystemExit as end: assert end.code in (0, 1), end.code\n"
        f"print([name for name in {HEAVY!r} if name in sys.modules], file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        cwd=script,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
    )
    assert done.stderr.splitlines()[-1:] == ["[]"], done.stderr
    assert done.stdout


@pytest.mark.parametrize("target", ["train.py", "model.py:build", "model.keras"])
def test_a_target_in_the_place_of_a_command_is_told_the_command(target: str) -> None:
    done = run(target, "--static")
    assert done.returncode == 2 and f"mpdoctor check {target} --static" in done.stderr


def test_findings_end_with_1_and_exit_zero_with_0(script: Path) -> None:
    done = run("check", "--static", "train.py", cwd=script)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.startswith("✗ 1 error in train.py: nonexistent api\n")
    assert done.stdout.endswith("run again: mpdoctor check --static train.py\n")
    assert run("check", "--static", "--exit-zero", "train.py", cwd=script).returncode == 0
    assert run("check", "--static", "--ignore", "MP1", "train.py", cwd=script).returncode == 0
    assert run("check", "--static", "--select", "nonexistent-api", "train.py", cwd=script).returncode == 1


def test_nothing_found_ends_with_0(script: Path) -> None:
    (script / "train.py").write_text(RIGHT)
    done = run("check", "--static", "train.py", cwd=script)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("✓ train.py: nothing found in the source; no code was run\n")


def test_json_stands_alone_on_stdout(script: Path) -> None:
    done = run("check", "--static", "--output-format", "json", "train.py", cwd=script)
    told = json.loads(done.stdout)
    assert [(f["code"], f["line"]) for f in told["findings"]] == [("MP101", 3)]
    assert told["command"] == "mpdoctor check --static --output-format json train.py"
    assert done.returncode == told["summary"]["exit_code"] == 1


def test_concise(script: Path) -> None:
    done = run("check", "--static", "--output-format", "concise", "train.py", cwd=script)
    assert done.stdout.startswith("train.py:3:7: MP101 error: ")
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("targets", "codes", "said"),
    [
        (["trian.py", "train.py"], ["MP101"], ["no such file or directory: 'trian.py'. Did you mean train.py?"]),
        (["train.py", "empty"], ["MP101"], ["there is no Python file in empty or below it."]),
        (
            ["train.py", "net.keras"],
            ["MP101"],
            ["net.keras is a saved model, which holds no source to read: `mpdoctor check net.keras` examines it."],
        ),
        (["no", "train.py", "nil"], ["MP101"], [f"no such file or directory: '{name}'." for name in ("no", "nil")]),
    ],
)
def test_a_target_that_is_missing_keeps_no_other_from_being_read(
    script: Path, targets: list[str], codes: list[str], said: list[str]
) -> None:
    (script / "empty").mkdir()
    (script / "net.keras").write_bytes(b"PK")
    done = run("check", "--output-format", "json", *targets, cwd=script)
    told = json.loads(done.stdout)
    assert [finding["code"] for finding in told["findings"]] == codes
    assert done.returncode == told["summary"]["exit_code"] == 2
    assert [line.removeprefix("mpdoctor: ") for line in done.stderr.splitlines()] == said
    assert [skipped["reason"] for skipped in told["skipped"] if skipped["code"] == "target"] == said
    assert {stage["reason"] for stage in told["targets"][0]["stages"].values()} - {""} == {
        "more than one target: source only"
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["check", "trian.py"], "no such file or directory: 'trian.py'. Did you mean train.py?"),
        (["check", "nothing/at/all.py:build"], "no such file or directory: 'nothing/at/all.py'."),
        (["check", "x" * 10_000], "no such file or directory"),
        (
            ["check", "--static", "net.keras"],
            "net.keras is a saved model, which holds no source to read: `mpdoctor check",
        ),
        (
            ["check", "--diff", "net.keras"],
            "net.keras is a saved model, which holds no source to read: `mpdoctor check",
        ),
        (["check", "frozen.pb"], "frozen.pb is a frozen graph of TensorFlow 1 without its SavedModel"),
        (["check", "saved/saved_model.pb"], "is a part of a SavedModel: name its directory, saved."),
        (["check", "empty"], "there is no Python file in empty or below it."),
        (
            ["check", "train.py", "--select", "MP1O1"],
            "--select MP1O1: there is no rule 'MP1O1'. Did you mean MP101",
        ),
        (["check", "train.py", "--ignore", "MP101,nonexistant-api"], "Did you mean MP101 (nonexistent-api)?"),
        (["check", "--select", "train.py"], "--select train.py: this is a path, and the option takes codes or names"),
        (["explain", "loops"], "`mpdoctor explain loop` shows correct loops."),
        (["check", "train.py", "--keras", "four"], "'four' is no Keras"),
        (["check", "train.py", "--keras", "4"], "there is no Keras 4"),
        (["check", "train.py", "--python", "no/python"], "--python no/python: there is no such program."),
        (["check", "train.py", "--python", "."], "--python .: this is a directory, and no program."),
        (["check", "train.py", "--python", sys.prefix], f"this is a directory. Its Python is {sys.prefix}"),
        (["check", "train.py:build", "--", "--epochs", "1"], "arguments after -- are for a script"),
        (["check", "--static", "--", "-dash.py"], "A file whose name begins with a dash is named ./-dash.py."),
        (["mend", "--", "-dash.py"], "no target comes before the `--`. A file whose name begins with a dash is named"),
        (["mend", "--", "--epochs", "1"], "no target comes before the `--`."),
        (["check", "--", "train.py"], "no target is one. Name train.py before the `--`."),
        (["check", "--baseline", "train.py"], "it is no JSON. If it is a target, name the baseline before it"),
    ],
)
def test_what_cannot_be_done_is_said_in_one_line_and_ends_with_2(
    script: Path, arguments: list[str], message: str
) -> None:
    (script / "frozen.pb").touch()
    (script / "net.keras").write_bytes(b"PK")
    (script / "saved").mkdir()
    (script / "saved" / "saved_model.pb").touch()
    (script / "empty").mkdir()
    (script / "-dash.py").touch()
    done = run(*arguments, cwd=script)
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.startswith("mpdoctor: ")
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("arguments", [["chekc"], ["check", "a.py", "--steps", "0"], ["--nonsense"]])
def test_wrong_usage_ends_with_2(arguments: list[str]) -> None:
    done = run(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_a_defect_of_ours_ends_with_3(script: Path) -> None:
    program = (
        "import mpdoctor.cli, mpdoctor.reporters.terminal as terminal\n"
        "def render(*_, **__): raise ZeroDivisionError('broken on purpose')\n"
        "terminal.render = render\n"
        "mpdoctor.cli.main(['check', '--static', 'train.py'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=script, env=environment)
    assert done.returncode == 3
    assert "the terminal reporter broke" in done.stderr and "broken on purpose" in done.stderr
    assert "train.py:3:7: MP101" in done.stderr  # the findings are shown all the same


def test_a_pipeline_that_breaks_ends_with_3(script: Path) -> None:
    program = (
        "import mpdoctor.cli, mpdoctor.diagnosis as diagnosis\n"
        "def diagnose(*_): raise ZeroDivisionError('broken on purpose')\n"
        "diagnosis.diagnose = diagnose\n"
        "mpdoctor.cli.main(['check', '--static', 'train.py'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=script, env=environment)
    assert done.returncode == 3
    assert "broken on purpose" in done.stderr


@pytest.mark.skipif(os.name == "nt", reason="pipes and signals of POSIX")
def test_a_closed_pipe_ends_quietly(script: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "mpdoctor", "check", "--static", "train.py"],
        stdout=write,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script,
        env=environment,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (1, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_ends_with_2(script: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "mpdoctor", "check", "--static", "train.py"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            cwd=script,
            env=environment,
        )
    assert done.returncode == 2
    assert done.stderr == "mpdoctor: the report could not be written: No space left on device.\n"


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_an_interrupt_is_said_in_a_word_and_ends_with_130(script: Path) -> None:
    program = (
        "import signal, time, mpdoctor.cli, mpdoctor.diagnosis as diagnosis\n"
        # a process started in the background by a shell ignores interrupts
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def diagnose(*_): print('ready', flush=True); time.sleep(60)\n"
        "diagnosis.diagnose = diagnose\n"
        "mpdoctor.cli.main(['check', '--static', 'train.py'])\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=script,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert (process.returncode, errors) == (130, "mpdoctor: interrupted.\n")


def test_color_is_for_terminals_or_for_who_asks(script: Path) -> None:
    assert "\x1b" not in run("check", "--static", "train.py", cwd=script).stdout
    assert "\x1b" in run("check", "--static", "--color", "always", "train.py", cwd=script).stdout


def test_a_stream_of_ascii_gets_ascii(script: Path) -> None:
    done = run("check", "--static", "train.py", cwd=script, PYTHONIOENCODING="ascii")
    assert done.returncode == 1
    assert done.stdout.startswith("x 1 error in train.py")
    assert done.stdout.isascii()


@pytest.mark.skipif(os.name == "nt", reason="a shell of POSIX closes them")
@pytest.mark.parametrize(
    ("arguments", "closed", "status"),
    [
        ("check --static train.py", ">&-", 1),
        ("check --static train.py", "2>&-", 1),
        ("check --static train.py", "<&- >&- 2>&-", 1),
        ("check --static missing.py", "2>&-", 2),
        ("check -", "<&-", 0),
        ("explain MP101", ">&-", 0),
        ("env", ">&-", 0),
    ],
)
def test_a_stream_that_was_closed_beforehand_changes_nothing(
    script: Path, arguments: str, closed: str, status: int
) -> None:
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m mpdoctor {arguments} {closed}', sys.executable],
        capture_output=True,
        text=True,
        cwd=script,
        env={**os.environ, "PYTHONPATH": str(INSTALLED)},
        timeout=300,
    )
    assert done.returncode == status, done.stdout + done.stderr
    assert "missing.py" not in done.stdout, "what standard error was to say"


@pytest.mark.skipif(os.name == "nt", reason="pseudo-terminals of POSIX")
@pytest.mark.parametrize(("no_color", "colored"), [("", True), ("1", False)])
def test_a_terminal_gets_color_and_no_color_takes_it_away(script: Path, no_color: str, colored: bool) -> None:
    import pty

    environment = {**os.environ, "PYTHONPATH": str(INSTALLED), "NO_COLOR": no_color, "TERM": "xterm"}
    main, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "mpdoctor", "check", "--static", "train.py"],
        stdout=terminal,
        stderr=subprocess.DEVNULL,
        cwd=script,
        env=environment,
    )
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(main, 4096):
            shown += chunk
    except OSError:  # Linux says so when the other end of a pseudo-terminal is closed
        pass
    os.close(main)
    assert process.wait(timeout=30) == 1
    assert b"MP101" in shown
    assert (b"\x1b[" in shown) is colored


def test_what_follows_two_dashes_goes_to_the_script() -> None:
    invocation = invocation_from_arguments(["check", "train.py", "--steps", "5", "--", "--steps", "a b", "--"])
    assert invocation.own == ("check", "train.py", "--steps", "5")
    assert invocation.script_args == ("--steps", "a b", "--")
    assert invocation.command == "mpdoctor check train.py --steps 5 -- --steps 'a b' --"
    assert invocation_from_arguments(["explain", "--", "MP101"]).own == ("explain", "--", "MP101")


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.code)
def test_every_rule_can_be_explained(rule: object, capsys: pytest.CaptureFixture[str]) -> None:
    from mpdoctor.cli import main

    for name in (rule.code, rule.name):  # type: ignore[attr-defined]
        for color in ("never", "always"):
            with pytest.raises(SystemExit) as end:
                main(["explain", name, "--color", color])
            assert end.value.code == 0
            shown = capsys.readouterr().out
            assert rule.code in shown and rule.name in shown  # type: ignore[attr-defined]


def test_rules_are_listed_in_every_form() -> None:
    codes = [rule.code for rule in all_rules()]
    assert codes
    shown = run("rules").stdout
    assert [line.split()[0] for line in shown.splitlines() if line.startswith("MP")] == codes
    assert max(map(len, shown.splitlines())) <= 80
    told = json.loads(run("rules", "--output-format", "json").stdout)
    assert [rule["code"] for rule in told] == codes
    table = run("rules", "--output-format", "markdown").stdout.splitlines()
    assert [line.split(" | ")[0].strip("| ") for line in table[2:]] == codes
    assert {line.replace(r"\|", "").count("|") for line in table} == {6}


def test_the_readme_shows_the_rules_that_there_are() -> None:
    assert run("rules", "--output-format", "markdown").stdout in README.read_text(encoding="utf-8")

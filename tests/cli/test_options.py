"""Options of `check` that choose files and rules, show what was chosen, and set the width: what each of them does."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from test_cli import RIGHT, WRONG, run

from mpdoctor.cli.texts.loop_page import markdown_of_loops
from mpdoctor.facts.versions import Keras

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TREE = ("a.py", "old/b.py", "tests/c.py", "tests/old/d.py")
CONFIGURED = '[tool.mpdoctor]\nexclude = ["tests/"]\nselect = ["MP1"]\nignore = ["MP105"]\n'


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in TREE:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(WRONG)
    return tmp_path


@pytest.mark.parametrize(
    ("options", "files"),
    [
        ([], ["a.py", "old/b.py"]),
        (["--isolated"], list(TREE)),
        (["--exclude", "old/"], ["a.py", "tests/c.py"]),
        (["--extend-exclude", "old/"], ["a.py"]),
        (["--exclude", "old/b.py,c.py"], ["a.py", "tests/old/d.py"]),
        (["--exclude", "/old", "--exclude", "tests/old"], ["a.py", "tests/c.py"]),
        (["--exclude", "nothing", "--extend-exclude", "*.py", "--exclude", "!a.py"], []),
    ],
)
def test_which_files(tree: Path, options: list[str], files: list[str]) -> None:
    (tree / "pyproject.toml").write_text(CONFIGURED)
    shown = run("check", "--show-files", *options, cwd=tree)
    assert sorted(shown.stdout.split()) == files
    assert shown.returncode == (0 if files else 2)
    if files:
        checked = run("check", "--output-format", "concise", "--no-cache", *options, cwd=tree)
        assert sorted(line.partition(":")[0] for line in checked.stdout.splitlines()) == files


def test_a_pattern_is_for_directories_elsewhere_too(tree: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    shown = run("check", "--show-files", tree, "--exclude", "old/", cwd=tmp_path_factory.mktemp("elsewhere"))
    assert [Path(line).name for line in shown.stdout.splitlines()] == ["a.py", "c.py"]
    left_out = run("check", "--show-files", "--exclude", "old/", "--force-exclude", "old/b.py", "a.py", cwd=tree)
    assert left_out.stdout == "a.py\n"


@pytest.mark.parametrize(
    ("options", "select", "ignore", "ignores"),
    [
        ([], ["MP1"], ["MP105"], {}),
        (["--extend-select", "MP3,MP501"], ["MP1", "MP3", "MP501"], ["MP105"], {}),
        (["--select", "MP2", "--extend-ignore", "MP201"], ["MP2"], ["MP105", "MP201"], {}),
        (["--isolated", "--extend-select", "MP3"], [], [], {}),
        (["--per-file-ignores", "tests/*:MP1,MP2,b.py:MP3"], ["MP1"], ["MP105"],
         {"tests/*": ["MP1", "MP2"], "b.py": ["MP3"]}),
    ],
)  # fmt: skip
def test_which_rules(
    tree: Path, options: list[str], select: list[str], ignore: list[str], ignores: dict[str, list[str]]
) -> None:
    (tree / "pyproject.toml").write_text(CONFIGURED)
    shown = run("check", "--show-settings", *options, cwd=tree)
    settings = tomllib.loads(shown.stdout)["tool"]["mpdoctor"]
    assert (settings["select"], settings["ignore"], settings["per-file-ignores"]) == (select, ignore, ignores)
    assert shown.returncode == 0


def test_rules_are_ignored_in_some_files(tree: Path) -> None:
    done = run("check", "--output-format", "concise", "--per-file-ignores", "tests/*:nonexistent-api,MP2", cwd=tree)
    assert [line.partition(":")[0] for line in done.stdout.splitlines()] == ["a.py", "old/b.py"]


def test_the_settings_that_are_shown_are_settings(tree: Path) -> None:
    options = ["--exclude", 'a "b".py', "--keras", "tf_keras", "--fail-on", "error", "--assume-mixed"]
    shown = run("check", "--show-settings", *options, cwd=tree).stdout
    (tree / "pyproject.toml").write_text(shown)
    again = run("check", "--show-settings", cwd=tree).stdout
    assert tomllib.loads(again) == tomllib.loads(shown)
    assert again.startswith("# pyproject.toml; the command line overrides it\n")
    assert tomllib.loads(again)["tool"]["mpdoctor"]["exclude"] == ['a "b".py']


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--steps", "abc"], "'abc' is not a whole number, 1 or more."),
        (["--steps", "0"], "0 is too small: give a whole number, 1 or more."),
        (["--steps", "2.5"], "'2.5' is not a whole number, 1 or more."),
        (["--budget", "-3"], "-3 is too small: give a number of seconds, 0 or more."),
        (["--timeout", "nan"], "nan is not a number of seconds, 0 or more."),
        (["--width", "39"], "39 is too small: give a whole number, 40 or more."),
        (["--isolated", "--config", "a.toml"], "--isolated reads no configuration, and --config names one"),
        (["--per-file-ignores", "MP1"], "--per-file-ignores MP1: give a pattern, a colon and rules"),
        (["--per-file-ignores", "a.py:"], "--per-file-ignores a.py:: give a pattern, a colon and rules"),
        (["--per-file-ignores", "a.py:MP1,MP9999"], "--per-file-ignores MP9999: there is no rule 'MP9999'."),
        (["--extend-select", "E501"], "there is no rule 'E501'. mpdoctor's codes begin with MP, as in MP302."),
        (["--extend-ignore", "PLW0603"], "there is no rule 'PLW0603'. mpdoctor's codes begin with MP"),
        (["--ignore", "M501"], "there is no rule 'M501'. Did you mean MP501 (mask-constant-overflows)"),
    ],
)
def test_what_cannot_be_meant_is_refused_in_a_sentence(tree: Path, options: list[str], message: str) -> None:
    done = run("check", *options, "a.py", cwd=tree)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


@pytest.mark.parametrize("columns", [40, 80, 120, 200])
def test_a_report_is_as_wide_as_asked_and_its_sentences_no_wider_than_is_read_well(tree: Path, columns: int) -> None:
    arguments = ", ".join(f"argument_{number}={number}" for number in range(12))
    (tree / "a.py").write_text(f"import tensorflow as tf\nopt = tf.mixed_precision.LossScaleOptimizer({arguments})\n")
    done = run("check", "--static", "--width", str(columns), "a.py", cwd=tree)
    lines = done.stdout.splitlines()
    assert max(map(len, lines)) <= columns
    (source,) = (line for line in lines if "opt = tf" in line and "│" in line)
    assert len(source) == columns  # it is cut there
    said = [line for line in lines if "│" not in line]
    assert max(map(len, said)) <= min(columns, 102)
    saved = run("check", "--static", "--width", str(columns), "--report", "a.txt", "a.py", cwd=tree)
    assert (tree / "a.txt").read_text(encoding="utf-8").startswith(saved.stdout.splitlines()[0])


def test_rules_lead_to_their_pages_where_those_are_published(tree: Path) -> None:
    (tree / "pyproject.toml").write_text('[tool.mpdoctor]\ndocs-url = "https://docs.example/doctor"\n')
    page = "https://docs.example/doctor/rules/nonexistent-api/"
    told = json.loads(run("check", "--output-format", "json", "a.py", "--static", cwd=tree).stdout)
    assert told["rules"]["MP101"]["url"] == page
    shown = run("check", "--color", "always", "--static", "a.py", cwd=tree).stdout
    assert re.search(rf"\x1b\]8;[^;]*;{page}\x1b\\\x1b\[1mMP101|\x1b\[1m\x1b\]8;[^;]*;{page}\x1b\\MP101", shown)
    assert page not in run("check", "--static", "a.py", cwd=tree).stdout


def test_source_from_standard_input_is_not_run_again(tree: Path) -> None:
    import subprocess

    command = [sys.executable, "-m", "mpdoctor", "check", "-", "--color", "never"]
    done = subprocess.run(command, input=WRONG, capture_output=True, text=True, encoding="utf-8", cwd=tree)
    assert done.returncode == 1 and "MP101" in done.stdout
    assert "run again" not in done.stdout


def test_without_a_target_it_is_this_directory(tree: Path) -> None:
    assert json.loads(run("check", "--output-format", "json", cwd=tree).stdout)["targets"][0]["id"] == "."
    for name in TREE:
        (tree / name).write_text(RIGHT)
    assert run("check", cwd=tree).returncode == 0


def test_they_are_shown_for_a_keras(tmp_path: Path) -> None:
    shown = run("explain", "loop", "--keras", "2.10", cwd=tmp_path)
    assert shown.stdout == markdown_of_loops(Keras("tf.keras", "2.10"))
    (tmp_path / "requirements.txt").write_text("tensorflow==2.12.0\n")
    assert "# A correct custom loop for tf.keras 2.12.0\n" in run("explain", "loop", cwd=tmp_path).stdout
    refused = run("explain", "loop", "--keras", "four", cwd=tmp_path)
    assert (refused.returncode, refused.stdout) == (2, "") and "'four' is no Keras" in refused.stderr


def test_the_rules_on_loops_lead_to_them(tmp_path: Path) -> None:
    assert "`mpdoctor explain loop`" in run("explain", "MP401", cwd=tmp_path).stdout
    assert "explain loop" not in run("explain", "MP501", cwd=tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--from-run", "absent.mpdoctor", "train.py"], "absent.mpdoctor cannot be read"),
        (["--from-run", "train.py", "train.py"], "is no run file"),
        (["--from-run", "run.mpdoctor", "train.py"], "names no batch that was kept"),
        (["--from-run", "run.mpdoctor", "--static", "train.py"], "name one script"),
        (["--from-run", "run.mpdoctor", "train.py:build"], "name one script"),
        (["--from-run", "gone.mpdoctor", "train.py"], "no such file lies beside it"),
        (["--from-run", "outside.mpdoctor", "train.py"], "no such file lies beside it"),
    ],
)
def test_a_recorded_batch_needs_a_run_that_kept_one_and_a_script(
    tmp_path: Path, arguments: list[str], told: str
) -> None:
    start = (
        '{"mpdoctor_run":1,"series":0,"step":0,"initial_scale":32768,"scale":32768,"model":"m","optimizer":["SGD"]}\n'
    )
    event = '{"event":"stuck","since":1,"text":"","series":0,"step":0,"kept":"%s"}\n'
    (tmp_path / "train.py").write_text("def build():\n    return None\n", encoding="utf-8")
    (tmp_path / "run.mpdoctor").write_text(start, encoding="utf-8")
    (tmp_path / "gone.mpdoctor").write_text(start + event % "run.batch.npz", encoding="utf-8")
    (tmp_path / "outside.mpdoctor").write_text(start + event % "../train.py", encoding="utf-8")
    done = run("check", *arguments, cwd=tmp_path)
    assert done.returncode == 2 and told in " ".join(done.stderr.split())

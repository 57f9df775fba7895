"""Where reports are written: standard output and files, and the exit status where one cannot be written."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import samples
from test_cli import INSTALLED, WRONG, run

from mpdoctor.cli import main
from mpdoctor.cli.output import SUFFIXES, Output, OutputFormat, put_out

FILE = {form: f"out{suffix}" for suffix, form in SUFFIXES.items()}


@pytest.fixture
def script(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(WRONG)
    return tmp_path


def check(script: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return run("check", "--static", "train.py", *arguments, cwd=script)


def quick(*arguments: str) -> int:
    """In this process: the exit status."""
    with pytest.raises(SystemExit) as end:
        main(["check", "--static", "train.py", *arguments])
    return int(str(end.value.code))


@pytest.mark.parametrize("form", OutputFormat)
def test_exit_codes_hold_in_every_format(script: Path, monkeypatch: pytest.MonkeyPatch, form: OutputFormat) -> None:
    monkeypatch.chdir(script)
    chosen = ("--output-format", form.value)
    assert [
        quick(*chosen),
        quick(*chosen, "--fail-on", "error"),
        quick(*chosen, "--exit-zero"),
        quick(*chosen, "--ignore", "MP101"),
    ] == [1, 1, 0, 0]


@pytest.mark.parametrize("form", FILE)
def test_a_file_holds_what_standard_output_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], form: OutputFormat
) -> None:
    path = tmp_path / FILE[form]
    diagnosis = samples.collapsing()
    assert put_out(diagnosis, Output(form, ((path, form),))) == diagnosis.exit_code
    shown = capsys.readouterr()
    assert (shown.out, shown.err) == (path.read_text(encoding="utf-8"), "")
    assert shown.out


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("ticket.docx", "its suffix chooses the format, and must be one of "),
        ("ticket", "its suffix chooses the format, and must be one of "),
        ("nowhere/ticket.json", "there is no directory nowhere."),
        ("folder.json", "that is a directory."),
    ],
)
def test_a_report_that_cannot_be_is_told_before_anything_is_examined(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str, message: str
) -> None:
    (script / "folder.json").mkdir()
    monkeypatch.chdir(script)
    assert quick("--report", name) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err.startswith(f"mpdoctor: --report {name}: {message}")
    assert len(told.err.splitlines()) == 1
    if "suffix" in message:
        assert all(suffix in told.err for suffix in SUFFIXES)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_full_disk_costs_one_report_and_no_other(script: Path) -> None:
    (script / "full.json").symlink_to("/dev/full")
    done = check(script, "--report", "full.json", "--report", "good.json")
    assert done.returncode == 2
    assert done.stderr == "mpdoctor: --report full.json could not be written: No space left on device.\n"
    assert "MP101" in done.stdout
    assert json.loads((script / "good.json").read_text())["findings"]


def test_a_read_only_file_is_told_in_one_line(script: Path) -> None:
    kept = script / "kept.json"
    kept.write_text("mine")
    kept.chmod(0o444)
    name = "kept.json"
    if os.access(kept, os.W_OK):  # root may write it: a file system that nobody may write to
        name = next((f"{place}/kept.json" for place in ("/proc/self", "/sys") if Path(place).is_dir()), "")
        if not name:
            pytest.skip("everything can be written here")
    done = check(script, "--report", name)
    assert done.returncode == 2
    assert done.stderr.startswith(f"mpdoctor: --report {name}") and len(done.stderr.splitlines()) == 1
    assert kept.read_text() == "mine"


def test_a_reporter_that_breaks_ends_with_3_and_costs_no_other(script: Path) -> None:
    program = (
        "import mpdoctor.cli, mpdoctor.reporters.json as broken\n"
        "def render(*_, **__): raise ZeroDivisionError('broken on purpose')\n"
        "broken.render = render\n"
        "mpdoctor.cli.main(['check', '--static', 'train.py', '--report', 'a.json', '--report', 'a.txt'])\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(INSTALLED)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=script, env=environment)
    assert done.returncode == 3
    assert "the json reporter broke" in done.stderr and "broken on purpose" in done.stderr
    assert "MP101" in done.stdout and "MP101" in (script / "a.txt").read_text()
    assert not (script / "a.json").exists()


def test_a_name_that_starts_with_two_dots_is_no_parent(
    script: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(script)
    folder = script / "..folder"
    folder.mkdir()
    (script / "train.py").rename(folder / "..x.py")
    (folder / "pyproject.toml").write_text("[tool.mpdoctor]\nignore = ['MP9999']\n")
    chosen = ["check", "--static", "--output-format", "concise"]
    (script / "none.toml").write_text("[tool.mpdoctor]\n")
    for arguments, shown in (
        (["--config", "none.toml"], "..folder/..x.py:"),
        ([], "mpdoctor: ..folder/pyproject.toml:2"),
    ):
        with pytest.raises(SystemExit):
            main([*chosen, f"{folder}/..x.py", *arguments])
        told = capsys.readouterr()
        assert (told.out + told.err).startswith(shown)

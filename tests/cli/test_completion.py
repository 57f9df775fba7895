"""Shell completion: the scripts that a shell gets, and what they offer in a real one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPTS = Path(sys.executable).parent
ENVIRONMENT = {
    **{name: value for name, value in os.environ.items() if not name.startswith(("_TYPER", "COMP_"))},
    "PATH": f"{SCRIPTS}{os.pathsep}{os.environ['PATH']}",
}
SHELLS = ("bash", "zsh", "fish")
HALVES = {f"MP50{digit}" for digit in range(1, 10)}

pytestmark = pytest.mark.skipif(not (SCRIPTS / "mpdoctor").exists(), reason="mpdoctor is not installed as a command")


def printed(*command: str, **environment: str) -> str:
    done = subprocess.run(command, env={**ENVIRONMENT, **environment}, capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def in_shell(shell: str, command: str) -> str:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"there is no {shell} here")
    return printed(program, "-c", command)


def offered(words: str, shell: str) -> str:
    """What mpdoctor answers to a shell."""
    asked = {"COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))} if shell == "bash" else {}
    asked = asked or {"_TYPER_COMPLETE_ARGS": words, "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return printed("mpdoctor", _MPDOCTOR_COMPLETE=f"complete_{shell}", **asked)


@pytest.mark.parametrize("shell", SHELLS)
def test_the_script_is_one_that_the_shell_can_read(shell: str, tmp_path: Path) -> None:
    script = tmp_path / "completion"
    script.write_text(printed("mpdoctor", _MPDOCTOR_COMPLETE=f"source_{shell}"))
    assert f"_MPDOCTOR_COMPLETE=complete_{shell}" in script.read_text()
    in_shell(shell, f"{shell} -n {script}")


@pytest.mark.parametrize("shell", SHELLS)
def test_the_flag_prints_the_same_script(shell: str) -> None:
    asked = printed("mpdoctor", _MPDOCTOR_COMPLETE=f"source_{shell}")
    shown = in_shell(shell, "mpdoctor --show-completion; true")  # with one command alone a shell leaves the stage
    assert shown.split() == asked.split()


@pytest.mark.parametrize("shell", SHELLS)
def test_rules_and_formats_are_offered(shell: str) -> None:
    told = offered("mpdoctor explain MP50", shell)
    assert all(code in told for code in HALVES) and "MP101" not in told
    assert "MP302,mask-constant-overflows" in offered("mpdoctor check --select MP302,mask", shell)
    formats = offered("mpdoctor check --output-format g", shell)
    assert "github" in formats and "gitlab" in formats and "json" not in formats


def test_bash_offers_them() -> None:
    ask = (
        'eval "$(_MPDOCTOR_COMPLETE=source_bash mpdoctor)"; COMP_WORDS=(mpdoctor explain MP50); COMP_CWORD=2;'
        ' _mpdoctor_completion mpdoctor; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    assert set(in_shell("bash", ask).split()) == HALVES


def test_fish_offers_them_and_files_where_a_target_belongs(tmp_path: Path) -> None:
    (tmp_path / "train_twice.py").touch()
    load = "_MPDOCTOR_COMPLETE=source_fish mpdoctor | source"
    told = in_shell("fish", f'{load}; complete -C "mpdoctor explain MP50"; complete -C "mpdoctor check {tmp_path}/tr"')
    lines = told.splitlines()
    assert {line.split("\t")[0] for line in lines[:-1]} == HALVES
    assert lines[-1].endswith("/train_twice.py")


def test_no_command_waits_for_it() -> None:
    """What completion needs is loaded when a shell asks."""
    program = (
        "import sys, mpdoctor.cli\n"
        "try: mpdoctor.cli.main(['--version'])\n"
        "except SystemExit: print([n for n in sys.modules if n.startswith(('mpdoctor.rules', 'rich'))])\n"
    )
    assert printed(sys.executable, "-c", program).splitlines()[1:] == ["[]"]

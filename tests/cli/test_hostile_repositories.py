"""`--since` in a repository of strangers: its `.git/config` names commands, and git is to run none of them."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from mpdoctor.cli.app import app_for
from mpdoctor.cli.argument_split import invocation_from_arguments
from mpdoctor.cli.options.interpreter import interpreter_from_option
from mpdoctor.project.programs import program_on_path

OLD = "import keras\n\nopt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())\nopt.epsilon = 1e-4\n"
NEW = f"{OLD}opt.beta_1 = 0.8\n"


def git(*arguments: str) -> str:
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    return subprocess.run(["git", *author, *arguments], check=True, capture_output=True, text=True).stdout


@pytest.fixture
def marker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """What a command would leave. The working directory is a repository with one changed file."""
    repository = tmp_path / "repository"
    repository.mkdir()
    monkeypatch.chdir(repository)
    Path("a.py").write_text(OLD, encoding="utf-8")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    Path("a.py").write_text(NEW, encoding="utf-8")
    return tmp_path / "marker"


def filters(marker: Path) -> None:
    for place in ("attributes", "info/attributes"):
        Path(".git", place).write_text("* filter=odd diff=odd\n", encoding="utf-8")
    git("config", "core.attributesFile", str(Path(".git/attributes").resolve()))
    for kind in ("clean", "smudge", "process"):
        git("config", f"filter.odd.{kind}", f"touch {marker}; cat")
    git("config", "diff.odd.textconv", f"touch {marker}; cat")
    git("config", "diff.odd.command", f"touch {marker}")
    git("config", "diff.external", f"touch {marker}")


def commands(marker: Path) -> None:
    for name in ("core.fsmonitor", "core.pager", "core.sshCommand", "core.editor", "core.askPass", "alias.diff"):
        git("config", name, f"touch {marker}")
    hooks = marker.with_name("hooks")
    hooks.mkdir()
    git("config", "core.hooksPath", str(hooks))


def settings_of_diffs(marker: Path) -> None:
    """With these `git diff` fails, or shows more lines than have changed."""
    git("config", "diff.orderFile", "/nowhere/at/all")
    git("config", "diff.context", "no number")
    git("config", "diff.interHunkContext", "1000")


def told(*arguments: str) -> tuple[int, str, str]:
    words = ["check", "--keras", "3", "--no-cache", "--output-format", "concise", *arguments]
    run = CliRunner().invoke(app_for(()), words, obj=invocation_from_arguments(words))
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        raise run.exception
    return run.exit_code, run.stdout, run.stderr


@pytest.mark.parametrize("change", [filters, commands, settings_of_diffs])
def test_the_settings_of_a_repository_run_nothing_and_hide_nothing(
    marker: Path, change: Callable[[Path], None]
) -> None:
    change(marker)
    code, out, err = told("--since", "HEAD", "a.py")
    assert (code, err) == (1, "")
    assert out.startswith("a.py:5:") and out.count("\n") == 1
    assert not marker.exists()


def test_in_a_hook_the_repository_is_told_by_the_environment(marker: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    filters(marker)
    monkeypatch.setenv("GIT_DIR", str(Path(".git").resolve()))
    monkeypatch.setenv("GIT_INDEX_FILE", str(Path(".git/index").resolve()))
    assert told("--since", "HEAD", "a.py")[:1] == (1,)
    assert not marker.exists()


@pytest.mark.parametrize("url", ["../other", "ext::touch {marker}", "ssh://nowhere.example/x", "http://127.0.0.1:9/x"])
def test_what_a_partial_clone_lacks_is_not_fetched(marker: Path, url: str) -> None:
    blob = git("rev-parse", "HEAD:a.py").strip()
    Path(".git/objects", blob[:2], blob[2:]).unlink()
    git("config", "core.repositoryformatversion", "1")
    git("config", "extensions.partialClone", "origin")
    git("config", "remote.origin.promisor", "true")
    git("config", "remote.origin.url", url.format(marker=marker))
    git("config", "remote.origin.uploadpack", f"touch {marker};")
    git("config", "core.sshCommand", f"touch {marker};")
    git("config", "protocol.allow", "always")
    code, out, err = told("--since", "HEAD", "a.py")
    assert (code, out) == (2, "")
    assert "does not hold what a.py said then" in err and err.count("\n") == 1
    assert not marker.exists()


def test_a_file_that_was_a_folder_is_new(marker: Path) -> None:
    Path("b.py").mkdir()
    Path("b.py/inside").write_text("x", encoding="utf-8")
    git("add", ".")
    git("commit", "-m", "second")
    Path("b.py/inside").unlink()
    Path("b.py").rmdir()
    Path("b.py").write_text(OLD, encoding="utf-8")
    code, out, _ = told("--since", "HEAD", "b.py")
    assert code == 1 and out.startswith("b.py:4:")


def test_a_commit_that_reads_like_an_option_is_none(marker: Path) -> None:
    for ref in ("--output=../marker", "-O../marker", "--exec-path", "HEAD:a.py", "", "--"):
        code, out, err = told(f"--since={ref}", "a.py")
        assert (code, out) == (2, "") and "git knows no commit" in err, (ref, err)
    assert not marker.exists()


@pytest.mark.skipif(os.name == "nt", reason="a script is no program there")
@pytest.mark.parametrize("folder", ["", "."])
def test_no_program_of_the_checkout_is_taken_for_git_or_python(
    folder: str, marker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("git", "python3"):
        Path(name).write_text(f"#!/bin/sh\ntouch {marker}\n", encoding="utf-8")
        Path(name).chmod(0o755)
    monkeypatch.setenv("PATH", folder + os.pathsep + os.environ["PATH"])
    code, out, _ = told("--since", "HEAD", "a.py")
    assert code == 1 and out.startswith("a.py:5:")
    assert program_on_path("python3") != Path("python3").absolute()
    assert interpreter_from_option(Path("python3")) == program_on_path("python3")
    assert program_on_path("no-such-program") is None
    assert not marker.exists()

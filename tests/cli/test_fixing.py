"""`--fix`, `--diff` and their like: what is written, what is kept byte for byte, what is said, and how it ends."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import samples
from typer.testing import CliRunner

import mpdoctor.fixes.rounds
from mpdoctor.cli.app import app_for
from mpdoctor.cli.argument_split import invocation_from_arguments
from mpdoctor.cli.streams import CI
from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit, Finding, Fix
from mpdoctor.fixes.notebooks import cell_texts, edited_notebook
from mpdoctor.fixes.texts import chosen_together, decoded, edited
from mpdoctor.fixes.writing import Changed, write_over
from mpdoctor.reporters.privacy import Surroundings, without_private
from mpdoctor.reporters.rendering import patch_to_show

WRAPPED = """\
import keras

opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())  # größer: µ
opt.epsilon = 1e-4  # as the paper has it
"""
FIXED = WRAPPED.replace("opt.epsilon", "opt.inner_optimizer.epsilon")
HEAD = """\
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.compile("adam", "mse")
"""
BOTH = HEAD + "opt = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())\nopt.epsilon = 1e-4\n"


class Done:
    """How a run ended, and what it printed."""

    def __init__(self, code: int, out: str, err: str) -> None:
        self.code, self.out, self.err = code, out, err


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def check(*arguments: str, given: str | bytes | None = None) -> Done:
    words = ["check", "--keras", "3", "--no-cache", *arguments]
    run = CliRunner().invoke(app_for(()), words, input=given, obj=invocation_from_arguments(words))
    if run.exception is not None and not isinstance(run.exception, SystemExit):
        raise run.exception
    return Done(run.exit_code, run.stdout_bytes.decode(), run.stderr)


def report(*arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(check(*arguments, "--output-format", "json").out)
    return told


# --- texts ----------------------------------------------------------------------------------------------------------
def edit(start: tuple[int, int], end: tuple[int, int], text: str, cell: int = 0) -> Edit:
    return Edit(Location("x.py", *start, *end, cell), text)


@pytest.mark.parametrize(
    ("text", "edits", "after"),
    [
        ("a\nb\n", [edit((2, 1), (2, 2), "c")], "a\nc\n"),
        ("a\r\nb\r\n", [edit((1, 2), (1, 2), "\nx")], "a\r\nx\r\nb\r\n"),
        ("a\rb\r", [edit((2, 2), (2, 2), "\nx")], "a\rb\rx\r"),
        ("a\nb\nc", [edit((2, 1), (3, 1), "")], "a\nc"),
        ("a", [edit((1, 2), (1, 2), "\nx")], "a\nx"),
        ("f(a)", [edit((1, 3), (1, 3), "g("), edit((1, 4), (1, 4), ")")], "f(g(a))"),
        ("ä.b\n", [edit((1, 3), (1, 4), "c")], "ä.c\n"),
        ("a\x0cb\n\u2028c\n", [edit((2, 2), (2, 3), "d")], "a\x0cb\n\u2028d\n"),
    ],
)
def test_edits_of_a_text(text: str, edits: list[Edit], after: str) -> None:
    assert edited(text, edits) == after


def test_of_fixes_that_touch_the_first_is_made_and_shared_edits_are_made_once() -> None:
    line = edit((1, 1), (1, 1), "import tensorflow as tf\n")
    first, second = [line, edit((2, 1), (2, 4), "x")], [line, edit((3, 1), (3, 4), "y")]
    third = [edit((2, 3), (2, 9), "z")]
    assert chosen_together([first, second, third]) == [first, second]
    assert chosen_together([[edit((1, 1), (1, 1), "a")], [edit((1, 1), (1, 1), "b")]]) == [[edit((1, 1), (1, 1), "a")]]


@pytest.mark.parametrize(
    "data",
    [
        WRAPPED.encode(),
        WRAPPED.encode("utf-8-sig"),
        WRAPPED.replace("\n", "\r\n").encode(),
        ("# -*- coding: latin-1 -*-\n" + WRAPPED).encode("latin-1"),
        WRAPPED.rstrip("\n").encode(),
    ],
    ids=["utf-8", "byte-order mark", "CRLF", "latin-1", "no last line end"],
)
def test_all_but_the_edit_is_kept_byte_for_byte(here: Path, data: bytes) -> None:
    Path("a.py").write_bytes(data)
    done = check("--fix", "a.py")
    assert done.code == 0, done.out
    assert Path("a.py").read_bytes() == data.replace(b"opt.epsilon", b"opt.inner_optimizer.epsilon")
    assert "1 finding was fixed in 1 file." in done.err


def test_what_cannot_be_encoded_again_as_it_was_is_not_decoded() -> None:
    assert decoded(b"# coding: utf-7\nx = '+AGE-'\n") is None


# --- notebooks ------------------------------------------------------------------------------------------------------
def notebook(*cells: str, as_list: bool = True, indent: int | None = 1) -> str:
    told = [
        {"cell_type": "markdown", "metadata": {}, "source": ["# µ\n"]},
        *(
            {
                "cell_type": "code",
                "execution_count": None,
                "metadata": {"a": 1.50},
                "outputs": [],
                "source": cell.splitlines(keepends=True) if as_list else cell,
            }
            for cell in cells
        ),
    ]
    return json.dumps({"cells": told, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}, indent=indent) + "\n"


@pytest.mark.parametrize("as_list", [True, False], ids=["lines", "one text"])
@pytest.mark.parametrize("indent", [1, 4, None])
def test_of_a_notebook_only_the_lines_that_change_change(here: Path, as_list: bool, indent: int | None) -> None:
    first, second = WRAPPED.split("\n\n")
    magic = "%matplotlib inline\n" + first
    before = notebook(magic, second, as_list=as_list, indent=indent)
    Path("a.ipynb").write_text(before, encoding="utf-8")
    done = check("--fix", "a.ipynb")
    assert done.code == 0, done.out
    after = Path("a.ipynb").read_text(encoding="utf-8")
    assert after == before.replace("opt.epsilon", "opt.inner_optimizer.epsilon")


def test_lines_can_be_added_to_a_cell_and_taken_away() -> None:
    text = notebook("a\nb\nc")
    assert cell_texts(edited_notebook(text, [edit((2, 1), (2, 1), "x\n", 2)])) == ["# µ\n", "a\nx\nb\nc"]
    assert cell_texts(edited_notebook(text, [edit((2, 1), (3, 1), "", 2)])) == ["# µ\n", "a\nc"]
    assert cell_texts(edited_notebook(text, [edit((3, 1), (3, 2), "", 2)])) == ["# µ\n", "a\nb\n"]
    with pytest.raises(ValueError, match="no cell 9"):
        edited_notebook(text, [edit((1, 1), (1, 1), "x", 9)])


def test_a_notebook_is_diffed_cell_by_cell(here: Path) -> None:
    Path("a.ipynb").write_text(notebook("import keras", WRAPPED), encoding="utf-8")
    done = check("--diff", "a.ipynb")
    assert done.code == 1
    assert "--- a/a.ipynb:cell 3" in done.out and "+opt.inner_optimizer.epsilon = 1e-4" in done.out


# --- files ----------------------------------------------------------------------------------------------------------
def test_mode_and_links_stay(here: Path) -> None:
    Path("real.py").write_text(WRAPPED, encoding="utf-8")
    Path("real.py").chmod(0o754)
    Path("link.py").symlink_to("real.py")
    assert check("--fix", "link.py").code == 0
    assert Path("link.py").is_symlink() and Path("real.py").read_text(encoding="utf-8") == FIXED
    assert stat.S_IMODE(Path("real.py").stat().st_mode) == 0o754
    assert sorted(path.name for path in here.iterdir()) == ["link.py", "real.py"]


def test_a_second_name_of_the_file_is_one_still(here: Path) -> None:
    Path("one.py").write_text(WRAPPED, encoding="utf-8")
    os.link("one.py", "two.py")
    assert check("--fix", "one.py").code == 0
    assert Path("two.py").read_text(encoding="utf-8") == FIXED


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="no extended attributes on this system")
def test_extended_attributes_stay(here: Path) -> None:
    file = here / "attributed.py"
    file.write_bytes(b"a")
    try:
        os.setxattr(file, "user.kept", b"1")
    except OSError:
        pytest.skip("no extended attributes on this disk")
    write_over(file, b"a", b"b")
    assert (file.read_bytes(), os.getxattr(file, "user.kept")) == (b"b", b"1")


@pytest.mark.skipif(not hasattr(os, "getgroups"), reason="no groups on this system")
def test_the_group_stays(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = here / "shared.py"
    file.write_bytes(b"a")
    others = [1234] if os.getuid() == 0 else [group for group in os.getgroups() if group != file.stat().st_gid]
    if not others:
        pytest.skip("this user belongs to one group only")
    os.chown(file, -1, others[0])
    file.chmod(0o2764)
    mode = file.stat().st_mode
    write_over(file, b"a", b"b")
    assert (file.read_bytes(), file.stat().st_gid, file.stat().st_mode) == (b"b", others[0], mode)

    def refuse(*given: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "chown", refuse)  # a group that this user does not belong to
    number = file.stat().st_ino
    write_over(file, b"b", b"c")
    assert (file.read_bytes(), file.stat().st_gid, file.stat().st_ino) == (b"c", others[0], number)
    assert [path.name for path in here.iterdir() if path.name.startswith(".shared")] == []


def test_a_file_that_holds_it_already_was_not_changed_by_somebody_else(tmp_path: Path) -> None:
    file = tmp_path / "a.py"
    file.write_bytes(b"new")
    write_over(file, b"old", b"new")
    assert file.read_bytes() == b"new"


def test_what_was_changed_meanwhile_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "a.py"
    path.write_bytes(b"new")
    with pytest.raises(Changed):
        write_over(path, b"old", b"fixed")
    assert path.read_bytes() == b"new"


def test_a_file_that_changes_while_it_is_examined_is_left_alone(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = Path("a.py")
    path.write_text(WRAPPED, encoding="utf-8")
    diagnose: Callable[..., Any] = mpdoctor.fixes.rounds.diagnose_with_sources

    def diagnose_and_change(*given: Any) -> Any:
        found = diagnose(*given)
        path.write_text(f"# somebody's\n{WRAPPED}", encoding="utf-8")
        return found

    monkeypatch.setattr(mpdoctor.fixes.rounds, "diagnose_with_sources", diagnose_and_change)
    done = check("--fix", "a.py")
    assert done.code == 1
    assert "a.py was not written: it was changed by somebody else meanwhile." in done.err
    assert path.read_text(encoding="utf-8") == f"# somebody's\n{WRAPPED}"


@pytest.mark.parametrize("flags", [(), ("--diff",)])
@pytest.mark.parametrize("turns", [2, 3])
def test_edits_that_undo_each_other_keep_no_other_from_being_made(
    here: Path, monkeypatch: pytest.MonkeyPatch, turns: int, flags: tuple[str, ...]
) -> None:
    """The edit of MP201 changes a number as in a circle; it lasts one round more than that of MP301 beside it."""
    Path("a.py").write_text(f"{BOTH}x = 0\n", encoding="utf-8")
    line = BOTH.count("\n") + 1
    known: Callable[..., Any] = mpdoctor.fixes.rounds.fixes_of

    def fixes_of(unsafe: bool) -> Any:
        edits_of = known(True)

        def turning(diagnosis: Any, sources: Any) -> Any:
            number = int(sources["a.py"].text.split("x = ")[1])
            turn = Edit(Location("a.py", line, 5, line, 6), str((number + 1) % turns))
            edits = edits_of(diagnosis, sources)
            return {n: (turn,) if diagnosis.findings[n].code == "MP201" else edits[n] for n in edits}

        return turning

    monkeypatch.setattr(mpdoctor.fixes.rounds, "fixes_of", fixes_of)
    done = check("--fix", "a.py", *flags)
    assert "the edits of MP201 in a.py undo each other, and were not made." in done.err
    assert f"1 finding {'would be' if flags else 'was'} fixed in 1 file." in done.err
    after = BOTH.replace("opt.epsilon", "opt.inner_optimizer.epsilon") + "x = 0\n"
    assert Path("a.py").read_text(encoding="utf-8") == (f"{BOTH}x = 0\n" if flags else after)


@pytest.mark.skipif(os.name != "posix" or os.getuid() == 0, reason="who may write everywhere is refused nothing")
def test_a_file_that_cannot_be_written_is_told(here: Path) -> None:
    Path("a.py").write_text(WRAPPED, encoding="utf-8")
    Path("a.py").chmod(0o444)
    done = check("--fix", "a.py")
    assert done.code == 2 and "a.py could not be written" in done.err


# --- the options ----------------------------------------------------------------------------------------------------
def test_safe_fixes_are_made_and_what_remains_is_told(here: Path) -> None:
    Path("a.py").write_text(BOTH, encoding="utf-8")
    done = check("--fix", "a.py", "--output-format", "concise")
    assert done.code == 1
    assert [line.split(": ")[1][:5] for line in done.out.splitlines()] == ["MP201"]
    assert check("--fix", "--unsafe-fixes", "a.py").code == 0
    assert 'Dense(1, dtype="float32")' in Path("a.py").read_text(encoding="utf-8")
    again = check("--fix", "--unsafe-fixes", "a.py")
    assert again.code == 0 and "nothing was fixed." in again.err


def test_a_diff_writes_nothing_and_git_takes_it(here: Path) -> None:
    Path("src").mkdir()
    Path("src/a.py").write_text(BOTH.replace("\n", "\r\n"), encoding="utf-8", newline="")
    Path("src/b.py").write_text(WRAPPED.rstrip("\n"), encoding="utf-8")
    before = Path("src/a.py").read_bytes()
    done = check("--diff", "--unsafe-fixes", "src")
    assert done.code == 1 and Path("src/a.py").read_bytes() == before
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=done.out.encode(), check=True)
    assert check("--diff", "--unsafe-fixes", "src").code == 0
    assert b"\r\nopt.inner_optimizer.epsilon = 1e-4\r\n" in Path("src/a.py").read_bytes()


def test_a_diff_commands_no_terminal_and_no_ci(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For git it is as it is."""
    for name in CI:
        monkeypatch.delenv(name, raising=False)
    line = "# \x1b]0;t\x07\u202e##vso[task.x]\tx\r"
    Path("a.py").write_text(f'{WRAPPED}{line}\n"""\n::error::y\n"""\n', encoding="utf-8", newline="")
    diff = check("--diff", "a.py").out
    assert f" {line}\n" in diff and " ::error::y\n" in diff
    monkeypatch.setenv("CI", "true")
    shown = check("--diff", "a.py").out
    assert shown == patch_to_show(diff) != diff
    assert " # \\x1b]0;t\\x07\\u202e#\\#vso[task.x]\tx\r\n" in shown and " \\::error::y\n" in shown


@pytest.mark.skipif(os.name == "nt", reason="no such names there")
def test_the_name_of_a_file_adds_no_lines_to_a_diff(here: Path) -> None:
    name = 'a\n--- a-b.py\n+++ b-b.py\n"\\x\t.py'
    Path(name).write_text(WRAPPED, encoding="utf-8")
    diff = check("--diff", ".").out
    assert len([line for line in diff.splitlines() if line.startswith(("---", "+++"))]) == 2
    subprocess.run(["git", "apply", "--unsafe-paths", "-"], input=diff.encode(), check=True)
    assert Path(name).read_text(encoding="utf-8") == FIXED


def test_a_diff_with_nothing_to_change_ends_with_0_whatever_is_found(here: Path) -> None:
    Path("a.py").write_text(HEAD, encoding="utf-8")
    done = check("--diff", "a.py")
    assert (done.code, done.out) == (0, "") and "nothing would be fixed." in done.err


def test_standard_input_is_fixed_onto_standard_output(here: Path) -> None:
    done = check("--fix", "-", given=BOTH)
    assert done.out == BOTH.replace("opt.epsilon", "opt.inner_optimizer.epsilon")
    assert done.code == 1 and "MP201" in done.err
    assert check("--diff", "-", "--stdin-filename", "x.py", given=WRAPPED).out.startswith("--- a/x.py\n+++ b/x.py\n")
    assert check("--fix", "-", given="x = 1\n").out == "x = 1\n"


def test_a_program_is_fixed_with_what_it_imports(here: Path) -> None:
    Path("train.py").write_text("import model\n\nmodel.opt.beta_1 = 0.8\n", encoding="utf-8")
    Path("model.py").write_text(WRAPPED, encoding="utf-8")
    assert check("--fix", "train.py").code == 0
    assert Path("model.py").read_text(encoding="utf-8") == FIXED


def test_what_a_program_imports_from_outside_of_its_project_is_not_written(here: Path) -> None:
    """Python finds the module above a script only where somebody adds that folder to its path."""
    Path("downloaded").mkdir()
    Path("downloaded/train.py").write_text("import model\n\nmodel.opt.beta_1 = 0.8\n", encoding="utf-8")
    Path("model.py").write_text(WRAPPED, encoding="utf-8")
    done = check("--fix", "downloaded/train.py")
    assert done.code == 1 and "model.py was not written: it lies outside of the project" in done.err
    assert Path("model.py").read_text(encoding="utf-8") == WRAPPED
    for marks in ("pyproject.toml", "model.py"):  # a project around both, and a file that is named
        Path("model.py").write_text(WRAPPED, encoding="utf-8")
        Path("pyproject.toml").unlink(missing_ok=True)
        if marks == "pyproject.toml":
            Path(marks).touch()
        named = ["model.py"] if marks == "model.py" else []
        assert check("--fix", "downloaded/train.py", *named).code == 0
        assert Path("model.py").read_text(encoding="utf-8") == FIXED


def test_a_diff_tells_what_could_not_be_read(here: Path) -> None:
    Path("broken.py").write_text("def f(:\n", encoding="utf-8")
    done = check("--diff", "broken.py")
    assert done.code == 2 and "broken.py could not be read: " in done.err and "invalid syntax" in done.err


@pytest.mark.parametrize(
    ("name", "held", "advice"),
    [
        ("a.py", BOTH, "--write-baseline baseline.json a.py"),
        ("package.json", '{"name": "mine", "findings": []}', "Give the baseline another name"),
        ("known.json", "<<<<<<< HEAD\n", "remove the file"),
    ],
)
def test_a_baseline_takes_no_other_files_place(here: Path, name: str, held: str, advice: str) -> None:
    """Seen with `check --write-baseline train.py`: who forgot to name the baseline lost the program."""
    Path("b.py").write_text(BOTH, encoding="utf-8")
    Path(name).write_text(held, encoding="utf-8")
    done = check("--write-baseline", name)
    assert done.code == 2 and f"{name}: that is a file and no baseline" in done.err and advice in done.err
    assert Path(name).read_text(encoding="utf-8") == held
    Path(name).write_text("", encoding="utf-8")
    assert check("--write-baseline", name).code == 0
    assert check("--write-baseline", name).code == 0


def test_a_baseline_knows_findings_though_they_move_and_tells_which_are_gone(here: Path) -> None:
    Path("a.py").write_text(BOTH, encoding="utf-8")
    done = check("--write-baseline", "known.json", "a.py")
    assert done.code == 0 and "known.json contains 2 findings." in done.err
    Path("a.py").write_text(f"import os\n\n{BOTH}", encoding="utf-8")
    again = check("--baseline", "known.json", "a.py")
    assert again.code == 0 and "gone" not in again.err
    Path("a.py").write_text(f"{BOTH}opt.beta_1 = 0.8\n", encoding="utf-8")
    told = report("--baseline", "known.json", "a.py")
    assert [(f["code"], f["line"]) for f in told["findings"]] == [("MP302", 8)]
    assert told["summary"]["suppressed"] == 2 and told["summary"]["exit_code"] == 1
    Path("a.py").write_text(HEAD, encoding="utf-8")
    assert "1 finding of known.json is gone: MP302 in a.py." in check("--baseline", "known.json", "a.py").err
    long = Path("known.json").read_text(encoding="utf-8").replace('"a.py"', f'"{"a" * 5000}"')
    Path("long.json").write_text(long, encoding="utf-8")
    assert "1 finding of long.json is gone: MP302 in aaa" in check("--baseline", "long.json", "a.py").err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("no", "it is no JSON"),
        ("[]", "it is no baseline"),
        ('{"schema_version": 7, "findings": []}', "schema version 7"),
        ('{"schema_version": 1, "findings": [{}]}', "no fingerprint"),
    ],
)
def test_what_is_no_baseline_is_refused(here: Path, text: str, why: str) -> None:
    Path("a.py").write_text(WRAPPED, encoding="utf-8")
    Path("known.json").write_text(text, encoding="utf-8")
    done = check("--baseline", "known.json", "a.py")
    assert done.code == 2 and why in done.err
    assert check("--baseline", "missing.json", "a.py").code == 2


def git(*arguments: str) -> None:
    author = ("-c", "user.name=x", "-c", "user.email=x@example.org", "-c", "init.defaultBranch=main")
    subprocess.run(["git", *author, *arguments], check=True, capture_output=True)


def test_since_a_commit_only_lines_that_changed_are_told(here: Path) -> None:
    Path("a.py").write_text(BOTH, encoding="utf-8")
    Path("a.ipynb").write_text(notebook("import keras", BOTH), encoding="utf-8")
    git("init")
    git("add", ".")
    git("commit", "-m", "first")
    assert check("--since", "HEAD", ".").code == 0
    Path("a.py").write_text(f"import os\n{BOTH}opt.beta_1 = 0.8\n", encoding="utf-8")
    Path("a.ipynb").write_text(notebook("import keras", f"{BOTH}opt.beta_1 = 0.8\n"), encoding="utf-8")
    Path("new.py").write_text(WRAPPED, encoding="utf-8")
    told = report("--since", "HEAD", ".")
    places = [(f["path"], f["cell"], f["line"], f["code"]) for f in told["findings"]]
    assert places == [("a.ipynb", 3, 8, "MP302"), ("a.py", None, 9, "MP302"), ("new.py", None, 4, "MP302")]
    assert check("--fix", "--since", "HEAD", ".").code == 0
    assert Path("a.py").read_text(encoding="utf-8").count("inner_optimizer") == 1
    done = check("--since", "nowhere", ".")
    assert done.code == 2 and "git knows no commit 'nowhere'" in done.err


def test_outside_of_a_repository_there_is_nothing_to_compare_with(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(here.parent))
    Path("a.py").write_text(WRAPPED, encoding="utf-8")
    done = check("--since", "HEAD", "a.py")
    assert done.code == 2 and "this is no git repository" in done.err


def test_ignore_comments_answer_all_that_is_found(here: Path) -> None:
    text = (
        BOTH.replace("Dense(8), keras", "Dense(8),  # wide\n    keras") + "opt.lr = 1  # mpdoctor: ignore[MP501] hm\n"
    )
    Path("a.py").write_text(text, encoding="utf-8")
    done = check("--add-ignores", "a.py")
    assert done.code in (0, 1), done.err
    after = Path("a.py").read_text(encoding="utf-8")
    assert "opt.epsilon = 1e-4  # mpdoctor: ignore[MP302] to be looked at: attribute-shadowed-by-wrapper\n" in after
    assert "keras.layers.Dense(1)])  # mpdoctor: ignore[MP201] to be looked at: half-precision-output\n" in after
    assert "# mpdoctor: ignore[MP501, MP302" in after
    assert {line for line in text.splitlines() if "opt." not in line and "Dense(1)" not in line} <= {
        *after.splitlines()
    }


@pytest.mark.parametrize(
    "options",
    [
        ("--add-ignores", "--fix"),
        ("--write-baseline", "x.json", "--fix"),
        ("--diff", "--report", "x.json"),
        ("--diff", "--output-format", "json"),
    ],
)
def test_what_does_not_fit_together_is_a_usage_error(here: Path, options: tuple[str, ...]) -> None:
    Path("a.py").write_text(WRAPPED, encoding="utf-8")
    assert check(*options, "a.py").code == 2
    assert Path("a.py").read_text(encoding="utf-8") == WRAPPED


# --- reports --------------------------------------------------------------------------------------------------------
def test_the_reports_carry_the_edits(here: Path) -> None:
    Path("a.py").write_text(WRAPPED, encoding="utf-8")
    (finding,) = report("--static", "a.py")["findings"]
    assert finding["fix"] == {
        "title": "Set it on the inner optimizer",
        "safe": True,
        "edits": [
            {
                "path": "a.py",
                "cell": None,
                "start": {"line": 4, "column": 5},
                "end": {"line": 4, "column": 12},
                "text": "inner_optimizer.epsilon",
            }
        ],
    }
    (result,) = json.loads(check("--static", "a.py", "--output-format", "sarif").out)["runs"][0]["results"]
    (change,) = result["fixes"][0]["artifactChanges"]
    assert change["replacements"][0]["insertedContent"] == {"text": "inner_optimizer.epsilon"}
    assert change["replacements"][0]["deletedRegion"] == {
        "startLine": 4,
        "startColumn": 5,
        "endLine": 4,
        "endColumn": 12,
    }
    page = check("--static", "a.py", "--output-format", "html").out
    assert "opt.inner_optimizer.epsilon = 1e-4  # as the paper has it" in page
    told = check("--static", "a.py", "--statistics").out
    assert "fix: Set it on the inner optimizer" in told and "  fixable with --fix\n" in told
    assert told.rstrip().endswith("1 fixable with --fix")


def test_a_saved_diagnosis_keeps_its_edits(here: Path) -> None:
    Path("a.py").write_text(WRAPPED, encoding="utf-8")
    saved = report("--static", "a.py")
    Path("saved.json").write_text(json.dumps(saved), encoding="utf-8")
    shown = CliRunner().invoke(app_for(()), ["show", "saved.json", "--output-format", "json"])
    assert json.loads(shown.stdout)["findings"][0]["fix"] == saved["findings"][0]["fix"]


def test_edits_come_out_of_the_cache_as_they_went_in(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "cache"))
    monkeypatch.setenv("XDG_DATA_HOME", str(here / "data"))
    Path("src").mkdir()
    Path("src/a.py").write_text(BOTH, encoding="utf-8")
    runs = [
        subprocess.run(
            [sys.executable, "-m", "mpdoctor", "check", "--output-format", "json", "src"],
            capture_output=True,
            check=False,
        )
        for _ in range(2)
    ]
    first, second = (json.loads(run.stdout)["findings"] for run in runs)
    assert first == second and all(finding["fix"] for finding in first)


def test_rules_and_explain_say_which_rules_have_a_fix() -> None:
    told = json.loads(CliRunner().invoke(app_for(()), ["rules", "--output-format", "json"]).stdout)
    fixes = {rule["code"]: rule["fixes"] for rule in told}
    assert (fixes["MP301"], fixes["MP201"], fixes["MP206"], fixes["MP902"]) == (
        ["safe"],
        ["unsafe"],
        ["safe", "unsafe"],
        [],
    )
    assert "· safe fix*" in CliRunner().invoke(app_for(()), ["explain", "MP301"]).stdout
    assert "safe or unsafe fix" in CliRunner().invoke(app_for(()), ["rules"]).stdout
    assert "fix" not in CliRunner().invoke(app_for(()), ["explain", "MP902"]).stdout.splitlines()[2]


def test_an_edit_that_holds_a_secret_is_not_shared() -> None:
    secret = Edit(Location("a.py", 1, 1, 1, 1), 'password="hunter2-hunter2"')
    plain = Edit(Location("a.py", 1, 1, 1, 1), "tf.cast(")
    place = Location("a.py", 1, 1, 1, 2)
    findings = [Finding("m", "h", place, code="MP302", fix=Fix("t", True, (edit,))) for edit in (secret, plain)]
    shared = without_private(samples.diagnosis(*findings), Surroundings())
    assert [finding.fix is None for finding in shared.findings] == [True, False]

"""Patterns of .gitignore and `exclude`: what Git itself makes of them, however long they are."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
from fuzzing import at_most
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from mpdoctor.project.files import PathPatterns, files_below
from mpdoctor.project.gitignore_patterns import pattern_from_line


def fits(line: str, path: str) -> bool:
    pattern = pattern_from_line(line)
    is_directory = path.endswith("/")
    return pattern is not None and pattern.matches(path.rstrip("/").split("/"), is_directory)


@pytest.mark.parametrize(
    ("line", "path", "expected"),
    [
        ("a.py", "a.py", True),
        ("a.py", "b/a.py", True),
        ("a.py", "a.pyc", False),
        ("/a.py", "b/a.py", False),
        ("b/a.py", "b/a.py", True),
        ("b/a.py", "c/b/a.py", False),
        ("*.py[cod]", "b/a.pyo", True),
        ("*.py[!cod]", "b/a.pyo", False),
        ("*.py[cod]", "b/a.py", False),
        ("build/", "build/", True),
        ("build/", "build", False),
        ("**/old/**/x", "a/old/b/c/x", True),
        ("**/old/**/x", "old/x", True),
        ("**\\/x", "x", False),
        ("**\\/x", "a/x", True),
        ("/**\\/x", "a/b/x", True),
        ("**\\/**/", "a/", False),
        ("**\\/**/", "a/b/", True),
        ("a/**", "a/", False),
        ("a/**", "a/b/c", True),
        ("[z-a]", "b", False),
        ("[z-a]", "z-a", False),
        ("[!z-a]", "b", True),
        ("[z-ab]", "b", True),
        ("[]a]", "]", True),
        ("[a-]", "-", True),
        ("[\\]]", "]", True),
        ("[[:digit:]x]", "5", True),
        ("[[:klingon:]]", "5", False),
        ("[a", "[a", False),
        ("\\[a", "[a", True),
        ("a\\", "a", False),
        ("a\\ ", "a ", True),
        ("a  ", "a", True),
        ("\\#a", "#a", True),
        ("#a", "#a", False),
        ("\\!a", "!a", True),
        ("?", "é", True),
        ("", "a", False),
        ("/", "a/", False),
        ("//", "a/", False),
    ],
)
def test_a_line_fits_a_path(line: str, path: str, expected: bool) -> None:
    assert fits(line, path) is expected


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("*a" * 100 + "b", "a" * 255),
        ("*a?" * 80 + "b", "a" * 255),
        ("**/a/" * 200 + "b", "a/" * 2000 + "c"),
        ("*[ab]" * 5000, "a" * 255),
        ("*" * 100_000 + "b", "a" * 255),
        ("**/" * 100_000 + "b", "a/" * 2000 + "c"),
    ],
    ids=["stars", "stars-and-signs", "directories", "long", "only-stars", "only-directories"],
)
def test_no_pattern_takes_for_ever(line: str, path: str) -> None:
    with at_most(5):
        assert not fits(line, path)


def test_a_hostile_gitignore_stops_no_walk(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    (tmp_path / ".gitignore").write_text("*a" * 60 + "b\n[z-a]\n[\n\\\nleft_out.py\n")
    for name in ("a" * 200 + ".py", "left_out.py", "z.py"):
        (tmp_path / name).touch()
    exclude = PathPatterns(tmp_path, ("*a" * 60 + "b", "[z-a]"))
    with at_most(5):
        assert [path.name for path in files_below(tmp_path, [exclude]).files] == ["a" * 200 + ".py", "z.py"]


@pytest.mark.parametrize(
    ("patterns", "path", "expected"),
    [
        (("tests/**",), "tests/deep/a.py", True),
        (("tests",), "tests/deep/a.py", True),
        (("tests/",), "src/tests/deep/a.py", True),
        (("/tests/",), "src/tests/deep/a.py", False),
        (("tests/*", "!tests/keep.py"), "tests/keep.py", False),
        (("tests", "!tests/keep.py"), "tests/keep.py", True),  # Git looks into no directory that is left out
    ],
)
def test_what_lies_in_a_directory_that_is_taken_is_taken(
    tmp_path: Path, patterns: tuple[str, ...], path: str, expected: bool
) -> None:
    assert PathPatterns(tmp_path, patterns).match(tmp_path / path) is expected


# --- as Git itself ----------------------------------------------------------------------------------------------------
# no é: to Git it is two signs
NAMES = ("a", "b", "ab", "aab", "a b", "[a]", "]", "#a", "!a", "a-b", "-", "A", "a\\b", "1")
FOLDERS = ("", "a/", "b/", "a/b/", "a/a/b/", "ab/a/", "a b/")
SIGNS = [*"ab*?/[]!-^\\ #A1", "**", "[a-b]", "[!a]", "[[:upper:]]", "/**/"]
# Git 2.39 compares what stands before the first wildcard by itself, and takes `**/` behind it for one that a pattern
# begins with: `a**/b` leaves out `ab`, against its manual.
PREFIXED = re.compile(r"/?[^*?\[\\]*[^*?\[\\/]\*\*+/")
LINES = st.lists(st.lists(st.sampled_from(SIGNS), min_size=1, max_size=7).map("".join), min_size=1, max_size=4)


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    subprocess.run(["git", "init", "-q", root], check=True)
    for folder in FOLDERS:
        for name in NAMES:
            path = root / folder / (name + ".py")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    return root


def listed_by_git(root: Path) -> set[str]:
    git = ["git", "-c", "core.excludesFile=", "-C", str(root)]
    done = subprocess.run([*git, "ls-files", "-oz", "--exclude-standard"], capture_output=True, check=True)
    return {name for name in done.stdout.decode().split("\0") if name.endswith(".py")}


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
@settings(max_examples=60)
@given(lines=LINES, ending=st.sampled_from(["", ".py", "*"]))
def test_a_walk_sees_what_git_sees(tree: Path, lines: list[str], ending: str) -> None:
    assume(not any(PREFIXED.match(line) for line in lines))
    (tree / ".gitignore").write_text("".join(line + ending + "\n" for line in lines))
    walked = {path.relative_to(tree).as_posix() for path in files_below(tree).files}
    assert walked == listed_by_git(tree)

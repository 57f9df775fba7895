"""Questions to git that are answered from the repository's own objects: nothing that a repository's settings name is
run, and nothing is fetched.

A folder that came as an archive brings its `.git/config` along. Seen to run commands from there with git 2.39: a clean
filter in `git diff --no-index`, and `uploadpack` where an object is missing in a partial clone, which git fetches then.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from mpdoctor.project.programs import program_on_path

PATIENCE = 60  # seconds
_HUNK = re.compile(r"^@@ -\S+ \+(?P<first>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)
# Newer gits know the first; the second, which allows no protocol to fetch by, holds in all.
_NO_FETCHING = {"GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": ""}
# What names a repository wherever git is started, as in a hook.
_REPOSITORY = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")


class NoAnswer(Exception):
    """Git has none. The text says why."""


def answer(arguments: Sequence[str], otherwise: str) -> str:
    """What git prints in the working directory. Raises NoAnswer, with `otherwise` where git ends with an error."""
    done = _git(arguments)
    if done.returncode:
        raise NoAnswer(otherwise)
    return done.stdout.decode(errors="surrogateescape")


def content_at(commit: str, path: str) -> bytes | None:
    """The bytes of a file at this commit, by its path from the top of the repository; None where the commit has no such
    file.

    Raises NoAnswer where the commit has the file but this clone does not hold its contents."""
    place = f"{commit}:{path}"
    done = _git(["cat-file", "blob", place])
    if not done.returncode:
        return done.stdout
    named = _git(["rev-parse", "--verify", "--quiet", "--end-of-options", place])
    if named.returncode or _git(["cat-file", "-t", place]).stdout.strip() == b"tree":
        return None
    raise NoAnswer(
        f"this clone does not hold what {path} said then, and mpdoctor fetches nothing. "
        f"This does: git cat-file blob {place}"
    )


def changed_lines(old: Sequence[str], new: Sequence[str]) -> frozenset[int]:
    """The numbers of the new lines that the old ones do not have. Raises NoAnswer."""
    with tempfile.TemporaryDirectory() as directory:
        for name, lines in (("before", old), ("after", new)):
            text = "".join(f"{line}\n" for line in lines)
            Path(directory, name).write_bytes(text.encode(errors="surrogatepass"))
        options = ["diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--text", "-U0"]
        done = _git([*options, "--inter-hunk-context=0", "--", "before", "after"], outside=directory)
    if done.returncode not in (0, 1):
        raise NoAnswer(f"git cannot compare: {done.stderr.decode(errors='replace').strip()}")
    changed: set[int] = set()
    for hunk in _HUNK.finditer(done.stdout.decode(errors="replace")):
        first, count = int(hunk["first"]), int(hunk["count"] or 1)
        changed.update(range(first, first + count))
    return frozenset(changed)


def _git(arguments: Sequence[str], outside: str | None = None) -> subprocess.CompletedProcess[bytes]:
    """`outside`: a directory to start in, which belongs to no repository."""
    surroundings = {**os.environ, **_NO_FETCHING}
    if outside is not None:
        surroundings = {name: value for name, value in surroundings.items() if name not in _REPOSITORY}
        surroundings["GIT_CEILING_DIRECTORIES"] = os.path.dirname(os.path.realpath(outside))  # noqa: PTH120
    program = program_on_path("git")
    if program is None:
        raise NoAnswer("git is not there")
    try:
        return subprocess.run(
            [str(program), "-c", "core.fsmonitor=false", *arguments],
            cwd=outside,
            env=surroundings,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoAnswer("git does not answer") from error

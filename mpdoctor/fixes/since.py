"""Lines that have changed since a commit, as git tells them; also of a text that is not saved, and of cells."""

from __future__ import annotations

import re
import subprocess
import tempfile
from pathlib import Path

from mpdoctor.facts.location import lines_of
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.fixes.choices import Sources, with_findings
from mpdoctor.program.source_facts import Problem, SourceFacts
from mpdoctor.settings.options import Settings
from mpdoctor.source.notebooks import SUFFIX, source_from_notebook
from mpdoctor.source.reading import text_from_bytes

PATIENCE = 60  # seconds
_HUNK = re.compile(r"^@@ -\S+ \+(?P<first>\d+)(?:,(?P<count>\d+))? @@", re.MULTILINE)


class NoSuchCommit(Exception):
    """There is nothing to compare with. The text says why."""


class Since:
    """A commit of the repository that the working directory belongs to."""

    def __init__(self, ref: str) -> None:
        """Raises NoSuchCommit."""
        self._root = Path(_said(["rev-parse", "--show-toplevel"], "this is no git repository").strip())
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
        self._commit = _said(asked, f"git knows no commit {ref!r}").strip()
        self._changed: dict[tuple[str, str], frozenset[int]] = {}

    def left_of(self, diagnosis: Diagnosis, sources: Sources, settings: Settings) -> Diagnosis:
        """The diagnosis with what stands on lines that have changed since."""
        kept = [finding for finding in diagnosis.findings if self._is_new(finding, sources)]
        return with_findings(diagnosis, kept, settings)

    def _is_new(self, finding: Finding, sources: Sources) -> bool:
        place = finding.location
        source = sources.get(place.path) if place is not None else None
        if place is None or source is None:
            return False
        first = dict(source.cells).get(place.cell, 1) - 1
        lines = range(place.line + first, max(place.line, place.end_line) + first + 1)
        return not self._changed_lines(source).isdisjoint(lines)

    def _changed_lines(self, source: SourceFacts) -> frozenset[int]:
        key = source.path, source.text
        if key not in self._changed:
            old = self._old_text(source.path)
            everything = frozenset(range(1, len(source.lines) + 1))
            self._changed[key] = everything if old is None else _changed(lines_of(old), source.lines)
        return self._changed[key]

    def _old_text(self, path: str) -> str | None:
        """What the file said then; None where it was not there, or could not be read."""
        try:
            inside = Path(path).resolve().relative_to(self._root.resolve())
        except ValueError:
            return None
        done = _git(["cat-file", "blob", f"{self._commit}:{inside.as_posix()}"])
        if done.returncode:
            return None
        if path.endswith(SUFFIX):
            notebook = source_from_notebook(done.stdout, path)
            return None if isinstance(notebook, Problem) else notebook.text
        text = text_from_bytes(done.stdout, path)
        return None if isinstance(text, Problem) else text


def _changed(old: list[str], new: list[str]) -> frozenset[int]:
    """The numbers of the new lines."""
    with tempfile.TemporaryDirectory() as directory:
        before, after = Path(directory, "before"), Path(directory, "after")
        for place, lines in ((before, old), (after, new)):
            place.write_bytes("".join(f"{line}\n" for line in lines).encode(errors="surrogatepass"))
        told = ["diff", "--no-index", "--no-color", "--no-ext-diff", "--no-textconv", "--text", "-U0"]
        done = _git([*told, "--", str(before), str(after)])
    found: set[int] = set()
    for hunk in _HUNK.finditer(done.stdout.decode(errors="replace")):
        first, count = int(hunk["first"]), int(hunk["count"] or 1)
        found.update(range(first, first + count))
    return frozenset(found)


def _said(arguments: list[str], otherwise: str) -> str:
    done = _git(arguments)
    if done.returncode:
        raise NoSuchCommit(otherwise)
    return done.stdout.decode(errors="surrogateescape")


def _git(arguments: list[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-c", "core.fsmonitor=false", *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise NoSuchCommit("git is not there, or does not answer") from error

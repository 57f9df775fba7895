"""Lines that have changed since a commit, as git tells them; also of a text that is not saved, and of cells."""

from __future__ import annotations

from pathlib import Path

from mpdoctor.facts.location import lines_of
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.fixes.choices import Sources, with_findings
from mpdoctor.fixes.git import answer, changed_lines, content_at
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.settings.options import Settings
from mpdoctor.source.notebooks import SUFFIX, source_from_notebook
from mpdoctor.source.reading import text_from_bytes


class Since:
    """A commit of the repository that the working directory belongs to."""

    def __init__(self, ref: str) -> None:
        """Raises NoAnswer, as asking it does."""
        self._root = Path(answer(["rev-parse", "--show-toplevel"], "this is no git repository").strip())
        asked = ["rev-parse", "--verify", "--quiet", "--end-of-options", f"{ref}^{{commit}}"]
        self._commit = answer(asked, f"git knows no commit {ref!r}").strip()
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
            self._changed[key] = everything if old is None else changed_lines(lines_of(old), source.lines)
        return self._changed[key]

    def _old_text(self, path: str) -> str | None:
        """What the file said then; None where it was not there, or was no text."""
        try:
            inside = Path(path).resolve().relative_to(self._root.resolve())
        except ValueError:
            return None
        content = content_at(self._commit, inside.as_posix())
        if content is None:
            return None
        if path.endswith(SUFFIX):
            notebook = source_from_notebook(content, path)
            return None if isinstance(notebook, Problem) else notebook.text
        text = text_from_bytes(content, path)
        return None if isinstance(text, Problem) else text

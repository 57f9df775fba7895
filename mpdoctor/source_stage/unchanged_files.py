"""Results of earlier runs for files that have not changed since: looked up in the cache, and kept there."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.finding import Finding
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.source.import_graph import Outlines
from mpdoctor.source.reading import text_from_bytes
from mpdoctor.source_stage.file_texts import FileTexts
from mpdoctor.source_stage.judged_files import Judged
from mpdoctor.source_stage.worker import Task

if TYPE_CHECKING:
    from mpdoctor.source.prefilter import Glance, Look
    from mpdoctor.source_stage.cache import Cache, Entry

SUFFIX = ".py"  # of a notebook the cells are joined anew each time


def look_from_cache(cache: Cache | None, texts: FileTexts) -> Look:
    """Looks at texts that the cache has not seen."""
    from mpdoctor.source.prefilter import glance_from_text  # one program is not looked at beforehand

    def look(path: Path, text: bytes, digest: bytes, package: str) -> Glance:
        seen = cache.find_glance(path, digest, package) if cache is not None else None
        if seen is None:
            seen = glance_from_text(text, package)
            if cache is not None and not texts.is_passing(path):
                cache.keep_glance(path, digest, package, seen)
        return seen

    return look


class IncrementalResults:
    def __init__(
        self,
        cache: Cache | None,
        outlines: Outlines,
        shown: Mapping[Path, str],
        texts: FileTexts,
    ) -> None:
        self._cache = cache if outlines.whole else None
        self._outlines, self._shown, self._texts = outlines, shown, texts
        self._entries: dict[Path, Entry] = {}

    @cached_property
    def new(self) -> frozenset[Path]:
        """The files that have changed since, or were never looked at."""
        return frozenset(
            path for path in self._outlines if not (self._find(path, walked=True) or self._find(path, walked=False))
        )

    def recall(self, path: Path, walked: bool) -> tuple[SourceFacts, bool] | None:
        """A file's facts, and whether they show mixed precision; None where it is to be looked at."""
        entry = self._find(path, walked)
        if entry is None:
            return None
        self._entries[path] = entry
        text = "" if entry.facts.unreadable else text_from_bytes(self._texts.of(path), entry.facts.path)
        assert isinstance(text, str), "it was read before"
        return dataclasses.replace(entry.facts, text=text), entry.is_mixed

    def keep(self, path: Path, facts: SourceFacts, is_mixed: bool, walked: bool) -> None:
        digest = self._digest(path, walked)
        if self._cache is not None and digest is not None and not facts.breakdowns:
            self._entries[path] = self._cache.keep(path, digest, facts, is_mixed, walked)

    def findings(self, task: Task) -> Judged | None:
        """The findings of an earlier run; None where the rules have to look."""
        entry = self._entries.get(task.path)
        findings = None if entry is None else entry.findings.get(task.digest)
        return None if findings is None else list(findings)

    def keep_findings(self, task: Task, judged_file: Judged) -> None:
        entry = self._entries.get(task.path)
        findings = [judged for judged in judged_file if isinstance(judged, Finding)]
        if self._cache is not None and entry is not None and len(findings) == len(judged_file):
            self._cache.keep_findings(entry, task.digest, findings)

    def save(self) -> None:
        if self._cache is not None:
            self._cache.save()

    def _find(self, path: Path, walked: bool) -> Entry | None:
        digest = self._digest(path, walked)
        if self._cache is None or digest is None:
            return None
        entry = self._cache.find(path, self._shown.get(path, ""), digest, walked)
        return entry if entry is not None and reads_the_same_settings(entry.facts) else None

    def _digest(self, path: Path, walked: bool) -> bytes | None:
        """A digest of everything that the result for a file depends on; None where results of the file are not kept."""
        if self._texts.is_passing(path) or path not in self._outlines or path.suffix != SUFFIX:
            return None
        return self._outlines.digests[path] if walked else self._outlines[path].digest


def reads_the_same_settings(facts: SourceFacts) -> bool:
    """Whether the files of settings that the program reads are as they were when it was walked."""
    if not facts.settings_read:
        return True
    from mpdoctor.source.plain_settings import settings_digest  # of which few programs read any

    return all(settings_digest(Path(path)) == digest for path, digest in facts.settings_read)

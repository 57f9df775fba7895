"""Baselines: a file of known findings, which a check leaves out; entries that no longer occur are reported."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict
from typing import Any

from mpdoctor import __version__
from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.fixes.choices import Sources, with_findings
from mpdoctor.settings.options import Settings

SCHEMA_VERSION = 1
PARTS = {"schema_version", "mpdoctor", "findings"}


class NoBaseline(Exception):
    """The file is no baseline. The text says why."""


@dataclass(frozen=True)
class Entry:
    """A finding that is known. The fingerprint alone decides; code, path and line are for who reads the file."""

    fingerprint: str
    code: str
    path: str | None
    line: int | None


class Baseline:
    """`gone`: the entries of the files that were examined last which nothing was found of any more."""

    def __init__(self, entries: Iterable[Entry]) -> None:
        self._entries = {entry.fingerprint: entry for entry in entries}
        self.gone: tuple[Entry, ...] = ()

    def __len__(self) -> int:
        return len(self._entries)

    def left_of(self, diagnosis: Diagnosis, sources: Sources, settings: Settings) -> Diagnosis:
        """The diagnosis without what is known."""
        seen = {finding.fingerprint for finding in diagnosis.findings}
        self.gone = tuple(
            entry
            for entry in self._entries.values()
            if entry.fingerprint not in seen and (entry.path in sources or not _exists(entry.path))
        )
        kept = [finding for finding in diagnosis.findings if finding.fingerprint not in self._entries]
        return with_findings(diagnosis, kept, settings)


def baseline_from_findings(findings: Iterable[Finding]) -> Baseline:
    return Baseline(
        Entry(
            finding.fingerprint,
            finding.code,
            finding.location.path if finding.location else None,
            finding.location.line if finding.location else None,
        )
        for finding in findings
        if not finding.what_if
    )


def json_from_baseline(baseline: Baseline) -> str:
    """The baseline as JSON, sorted by path and code and not by line, so that small changes of a program make small
    differences."""
    entries = sorted(baseline._entries.values(), key=lambda entry: (entry.path or "", entry.code, entry.fingerprint))
    content = {
        "schema_version": SCHEMA_VERSION,
        "mpdoctor": __version__,
        "findings": [asdict(entry) for entry in entries],
    }
    return json.dumps(content, indent=2) + "\n"


def is_baseline(text: bytes) -> bool:
    """Whether this is the JSON of a baseline, of any version."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        return False
    return isinstance(content, Mapping) and set(content) == PARTS


def baseline_from_json(text: str | bytes) -> Baseline:
    """The baseline that this JSON holds. Raises NoBaseline."""
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise NoBaseline("it is no JSON") from error
    if not isinstance(content, Mapping) or not isinstance(content.get("findings"), list):
        raise NoBaseline("it is no baseline: write one with --write-baseline")
    if content.get("schema_version") != SCHEMA_VERSION:
        raise NoBaseline(
            f"it has schema version {content.get('schema_version')!r}, and this mpdoctor reads {SCHEMA_VERSION}"
        )
    return Baseline(map(_entry, content["findings"]))


def _entry(row: Any) -> Entry:
    fingerprint = row.get("fingerprint") if isinstance(row, Mapping) else None
    if not isinstance(fingerprint, str):
        raise NoBaseline("one of its findings has no fingerprint")
    code, path, line = row.get("code"), row.get("path"), row.get("line")
    return Entry(
        fingerprint,
        code if isinstance(code, str) else "",
        path if isinstance(path, str) else None,
        line if isinstance(line, int) else None,
    )


def _exists(path: str | None) -> bool:
    return path is None or os.path.exists(path)  # noqa: PTH110 - Path's raises for a name that is too long

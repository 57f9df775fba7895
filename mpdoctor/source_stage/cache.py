"""On-disk cache of the source stage's results. An entry holds while the file and all that it imports are unchanged, a
glance while the file is.

The cache is one file for each working directory, in the user's own cache directory. Of the user's text it holds what
findings quote, and the names that its import statements name. It is signed with a key that lies elsewhere, among the
user's data: what this user's mpdoctor has not written itself is never looked at, and the run is one without a cache.
"""

from __future__ import annotations

import dataclasses
import json
import os
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import AlsoSeen, Edit, Finding, Fix, Severity
from mpdoctor.program.saved_file import SavedFile
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.project.json_rows import Row, Rows
from mpdoctor.project.signed_files import Key, signed_bytes, write_signed
from mpdoctor.project.users_cache import made_by, name_from_texts, remove_oldest, users_cache_place
from mpdoctor.source.prefilter import Glance

MOST_ASKED = 8  # of one file: by several Kerases, with several choices of rules
SUFFIX = ".kept"  # of one working directory
ROWS = Rows(AlsoSeen, Edit, Finding, Fix, Keras, Location, Problem, SavedFile, Severity, SourceFacts)  # as JSON


@dataclass
class Entry:
    """What is known of one file.

    digest
        Of all that it hangs on: see `Outlines.digests`; of the file's text alone where it was not walked.
    facts
        Without text and events.
    is_mixed
        Whether it shows mixed precision.
    findings
        By the digest of what was asked.
    """

    digest: bytes
    facts: SourceFacts
    is_mixed: bool
    was_walked: bool
    findings: dict[bytes, list[Finding]] = field(default_factory=dict)


def users_cache() -> Cache | None:
    """The cache in the user's cache directory, with the key in the data directory; None for a user without a home."""
    place = users_cache_place()
    return None if place is None else Cache(*place)


class Cache:
    """Reads when it is made, writes when told to `save`. A cache that can't be read is empty, and one that can't be
    written is not: the next run takes longer, and says the same."""

    def __init__(self, directory: Path, key: Path) -> None:
        """`key`: the file that holds it, outside of the directory."""
        self._file = directory / f"{name_from_texts(str(Path.cwd()))}{SUFFIX}"
        self._key = Key(key)
        self._made_by = made_by()
        self._entries: dict[str, Entry] = {}
        secret = self._key.find()
        kept = signed_bytes(self._file, secret, self._made_by) if secret is not None else None
        self._rows: dict[str, Row]
        self._glances: dict[str, Row]
        self._imported: list[str]  # the files that others import, as shown; a row has their places in this list
        self._rows, self._glances, self._imported = json.loads(kept) if kept is not None else ({}, {}, [])
        self._is_changed = kept is None

    def find(self, path: Path, shown_as: str, digest: bytes, walked: bool) -> Entry | None:
        entry = self._entry_of(str(path), digest)
        if entry is None or (entry.digest, entry.was_walked, entry.facts.path) != (digest, walked, shown_as):
            return None
        return entry

    def keep(self, path: Path, digest: bytes, facts: SourceFacts, is_mixed: bool, was_walked: bool) -> Entry:
        """What is kept of these facts: all but their text."""
        entry = self._entries[str(path)] = Entry(digest, dataclasses.replace(facts, text=""), is_mixed, was_walked)
        self._is_changed = True
        return entry

    def keep_findings(self, entry: Entry, asked: bytes, findings: list[Finding]) -> None:
        while len(entry.findings) >= MOST_ASKED:
            del entry.findings[next(iter(entry.findings))]
        entry.findings[asked] = findings
        self._is_changed = True

    def find_glance(self, path: Path, digest: bytes, package: str) -> Glance | None:
        row = self._glances.get(str(path))
        if row is None or row[:2] != [digest.hex(), package]:
            return None
        _, _, may_speak, names_framework, may_compute, imported = row
        return Glance(may_speak, names_framework, may_compute, tuple(imported))

    def keep_glance(self, path: Path, digest: bytes, package: str, seen: Glance) -> None:
        signs = seen.may_speak, seen.names_framework, seen.may_compute
        self._glances[str(path)] = [digest.hex(), package, *signs, seen.imported]
        self._is_changed = True

    def save(self) -> None:
        if not self._is_changed:
            return
        try:
            key = self._key.find_or_make()
            if key is not None:
                write_signed(
                    self._file, key, self._made_by, json.dumps(self._what_to_save(), separators=(",", ":")).encode()
                )
                remove_oldest(self._file.parent, SUFFIX)
        except OSError:
            return

    def _what_to_save(self) -> tuple[dict[str, Row], dict[str, Row], list[str]]:
        """What is known of the files that still exist, and of imported files that these import."""
        numbers = {path: number for number, path in enumerate(self._imported)}
        entries = self._entries.items()
        rows = self._rows | {path: row for path, entry in entries if (row := _row_from_entry(entry, numbers))}
        there = {path for path in rows.keys() | self._glances.keys() if os.path.exists(path)}  # noqa: PTH110 - never raises
        rows = {path: row for path, row in rows.items() if path in there}
        used = set(chain.from_iterable(row[-1] for row in rows.values()))
        new_numbers = {number: new for new, number in enumerate(sorted(used))}
        return (
            {path: [*row[:-1], [new_numbers[number] for number in row[-1]]] for path, row in rows.items()},
            {path: row for path, row in self._glances.items() if path in there},
            [path for path, number in numbers.items() if number in used],
        )

    def _entry_of(self, path: str, digest: bytes) -> Entry | None:
        """Made of its row when it is first asked for, if it is still about that text."""
        if path not in self._entries and path in self._rows and self._rows[path][0] == digest.hex():
            self._entries[path] = _entry_from_row(self._rows[path], self._imported)
        return self._entries.get(path)


def _row_from_entry(entry: Entry, numbers: dict[str, int]) -> Row:
    """The entry as a row of the file; None for one that could not be read back. `numbers`: of imported files; new ones
    are added."""
    try:
        _, facts = ROWS.from_value(dataclasses.replace(entry.facts, imports=()))
        findings = {asked.hex(): ROWS.from_value(said) for asked, said in entry.findings.items()}
    except TypeError:
        return None
    imports = [numbers.setdefault(path, len(numbers)) for path in entry.facts.imports]
    return [entry.digest.hex(), entry.was_walked, entry.is_mixed, facts, findings, imports]


def _entry_from_row(row: Row, imported: list[str]) -> Entry:
    digest, was_walked, is_mixed, facts, findings, imports = row
    by_question = {bytes.fromhex(asked): ROWS.value(said) for asked, said in findings.items()}
    of_file = SourceFacts(**ROWS.value(facts), imports=tuple(map(imported.__getitem__, imports)))
    return Entry(bytes.fromhex(digest), of_file, is_mixed, was_walked, by_question)

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
import re
import stat
import sys
import time
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import chain
from operator import itemgetter
from pathlib import Path

from mpdoctor import __version__
from mpdoctor.finding import Finding
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.source.prefilter import Glance
from mpdoctor.source_stage.cache_values import Row, row_from_value, value_from_row
from mpdoctor.source_stage.signed_files import Key, signed_bytes, write_signed

MOST_ASKED = 8  # of one file: by several Kerases, with several choices of rules
MOST_FILES = 50  # working directories that are remembered
LONGEST_WRITING = 24 * 3600.0  # seconds: a new file that is older was left by a run that was killed
SUFFIX = ".kept"
# What mpdoctor itself has named, earlier releases included, and may remove.
_KEPT = r"[0-9a-f]{32}\.kept"
_LEFT_BEHIND = r"[0-9a-f]{32}\.(?:[0-9a-f]{16}\.new|pickle|[0-9]{1,10})"


@dataclass
class Entry:
    """What is known of one file.

    digest
        Of everything that the result depends on: see `Outlines.digests`; of the file's text alone where it was not
        walked.
    facts
        Without text and events.
    is_mixed
        Whether it shows mixed precision.
    findings
        By the digest of the task.
    """

    digest: bytes
    facts: SourceFacts
    is_mixed: bool
    was_walked: bool
    findings: dict[bytes, list[Finding]] = field(default_factory=dict)


def users_cache() -> Cache | None:
    """The cache in the user's cache directory, with the key in the data directory; None for a user without a home."""
    from platformdirs import user_cache_path, user_data_path

    try:
        place, data = user_cache_path("mpdoctor", appauthor=False), user_data_path("mpdoctor", appauthor=False)
    except RuntimeError:  # platformdirs 4.14; of 4.0 it is a "~" in the working directory
        return None
    if not (place.is_absolute() and data.is_absolute()) or _holds(place, data):
        return None
    return Cache(place, data / "cache.key")


class Cache:
    """Reads when it is made, writes when told to `save`. A cache that can't be read is empty, and one that can't be
    written is not: the next run takes longer, and says the same."""

    def __init__(self, directory: Path, key: Path) -> None:
        """`key`: the file that holds it, outside of the directory."""
        self._file = directory / f"{_digest(str(Path.cwd()))}{SUFFIX}"
        self._key = Key(key)
        self._made_by = _made_by()
        self._entries: dict[str, Entry] = {}
        found = self._key.find()
        kept = signed_bytes(self._file, found, self._made_by) if found is not None else None
        self._rows: dict[str, Row]
        self._glances: dict[str, Row]
        self._imported: list[str]  # the files that others import, as shown; a row has their places in this list
        self._rows, self._glances, self._imported = json.loads(kept) if kept is not None else ({}, {}, [])
        self._is_changed = kept is None

    def find(self, path: Path, shown_as: str, digest: bytes, walked: bool) -> Entry | None:
        entry = self._entry(str(path), digest)
        if entry is None or (entry.digest, entry.was_walked, entry.facts.path) != (digest, walked, shown_as):
            return None
        return entry

    def keep(self, path: Path, digest: bytes, facts: SourceFacts, is_mixed: bool, was_walked: bool) -> Entry:
        """What is kept of these facts: all but their text."""
        entry = self._entries[str(path)] = Entry(digest, dataclasses.replace(facts, text=""), is_mixed, was_walked)
        self._is_changed = True
        return entry

    def keep_findings(self, entry: Entry, asked: bytes, found: list[Finding]) -> None:
        while len(entry.findings) >= MOST_ASKED:
            del entry.findings[next(iter(entry.findings))]
        entry.findings[asked] = found
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
                write_signed(self._file, key, self._made_by, json.dumps(self._kept(), separators=(",", ":")).encode())
                _tidy_up(self._file.parent)
        except OSError:
            return

    def _kept(self) -> tuple[dict[str, Row], dict[str, Row], list[str]]:
        """What is known of the files that are still there; of the imported files those that these import."""
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

    def _entry(self, path: str, digest: bytes) -> Entry | None:
        """Made of its row when it is first asked for, if it is still about that text."""
        if path not in self._entries and path in self._rows and self._rows[path][0] == digest.hex():
            self._entries[path] = _entry_from_row(self._rows[path], self._imported)
        return self._entries.get(path)


def _row_from_entry(entry: Entry, numbers: dict[str, int]) -> Row:
    """The entry as a row of the file; None for one that could not be read back. `numbers`: of imported files; new ones
    are added."""
    try:
        _, facts = row_from_value(dataclasses.replace(entry.facts, imports=()))
        findings = {asked.hex(): row_from_value(found) for asked, found in entry.findings.items()}
    except TypeError:
        return None
    imports = [numbers.setdefault(path, len(numbers)) for path in entry.facts.imports]
    return [entry.digest.hex(), entry.was_walked, entry.is_mixed, facts, findings, imports]


def _entry_from_row(row: Row, imported: list[str]) -> Entry:
    digest, was_walked, is_mixed, facts, findings, imports = row
    found = {bytes.fromhex(asked): value_from_row(said) for asked, said in findings.items()}
    of_file = SourceFacts(**value_from_row(facts), imports=tuple(map(imported.__getitem__, imports)))
    return Entry(bytes.fromhex(digest), of_file, is_mixed, was_walked, found)


def _made_by() -> str:
    """A text that names this mpdoctor, file by file, and this Python: findings depend on both."""
    folders, files = [str(Path(__file__).parents[1])], []
    for folder in folders:  # which grows; without Path.rglob, which takes three times as long in each run
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.name.endswith(".py"):
                files.append((entry.path, entry.stat()))
    versions = (f"{status.st_size} {status.st_mtime_ns}" for _, status in sorted(files, key=itemgetter(0)))
    return _digest(__version__, sys.version, *versions)


def _tidy_up(directory: Path) -> None:
    """Forget the working directories that were not looked at for longest, and what killed runs have left."""
    files = [(entry.name, Path(entry.path), entry.stat(follow_symlinks=False)) for entry in os.scandir(directory)]
    regular = [(name, path, status.st_mtime) for name, path, status in files if stat.S_ISREG(status.st_mode)]
    kept = sorted((at, path) for name, path, at in regular if re.fullmatch(_KEPT, name))
    old = [path for _, path in kept[:-MOST_FILES]]
    before = time.time() - LONGEST_WRITING
    old += [path for name, path, at in regular if re.fullmatch(_LEFT_BEHIND, name) and at < before]
    for path in old:
        path.unlink(missing_ok=True)


def _holds(directory: Path, place: Path) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(directory))


def _digest(*parts: str) -> str:
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part.encode(errors="surrogatepass") + b"\0")
    return found.hexdigest()

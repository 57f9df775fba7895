"""What the source stage said of a file, kept from one run to the next: for a file whose text, and all that it imports,
stayed the same, it holds again.

The cache is one file for each working directory, in the user's own cache directory. Of the user's text it holds what
findings quote. It is read as data: of a pickle only the classes that are listed here are made, and no function is
called.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

from mpdoctor import __version__
from mpdoctor.facts.location import Location
from mpdoctor.facts.source import Problem, SourceFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import AlsoSeen, Finding, Severity

_KEPT = (AlsoSeen, Finding, Keras, Location, Problem, Severity, SourceFacts)
_MADE = {(one.__module__, one.__name__): one for one in _KEPT}
MOST_ASKED = 8  # of one file: by several Kerases, with several choices of rules
MOST_FILES = 50  # working directories that are remembered


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
    """Where this system keeps what programs can make again; None for a user without a home."""
    from platformdirs import user_cache_path

    try:
        place = user_cache_path("mpdoctor", appauthor=False)
    except RuntimeError:  # platformdirs 4.14; of 4.0 it is a "~" in the working directory
        return None
    return Cache(place) if place.is_absolute() else None


class Cache:
    """Reads when it is made, writes when told to `save`. A cache that can't be read is empty, and one that can't be
    written is not: the next run takes longer, and says the same."""

    def __init__(self, directory: Path) -> None:
        self._file = directory / f"{_digest(str(Path.cwd()))}.pickle"
        self._made_by = _made_by()
        self._entries: dict[str, Entry] = {}
        self._is_changed = False
        try:
            made_by, entries = _Reader(io.BytesIO(self._file.read_bytes())).load()
            if made_by == self._made_by:
                self._entries = {path: Entry(*parts) for path, parts in entries.items()}
        except (OSError, EOFError, ValueError, TypeError, AttributeError, IndexError, KeyError, pickle.UnpicklingError):
            self._is_changed = True

    def find(self, path: Path, shown_as: str, digest: bytes, walked: bool) -> Entry | None:
        entry = self._entries.get(str(path))
        if entry is None or (entry.digest, entry.was_walked, entry.facts.path) != (digest, walked, shown_as):
            return None
        return entry

    def keep(self, path: Path, entry: Entry) -> None:
        self._entries[str(path)] = entry
        self._is_changed = True

    def keep_findings(self, entry: Entry, asked: bytes, found: list[Finding]) -> None:
        while len(entry.findings) >= MOST_ASKED:
            del entry.findings[next(iter(entry.findings))]
        entry.findings[asked] = found
        self._is_changed = True

    def save(self) -> None:
        if not self._is_changed:
            return
        entries = {
            path: (one.digest, one.facts, one.is_mixed, one.was_walked, one.findings)
            for path, one in self._entries.items()
            if Path(path).exists()
        }
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            new = self._file.with_suffix(f".{os.getpid()}")
            new.write_bytes(pickle.dumps((self._made_by, entries), protocol=pickle.HIGHEST_PROTOCOL))
            new.replace(self._file)
            _forget_the_oldest(self._file.parent)
        except OSError:
            return


class _Reader(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        try:
            return _MADE[module, name]
        except KeyError:
            raise pickle.UnpicklingError(f"{module}.{name} does not belong into a cache") from None


def _made_by() -> str:
    """This mpdoctor, file by file, and this Python: both decide what is said."""
    package = Path(__file__).parent
    files = (path.stat() for path in sorted(package.rglob("*.py")))
    return _digest(__version__, sys.version, *(f"{one.st_size} {one.st_mtime_ns}" for one in files))


def _forget_the_oldest(directory: Path) -> None:
    files = sorted(directory.glob("*.pickle"), key=lambda path: path.stat().st_mtime, reverse=True)
    for path in files[MOST_FILES:]:
        path.unlink(missing_ok=True)


def _digest(*parts: str) -> str:
    found = blake2b(digest_size=16)
    for part in parts:
        found.update(part.encode(errors="surrogatepass") + b"\0")
    return found.hexdigest()

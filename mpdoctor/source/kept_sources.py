"""Parsed files that are kept from one check to the next, for as long as their bytes stay the same."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from threading import Lock

from mpdoctor.program.source_record import Problem
from mpdoctor.source.reading import Source

MOST_BYTES = 4_000_000  # of source: its trees take some 20 times as much


class KeptSources:
    """Parsed files, kept for callers that check the same files again and again, as a language server does. The ones
    that were not asked for longest go first. What is remembered on a tree's nodes depends on its text alone, and so
    holds in every later walk."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._kept: dict[tuple[Path, str], tuple[bytes, Source | Problem]] = {}  # the last one asked for at the end
        self._size, self._most_bytes = 0, most_bytes
        self._lock = Lock()

    @property
    def size(self) -> int:
        """The bytes of source of all files that are kept."""
        return self._size

    def source(
        self, data: bytes, path: Path, shown_as: str, parse: Callable[[bytes, Path, str], Source | Problem]
    ) -> Source | Problem:
        with self._lock:
            known = self._taken_out((path, shown_as))
        source = known[1] if known is not None and known[0] == data else parse(data, path, shown_as)
        with self._lock:
            self._taken_out((path, shown_as))
            self._kept[path, shown_as] = data, source
            self._size += len(data)
            while self._size > self._most_bytes:
                self._taken_out(next(iter(self._kept)))
        return source

    def _taken_out(self, key: tuple[Path, str]) -> tuple[bytes, Source | Problem] | None:
        known = self._kept.pop(key, None)
        self._size -= len(known[0]) if known is not None else 0
        return known

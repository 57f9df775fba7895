"""Which open texts wait to be looked at, and in which order: those that are being written first."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Iterable

QUIET = 0.5  # seconds without a question before the texts come up that hang on others


class Waiting:
    """The texts of an editor by URI.

    texts
        Those that are open.
    """

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}
        self._asked: dict[str, int] = {}
        self._first: dict[str, None] = {}
        self._last: dict[str, None] = {}
        self._is_at_work = False
        self._since = 0.0

    def ask(self, uri: str) -> int:
        """Note that the text has changed, so that what was known of it counts no more. Returns the number of this
        question, to be compared with `asked` when the answer is there."""
        self._asked[uri] = self.asked(uri) + 1
        self._since = time.monotonic()
        return self._asked[uri]

    @property
    def is_quiet(self) -> bool:
        return self._left_to_wait <= 0 and not self._is_at_work

    @property
    def _left_to_wait(self) -> float:
        return self._since + QUIET - time.monotonic()

    def asked(self, uri: str) -> int:
        """How often a text was asked about; for a text that was closed meanwhile the count continues."""
        return self._asked.get(uri, 0)

    def put_first(self, uri: str) -> None:
        self._first[uri] = None

    def put_last(self, uris: Iterable[str]) -> None:
        for uri in uris:
            self._asked[uri] = self.asked(uri) + 1
            self._last[uri] = None

    def forget(self, uri: str) -> None:
        for waiting in (self.texts, self._first, self._last):
            waiting.pop(uri, None)

    async def each(self) -> AsyncIterator[str]:
        """The URIs of the waiting texts, one after the other, with those that come up meanwhile. Only one caller at a
        time gets them: for any other the iteration is empty."""
        if self._is_at_work:
            return
        self._is_at_work = True
        try:
            while self._first or self._last:
                if (uri := await self._next()) in self.texts:
                    yield uri
        finally:
            self._is_at_work = False

    async def _next(self) -> str | None:
        """The next text; None where all were closed meanwhile."""
        while not self._first and (left := self._left_to_wait) > 0:
            await asyncio.sleep(min(left, QUIET / 10))
        uri = next(iter(self._first or self._last), None)
        for waiting in (self._first, self._last):
            waiting.pop(uri or "", None)
        return uri

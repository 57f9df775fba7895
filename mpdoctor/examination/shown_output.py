"""The stream that shows what an examined process prints (`--show-output`). Lines of a script are shown as they are,
since it is the user's own; those of a saved file's graph are spelt out, since the file may come from anywhere."""

from __future__ import annotations

from typing import IO, Protocol

from mpdoctor.examiner.exceptions import spelt_out
from mpdoctor.facts.saved.file import SAVED

MARK = "| "  # no CI takes for a command what does not begin a line
PLAIN = "\n\t"


class Shown(Protocol):
    """A stream of bytes that is only written to."""

    def write(self, chunk: bytes, /) -> object: ...

    def flush(self) -> object: ...


def stream_to_show(kind: str, stream: IO[bytes]) -> Shown:
    """The stream that takes the output of a target of this kind, and hands it on to `stream`."""
    return _HarmlessLines(stream) if kind in SAVED else stream


class _HarmlessLines:
    """Hands lines on without escape sequences and without what a CI takes for a command."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._stream = stream

    def write(self, chunk: bytes) -> None:
        text = chunk.decode("utf-8", "replace").replace("\r\n", "\n").replace("##", "#\\#")
        self._stream.write(f"{MARK}{spelt_out(text, kept=PLAIN)}".encode())

    def flush(self) -> None:
        self._stream.flush()

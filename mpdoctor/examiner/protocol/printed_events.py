"""Events shown on the terminal as they are sent, for an examiner in the foreground (`start.py --foreground`)."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import MISSING, fields, is_dataclass, replace
from tempfile import mkdtemp
from typing import Iterator

from mpdoctor.examiner.protocol.event_kinds import Crashed, Ended, Event
from mpdoctor.examiner.protocol.events import Events
from mpdoctor.examiner.protocol.request import Request

_terminal = sys.stderr  # a script may put another one in its place


def request_in_foreground(request: Request, path: str) -> Request:
    """The directory that a kept request names is gone: its events go to a new one beside its file."""
    folder = mkdtemp(prefix="foreground-", dir=os.path.dirname(os.path.abspath(path)))
    return replace(request, events=os.path.join(folder, "events.jsonl"))


class PrintedEvents(Events):
    """Prints each event, besides writing it to the file."""

    def _write(self, event: Event) -> None:
        super()._write(event)
        _show("\n".join([f"[{type(event).__name__}]", *_lines_of(event, "  ")]))
        if isinstance(event, (Ended, Crashed)):
            sys.stdout.flush()  # the process ends with os._exit()

    def raised(self, error: BaseException) -> None:
        _show("".join(traceback.format_exception(type(error), error, error.__traceback__)).rstrip())


def _show(text: str) -> None:
    print(text, file=_terminal, flush=True)


def _lines_of(facts: object, indent: str) -> Iterator[str]:
    """A line for each field that is not as it is by default; nested facts are indented."""
    for field in fields(facts):  # type: ignore[arg-type]
        value = getattr(facts, field.name)
        if field.default is MISSING or value != field.default:
            yield from _lines_of_value(field.name, value, indent)


def _lines_of_value(name: str, value: object, indent: str) -> Iterator[str]:
    if is_dataclass(value):
        yield f"{indent}{name}: {type(value).__name__}"
        yield from _lines_of(value, indent + "  ")
    elif isinstance(value, tuple) and any(is_dataclass(item) for item in value):
        for number, item in enumerate(value, 1):
            yield from _lines_of_value(f"{name} {number}", item, indent)
    elif isinstance(value, str) and "\n" in value:
        yield f"{indent}{name}:"
        yield from (f"{indent}  {line}" for line in value.splitlines())
    else:
        yield f"{indent}{name}: {value!r}"

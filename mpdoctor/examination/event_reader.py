"""Reads the examiner's events from a file that a script can write into, too: any bytes, any number of them."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from types import NoneType
from typing import Any, Literal, NamedTuple, get_origin

from mpdoctor.examiner.protocol.event_kinds import EVENTS, Event
from mpdoctor.facts.failure import Frame
from mpdoctor.facts.location import Cells, Location, line_in_cells

AT_ONCE = 1 << 20  # bytes that one look reads: between two looks the time is looked at, too
LONGEST_LINE = 1 << 25  # the facts of a model of 10,000 layers; what JSON can unfold this to stays below a gigabyte
MOST_BYTES = 1 << 32  # a file with a hole in it may have no end
MOST_PASSED_OVER = 1_000_000
LARGEST_INTEGER = 1 << 1000  # every float can be divided by it


class Notebook(NamedTuple):
    """The real path of a notebook that is run, and its cells; no cells for any other target."""

    path: str | None = None
    cells: Cells = ()


NO_NOTEBOOK = Notebook()


class EventReader:
    """Reads the events that were appended since the last look; an unfinished line waits for its rest. `passed_over`
    counts the lines that were no events. Whatever is read is kept in the file `kept`, too, where one is given. Lines of
    the `notebook` become lines of its cells."""

    def __init__(self, path: Path, kept: Path | None = None, notebook: Notebook = NO_NOTEBOOK) -> None:
        path.touch(mode=0o600)
        self._file = path.open("rb", buffering=0)  # and stays open: a script may remove the directory
        self._kept = None if kept is None else kept.open("wb", buffering=0)
        self._notebook = notebook
        self._line = bytearray()
        self._is_too_long = False
        self._bytes_read = 0
        self.passed_over = 0
        self.is_behind = False  # more may be there already

    @property
    def has_given_up(self) -> bool:
        return self.passed_over >= MOST_PASSED_OVER or self._bytes_read >= MOST_BYTES

    def new(self) -> list[Event]:
        chunk = b"" if self.has_given_up else self._file.read(AT_ONCE) or b""
        self._bytes_read += len(chunk)
        if self._kept is not None:
            self._kept.write(chunk)
        self.is_behind = bool(chunk)
        first, *others = chunk.split(b"\n")
        self._go_on(first)
        events = []
        for rest in others:
            events.append(self._event_of_line())
            self._go_on(rest)
        self.passed_over += events.count(None)
        return [event for event in events if event is not None]

    def _go_on(self, chunk: bytes) -> None:
        if len(self._line) + len(chunk) > LONGEST_LINE:
            self._is_too_long = True
            self._line.clear()
        if not self._is_too_long:
            self._line += chunk

    def _event_of_line(self) -> Event | None:
        event = None if self._is_too_long else event_from_line(bytes(self._line), self._notebook)
        self._line.clear()
        self._is_too_long = False
        return event

    def close(self) -> None:
        self._file.close()
        if self._kept is not None:
            self._kept.close()


def event_from_line(line: bytes, notebook: Notebook = NO_NOTEBOOK) -> Event | None:
    """The event in a line; None for a line that is none: one cut by a full disk or by a fork of the script, or one that
    the script wrote."""
    if not line.startswith(b"{"):
        return None
    try:
        record = json.loads(line)
        event: Event = _converter(notebook).structure(record, EVENTS[record.pop("event")])
    # what another shape than the one that is expected leads to
    except (ArithmeticError, LookupError, RecursionError, TypeError, ValueError):
        return None
    return event


# --- facts from JSON ------------------------------------------------------------------------------------------------
@functools.cache
def _converter(notebook: Notebook) -> Any:
    import cattrs  # only where an examination is read; `--static` and `explain` never need it

    converter = cattrs.Converter(detailed_validation=False)
    converter.register_structure_hook_factory(
        dataclasses.is_dataclass, lambda cls: _object_reader(cls, converter, notebook)
    )
    converter.register_structure_hook_factory(_is_tuple, lambda cls: _list_reader(cls, converter))
    converter.register_structure_hook_factory(_is_literal, lambda cls: _one_of(cls.__args__))
    for kind, read in ((bool, _truth), (str, _text), (int, _integer), (float, _number)):
        converter.register_structure_hook(kind, read)
    return converter


def _object_reader(cls: type, converter: Any, notebook: Notebook) -> Callable[[Any, Any], Any]:
    from cattrs.gen import make_dict_structure_fn

    structured: Callable[[Any, Any], Any] = make_dict_structure_fn(cls, converter)
    names = {field.name for field in dataclasses.fields(cls)}

    def read(value: Any, _: Any) -> Any:
        if not _of_type(value, Mapping).keys() <= names:
            raise ValueError("there are fields that nobody knows")
        facts = structured(value, cls)
        if isinstance(facts, Location | Frame) and notebook.cells and facts.path == notebook.path:
            facts = dataclasses.replace(facts, line=line_in_cells(facts.line, notebook.cells))
        return _with_shown_path(facts) if isinstance(facts, Location) else facts

    return read


def _is_literal(kind: Any) -> bool:
    return get_origin(kind) is Literal


def _one_of(known: tuple[str, ...]) -> Callable[[Any, Any], str]:
    def read(value: Any, _: Any) -> str:
        if value not in known:
            raise ValueError(f"it is none of {known}")
        return str(value)

    return read


def _is_tuple(kind: Any) -> bool:
    return get_origin(kind) is tuple


def _list_reader(kind: Any, converter: Any) -> Callable[[Any, Any], Any]:
    """What reads a tuple from a list alone: cattrs would take a text for a list of letters."""
    of, *others = kind.__args__
    if others == [...]:
        return lambda items, _: tuple(converter.structure(item, of) for item in _of_type(items, list))

    def read(value: Any, _: Any) -> Any:
        return tuple(
            converter.structure(item, item_kind)
            for item, item_kind in zip(_of_type(value, list), (of, *others), strict=True)
        )

    return read


def _of_type(value: Any, kind: Any) -> Any:
    if not isinstance(value, kind):
        raise TypeError(f"expected {kind}, not {type(value).__name__}")
    return value


# A program may have given Keras 2000.0 for a whole number, or a number for a name: each single value is read as the
# type says. cattrs would make a text of lists and objects, too.
def _text(value: Any, _: Any) -> str:
    return "" if value is None else str(_of_type(value, (str, int, float)))


def _truth(value: Any, _: Any) -> bool:
    return bool(_of_type(value, (bool, int, float, NoneType)))


def _integer(value: Any, _: Any) -> int:
    number = int(_of_type(value, (int, float)))
    if number != value or abs(number) > LARGEST_INTEGER:
        raise ValueError("it is no whole number, or a larger one than any")
    return number


def _number(value: Any, _: Any) -> float:
    return float(_of_type(value, (int, float)))


def _with_shown_path(location: Location) -> Location:
    return dataclasses.replace(location, path=shown_path(location.path))


def shown_path(path: str) -> str:
    """The path relative to the working directory where it lies below that, else the path itself."""
    try:
        return str(Path(path).relative_to(Path.cwd()))
    except (ValueError, FileNotFoundError):  # FileNotFoundError: the script has removed the working directory
        return path

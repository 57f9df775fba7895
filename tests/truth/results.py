"""Results of long runs, a line of JSON each: a run that was cut short goes on behind those that its file holds."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Generic, TypeVar

Row = TypeVar("Row")  # a dataclass


class Results(Generic[Row]):
    """A file of results, which are `row`s. `keys`: the fields by which one is known again."""

    def __init__(self, path: Path, row: type[Row], keys: tuple[str, ...] = ("seed", "number")) -> None:
        self._path = path
        path.touch()
        self._known = {tuple(getattr(held, key) for key in keys) for held in rows_from_files(row, [path])}

    def holds(self, *values: object) -> bool:
        return values in self._known

    def added(self, row: Row) -> Row:
        """The row itself, written to the file at once."""
        with self._path.open("a", encoding="utf-8") as written:
            print(json.dumps(asdict(row)), file=written)  # type: ignore[call-overload]
        return row


def rows_from_files(row: type[Row], paths: Iterable[Path]) -> list[Row]:
    return [row(**json.loads(line)) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]

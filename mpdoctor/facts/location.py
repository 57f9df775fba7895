"""A place in one of the user's files."""

from __future__ import annotations

from dataclasses import replace
from typing import Tuple

from mpdoctor.facts.frozen import dataclass

# Of a notebook: of each cell of code its number among all cells, from 1, and the line of the whole text that it
# begins in.
Cells = Tuple[Tuple[int, int], ...]


@dataclass(frozen=True, order=True)
class Location:
    """A span of source text. Lines and columns start at 1, ends are exclusive, columns count characters.

    A location without columns (column 0) means the whole line: that is what a running program can tell.

    cell
        In a notebook, for reports: the cell, from 1, in which the lines are counted. Facts and rules count the
        lines of all cells together (cell 0), because that is the order in which they run; what a run tells has a
        `LineInCell` there.
    """

    path: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0
    cell: int = 0


class LineInCell(int):
    """A line of a notebook, counted over all cells as Python sees it run, that knows its own cell as well.

    cell, number
        The cell among all cells, and the line in it, both from 1.
    """

    cell: int
    number: int


def line_in_cells(line: int, cells: Cells) -> int:
    """The same line as a `LineInCell`; unchanged where there are no cells."""
    shown = location_in_cell(Location("", line), cells)
    if not shown.cell:
        return line
    known = LineInCell(line)
    known.cell, known.number = shown.cell, shown.line
    return known


def shown_location(location: Location) -> Location:
    """The location as a report shows it: in its cell, where its line is a `LineInCell`; else unchanged."""
    line = location.line
    return replace(location, line=line.number, cell=line.cell) if isinstance(line, LineInCell) else location


def line_in_words(location: Location) -> str:
    """ "line 5"; of a notebook "cell 3, line 2"."""
    shown = shown_location(location)
    return f"cell {shown.cell}, line {shown.line}" if shown.cell else f"line {shown.line}"


def lines_of(text: str) -> list[str]:
    """Lines as Python's parser counts them: form feeds and Unicode's line separators end none."""
    return text.replace("\r\n", "\n").replace("\r", "\n").split("\n")


def location_in_cell(location: Location, cells: Cells) -> Location:
    """The same place with lines counted from the beginning of its notebook cell; unchanged where there are no cells."""
    before = [(number, first) for number, first in cells if first <= location.line]
    if not before:
        return location
    number, first = before[-1]
    end_line = location.end_line - first + 1 if location.end_line else 0
    return replace(location, line=location.line - first + 1, end_line=end_line, cell=number)


def holds(outer: Location, inner: Location) -> bool:
    """Whether the second place lies within the first one."""
    begins = outer.path == inner.path and (outer.line, outer.column) <= (inner.line, inner.column)
    return begins and (inner.end_line, inner.end_column) <= (outer.end_line, outer.end_column)

"""Where something stands in a file of the user's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Location:
    """A span of source text. Lines and columns start at 1, ends are exclusive, columns count characters.

    A location without columns (column 0) means the whole line: that is what a running program can tell.
    """

    path: str
    line: int
    column: int = 0
    end_line: int = 0
    end_column: int = 0

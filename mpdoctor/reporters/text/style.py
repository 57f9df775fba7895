"""Symbols, counts and numbers in reports, user's names on one line, code spans."""

from __future__ import annotations

import re

from mpdoctor.facts.frozen import dataclass
from mpdoctor.reporters.printable import one_line, shortened

LONGEST_NAME = 120
READABLE = 100  # columns of sentences, however wide the terminal is: source lines and tables take all

_CODE = re.compile(r"`([^`\n]+)`")


@dataclass(frozen=True)
class Style:
    """`blocks`: whether characters beyond ASCII can be shown."""

    width: int = 80
    blocks: bool = True

    def sign(self, beautiful: str, plain: str) -> str:
        return beautiful if self.blocks else plain

    @property
    def dot(self) -> str:
        return self.sign(" · ", ", ")

    @property
    def arrow(self) -> str:
        return self.sign("→", "->")

    @property
    def dash(self) -> str:
        return self.sign("–", "-")

    @property
    def more(self) -> str:
        return self.sign("…", "...")

    def name(self, text: str, longest: int = LONGEST_NAME) -> str:
        """A name of the user's, on one line."""
        return shortened(one_line(text), longest, self.more)

    def listed(self, names: list[str] | tuple[str, ...], most: int = 4) -> str:
        shown = [self.name(name, 60) for name in names[:most]]
        left = len(names) - len(shown)
        return ", ".join(shown) + (f" and {left} more" if left else "")


def parts_from_prose(text: str) -> list[tuple[bool, str]]:
    """(whether it stands between backticks and is code, text), in order, the backticks left out."""
    parts = []
    end = 0
    for match in _CODE.finditer(text):
        parts += [(False, text[end : match.start()]), (True, match.group(1))]
        end = match.end()
    parts.append((False, text[end:]))
    return [part for part in parts if part[1]]

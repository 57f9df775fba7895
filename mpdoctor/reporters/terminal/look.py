"""How things look: marks, colours, and text of the user's made fit to print."""

from __future__ import annotations

import re
from dataclasses import dataclass

from rich.console import RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mpdoctor.finding import Severity, Verdict
from mpdoctor.reporters.visible import one_line, shortened, visible

Paragraph = list[RenderableType]

LONGEST_MESSAGE = 700
LONGEST_NAME = 120

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}
GOOD, OPEN = (Verdict.HEALTHY, Verdict.SETTLING), (Verdict.INCONCLUSIVE,)


def style_of_verdict(verdict: Verdict) -> str:
    if verdict in GOOD:
        return "bold green"
    return "bold yellow" if verdict in OPEN else "bold red"


@dataclass(frozen=True)
class Look:
    """`blocks`: whether characters beyond ASCII can be shown."""

    width: int
    blocks: bool

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

    def prose(self, text: str, style: str = "") -> Text:
        """Sentences, in which what stands between backticks stands out."""
        shown = Text(shortened(visible(text), LONGEST_MESSAGE, self.more), style=style, overflow="fold")
        for code in re.finditer(r"`[^`\n]+`", shown.plain):
            shown.stylize("cyan", code.start(), code.end())
        return shown


def indented(content: RenderableType, by: int = 2) -> Padding:
    return Padding(content, (0, 0, 0, by))


def labelled(label: str, content: Text, style: str = "dim", wide: int = 0, by: int = 2) -> Padding:
    """A label and what it says; further lines begin under the first. `wide`: the column that it begins in."""
    grid = Table.grid()
    grid.add_column(no_wrap=True, width=max(wide, len(label) + 1))
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style=style), content)
    return indented(grid, by)


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def number_text(value: float) -> str:
    """A number as people write it: 32768, 2.91e-11, 0.0427, inf."""
    if value == value and abs(value) < 1e7 and value == int(value):
        return str(int(value))
    return f"{value:.3g}"

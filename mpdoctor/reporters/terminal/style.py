"""Marks and colours of the terminal report, and text of the user's made safe to print."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from rich.console import RenderableType
from rich.constrain import Constrain
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Finding, Severity
from mpdoctor.reporters.printable import shortened, visible
from mpdoctor.reporters.text.headline import Mood
from mpdoctor.reporters.text.style import READABLE
from mpdoctor.reporters.text.style import Style as Plain

Paragraph = list[RenderableType]

LONGEST_MESSAGE = 700
LABEL = 12  # columns

SEVERITY_STYLES = {Severity.ERROR: "bold red", Severity.WARNING: "bold yellow", Severity.INFO: "bold blue"}
MOOD_STYLES = {Mood.GOOD: "bold green", Mood.DOUBT: "bold yellow", Mood.BAD: "bold red"}


@dataclass(frozen=True)
class Style(Plain):
    """How the terminal looks. `pages`: by a rule's code, the address of its page."""

    pages: Mapping[str, str] = field(default_factory=dict)

    def link(self, finding: Finding) -> str:
        """The style of a rule's code: terminals that know hyperlinks (OSC 8) lead to the rule's page."""
        page = self.pages.get(finding.code)
        return f"bold link {page}" if page else "bold"

    def prose(self, text: str, style: str = "") -> Text:
        """Sentences, in which what stands between backticks stands out."""
        shown = Text(shortened(visible(text), LONGEST_MESSAGE, self.more), style=style, overflow="fold")
        for code in re.finditer(r"`[^`\n]+`", shown.plain):
            shown.stylize("cyan", code.start(), code.end())
        return shown


def indented(content: RenderableType, by: int = 2) -> Padding:
    """Text that goes on in a further line does so within `READABLE` columns."""
    wraps = isinstance(content, Text) and not content.no_wrap
    return Padding(Constrain(content, READABLE) if wraps else content, (0, 0, 0, by))


def left_out(number: int, noun: str, look: Style) -> Paragraph:
    """How many more there are, and where."""
    if number <= 0:
        return []
    named = "`--output-format concise` names them, " if noun == "finding" else ""
    text = f"{look.more} and {count(number, f'more {noun}')}: {named}`--report FILE.html` shows them."
    return [Constrain(look.prose(text), READABLE)]


def labelled(
    label: str, content: Text, style: str = "dim", wide: int = 0, by: int = 2, most: int | None = READABLE
) -> Padding:
    """A label and what it says; further lines begin under the first. `wide`: the column that it begins in. `most`: the
    columns that it may take, None for all that there are."""
    grid = Table.grid()
    grid.add_column(no_wrap=True, width=max(wide, len(label) + 1))
    grid.add_column(overflow="fold")
    grid.add_row(Text(label, style=style), content)
    return indented(Constrain(grid, most), by)


def line(label: str, content: Text | str) -> Padding:
    """A label in its column and the content behind it; plain text is folded where it is too long."""
    return labelled(label, Text(content, overflow="fold") if isinstance(content, str) else content, wide=LABEL)

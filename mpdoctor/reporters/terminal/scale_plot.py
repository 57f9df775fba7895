"""The loss scale of a training as a filled curve, a column for one or several steps."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from mpdoctor.reporters.terminal.style import LABEL, Paragraph, Style, indented
from mpdoctor.reporters.text.plot import rows_from_scales


def lines_from_scales(scales: Sequence[float | None], is_bad: Sequence[bool], look: Style) -> Paragraph:
    """The curve, red in the columns that are bad; one scale for each column."""
    rows, labels = rows_from_scales(scales, look.blocks)
    axis = look.sign("┤", "|")
    lines: Paragraph = []
    for label, row in zip(labels, rows, strict=True):
        line = Text.assemble((f"{label:>{LABEL - 2}} {axis if label else look.sign('│', '|')}", "dim"), no_wrap=True)
        for character, bad in zip(row, is_bad, strict=True):
            line.append(character, style="red" if bad else "green")
        lines.append(indented(line))
    return lines


def marks_under(is_bad: Sequence[bool], look: Style) -> Text:
    """A mark under each bad column."""
    return Text("".join(look.sign("✗", "x") if bad else " " for bad in is_bad), style="red", no_wrap=True)

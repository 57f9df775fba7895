"""Draws paragraphs as terminal text: wrapped, indented, coloured."""

from __future__ import annotations

import io
from collections.abc import Sequence

from rich.console import Console

from mpdoctor.reporters.terminal.style import Paragraph


def drawn(paragraphs: Sequence[Paragraph], width: int, color: bool = False) -> str:
    """An empty line between two of them, and no blank at the end of a line."""
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
    )
    print_paragraphs(console, paragraphs)
    return "\n".join(line.rstrip(" ") for line in out.getvalue().split("\n"))


def print_paragraphs(console: Console, paragraphs: Sequence[Paragraph]) -> None:
    for number, paragraph in enumerate(paragraphs):
        if number:
            console.print()
        for line in paragraph:
            console.print(line)

"""The first line of a terminal report, cut to the width."""

from __future__ import annotations

from rich.cells import cell_len
from rich.text import Text

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.terminal.style import MOOD_STYLES, Paragraph, Style
from mpdoctor.reporters.text.headline import headline_from_diagnosis


def headlines(diagnosis: Diagnosis, look: Style) -> Paragraph:
    headline = headline_from_diagnosis(diagnosis, look)
    mark = (f"{headline.mood.mark(look)} ", MOOD_STYLES[headline.mood])
    line = Text.assemble(mark, (headline.words, "bold"), overflow="fold")
    fitting = (tail for tail in headline.tails if cell_len(line.plain + tail) <= look.width)
    return [line.append(next(fitting, ""), style="bold")]

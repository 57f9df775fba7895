"""The options of every command that shows a diagnosis."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli.options.numbers import whole_number
from mpdoctor.cli.output import FORMATS, OWN, SUFFIXES, OutputFormat
from mpdoctor.cli.streams import NARROWEST, Color

REPORTS = "Reports"  # the heading in --help
OutputFormatOption = Annotated[
    OutputFormat, typer.Option(metavar="FORMAT", help=f"{FORMATS}.", rich_help_panel=REPORTS)
]
ReportOption = Annotated[
    list[Path] | None,
    typer.Option(
        metavar="FILE",
        help=f"Write a report there too; its suffix chooses the format: {', '.join(SUFFIXES)}.",
        rich_help_panel=REPORTS,
    ),
]
RedactOption = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        help="Remove home directories, user names and secrets. By default from every format except "
        f"{', '.join(form.value for form in OWN)}.",
        rich_help_panel=REPORTS,
    ),
]
StatisticsOption = Annotated[
    bool, typer.Option("--statistics", help="Count the findings of each rule.", rich_help_panel=REPORTS)
]
WidthOption = Annotated[
    int | None,
    typer.Option(
        "--width",
        metavar="COLUMNS",
        parser=whole_number(NARROWEST),
        help="Width of the text report. By default the terminal's, and 80 in files and pipes.",
        rich_help_panel=REPORTS,
    ),
]
ColorOption = Annotated[Color, typer.Option(metavar="WHEN", help="auto, always or never.", rich_help_panel=REPORTS)]

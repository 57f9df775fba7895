"""The options of `mpdoctor compare` that no other command has."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli.options.numbers import whole_number
from mpdoctor.cli.options.report_options import REPORTS

COMPARED = "What is compared"  # the heading in --help
POLICIES = ("float32", "mixed_bfloat16", "mixed_float16")
ALL_POLICIES = ",".join(POLICIES)


class CompareFormat(str, Enum):
    terminal = "terminal"
    json = "json"
    markdown = "markdown"
    html = "html"


def policies_from_text(text: str) -> tuple[str, ...]:
    """The policies that the text of `--policies` names: two or more, each once.

    Raises ValueError with a sentence for the user."""
    named = tuple(dict.fromkeys(part.strip() for part in text.split(",") if part.strip()))
    unknown = [name for name in named if name not in POLICIES]
    if unknown:
        raise ValueError(f"{unknown[0]!r} is none of {', '.join(POLICIES)}.")
    if len(named) < 2:
        raise ValueError("name at least two, separated by commas.")
    return named


PoliciesOption = Annotated[
    str,
    typer.Option(
        "--policies",
        metavar="POLICIES",
        help="Separated by commas; the others are compared with the first.",
        rich_help_panel=COMPARED,
    ),
]
RoundsOption = Annotated[
    int,
    typer.Option(
        "--rounds",
        metavar="N",
        parser=whole_number(1),
        help="How often each policy is timed, alternating with the others.",
        rich_help_panel=COMPARED,
    ),
]
CompareFormatOption = Annotated[
    CompareFormat,
    typer.Option(
        "--output-format", metavar="FORMAT", help="terminal, json, markdown or html.", rich_help_panel=REPORTS
    ),
]
CompareReportOption = Annotated[
    list[Path] | None,
    typer.Option(
        "--report",
        metavar="FILE",
        help="Write a report there too; its suffix chooses the format: .html, .md, .json, .txt.",
        rich_help_panel=REPORTS,
    ),
]
CompareRedactOption = Annotated[
    bool | None,
    typer.Option(
        "--redact/--no-redact",
        help="Remove home directories, user names and secrets. By default from markdown and html.",
        rich_help_panel=REPORTS,
    ),
]

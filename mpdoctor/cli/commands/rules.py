"""`mpdoctor rules`: the list of all rules."""

from __future__ import annotations

from enum import Enum
from typing import Annotated

import typer

from mpdoctor.cli.streams import Color


class RulesFormat(str, Enum):
    terminal = "terminal"
    markdown = "markdown"
    json = "json"


def rules(
    output_format: Annotated[
        RulesFormat, typer.Option(metavar="FORMAT", help="terminal, markdown or json.")
    ] = RulesFormat.terminal,
    color: Annotated[Color, typer.Option(metavar="WHEN", help="auto, always or never.")] = Color.auto,
) -> None:
    """List every rule."""
    from mpdoctor.cli.streams import has_color, prose_width, write
    from mpdoctor.cli.texts import rule_texts
    from mpdoctor.rules.registry import all_rules

    if output_format is RulesFormat.json:
        write(rule_texts.json_from_rules(all_rules()))
    elif output_format is RulesFormat.markdown:
        write(rule_texts.markdown_table_from_rules(all_rules()))
    else:
        write(rule_texts.terminal_table_from_rules(all_rules(), prose_width(), has_color(color)))

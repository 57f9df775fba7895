"""`mpdoctor explain CODE`: the documentation of one rule."""

from __future__ import annotations

from typing import Annotated

import typer

from mpdoctor.cli.completion import rules_from_beginning
from mpdoctor.cli.streams import Color


def explain(
    rule: Annotated[
        str,
        typer.Argument(
            metavar="CODE", help="A code such as MP302, or the name of a rule.", autocompletion=rules_from_beginning
        ),
    ],
    color: Annotated[Color, typer.Option(metavar="WHEN", help="auto, always or never.")] = Color.auto,
) -> None:
    """Say what a rule finds, why that matters, and how it is mended."""
    import sys

    from mpdoctor.cli.rule_texts import colored_markdown, markdown_from_rule, near_match
    from mpdoctor.cli.streams import fail, has_color, prose_width, write
    from mpdoctor.rules.registry import rule_by_code_or_name

    found = rule_by_code_or_name(rule)
    if found is None:
        fail(f"there is no rule {rule!r}.{near_match(rule)} `mpdoctor rules` lists them all.")
    markdown = markdown_from_rule(found)
    shown = sys.stdout.isatty() or color is Color.always
    write(colored_markdown(markdown, prose_width(), has_color(color)) if shown else markdown)

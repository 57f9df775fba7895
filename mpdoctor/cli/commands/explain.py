"""`mpdoctor explain CODE`: the documentation of one rule, and correct custom loops."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from mpdoctor.cli.options.completion import rules_from_beginning
from mpdoctor.cli.streams import Color

if TYPE_CHECKING:
    from mpdoctor.facts.versions import Keras

LOOPS = "loop"  # in place of a rule


def explain(
    rule: Annotated[
        str,
        typer.Argument(
            metavar="CODE",
            help="A code such as MP302, the name of a rule, or `loop` for correct custom training loops.",
            autocompletion=rules_from_beginning,
        ),
    ],
    keras: Annotated[
        str | None,
        typer.Option(metavar="VERSION", help="3, tf_keras, 2.15 …: the Keras for `loop`, by default this directory's."),
    ] = None,
    color: Annotated[Color, typer.Option(metavar="WHEN", help="auto, always or never.")] = Color.auto,
) -> None:
    """Show what a rule finds, why it matters and how to fix it; or show correct custom loops."""
    import sys

    from mpdoctor.cli.streams import fail, has_color, prose_width, write
    from mpdoctor.cli.texts.rule_texts import colored_markdown, markdown_from_rule, near_match
    from mpdoctor.rules.registry import rule_by_code_or_name

    named = rule_by_code_or_name(rule)
    if named is not None:
        markdown = markdown_from_rule(named)
    elif rule.lower() == LOOPS:
        from mpdoctor.cli.texts.loop_page import markdown_of_loops

        markdown = markdown_of_loops(_keras(keras))
    else:
        meant = f" `mpdoctor explain {LOOPS}` shows correct loops." if LOOPS in rule.lower() else near_match(rule)
        fail(f"there is no rule {rule!r}.{meant} `mpdoctor rules` lists them all.")
    shown = sys.stdout.isatty() or color is Color.always
    write(colored_markdown(markdown, prose_width(), has_color(color)) if shown else markdown)


def _keras(named: str | None) -> Keras:
    """The Keras that `--keras` names, else the one by which a script in this directory would be judged."""
    from mpdoctor.cli.streams import fail
    from mpdoctor.judging.keras_version import keras_of_target
    from mpdoctor.project.targets import target_from_text
    from mpdoctor.settings.options import Settings, keras_from_text

    if named is not None:
        try:
            return keras_from_text(named)
        except ValueError as error:
            fail(str(error))
    here = target_from_text(".")
    return keras_of_target(here, Settings((here,)), (), {}, ()).usual

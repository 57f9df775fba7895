"""The typer application, to which every command is added."""

from __future__ import annotations

from typing import Annotated

import typer

from mpdoctor import __version__
from mpdoctor.cli.commands.check import CheckHelp, check
from mpdoctor.cli.commands.env import env
from mpdoctor.cli.commands.explain import explain
from mpdoctor.cli.commands.mend import MendHelp, mend
from mpdoctor.cli.commands.rules import rules
from mpdoctor.cli.commands.show import show

app = typer.Typer(
    help="A doctor for mixed-precision training in TensorFlow and Keras.",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: quicker, and its columns fit
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"mpdoctor {__version__}")
        raise typer.Exit


@app.callback()
def _mpdoctor(
    version: Annotated[
        bool,
        typer.Option("--version", help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


app.command(cls=CheckHelp, short_help="Examine a training script or a model.")(check)
app.command(cls=MendHelp, short_help="Mend a training script, each edit proved by training again.")(mend)
app.command()(explain)
app.command()(rules)
app.command(short_help="Show a saved diagnosis, in any format.")(show)
app.command(short_help="Show what this machine and this TensorFlow can do.")(env)

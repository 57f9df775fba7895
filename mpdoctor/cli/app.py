"""The typer application, to which every command is added."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, get_type_hints

import typer

from mpdoctor.cli.version import VERSION, show_version

if TYPE_CHECKING:
    from typer.core import TyperGroup


def app_for(arguments: tuple[str, ...]) -> typer.Typer:
    """The typer application with the one command that the arguments begin with; with all commands where they begin with
    none. Other commands' imports would cost start-up time."""
    named = [name for name in arguments[:1] if name in _COMMANDS]
    app = typer.Typer(
        cls=None if named else _help_with_examples(),
        help="A doctor for mixed-precision training in TensorFlow and Keras.",
        no_args_is_help=True,
        rich_markup_mode=None,  # plain help: quicker, and its columns fit
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )
    app.callback()(_mpdoctor)
    for name in named or (_COMMANDS if arguments[:1] != (VERSION,) else ()):
        _COMMANDS[name](app)
    return app


def _help_with_examples() -> type[TyperGroup]:
    from mpdoctor.cli.options.help import GroupHelp

    class Help(GroupHelp):
        examples = (
            ("mpdoctor check train.py", "Read a script, run it, and train it for fifty steps."),
            ("mpdoctor check --static src/", "Read only the source; run no code. The check for a CI."),
            ("mpdoctor mend train.py", "Print a patch that was proved by training again."),
            ("mpdoctor explain MP401", "Show what a rule finds, why it matters, and what to write instead."),
        )

    return Help


def _show_version(wanted: bool) -> None:
    if wanted:
        show_version()
        raise typer.Exit


def _mpdoctor(
    version: Annotated[
        bool,
        typer.Option(VERSION, help="Show the version and exit.", callback=_show_version, is_eager=True),
    ] = False,
) -> None:
    pass


def _check(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.check import check
    from mpdoctor.cli.options import check_options, interpreter, report_options

    declared = with_options(check, check_options, interpreter, report_options)
    app.command(cls=check_options.CheckHelp, short_help="Examine a training script or a model.")(declared)


def with_options(command: Callable[..., None], *declaring: ModuleType) -> Callable[..., None]:
    """The command, whose parameters are the options that these modules declare: its own module imports neither them nor
    typer, which a check in the commonest form does without."""
    names = {name: value for module in declaring for name, value in vars(module).items()}
    command.__annotations__ = get_type_hints(command, command.__globals__ | globals() | names, include_extras=True)
    return command


def _mend(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.mend import MendHelp, mend

    app.command(cls=MendHelp, short_help="Mend a script or a saved model, and prove each change by training again.")(
        mend
    )


def _compare(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.compare import CompareHelp, compare

    app.command(cls=CompareHelp, short_help="Train a script under several policies: time, memory, loss, and why.")(
        compare
    )


def _explain(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.explain import explain

    app.command(short_help="Explain a rule, or show correct custom loops.")(explain)


def _rules(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.rules import rules

    app.command()(rules)


def _show(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.show import show

    app.command(short_help="Show a saved diagnosis, or a recorded training.")(show)


def _env(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.env import env

    app.command(short_help="Show what this machine and this TensorFlow can do.")(env)


def _server(app: typer.Typer) -> None:
    from mpdoctor.cli.commands.server import server

    app.command(short_help="Start a language server: findings in your editor while you type.")(server)


# In the order of `--help`.
_COMMANDS: dict[str, Callable[[typer.Typer], None]] = {
    "check": _check,
    "mend": _mend,
    "compare": _compare,
    "explain": _explain,
    "rules": _rules,
    "show": _show,
    "env": _env,
    "server": _server,
}

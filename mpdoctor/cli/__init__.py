"""The command line: parse, call one function, print, exit. One file a command.

Commands import what they need when they run, so that `mpdoctor --help` starts at once.
"""

from __future__ import annotations

import atexit
import gc
import io
import os
import signal
import sys
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mpdoctor.cli.missing_resources import sentence_from_refusal

# not later: then no file can be opened, perhaps
from mpdoctor.cli.signals import EndedBySignal, end_by, raised_signals
from mpdoctor.cli.version import VERSION, show_version

if TYPE_CHECKING:
    from mpdoctor.cli.argument_split import Invocation

# After how many new objects the collector looks for garbage, of which a run makes little: what it makes is kept to its
# end. Python looks after 700, which took a seventh of a run over 1,250 files that the cache knew.
FEW_COLLECTIONS = 200_000
INTERRUPTED = 128 + signal.SIGINT  # the exit status that a shell gives what Ctrl-C ended


def program() -> None:
    """`main` as a process of its own, whose end does not take down piece by piece what the run has made: that took 3 %
    of a check of one file. Whatever asked Python to be told of the end is told."""
    try:
        main()
    except SystemExit as end:
        if not isinstance(end.code, int):
            raise
        atexit._run_exitfuncs()
        try:
            sys.stdout.flush()
            sys.stderr.flush()
        except (OSError, ValueError):  # nobody reads it any more: Python has its own words and status for that
            raise end from None
        os._exit(end.code)


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends in SystemExit with the exit status of the contract, or by the signal that asked for the end."""
    gc.set_threshold(FEW_COLLECTIONS)
    _open_closed_streams()
    atexit.register(gc.freeze)  # leaves Python's last collection nothing to go over: it was a quarter of a short check
    try:
        with raised_signals():
            _run(sys.argv[1:] if arguments is None else list(arguments))
    except EndedBySignal as end:
        if end.number != signal.SIGINT:
            end_by(end.number)
        print("mpdoctor: interrupted.", file=sys.stderr)
        sys.exit(INTERRUPTED)
    except Exception as error:  # whatever a user does has its own message
        refusal = sentence_from_refusal(error) if isinstance(error, OSError) else ""
        if refusal:
            print(f"mpdoctor: {refusal}", file=sys.stderr)
            sys.exit(2)
        import traceback

        traceback.print_exc()  # this is a defect of ours
        print(
            "mpdoctor: this is a defect in mpdoctor itself; the lines above say where. Please report them.",
            file=sys.stderr,
        )
        sys.exit(3)


def _open_closed_streams() -> None:
    """Have the null device behind each standard stream that whoever started us has closed (`>&-`): Python has None
    there, and the next file that is opened would get the stream's number."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


def _run(arguments: list[str]) -> None:
    if arguments == [VERSION]:  # others ask it before each of their runs, and would wait for typer
        show_version()
        sys.exit(0)
    from mpdoctor.cli.argument_split import invocation_from_arguments

    invocation = invocation_from_arguments(arguments)
    if invocation.own[:1] == ("check",):
        _check_without_typer(invocation)
    from mpdoctor.cli.app import app_for

    app = app_for(invocation.own)
    try:
        status = app(args=list(invocation.own), prog_name="mpdoctor", obj=invocation, standalone_mode=False)
    except Exception as error:
        if not hasattr(error, "show") or not hasattr(error, "exit_code"):
            raise
        _refuse_missing_target(error, invocation.script_args)
        _show_usage_error(error)
        status = error.exit_code
    sys.exit(status or 0)


def _refuse_missing_target(error: Exception, script_args: Sequence[str]) -> None:
    """Ends with a usage error where only arguments for the script were given: the target, perhaps, of who thought that
    mpdoctor's own stand after the `--`."""
    if script_args and type(error).__name__ == "MissingParameter":
        from mpdoctor.cli.argument_split import advice_on_target_behind
        from mpdoctor.cli.streams import fail

        advice = advice_on_target_behind(script_args)
        fail(f"arguments after -- are for a script, and no target comes before the `--`.{advice}")


def _check_without_typer(invocation: Invocation) -> None:
    """Make the check and exit, where it is one of the commonest forms; else nothing."""
    from mpdoctor.cli.quick_arguments import parameters_of_check

    parameters = parameters_of_check(invocation.own)
    if parameters is not None:
        from mpdoctor.cli.commands.check import check

        context: Any = SimpleNamespace(obj=invocation)  # all that it asks of typer's
        check(context, **parameters)


def _show_usage_error(error: Any) -> None:
    """What typer says of arguments, on standard error. They may be names of files, as those that a hook hands on."""
    from mpdoctor.cli.streams import write
    from mpdoctor.reporters.rendering import lines_for_a_log

    told = io.StringIO()
    error.show(file=told)
    write(lines_for_a_log(told.getvalue().splitlines()), sys.stderr)

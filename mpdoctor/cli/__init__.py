"""The command line: parse, call one function, print, exit. One file a command.

Commands import what they need when they run, so that `mpdoctor --help` starts at once.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Sequence


def main(arguments: Sequence[str] | None = None) -> None:
    """Ends in SystemExit with the exit status of the contract."""
    try:
        from mpdoctor.cli.app import app
        from mpdoctor.cli.invocation import invocation_from_arguments

        invocation = invocation_from_arguments(sys.argv[1:] if arguments is None else list(arguments))
        app(args=list(invocation.own), prog_name="mpdoctor", obj=invocation)
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:  # whatever a user does has its own message: this is a defect of ours
        traceback.print_exc()
        print("mpdoctor: it broke; the lines above say where. Please report them.", file=sys.stderr)
        sys.exit(3)

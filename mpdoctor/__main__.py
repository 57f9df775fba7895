"""`python -m mpdoctor`."""

import os
import sys


def _pass_over_working_directory() -> None:
    """Python has put it first on sys.path, and a file typer.py there, of whoever wrote what is to be checked, would
    run. A package mpdoctor there has run by now, in place of this one: with `python -I -m mpdoctor`, and with the
    program `mpdoctor`, neither does."""
    try:
        here = os.getcwd()  # noqa: PTH109 - pathlib is not to be looked for there either
    except OSError:  # it was removed
        here = ""
    if not getattr(sys.flags, "safe_path", sys.flags.isolated) and sys.path[0] in ("", here):
        del sys.path[0]


if __name__ == "__main__":
    _pass_over_working_directory()
    from mpdoctor.cli import program

    program()

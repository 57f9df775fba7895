"""`--python`: the Python that runs the user's program."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli.streams import fail

PythonOption = Annotated[
    Path | None, typer.Option(metavar="PATH", help="The Python that has your TensorFlow.", rich_help_panel="The run")
]


def interpreter_from_option(given: Path | None) -> Path | None:
    """Ends with a usage error where there is no such program."""
    if given is None:
        return None
    import shutil

    from mpdoctor.project.programs import program_on_path

    found = shutil.which(given) if len(given.parts) > 1 else program_on_path(given.name)
    path = Path(found) if found else None
    if path is None and given.is_dir():
        from mpdoctor.project.python_environments import python_of

        inside = python_of(given)
        fail(f"--python {given}: this is a directory{f'. Its Python is {inside}' if inside else ', and no program'}.")
    if path is None:
        fail(f"--python {given}: there is no such program.")
    return path

"""`mpdoctor env`: what this machine and this TensorFlow can do."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpdoctor.cli.options.interpreter import PythonOption, interpreter_from_option
from mpdoctor.cli.streams import fail, progress_for, width, write

if TYPE_CHECKING:
    from mpdoctor.facts.machine.environment import EnvironmentFacts


class EnvFormat(str, Enum):
    terminal = "terminal"
    json = "json"


PATIENCE = 120.0  # seconds for TensorFlow to be imported and its devices to be found


def env(
    python: PythonOption = None,
    output_format: Annotated[EnvFormat, typer.Option(metavar="FORMAT", help="terminal or json.")] = EnvFormat.terminal,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Show this machine's Python, TensorFlow and Keras, and what 16-bit numbers gain on each device."""
    import json

    from mpdoctor.facts.machine.environment import labels_from_environment

    labels = labels_from_environment(_environment_of_interpreter(interpreter_from_option(python), quiet))
    if output_format is EnvFormat.json:
        write(json.dumps(labels, indent=2) + "\n")
    else:
        write(text_from_labels(labels, width()))


def _environment_of_interpreter(python: Path | None, quiet: bool) -> EnvironmentFacts:
    """The environment of the chosen interpreter. One without TensorFlow is described too, with the remedy as its
    problem."""
    import sys
    from dataclasses import replace

    from mpdoctor.examination.examination_facts import ExaminerCrashed
    from mpdoctor.examination.run import environment_from_interpreter
    from mpdoctor.project.interpreters import OLDEST_PYTHON, NoInterpreter, interpreter_for, interpreter_from_path
    from mpdoctor.project.targets import target_from_text
    from mpdoctor.settings.options import Settings

    Path.cwd()  # where it was removed, that is said before TensorFlow is imported
    here = target_from_text(".")
    problem = ""
    try:
        chosen = interpreter_for(here, python)
    except NoInterpreter as reason:
        chosen, problem = python or Path(sys.executable), str(reason)
        known = interpreter_from_path(chosen)
        if known.python is None or known.python < OLDEST_PYTHON:
            fail(problem)
    progress = progress_for(quiet)
    try:
        environment = environment_from_interpreter(chosen, Settings((here,), timeout=PATIENCE), progress)
    except ExaminerCrashed as crash:
        fail(f"the examiner failed:\n{crash}", status=3)
    finally:
        progress.close()
    return replace(environment, problem=problem or environment.problem)


def text_from_labels(labels: dict[str, str], columns: int) -> str:
    """One label a line; a long text goes on under its beginning."""
    import textwrap

    wide = max(map(len, labels)) + 2
    lines = []
    for label, text in labels.items():
        told = textwrap.wrap(text, max(columns - wide, 20), break_on_hyphens=False) or [""]
        lines += [f"{label:<{wide}}{told[0]}", *(" " * wide + more for more in told[1:])]
    return "\n".join(lines) + "\n"

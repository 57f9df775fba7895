"""`mpdoctor compare TARGET`: one program under several policies, with its time, memory and losses, and why."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from mpdoctor.cli.options.check_options import (
    EXAMINED,
    RUN,
    TRAINING,
    BudgetOption,
    DeviceOption,
    QuietOption,
    StepsOption,
    TimeoutOption,
)
from mpdoctor.cli.options.choices import Device
from mpdoctor.cli.options.compare_options import (
    ALL_POLICIES,
    COMPARED,
    CompareFormat,
    CompareFormatOption,
    CompareRedactOption,
    CompareReportOption,
    PoliciesOption,
    RoundsOption,
    policies_from_text,
)
from mpdoctor.cli.options.help import HelpInGroups
from mpdoctor.cli.options.interpreter import PythonOption, interpreter_from_option
from mpdoctor.cli.options.mend_options import MendSeedOption, TargetArgument
from mpdoctor.cli.options.report_options import REPORTS, ColorOption, WidthOption
from mpdoctor.cli.output import SUFFIXES, Output, OutputFormat, output_from_options
from mpdoctor.cli.streams import Color, fail, look_of_terminal, write

if TYPE_CHECKING:
    from mpdoctor.cli.argument_split import Invocation
    from mpdoctor.compared import Compared
    from mpdoctor.project.targets import Target
    from mpdoctor.reporters.rendering import TerminalLook
    from mpdoctor.settings.options import Settings


class CompareHelp(HelpInGroups):
    groups = (COMPARED, EXAMINED, TRAINING, REPORTS, RUN)
    examples = (
        ("mpdoctor compare train.py", "float32, mixed_bfloat16 and mixed_float16."),
        ("mpdoctor compare train.py --policies float32,mixed_float16", "Only these two."),
        ("mpdoctor compare --report page.html train.py -- --epochs 2", "With a page, and arguments for the script."),
    )


def compare(
    context: typer.Context,
    target: TargetArgument,
    policies: PoliciesOption = ALL_POLICIES,
    rounds: RoundsOption = 3,
    steps: StepsOption = 50,
    budget: BudgetOption = 20,
    timeout: TimeoutOption = 600,
    device: DeviceOption = Device.auto,
    seed: MendSeedOption = 0,
    output_format: CompareFormatOption = CompareFormat.terminal,
    report: CompareReportOption = None,
    redact: CompareRedactOption = None,
    columns: WidthOption = None,
    color: ColorOption = Color.auto,
    python: PythonOption = None,
    quiet: QuietOption = False,
) -> None:
    """Train a script briefly under each of several policies, and show side by side how long a step takes, how much
    memory it needs, what the losses do and whether steps are lost, and the measured reasons.

    TARGET is a script (train.py), a notebook (train.ipynb) or a function that makes a model (model.py:build_model).
    Arguments after -- go to the script. A global policy that the script sets itself is replaced while it runs; no file
    is changed. The script is run once for each policy, and once more for each policy in every round: it does everything
    before its training call that often.

    Exit status: 0 compared; 2 fewer than two policies could be trained, or a report could not be written; 3 mpdoctor
    itself failed.
    """
    from mpdoctor.settings.options import Settings

    invocation: Invocation = context.obj
    named, chosen = _target(target, invocation), _policies(policies)
    output = output_from_options(
        OutputFormat(output_format.value), report, color, statistics=False, redact=redact, columns=columns
    )
    _refuse_other_formats(output)
    settings = Settings(
        targets=(named,),
        script_args=invocation.script_args,
        steps=steps,
        budget=budget,
        timeout=timeout,
        python=interpreter_from_option(python),
        device=device.value,
        seed=seed,
        command=invocation.command,
    )
    compared = _compare_with_progress(settings, chosen, rounds, quiet)
    written = [_write_file(compared, path, form, output.redacts(form), columns) for path, form in output.files]
    write(_report_text(compared, output.shown, output.redacts(output.shown), look_of_terminal(columns, color)))
    raise typer.Exit(max([compared.exit_code, *(0 if done else 2 for done in written)]))


def _target(text: str, invocation: Invocation) -> Target:
    """Ends with a usage error where it can't be trained under another policy."""
    from mpdoctor.project.targets import STDIN, TargetError, target_from_text

    if text == STDIN:
        fail("compare runs a script several times, and standard input (-) comes only once: name a file.")
    try:
        named = target_from_text(text)
    except TargetError as error:
        fail(str(error))
    if named.is_saved:
        fail(f"{text} is a saved model, whose layers keep their policies: name the script that trains it.")
    if not named.is_script and named.kind != "factory":
        fail(f"compare runs a script, a notebook or a function that makes a model, and {text} is none of these.")
    if invocation.script_args and named.kind != "script":
        fail("arguments after -- are for a script, and the target is none.")
    return named


def _policies(text: str) -> tuple[str, ...]:
    try:
        return policies_from_text(text)
    except ValueError as error:
        fail(f"--policies {text}: {error}")


def _refuse_other_formats(output: Output) -> None:
    for path, form in output.files:
        if form.value not in CompareFormat.__members__:
            known = ", ".join(suffix for suffix, made in SUFFIXES.items() if made.value in CompareFormat.__members__)
            fail(f"--report {path}: a comparison is written as {known}.")


def _compare_with_progress(settings: Settings, policies: tuple[str, ...], rounds: int, quiet: bool) -> Compared:
    from mpdoctor.cli.streams import progress_for
    from mpdoctor.comparing.comparing import compare

    progress = progress_for(quiet)
    try:
        return compare(settings, policies, rounds, progress)
    finally:
        progress.close()


def _report_text(compared: Compared, form: OutputFormat, redacts: bool, look: TerminalLook) -> str:
    from mpdoctor.reporters.rendering import report_from_compared

    shown = _without_private(compared) if redacts else compared
    if form is OutputFormat.terminal:
        return report_from_compared(shown, form.value, **look)
    return report_from_compared(shown, form.value)


def _without_private(compared: Compared) -> Compared:
    import dataclasses

    from mpdoctor.reporters.privacy import surroundings_from_environment, without_private

    around = surroundings_from_environment(os.environ)
    runs = (dataclasses.replace(run, diagnosis=without_private(run.diagnosis, around)) for run in compared.runs)
    return dataclasses.replace(compared, runs=tuple(runs))


def _write_file(compared: Compared, path: Path, form: OutputFormat, redacts: bool, columns: int | None) -> bool:
    from mpdoctor.project.named_files import write_text

    look: TerminalLook = {"width": columns} if columns else {}
    try:
        write_text(path, _report_text(compared, form, redacts, look), "backslashreplace")
    except OSError as error:
        write(f"mpdoctor: --report {path} could not be written: {error.strerror}.\n", sys.stderr)
        return False
    return True

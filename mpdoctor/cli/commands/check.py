"""`mpdoctor check TARGET`: the main job."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, NoReturn, TypeVar

import typer

from mpdoctor.cli.fixing import Wishes, check_source
from mpdoctor.cli.options.completion import rules_from_beginning
from mpdoctor.cli.options.help import HelpInGroups
from mpdoctor.cli.options.interpreter import PythonOption, interpreter_from_option
from mpdoctor.cli.options.numbers import seconds, whole_number
from mpdoctor.cli.output import (
    ColorOption,
    OutputFormat,
    OutputFormatOption,
    RedactOption,
    ReportOption,
    StatisticsOption,
    WidthOption,
    output_from_options,
    put_out,
)
from mpdoctor.cli.streams import Color, fail, say
from mpdoctor.finding import Severity

if TYPE_CHECKING:
    from mpdoctor.cli.argument_split import Invocation
    from mpdoctor.finding import Diagnosis
    from mpdoctor.project.targets import Target
    from mpdoctor.settings.options import Settings
    from mpdoctor.settings.pyproject import Configuration

Given = TypeVar("Given")


class Policy(str, Enum):
    auto = "auto"
    mixed_float16 = "mixed_float16"
    mixed_bfloat16 = "mixed_bfloat16"
    float32 = "float32"


class Device(str, Enum):
    auto = "auto"
    cpu = "cpu"
    gpu = "gpu"


# --- the headings of `check --help` ---
EXAMINED, TRAINING, FILES, RULES = "What is examined", "The short training", "Which files", "Which rules"
FIXES, REPORTS, STATUS, RUN = "Fixes, and what is known already", "Reports", "Exit status", "The run"


class CheckHelp(HelpInGroups):
    groups = (EXAMINED, TRAINING, FILES, RULES, FIXES, REPORTS, STATUS, RUN)
    examples = (
        ("mpdoctor check train.py", "Examine a script, and train it for fifty steps."),
        ("mpdoctor check train.py -- --epochs 2", "The same, with arguments for the script."),
        ("mpdoctor check --static src/", "The gate for a CI: read the source, run no code."),
        ("mpdoctor check model.keras --report ticket.md", "A saved model, and a report to paste into an issue."),
    )


def check(
    context: typer.Context,
    targets: Annotated[list[str] | None, typer.Argument(metavar="TARGET...", hidden=True)] = None,
    static: Annotated[
        bool, typer.Option("--static", help="Read the source only; run no code.", rich_help_panel=EXAMINED)
    ] = False,
    no_probe: Annotated[
        bool, typer.Option("--no-probe", help="Look at the model, but don't train it.", rich_help_panel=EXAMINED)
    ] = False,
    all_fits: Annotated[
        bool,
        typer.Option(
            "--all-fits",
            help="Train shortly at each fit() of a script, not at the first alone.",
            rich_help_panel=EXAMINED,
        ),
    ] = False,
    policy: Annotated[
        Policy,
        typer.Option(
            metavar="POLICY",
            help="auto, mixed_float16, mixed_bfloat16 or float32: the global policy.",
            rich_help_panel=EXAMINED,
        ),
    ] = Policy.auto,
    keras: Annotated[
        str | None,
        typer.Option(
            metavar="VERSION", help="3, tf_keras, 2.15 …: the Keras to judge source by.", rich_help_panel=EXAMINED
        ),
    ] = None,
    assume_mixed: Annotated[
        bool | None,
        typer.Option(
            "--assume-mixed/--no-assume-mixed",
            help="Judge source as if a mixed policy were set.",
            rich_help_panel=EXAMINED,
        ),
    ] = None,
    custom_objects: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE", help="Where the classes of a saved model are defined.", rich_help_panel=EXAMINED
        ),
    ] = None,
    allow_code_in_file: Annotated[
        bool,
        typer.Option("--allow-code-in-file", help="Load a saved model that holds code.", rich_help_panel=EXAMINED),
    ] = False,
    steps: Annotated[
        int, typer.Option(metavar="N", parser=whole_number(1), help="How many steps.", rich_help_panel=TRAINING)
    ] = 50,
    budget: Annotated[
        float,
        typer.Option(metavar="SECONDS", parser=seconds, help="Time that it may take.", rich_help_panel=TRAINING),
    ] = 60,
    timeout: Annotated[
        float,
        typer.Option(
            metavar="SECONDS", parser=seconds, help="Time until its first step is reached.", rich_help_panel=TRAINING
        ),
    ] = 600,
    device: Annotated[
        Device, typer.Option(metavar="DEVICE", help="auto, cpu or gpu: where to train.", rich_help_panel=TRAINING)
    ] = Device.auto,
    seed: Annotated[
        int | None,
        typer.Option(
            metavar="N", parser=whole_number(0), help="For weights and made-up data.", rich_help_panel=TRAINING
        ),
    ] = None,
    exclude: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERNS",
            help="Leave out these files and directories, in place of `exclude` in the configuration.",
            rich_help_panel=FILES,
        ),
    ] = None,
    extend_exclude: Annotated[
        list[str] | None, typer.Option(metavar="PATTERNS", help="Leave out these as well.", rich_help_panel=FILES)
    ] = None,
    force_exclude: Annotated[
        bool,
        typer.Option("--force-exclude", help="Pass over excluded files that are named, too.", rich_help_panel=FILES),
    ] = False,
    stdin_filename: Annotated[
        str,
        typer.Option(metavar="NAME", help="What file the source from standard input (-) is.", rich_help_panel=FILES),
    ] = "stdin.py",
    show_files: Annotated[
        bool, typer.Option("--show-files", help="List the files that would be read, and end.", rich_help_panel=FILES)
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES",
            help="Only these rules: codes, prefixes, names.",
            autocompletion=rules_from_beginning,
            rich_help_panel=RULES,
        ),
    ] = None,
    extend_select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES",
            help="These, too, where the configuration selects some.",
            autocompletion=rules_from_beginning,
            rich_help_panel=RULES,
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES",
            help="All but these rules.",
            autocompletion=rules_from_beginning,
            rich_help_panel=RULES,
        ),
    ] = None,
    extend_ignore: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES",
            help="Nor these, besides those that the configuration ignores.",
            autocompletion=rules_from_beginning,
            rich_help_panel=RULES,
        ),
    ] = None,
    per_file_ignores: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATTERN:CODES", help="Ignore rules in some files: 'tests/*:MP304,MP5'.", rich_help_panel=RULES
        ),
    ] = None,
    fix: Annotated[
        bool, typer.Option("--fix", help="Apply the safe fixes; implies --static.", rich_help_panel=FIXES)
    ] = False,
    unsafe_fixes: Annotated[
        bool,
        typer.Option(
            "--unsafe-fixes",
            help="With --fix and --diff: those too that change numbers or layers.",
            rich_help_panel=FIXES,
        ),
    ] = False,
    diff: Annotated[
        bool,
        typer.Option(
            "--diff",
            help="Show what --fix would change, and change nothing; implies --static.",
            rich_help_panel=FIXES,
        ),
    ] = False,
    add_ignores: Annotated[
        bool,
        typer.Option(
            "--add-ignores",
            help="Put an ignore comment on each line with a finding; implies --static.",
            rich_help_panel=FIXES,
        ),
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Leave out the findings that this file knows; implies --static.",
            rich_help_panel=FIXES,
        ),
    ] = None,
    write_baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Keep all findings in this file; implies --static.", rich_help_panel=FIXES),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(
            metavar="GIT_REF",
            help="Only what stands on lines changed since; implies --static.",
            rich_help_panel=FIXES,
        ),
    ] = None,
    output_format: OutputFormatOption = OutputFormat.terminal,
    report: ReportOption = None,
    redact: RedactOption = None,
    statistics: StatisticsOption = False,
    columns: WidthOption = None,
    color: ColorOption = Color.auto,
    fail_on: Annotated[
        Severity | None,
        typer.Option(
            metavar="SEVERITY",
            help="error, warning (default) or info: exit with 1 from there on.",
            rich_help_panel=STATUS,
        ),
    ] = None,
    exit_zero: Annotated[
        bool, typer.Option("--exit-zero", help="Exit with 0 despite findings.", rich_help_panel=STATUS)
    ] = False,
    python: PythonOption = None,
    config: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The pyproject.toml with [tool.mpdoctor].", rich_help_panel=RUN),
    ] = None,
    isolated: Annotated[
        bool, typer.Option("--isolated", help="Read no pyproject.toml of mpdoctor's.", rich_help_panel=RUN)
    ] = False,
    show_settings: Annotated[
        bool,
        typer.Option("--show-settings", help="Show the settings that would count, and end.", rich_help_panel=RUN),
    ] = False,
    no_cache: Annotated[
        bool,
        typer.Option(
            "--no-cache", help="Read every file anew, and keep nothing for the next time.", rich_help_panel=RUN
        ),
    ] = False,
    show_output: Annotated[
        bool,
        typer.Option("--show-output", help="Show what the script prints, on standard error.", rich_help_panel=RUN),
    ] = False,
    keep_run: Annotated[
        Path | None, typer.Option(metavar="DIR", hidden=True, help="Keep what the examiner was asked and told.")
    ] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=RUN)] = False,
) -> None:
    """Examine a training script or a model: its source, its layers and optimizer, and a short training.

    TARGET is a script (train.py), a function that makes a model (model.py:build_model or
    package.module:build_model) or a saved model (.keras, .h5, a SavedModel directory); of a directory of source, a
    notebook, standard input (-) and of several targets the source alone is read; without a target, that of this
    directory. What follows a -- is handed to the script.

    Exit status: 0 nothing found, 1 findings, 2 the target could not be examined, 3 mpdoctor itself broke.
    """
    from mpdoctor.cli.options.selection import chosen_files, chosen_rules, configuration_for, is_excluded
    from mpdoctor.project.targets import TargetError, walked
    from mpdoctor.settings.options import Settings, keras_from_text
    from mpdoctor.settings.pyproject import ConfigurationError

    invocation: Invocation = context.obj
    output = output_from_options(output_format, report, color, statistics, redact, columns)
    wishes = Wishes(fix, unsafe_fixes, diff, add_ignores, baseline, write_baseline, since)
    wishes.refuse_what_does_not_fit(output)
    try:
        examined, not_examined = _usable(dict.fromkeys(targets or ["."]), lambda text: _target(text, stdin_filename))
        configured = configuration_for(config, examined, isolated)
        configured = chosen_rules(configured, select, extend_select, ignore, extend_ignore, per_file_ignores)
        configured = chosen_files(configured, examined, exclude, extend_exclude)
        if force_exclude:
            examined = tuple(target for target in examined if not is_excluded(target, configured))
        examined, empty = _usable(examined, lambda target: walked(target, configured.exclude))
        judged_by = keras_from_text(keras) if keras is not None else configured.keras
    except (TargetError, ConfigurationError, ValueError) as error:
        fail(str(error))
    if invocation.script_args and not any(target.kind == "script" for target in examined):
        fail("arguments after -- are for a script, and no target is one.")
    settings = Settings(
        targets=examined,
        script_args=invocation.script_args,
        static=static or bool(wishes),
        probe=not no_probe,
        all_fits=all_fits,
        steps=steps,
        budget=budget,
        timeout=timeout,
        policy=policy.value,
        python=interpreter_from_option(python),
        device=device.value,
        seed=seed,
        keras=judged_by,
        assume_mixed=bool(configured.assume_mixed if assume_mixed is None else assume_mixed),
        custom_objects=custom_objects,
        allow_code_in_file=allow_code_in_file,
        select=configured.select or (),
        ignore=configured.ignore or (),
        per_file_ignores=configured.per_file_ignores,
        fail_on=fail_on or configured.fail_on or Severity.WARNING,
        exit_zero=exit_zero,
        cache=not no_cache,
        keep_run=_made(keep_run),
        show_output=show_output,
        docs_url=configured.docs_url,
        not_examined=(*not_examined, *empty),
        command=invocation.command,
    )
    for reason in settings.not_examined:
        say(reason)
    if show_settings or show_files:
        _show(settings, configured, show_settings, show_files)
    if wishes:
        raise typer.Exit(check_source(settings, wishes, output, quiet))
    raise typer.Exit(put_out(_diagnosed(settings, quiet), output))


def _made(directory: Path | None) -> Path | None:
    if directory is not None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"--keep-run: {directory} cannot be made: {error.strerror}.")
    return directory


def _target(text: str, stdin_filename: str) -> Target:
    """Raises TargetError."""
    import sys

    from mpdoctor.project.targets import STDIN, target_from_content, target_from_text

    return target_from_content(sys.stdin.buffer.read(), stdin_filename) if text == STDIN else target_from_text(text)


def _usable(given: Collection[Given], target_from: Callable[[Given], Target]) -> tuple[tuple[Target, ...], list[str]]:
    """The targets that can be examined, and of the others why not.

    Raises TargetError where none is left."""
    from mpdoctor.project.targets import TargetError

    usable, refused = [], []
    for one in given:
        try:
            usable.append(target_from(one))
        except TargetError as error:
            refused.append(error)
    if refused and not usable:
        raise refused[0]
    return tuple(usable), [str(error) for error in refused]


def _show(settings: Settings, configured: Configuration, show_settings: bool, show_files: bool) -> NoReturn:
    from mpdoctor.cli.streams import write
    from mpdoctor.cli.texts.shown_settings import files_of_targets, text_from_settings

    if show_settings:
        write(text_from_settings(settings, configured))
    if show_files:
        write("".join(f"{path}\n" for path in files_of_targets(settings.targets)))
    raise typer.Exit(2 if settings.not_examined else 0)


def _diagnosed(settings: Settings, quiet: bool) -> Diagnosis:
    from mpdoctor.cli.streams import progress_for
    from mpdoctor.diagnosis import diagnose

    progress = progress_for(quiet)
    try:
        return diagnose(settings, progress)
    finally:
        progress.close()

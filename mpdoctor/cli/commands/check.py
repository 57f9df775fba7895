"""`mpdoctor check TARGET`: examines scripts, models and source."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from mpdoctor.cli.fixing import Wishes, check_source
from mpdoctor.cli.options.choices import Device, Policy
from mpdoctor.cli.output import OutputFormat, output_from_options, put_out
from mpdoctor.cli.streams import Color, fail, say
from mpdoctor.finding import Severity

if TYPE_CHECKING:  # the options' declarations: see `with_options`
    import typer

    from mpdoctor.cli.argument_split import Invocation
    from mpdoctor.cli.options.check_options import (
        AddIgnoresOption,
        AllFitsOption,
        AllowCodeInFileOption,
        AssumeMixedOption,
        BaselineOption,
        BudgetOption,
        ConfigOption,
        CustomObjectsOption,
        DeviceOption,
        DiffOption,
        ExcludeOption,
        ExitZeroOption,
        ExtendExcludeOption,
        ExtendIgnoreOption,
        ExtendSelectOption,
        FailOnOption,
        FixOption,
        ForceExcludeOption,
        FromRunOption,
        IgnoreOption,
        IsolatedOption,
        KeepRunOption,
        KerasOption,
        NoCacheOption,
        NoProbeOption,
        NoSecondTrainingOption,
        PerFileIgnoresOption,
        PolicyOption,
        QuietOption,
        ReferenceOption,
        SeedOption,
        SelectOption,
        ShowFilesOption,
        ShowOutputOption,
        ShowSettingsOption,
        SinceOption,
        StaticOption,
        StdinFilenameOption,
        StepsOption,
        TargetsArgument,
        TimeoutOption,
        UnsafeFixesOption,
        WatchOption,
        WriteBaselineOption,
    )
    from mpdoctor.cli.options.interpreter import PythonOption
    from mpdoctor.cli.options.report_options import (
        ColorOption,
        OutputFormatOption,
        RedactOption,
        ReportOption,
        StatisticsOption,
        WidthOption,
    )
    from mpdoctor.finding import Diagnosis
    from mpdoctor.project.targets import Target
    from mpdoctor.settings.options import Settings
    from mpdoctor.settings.pyproject import Configuration


def check(
    context: typer.Context,
    targets: TargetsArgument = None,
    static: StaticOption = False,
    watch: WatchOption = False,
    no_probe: NoProbeOption = False,
    all_fits: AllFitsOption = False,
    policy: PolicyOption = Policy.auto,
    keras: KerasOption = None,
    assume_mixed: AssumeMixedOption = None,
    custom_objects: CustomObjectsOption = None,
    allow_code_in_file: AllowCodeInFileOption = False,
    steps: StepsOption = 50,
    budget: BudgetOption = 60,
    reference: ReferenceOption = False,
    from_run: FromRunOption = None,
    no_second_training: NoSecondTrainingOption = False,
    timeout: TimeoutOption = 600,
    device: DeviceOption = Device.auto,
    seed: SeedOption = None,
    exclude: ExcludeOption = None,
    extend_exclude: ExtendExcludeOption = None,
    force_exclude: ForceExcludeOption = False,
    stdin_filename: StdinFilenameOption = "stdin.py",
    show_files: ShowFilesOption = False,
    select: SelectOption = None,
    extend_select: ExtendSelectOption = None,
    ignore: IgnoreOption = None,
    extend_ignore: ExtendIgnoreOption = None,
    per_file_ignores: PerFileIgnoresOption = None,
    fix: FixOption = False,
    unsafe_fixes: UnsafeFixesOption = False,
    diff: DiffOption = False,
    add_ignores: AddIgnoresOption = False,
    baseline: BaselineOption = None,
    write_baseline: WriteBaselineOption = None,
    since: SinceOption = None,
    output_format: OutputFormatOption = OutputFormat.terminal,
    report: ReportOption = None,
    redact: RedactOption = None,
    statistics: StatisticsOption = False,
    columns: WidthOption = None,
    color: ColorOption = Color.auto,
    fail_on: FailOnOption = None,
    exit_zero: ExitZeroOption = False,
    python: PythonOption = None,
    config: ConfigOption = None,
    isolated: IsolatedOption = False,
    show_settings: ShowSettingsOption = False,
    no_cache: NoCacheOption = False,
    show_output: ShowOutputOption = False,
    keep_run: KeepRunOption = None,
    quiet: QuietOption = False,
) -> NoReturn:
    """Examine a training script or a model: its source, its layers and optimizer, and a short training.

    TARGET is a script (train.py), a notebook (train.ipynb), a function that makes a model (model.py:build_model or
    package.module:build_model) or a saved model (.keras, .h5, a SavedModel directory). For a directory, standard input
    (-) or several targets, only the source is read; without a target, that of this directory. Arguments after -- go to
    the script.

    Exit status: 0 nothing at or above --fail-on, 1 findings, 2 the target could not be examined, 3 mpdoctor
    itself failed.
    """
    from mpdoctor.cli.options.examined_targets import target_named, usable_targets
    from mpdoctor.cli.options.selection import chosen_files, chosen_rules, configuration_for, keras_chosen, not_excluded
    from mpdoctor.project.targets import TargetError, with_its_files
    from mpdoctor.settings.options import Settings
    from mpdoctor.settings.pyproject import ConfigurationError

    if watch:
        from mpdoctor.cli.watching import watch_command

        sys.exit(watch_command(context, targets or ["."], static))
    invocation: Invocation = context.obj
    output = output_from_options(output_format, report, color, statistics, redact, columns)
    wishes = Wishes(fix, unsafe_fixes, diff, add_ignores, baseline, write_baseline, since)
    wishes.refuse_what_does_not_fit(output)
    reads_source_only = static or bool(wishes)
    try:
        named = dict.fromkeys(targets or ["."])
        source_only = reads_source_only or len(named) > 1
        examined, not_examined = usable_targets(named, lambda text: target_named(text, stdin_filename, source_only))
        configured = configuration_for(config, examined, isolated)
        configured = chosen_rules(configured, select, extend_select, ignore, extend_ignore, per_file_ignores)
        configured = chosen_files(configured, examined, exclude, extend_exclude)
        kept = not_excluded(examined, configured) if force_exclude else examined
        examined, empty = usable_targets(kept, lambda target: with_its_files(target, configured.exclude))
        judged_by = keras_chosen(keras, configured)
    except (TargetError, ConfigurationError, ValueError) as error:
        fail(str(error))
    _refuse_arguments(invocation.script_args, examined)
    settings = Settings(
        targets=examined,
        script_args=invocation.script_args,
        static=reads_source_only,
        probe=not no_probe,
        all_fits=all_fits,
        second_training=not no_second_training,
        reference=reference,
        recorded_batch=None if from_run is None else _recorded_batch(from_run, examined, reads_source_only),
        steps=steps,
        budget=budget,
        timeout=timeout,
        policy=policy.value,
        python=_interpreter(python),
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
        keep_run=_made_directory(keep_run),
        show_output=show_output,
        docs_url=configured.docs_url,
        not_examined=(*not_examined, *empty),
        command=invocation.command,
    )
    for reason in settings.not_examined:
        say(reason)
    if show_settings or show_files:
        _show_settings_or_files(settings, configured, show_settings, show_files)
    if wishes:
        sys.exit(check_source(settings, wishes, output, quiet))
    sys.exit(put_out(_diagnose_with_progress(settings, quiet), output))


def _refuse_arguments(script_args: Sequence[str], examined: Sequence[Target]) -> None:
    if script_args and not any(target.kind == "script" for target in examined):
        from mpdoctor.cli.argument_split import advice_on_target_behind

        advice = advice_on_target_behind(script_args)
        fail(f"arguments after -- are for a script, and no target is one.{advice}")


def _interpreter(given: Path | None) -> Path | None:
    if given is None:
        return None
    from mpdoctor.cli.options.interpreter import interpreter_from_option

    return interpreter_from_option(given)


def _made_directory(directory: Path | None) -> Path | None:
    if directory is not None:
        try:
            directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            fail(f"--keep-run: {directory} cannot be made: {error.strerror}.")
    return directory


def _recorded_batch(run: Path, examined: Sequence[Target], static: bool) -> Path:
    from mpdoctor.cli.options.recorded_batch import recorded_batch

    return recorded_batch(run, examined, static)


def _show_settings_or_files(
    settings: Settings, configured: Configuration, show_settings: bool, show_files: bool
) -> NoReturn:
    from mpdoctor.cli.streams import write
    from mpdoctor.cli.texts.shown_settings import files_of_targets, text_from_settings
    from mpdoctor.reporters.rendering import lines_for_a_log

    if show_settings:
        write(text_from_settings(settings, configured))
    if show_files:
        write(lines_for_a_log(files_of_targets(settings.targets)))
    sys.exit(2 if settings.not_examined else 0)


def _diagnose_with_progress(settings: Settings, quiet: bool) -> Diagnosis:
    from mpdoctor.cli.streams import progress_for

    progress = progress_for(quiet)

    def diagnosed() -> Diagnosis:
        from mpdoctor.diagnosis import diagnose

        return diagnose(settings, progress)

    try:
        if not (settings.cache and settings.is_of_files):
            return diagnosed()
        from mpdoctor.unchanged_runs import diagnosis_of_files

        return diagnosis_of_files(settings, diagnosed)
    finally:
        progress.close()

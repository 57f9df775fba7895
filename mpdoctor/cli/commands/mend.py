"""`mpdoctor mend TARGET`: edits a program until nothing is left to mend, and proves each edit by training again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from mpdoctor.cli.fixing import write_file
from mpdoctor.cli.options.check_options import (
    EXAMINED,
    REPORTS,
    RULES,
    RUN,
    TRAINING,
    AllowCodeInFileOption,
    BudgetOption,
    ConfigOption,
    CustomObjectsOption,
    DeviceOption,
    IgnoreOption,
    IsolatedOption,
    KerasOption,
    QuietOption,
    SelectOption,
    StepsOption,
    TimeoutOption,
)
from mpdoctor.cli.options.choices import Device
from mpdoctor.cli.options.help import HelpInGroups
from mpdoctor.cli.options.interpreter import PythonOption, interpreter_from_option
from mpdoctor.cli.options.mend_options import (
    MENDED,
    MendFormat,
    MendFormatOption,
    MendReferenceOption,
    MendSeedOption,
    NewPolicyOption,
    OutputOption,
    TargetArgument,
    WriteOption,
)
from mpdoctor.cli.options.report_options import ColorOption, WidthOption
from mpdoctor.cli.streams import Color, fail, look_of_terminal, patch_for_output, say, write

if TYPE_CHECKING:
    from mpdoctor.cli.argument_split import Invocation
    from mpdoctor.fixes.rounds import EditedFile
    from mpdoctor.mended import Mended
    from mpdoctor.project.targets import Target
    from mpdoctor.reporters.rendering import TerminalLook
    from mpdoctor.settings.options import Settings


class MendHelp(HelpInGroups):
    groups = (MENDED, EXAMINED, TRAINING, RULES, REPORTS, RUN)
    examples = (
        ("mpdoctor mend train.py", "Show the changes as a patch, and the training before and after."),
        ("mpdoctor mend train.py | git apply", "Apply the patch."),
        ("mpdoctor mend train.py --write -- --epochs 2", "Write the changes; with arguments for the script."),
        ("mpdoctor mend train.py --policy mixed_float16", "Switch mixed precision on, and prove that it works."),
        (
            "mpdoctor mend train.py --reference",
            "Also mend a loss that is only worse than float32's.",
        ),
        ("mpdoctor mend old.keras --output new.keras", "Mend a saved model: a new file with the same weights."),
    )


def mend(
    context: typer.Context,
    target: TargetArgument,
    policy: NewPolicyOption = None,
    write_files: WriteOption = False,
    output: OutputOption = None,
    keras: KerasOption = None,
    custom_objects: CustomObjectsOption = None,
    allow_code_in_file: AllowCodeInFileOption = False,
    reference: MendReferenceOption = False,
    steps: StepsOption = 50,
    budget: BudgetOption = 60,
    timeout: TimeoutOption = 600,
    device: DeviceOption = Device.auto,
    seed: MendSeedOption = 0,
    select: SelectOption = None,
    ignore: IgnoreOption = None,
    output_format: MendFormatOption = MendFormat.terminal,
    columns: WidthOption = None,
    color: ColorOption = Color.auto,
    python: PythonOption = None,
    config: ConfigOption = None,
    isolated: IsolatedOption = False,
    quiet: QuietOption = False,
) -> None:
    """Mend a training script: make edits in memory and prove each round of them by training again, until nothing at
    warning or above remains or no edit helps; then drop every edit that was not needed.

    The output is the training before and after, and a patch for `git apply`; no file is changed without --write. TARGET
    is a script (train.py), a notebook (train.ipynb) or a function that makes a model (model.py:build_model); for a
    directory or standard input (-), only the source is edited. For a saved model (.keras, .h5) a new file is written to
    --output, with other dtype policies and the same weights. Arguments after -- go to the script. The script is run
    again each time: it does everything before its training call once per round, and once for each edit that is left out
    on trial.

    Exit status: 0 mended, or nothing to mend; 1 something at warning or above remains; 2 the target could not be
    examined or a file not written, 3 mpdoctor itself failed.
    """
    from mpdoctor.cli.options.selection import chosen_rules, configuration_for, keras_chosen
    from mpdoctor.project.targets import TargetError, target_from_text, with_its_files
    from mpdoctor.settings.options import Settings
    from mpdoctor.settings.pyproject import ConfigurationError

    invocation: Invocation = context.obj
    try:
        named = _from_standard_input() if target == "-" else target_from_text(target)
        if named.is_saved != (output is not None):
            _refuse_output(named)
        configured = chosen_rules(configuration_for(config, [named], isolated), select, None, ignore, None, None)
        examined = with_its_files(named, configured.exclude)
        judged_by = keras_chosen(keras, configured)
    except (TargetError, ConfigurationError, ValueError) as error:
        fail(str(error))
    if invocation.script_args and examined.kind != "script":
        fail("arguments after -- are for a script, and the target is none.")
    if write_files and output is not None:
        fail("--write writes edits into source; for a saved model, name the new file with --output.")
    _refuse_other_targets(examined, target, policy is not None, reference)
    settings = Settings(
        targets=(examined,),
        script_args=invocation.script_args,
        steps=steps,
        budget=budget,
        timeout=timeout,
        what_if=False,
        edits_after_run=True,
        second_training=reference,  # of which the same training in float32 is one
        reference=reference,
        python=interpreter_from_option(python),
        device=device.value,
        seed=seed,
        custom_objects=custom_objects,
        allow_code_in_file=allow_code_in_file,
        keras=judged_by,
        assume_mixed=bool(configured.assume_mixed),
        select=configured.select or (),
        ignore=configured.ignore or (),
        per_file_ignores=configured.per_file_ignores,
        docs_url=configured.docs_url,
        command=invocation.command,
    )
    if output is not None:
        _mend_file(settings, output, policy.value if policy is not None else "", quiet, output_format, columns, color)
    mended, files = _mend_with_progress(settings, policy.value if policy is not None else "", quiet)
    _put_out_report(mended, output_format, columns, color)
    if output_format is MendFormat.terminal and not write_files:
        _say_what_git_does_not_apply(files)
    is_written = not write_files or _write_edits(files, examined)
    raise typer.Exit(max(_exit_status(mended), 0 if is_written else 2))


def _refuse_other_targets(examined: Target, named: str, switches: bool, reference: bool) -> None:
    is_run = examined.kind in ("script", "factory")
    if switches and not examined.is_saved and not is_run:
        fail(f"--policy switches a script or a function that makes a model, and {named} is neither.")
    if reference and not is_run:
        fail(f"--reference trains a script or a function that makes a model in float32 as well; {named} is neither.")


def _refuse_output(target: Target) -> NoReturn:
    if target.is_saved:
        fail(f"{target.id} is a saved model, and nothing is overwritten: name the new file with --output.")
    fail(f"--output is for a saved model (.keras, .h5), and {target.id} is none: --write edits source.")


def _mend_file(
    settings: Settings,
    output: Path,
    policy: str,
    quiet: bool,
    form: MendFormat,
    columns: int | None,
    color: Color,
) -> NoReturn:
    from mpdoctor.cli.streams import progress_for
    from mpdoctor.mending.saved.refused_targets import Refused
    from mpdoctor.mending.saved.saved_files import mend_saved_model
    from mpdoctor.reporters.rendering import report_from_mended_file

    progress = progress_for(quiet)
    try:
        mended = mend_saved_model(settings, output, policy, progress)
    except Refused as reason:
        fail(str(reason))
    except OSError as error:
        fail(f"--output {output} could not be written: {error.strerror}.")
    finally:
        progress.close()
    write(report_from_mended_file(mended, form.value, **_look_for(form, columns, color)))
    raise typer.Exit(mended.exit_code)


def _from_standard_input() -> Target:
    import sys

    from mpdoctor.project.targets import target_from_content

    return target_from_content(sys.stdin.buffer.read(), "stdin.py")


def _mend_with_progress(settings: Settings, policy: str, quiet: bool) -> tuple[Mended, list[EditedFile]]:
    from mpdoctor.cli.streams import progress_for
    from mpdoctor.mending.draft import CannotEdit
    from mpdoctor.mending.mending import mend

    progress = progress_for(quiet)
    try:
        return mend(settings, progress, policy)
    except CannotEdit as reason:
        fail(f"it cannot be switched to {policy}: {reason}.")
    finally:
        progress.close()


def _put_out_report(mended: Mended, form: MendFormat, columns: int | None, color: Color) -> None:
    from dataclasses import replace

    from mpdoctor.reporters.rendering import report_from_mended

    if form is MendFormat.terminal:
        mended = replace(mended, patch=patch_for_output(mended.patch))
    write(report_from_mended(mended, form.value, **_look_for(form, columns, color)))


def _look_for(form: MendFormat, columns: int | None, color: Color) -> TerminalLook:
    return {} if form is MendFormat.json else look_of_terminal(columns, color)


def _say_what_git_does_not_apply(files: list[EditedFile]) -> None:
    from mpdoctor.fixes.rounds import NOTEBOOK

    for file in files:
        if file.shown_as.endswith(NOTEBOOK):
            say(f"{file.shown_as} is a notebook: its patch is for reading, and --write makes the changes.")
        elif not _is_utf8(file.before):
            say(f"{file.shown_as} is not in UTF-8: git does not find its lines; --write makes the changes.")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def _write_edits(files: list[EditedFile], target: Target) -> bool:
    if target.kind == "stdin":
        say("--write has no file to write: the source came from standard input.")
        return False
    done = [write_file(file) for file in files]
    for file, is_written in zip(files, done, strict=True):
        if is_written:
            say(f"{file.shown_as} was written.")
    return all(done)


def _exit_status(mended: Mended) -> int:
    """3 and 2 as after a check; else whether something is left to mend."""
    if mended.after.exit_code > 1:
        return mended.after.exit_code
    return 0 if mended.is_healthy else 1

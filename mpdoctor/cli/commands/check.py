"""`mpdoctor check TARGET`: the main job."""

from __future__ import annotations

from collections.abc import Callable, Collection
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from mpdoctor.cli.completion import rules_from_beginning
from mpdoctor.cli.fixing import Wishes, check_source
from mpdoctor.cli.interpreter import PythonOption, interpreter_from_option
from mpdoctor.cli.output import (
    ColorOption,
    OutputFormat,
    OutputFormatOption,
    RedactOption,
    ReportOption,
    StatisticsOption,
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


def check(
    context: typer.Context,
    targets: Annotated[list[str], typer.Argument(metavar="TARGET", hidden=True)],
    static: Annotated[bool, typer.Option("--static", help="Read the source only; run no code.")] = False,
    no_probe: Annotated[bool, typer.Option("--no-probe", help="Look at the model, but don't train it.")] = False,
    all_fits: Annotated[
        bool, typer.Option("--all-fits", help="Train shortly at each fit() of a script, not at the first alone.")
    ] = False,
    steps: Annotated[int, typer.Option(metavar="N", min=1, help="Steps of the short training.")] = 50,
    budget: Annotated[float, typer.Option(metavar="SECONDS", min=0, help="Time that it may take.")] = 60,
    timeout: Annotated[
        float, typer.Option(metavar="SECONDS", min=0, help="Time until its first step is reached.")
    ] = 600,
    policy: Annotated[
        Policy,
        typer.Option(metavar="POLICY", help="auto, mixed_float16, mixed_bfloat16 or float32: the global policy."),
    ] = Policy.auto,
    python: PythonOption = None,
    device: Annotated[Device, typer.Option(metavar="DEVICE", help="auto, cpu or gpu: where to train.")] = Device.auto,
    seed: Annotated[int | None, typer.Option(metavar="N", help="For weights and made-up data.")] = None,
    keras: Annotated[
        str | None, typer.Option(metavar="VERSION", help="3, tf_keras, 2.15 …: the Keras to judge source by.")
    ] = None,
    assume_mixed: Annotated[
        bool | None,
        typer.Option("--assume-mixed/--no-assume-mixed", help="Judge source as if a mixed policy were set."),
    ] = None,
    custom_objects: Annotated[
        str | None, typer.Option(metavar="MODULE", help="Where the classes of a saved model are defined.")
    ] = None,
    allow_code_in_file: Annotated[
        bool, typer.Option("--allow-code-in-file", help="Load a saved model that holds code.")
    ] = False,
    select: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CODES", help="Only these rules: codes, prefixes, names.", autocompletion=rules_from_beginning
        ),
    ] = None,
    ignore: Annotated[
        list[str] | None,
        typer.Option(metavar="CODES", help="All but these rules.", autocompletion=rules_from_beginning),
    ] = None,
    fail_on: Annotated[
        Severity | None,
        typer.Option(metavar="SEVERITY", help="error, warning (default) or info: exit with 1 from there on."),
    ] = None,
    exit_zero: Annotated[bool, typer.Option("--exit-zero", help="Exit with 0 despite findings.")] = False,
    config: Annotated[
        Path | None, typer.Option(metavar="FILE", help="The pyproject.toml with [tool.mpdoctor].")
    ] = None,
    stdin_filename: Annotated[
        str, typer.Option(metavar="NAME", help="What file the source from standard input (-) is.")
    ] = "stdin.py",
    force_exclude: Annotated[
        bool, typer.Option("--force-exclude", help="Pass over excluded files that are named, too.")
    ] = False,
    fix: Annotated[bool, typer.Option("--fix", help="Apply the safe fixes; implies --static.")] = False,
    unsafe_fixes: Annotated[
        bool, typer.Option("--unsafe-fixes", help="With --fix and --diff: those too that change numbers or layers.")
    ] = False,
    diff: Annotated[
        bool, typer.Option("--diff", help="Show what --fix would change, and change nothing; implies --static.")
    ] = False,
    add_ignores: Annotated[
        bool,
        typer.Option("--add-ignores", help="Put an ignore comment on each line with a finding; implies --static."),
    ] = False,
    baseline: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Leave out the findings that this file knows; implies --static."),
    ] = None,
    write_baseline: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep all findings in this file; implies --static.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(metavar="GIT_REF", help="Only what stands on lines changed since; implies --static."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Read every file anew, and keep nothing for the next time.")
    ] = False,
    keep_run: Annotated[
        Path | None, typer.Option(metavar="DIR", hidden=True, help="Keep what the examiner was asked and told.")
    ] = None,
    output_format: OutputFormatOption = OutputFormat.terminal,
    report: ReportOption = None,
    redact: RedactOption = None,
    statistics: StatisticsOption = False,
    color: ColorOption = Color.auto,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")] = False,
) -> None:
    """Examine a training script or a model: its source, its layers and optimizer, and a short training.

    TARGET is a script (train.py), a function that makes a model (model.py:build_model or
    package.module:build_model) or a saved model (.keras, .h5, a SavedModel directory); of a directory of source, a
    notebook, standard input (-) and of several targets the source alone is read. What follows a -- is handed to the
    script.

    Exit status: 0 nothing found, 1 findings, 2 the target could not be examined, 3 mpdoctor itself broke.
    """
    from mpdoctor.project.targets import TargetError, walked
    from mpdoctor.settings.options import Settings, keras_from_text
    from mpdoctor.settings.pyproject import ConfigurationError

    invocation: Invocation = context.obj
    output = output_from_options(output_format, report, color, statistics, redact)
    wishes = Wishes(fix, unsafe_fixes, diff, add_ignores, baseline, write_baseline, since)
    wishes.refuse_what_does_not_fit(output)
    try:
        examined, not_examined = _usable(dict.fromkeys(targets), lambda text: _target(text, stdin_filename))
        configured = _configuration(config, examined)
        examined = _not_excluded(examined, configured, force_exclude)
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
        select=_selectors(select, "--select") or configured.select or (),
        ignore=_selectors(ignore, "--ignore") or configured.ignore or (),
        per_file_ignores=configured.per_file_ignores,
        fail_on=fail_on or configured.fail_on or Severity.WARNING,
        exit_zero=exit_zero,
        cache=not no_cache,
        keep_run=_made(keep_run),
        not_examined=(*not_examined, *empty),
        command=invocation.command,
    )
    for reason in settings.not_examined:
        say(reason)
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


def _configuration(file: Path | None, targets: tuple[Target, ...]) -> Configuration:
    """That of --config, else that of the nearest pyproject.toml above all targets.

    Raises ConfigurationError."""
    import os

    from mpdoctor.settings.pyproject import ConfigurationError, configuration_above, configuration_from_file

    if file is not None:
        configured = configuration_from_file(file)
    else:
        places = [
            str((target.path if target.kind == "directory" else target.path.parent).absolute())
            for target in targets
            if target.path is not None
        ]
        configured = configuration_above(Path(os.path.commonpath(places) if places else "."))
    for wrong, setting in configured.unknown_rules(_is_rule):
        from mpdoctor.cli.rule_texts import near_match

        raise ConfigurationError(
            f"{configured.place(setting)} {setting}: there is no rule {wrong!r}.{near_match(wrong)}"
        )
    return configured


def _not_excluded(targets: tuple[Target, ...], configured: Configuration, force_exclude: bool) -> tuple[Target, ...]:
    excluded = configured.exclude
    if not force_exclude or excluded is None:
        return targets
    return tuple(target for target in targets if target.path is None or not excluded.match(target.path))


def _diagnosed(settings: Settings, quiet: bool) -> Diagnosis:
    from mpdoctor.cli.streams import progress_for
    from mpdoctor.diagnosis import diagnose

    progress = progress_for(quiet)
    try:
        return diagnose(settings, progress)
    finally:
        progress.close()


def _selectors(given: list[str] | None, option: str) -> tuple[str, ...]:
    """What was given to an option that takes rules, commas and repetition alike; each must mean a rule."""
    selectors = tuple(one.strip() for text in given or () for one in text.split(",") if one.strip())
    for selector in selectors:
        if not _is_rule(selector):
            from mpdoctor.cli.rule_texts import near_match

            fail(f"{option} {selector}: there is no such rule.{near_match(selector)}")
    return selectors


def _is_rule(selector: str) -> bool:
    from mpdoctor.rules.registry import all_rules
    from mpdoctor.settings.options import names_rule

    return any(names_rule(selector, rule.code, rule.name) for rule in all_rules())

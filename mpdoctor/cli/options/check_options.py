"""The options of `mpdoctor check`, by the heading that `--help` puts them under."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli.options.choices import Device, Policy
from mpdoctor.cli.options.completion import rules_from_beginning
from mpdoctor.cli.options.help import HelpInGroups
from mpdoctor.cli.options.numbers import seconds, whole_number
from mpdoctor.finding import Severity

# --- the headings of `check --help` ---
EXAMINED, TRAINING, FILES, RULES = "What is examined", "The short training", "Which files", "Which rules"
FIXES, REPORTS, STATUS, RUN = "Fixes and known findings", "Reports", "Exit status", "The run"

TargetsArgument = Annotated[list[str] | None, typer.Argument(metavar="TARGET...", hidden=True)]
StaticOption = Annotated[
    bool, typer.Option("--static", help="Read only the source; run no code.", rich_help_panel=EXAMINED)
]
WatchOption = Annotated[
    bool,
    typer.Option(
        "--watch",
        help="With --static: check again whenever a file changes, until Ctrl-C. Needs mpdoctor[watch].",
        rich_help_panel=EXAMINED,
    ),
]
NoProbeOption = Annotated[
    bool, typer.Option("--no-probe", help="Inspect the model, but don't train it.", rich_help_panel=EXAMINED)
]
AllFitsOption = Annotated[
    bool,
    typer.Option(
        "--all-fits",
        help="Train at each fit() of a script, not only at the first.",
        rich_help_panel=EXAMINED,
    ),
]
PolicyOption = Annotated[
    Policy,
    typer.Option(
        metavar="POLICY",
        help="mixed_float16, mixed_bfloat16 or float32: run the program under this global policy. auto: run it with "
        "its own policy, and again under mixed_float16 if nothing in it computes in 16 bits.",
        rich_help_panel=EXAMINED,
    ),
]
KerasOption = Annotated[
    str | None,
    typer.Option(
        metavar="VERSION",
        help="3, tf_keras, 2.15 …: the Keras that the source is judged for.",
        rich_help_panel=EXAMINED,
    ),
]
AssumeMixedOption = Annotated[
    bool | None,
    typer.Option(
        "--assume-mixed/--no-assume-mixed",
        help="Judge source as if a mixed policy were set.",
        rich_help_panel=EXAMINED,
    ),
]
CustomObjectsOption = Annotated[
    str | None,
    typer.Option(metavar="MODULE", help="Where the classes of a saved model are defined.", rich_help_panel=EXAMINED),
]
AllowCodeInFileOption = Annotated[
    bool,
    typer.Option("--allow-code-in-file", help="Load a saved model that holds code.", rich_help_panel=EXAMINED),
]

NoSecondTrainingOption = Annotated[
    bool,
    typer.Option(
        "--no-second-training",
        help="Don't train again with a remedy that was tried.",
        rich_help_panel=TRAINING,
    ),
]
FromRunOption = Annotated[
    Path | None,
    typer.Option(
        "--from-run",
        metavar="FILE",
        help="Train on the batch that failed in this recorded run.",
        rich_help_panel=TRAINING,
    ),
]
ReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference",
        help="Compare with float32: the gradients of up to three steps, and the training's loss.",
        rich_help_panel=TRAINING,
    ),
]
StepsOption = Annotated[
    int, typer.Option(metavar="N", parser=whole_number(1), help="Steps to train.", rich_help_panel=TRAINING)
]
BudgetOption = Annotated[
    float,
    typer.Option(metavar="SECONDS", parser=seconds, help="Time limit of the training.", rich_help_panel=TRAINING),
]
TimeoutOption = Annotated[
    float,
    typer.Option(metavar="SECONDS", parser=seconds, help="Time limit until its first step.", rich_help_panel=TRAINING),
]
DeviceOption = Annotated[
    Device, typer.Option(metavar="DEVICE", help="auto, cpu or gpu: where to train.", rich_help_panel=TRAINING)
]
SeedOption = Annotated[
    int | None,
    typer.Option(
        metavar="N",
        parser=whole_number(0),
        help="Seed of weights and made-up data; where data are made up, 0 by default.",
        rich_help_panel=TRAINING,
    ),
]

ExcludeOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERNS",
        help="Leave out these files and directories, instead of those in the configuration.",
        rich_help_panel=FILES,
    ),
]
ExtendExcludeOption = Annotated[
    list[str] | None, typer.Option(metavar="PATTERNS", help="Leave out these too.", rich_help_panel=FILES)
]
ForceExcludeOption = Annotated[
    bool,
    typer.Option(
        "--force-exclude", help="Leave out excluded files even if they are named as targets.", rich_help_panel=FILES
    ),
]
StdinFilenameOption = Annotated[
    str,
    typer.Option(metavar="NAME", help="The file name of the source on standard input (-).", rich_help_panel=FILES),
]
ShowFilesOption = Annotated[
    bool, typer.Option("--show-files", help="List the files that would be read, and exit.", rich_help_panel=FILES)
]

SelectOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        help="Only these rules: codes, prefixes or names.",
        autocompletion=rules_from_beginning,
        rich_help_panel=RULES,
    ),
]
ExtendSelectOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        help="These rules, and those that the configuration selects.",
        autocompletion=rules_from_beginning,
        rich_help_panel=RULES,
    ),
]
IgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        help="All rules except these.",
        autocompletion=rules_from_beginning,
        rich_help_panel=RULES,
    ),
]
ExtendIgnoreOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="CODES",
        help="Ignore these rules, and those that the configuration ignores.",
        autocompletion=rules_from_beginning,
        rich_help_panel=RULES,
    ),
]
PerFileIgnoresOption = Annotated[
    list[str] | None,
    typer.Option(
        metavar="PATTERN:CODES", help="Ignore rules in some files: 'tests/*:MP304,MP5'.", rich_help_panel=RULES
    ),
]

FixOption = Annotated[
    bool, typer.Option("--fix", help="Apply the safe fixes; implies --static.", rich_help_panel=FIXES)
]
UnsafeFixesOption = Annotated[
    bool,
    typer.Option(
        "--unsafe-fixes",
        help="With --fix or --diff: also the fixes that change numbers or layers.",
        rich_help_panel=FIXES,
    ),
]
DiffOption = Annotated[
    bool,
    typer.Option(
        "--diff",
        help="Show what --fix would change, without changing it; implies --static.",
        rich_help_panel=FIXES,
    ),
]
AddIgnoresOption = Annotated[
    bool,
    typer.Option(
        "--add-ignores",
        help="Write an ignore comment on each line with a finding; implies --static.",
        rich_help_panel=FIXES,
    ),
]
BaselineOption = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Leave out findings that are in this baseline; implies --static.",
        rich_help_panel=FIXES,
    ),
]
WriteBaselineOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Write all findings to this baseline; implies --static.", rich_help_panel=FIXES),
]
SinceOption = Annotated[
    str | None,
    typer.Option(
        metavar="GIT_REF",
        help="Only findings on lines changed since this commit; implies --static.",
        rich_help_panel=FIXES,
    ),
]

FailOnOption = Annotated[
    Severity | None,
    typer.Option(
        metavar="SEVERITY",
        help="Exit with 1 for findings of this severity or above: error, warning (default) or info.",
        rich_help_panel=STATUS,
    ),
]
ExitZeroOption = Annotated[
    bool, typer.Option("--exit-zero", help="Exit with 0 despite findings.", rich_help_panel=STATUS)
]

ConfigOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="The pyproject.toml with [tool.mpdoctor].", rich_help_panel=RUN),
]
IsolatedOption = Annotated[
    bool, typer.Option("--isolated", help="Ignore the settings in pyproject.toml.", rich_help_panel=RUN)
]
ShowSettingsOption = Annotated[
    bool,
    typer.Option("--show-settings", help="Show the settings in force, and exit.", rich_help_panel=RUN),
]
NoCacheOption = Annotated[
    bool,
    typer.Option("--no-cache", help="Neither read nor write the cache of results.", rich_help_panel=RUN),
]
ShowOutputOption = Annotated[
    bool,
    typer.Option("--show-output", help="Show the script's output, on standard error.", rich_help_panel=RUN),
]
KeepRunOption = Annotated[
    Path | None, typer.Option(metavar="DIR", hidden=True, help="Keep what the examiner was asked and told.")
]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.", rich_help_panel=RUN)]


class CheckHelp(HelpInGroups):
    groups = (EXAMINED, TRAINING, FILES, RULES, FIXES, REPORTS, STATUS, RUN)
    examples = (
        ("mpdoctor check train.py", "Examine a script, and train it for fifty steps."),
        ("mpdoctor check train.py -- --epochs 2", "The same, with arguments for the script."),
        ("mpdoctor check --static src/", "The check for a CI: read the source, run no code."),
        ("mpdoctor check model.keras --report ticket.md", "Examine a saved model, and write a report for an issue."),
    )

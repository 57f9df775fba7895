"""The options of `mpdoctor mend` that no other command has."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from mpdoctor.cli.options.numbers import whole_number

MENDED = "What is mended"  # the heading in --help


class NewPolicy(str, Enum):
    mixed_float16 = "mixed_float16"
    mixed_bfloat16 = "mixed_bfloat16"
    float32 = "float32"


class MendFormat(str, Enum):
    terminal = "terminal"
    json = "json"


TargetArgument = Annotated[str, typer.Argument(metavar="TARGET", hidden=True)]
NewPolicyOption = Annotated[
    NewPolicy | None,
    typer.Option(
        "--policy",
        metavar="POLICY",
        help="mixed_float16, mixed_bfloat16 or float32: switch the program to this global policy, and mend it there.",
        rich_help_panel=MENDED,
    ),
]
OutputOption = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="For a saved model (.keras, .h5): the new file to write. No file is overwritten.",
        rich_help_panel=MENDED,
    ),
]
WriteOption = Annotated[
    bool,
    typer.Option("--write", help="Write the edits into the files, besides showing them.", rich_help_panel=MENDED),
]
MendFormatOption = Annotated[
    MendFormat,
    typer.Option(
        "--output-format", metavar="FORMAT", help="terminal (with the patch) or json.", rich_help_panel="Reports"
    ),
]
MendReferenceOption = Annotated[
    bool,
    typer.Option(
        "--reference",
        help="Also compare with float32, and mend what only that shows.",
        rich_help_panel="The short training",
    ),
]
MendSeedOption = Annotated[
    int,
    typer.Option(
        metavar="N",
        parser=whole_number(0),
        help="Seed of weights and made-up data, the same in each training.",
        rich_help_panel="The short training",
    ),
]

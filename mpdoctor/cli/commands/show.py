"""`mpdoctor show DIAGNOSIS.json`: a saved diagnosis in any format."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

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
from mpdoctor.cli.streams import Color, fail


def show(
    file: Annotated[
        str, typer.Argument(metavar="DIAGNOSIS.json", help="What `check` wrote as JSON; - is standard input.")
    ],
    output_format: OutputFormatOption = OutputFormat.terminal,
    report: ReportOption = None,
    redact: RedactOption = None,
    statistics: StatisticsOption = False,
    columns: WidthOption = None,
    color: ColorOption = Color.auto,
) -> None:
    """Show a saved diagnosis, in any format: neither TensorFlow nor the sources need to be at hand.

    Exit status: that of the check that wrote it; 2 where the file is no diagnosis that can be read.
    """
    from mpdoctor.reporters.json.saved_diagnosis import NotADiagnosis, diagnosis_from_json

    output = output_from_options(output_format, report, color, statistics, redact, columns)
    try:
        diagnosis = diagnosis_from_json(_text(file))
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.")
    except NotADiagnosis as refused:
        fail(f"{file} {refused}")
    raise typer.Exit(put_out(diagnosis, output))


def _text(file: str) -> bytes:
    import sys

    return sys.stdin.buffer.read() if file == "-" else Path(file).read_bytes()

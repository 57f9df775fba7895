"""`mpdoctor show DIAGNOSIS.json`, or a run file: a saved diagnosis or a recorded training in any format."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mpdoctor.cli.options.report_options import (
    ColorOption,
    OutputFormatOption,
    RedactOption,
    ReportOption,
    StatisticsOption,
    WidthOption,
)
from mpdoctor.cli.output import OutputFormat, output_from_options, put_out
from mpdoctor.cli.streams import Color, fail

if TYPE_CHECKING:
    from mpdoctor.finding import Diagnosis


def show(
    file: Annotated[
        str,
        typer.Argument(
            metavar="FILE",
            help="JSON that `check` wrote (- is standard input), or the run file of a LossScaleMonitor.",
        ),
    ],
    output_format: OutputFormatOption = OutputFormat.terminal,
    report: ReportOption = None,
    redact: RedactOption = None,
    statistics: StatisticsOption = False,
    columns: WidthOption = None,
    color: ColorOption = Color.auto,
) -> None:
    """Show a saved diagnosis or a recorded training, in any format, without TensorFlow and the sources.

    Exit status: that of the check that wrote it, and of a run file 1 where nothing is trained at its end; 2 where the
    file is neither, or cannot be read.
    """
    from mpdoctor.recorded.run_reader import NotARunFile
    from mpdoctor.reporters.json.saved_diagnosis import NotADiagnosis

    output = output_from_options(output_format, report, color, statistics, redact, columns)
    try:
        diagnosis = _diagnosis(file)
    except OSError as error:
        fail(f"{file} cannot be read: {error.strerror}.")
    except (NotADiagnosis, NotARunFile) as refused:
        fail(f"{file} {refused}")
    raise typer.Exit(put_out(diagnosis, output))


def _diagnosis(file: str) -> Diagnosis:
    """The diagnosis in a JSON report or a run file. Raises OSError, NotADiagnosis and NotARunFile."""
    import sys

    from mpdoctor.judging.recorded_runs import diagnosis_from_series
    from mpdoctor.project.regular_files import bytes_from_file
    from mpdoctor.recorded.run_reader import looks_like_run, series_from_files
    from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json

    if file == "-":
        return diagnosis_from_json(sys.stdin.buffer.read())
    content = bytes_from_file(file)
    if looks_like_run(content):
        series = series_from_files(Path(file), bytes_from_file)
        return diagnosis_from_series(Path(file), series, f"mpdoctor show {shlex.quote(file)}")
    return diagnosis_from_json(content)

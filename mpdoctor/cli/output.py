"""Where a diagnosis goes: one report on standard output, and others into files by their suffix."""

from __future__ import annotations

import os
import sys
import traceback
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from mpdoctor.cli.streams import Color, fail, has_blocks, has_color, width, write

if TYPE_CHECKING:
    from mpdoctor.finding import Diagnosis


class OutputFormat(str, Enum):
    terminal = "terminal"
    concise = "concise"
    json = "json"
    github = "github"
    sarif = "sarif"
    gitlab = "gitlab"
    junit = "junit"
    markdown = "markdown"
    html = "html"
    svg = "svg"


FORMATS = ", ".join(one.value for one in OutputFormat)
# The longest that fits says the format: a.sarif.json is SARIF.
SUFFIXES = {
    ".md": OutputFormat.markdown,
    ".html": OutputFormat.html,
    ".svg": OutputFormat.svg,
    ".txt": OutputFormat.terminal,
    ".json": OutputFormat.json,
    ".sarif": OutputFormat.sarif,
    ".sarif.json": OutputFormat.sarif,
    ".gitlab.json": OutputFormat.gitlab,
    ".xml": OutputFormat.junit,
}

# What is made to be read by others holds nothing private.
SHARED = (OutputFormat.markdown, OutputFormat.html)

# The options of every command that shows a diagnosis.
OutputFormatOption = Annotated[OutputFormat, typer.Option(metavar="FORMAT", help=f"{FORMATS}.")]
ReportOption = Annotated[
    list[Path] | None,
    typer.Option(metavar="FILE", help=f"Write a report there too; its suffix says which: {', '.join(SUFFIXES)}."),
]
StatisticsOption = Annotated[bool, typer.Option("--statistics", help="Count the findings of each rule.")]
ColorOption = Annotated[Color, typer.Option(metavar="WHEN", help="auto, always or never.")]


@dataclass(frozen=True)
class Output:
    """What of a diagnosis the user wants, and where."""

    shown: OutputFormat
    files: tuple[tuple[Path, OutputFormat], ...] = ()
    color: Color = Color.auto
    statistics: bool = False


def output_from_options(shown: OutputFormat, reports: list[Path] | None, color: Color, statistics: bool) -> Output:
    """Ends with a usage error, before anything is examined, where a report can't be written."""
    files = tuple((path, _format_from_name(path)) for path in reports or ())
    for path, _ in files:
        if path.is_dir():
            fail(f"--report {path}: that is a directory.")
        if not path.parent.is_dir():
            fail(f"--report {path}: there is no directory {path.parent}.")
        for place in (path, path.parent):
            if place.exists():
                if not os.access(place, os.W_OK):
                    fail(f"--report {path}: {place} is read-only.")
                break
    return Output(shown, files, color, statistics)


def put_out(diagnosis: Diagnosis, output: Output) -> int:
    """Write every report that is asked for; the exit status. What can't be written ends with 2, a reporter that
    breaks with 3, and neither keeps the other reports from being written."""
    statuses = [diagnosis.exit_code, *(_write_file(diagnosis, path, form) for path, form in output.files)]
    report = _rendered(diagnosis, output.shown, **_look(output.shown, output.color))
    if report is None:
        statuses.append(3)
    else:
        try:
            write(report)
        except typer.Exit as end:
            statuses.append(end.exit_code)
    _write_asides(diagnosis, output)
    return max(statuses)


def _format_from_name(path: Path) -> OutputFormat:
    fitting = [suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)]
    if not fitting:
        known = ", ".join(f"{suffix} ({form.value})" for suffix, form in SUFFIXES.items())
        fail(f"--report {path}: its suffix must say which report it is: {known}.")
    return SUFFIXES[max(fitting, key=len)]


def _look(form: OutputFormat, color: Color = Color.never) -> dict[str, Any]:
    """What a reporter must be told of where its report goes."""
    if form is OutputFormat.terminal:
        return {"width": width(), "color": has_color(color), "blocks": has_blocks()}
    if form in SHARED:
        from mpdoctor.reporters.privacy import surroundings_from_environment

        return {"surroundings": surroundings_from_environment(os.environ)}
    return {}


def _rendered(diagnosis: Diagnosis, form: OutputFormat, **look: Any) -> str | None:
    """None where the reporter broke, which is a defect of ours: the findings are shown all the same."""
    import importlib

    reporter = importlib.import_module(f"mpdoctor.reporters.{form.value}")
    try:
        return str(reporter.render(diagnosis, **look))
    except Exception:
        from mpdoctor.reporters import concise

        write(concise.render(diagnosis), sys.stderr)
        write(f"mpdoctor: the {form.value} reporter broke:\n{traceback.format_exc()}\n", sys.stderr)
        return None


def _write_file(diagnosis: Diagnosis, path: Path, form: OutputFormat) -> int:
    report = _rendered(diagnosis, form, **({} if form is OutputFormat.terminal else _look(form)))
    if report is None:
        return 3
    try:
        path.write_text(report, encoding="utf-8", errors="backslashreplace", newline="\n")
    except OSError as error:
        write(f"mpdoctor: --report {path} could not be written: {error.strerror}.\n", sys.stderr)
        return 2
    return 0


def _write_asides(diagnosis: Diagnosis, output: Output) -> None:
    """What is no part of a report for machines goes to standard error."""
    shown_to_people = output.shown is OutputFormat.terminal
    if output.statistics:
        from mpdoctor.reporters.statistics import statistics_from_findings

        counted = statistics_from_findings(diagnosis.findings)
        write(f"\n{counted}" if shown_to_people else counted, sys.stdout if shown_to_people else sys.stderr)
    if not shown_to_people:
        for broken in diagnosis.crashed:
            write(f"mpdoctor: {broken.code} broke in {broken.where}: {broken.error}\n", sys.stderr)

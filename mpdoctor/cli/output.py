"""Writes a diagnosis: one report to standard output, and a file for each --report, whose suffix chooses the format."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING

from mpdoctor.cli.streams import Color, fail, look_of_terminal, write
from mpdoctor.facts.frozen import dataclass

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mpdoctor.finding import Diagnosis
    from mpdoctor.reporters.rendering import TerminalLook


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


FORMATS = ", ".join(known.value for known in OutputFormat)
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

# What is uploaded, attached, published or stands in a log that others read holds nothing private; what stands on the
# user's own screen, and the data that they keep, hold what is there. `--redact` and `--no-redact` choose for all.
SHARED = (
    OutputFormat.markdown, OutputFormat.html, OutputFormat.svg, OutputFormat.junit, OutputFormat.sarif,
    OutputFormat.gitlab, OutputFormat.github,
)  # fmt: skip
OWN = (OutputFormat.terminal, OutputFormat.concise, OutputFormat.json)


@dataclass(frozen=True)
class Output:
    """Which reports of a diagnosis the user wants, and where."""

    shown: OutputFormat
    files: tuple[tuple[Path, OutputFormat], ...] = ()
    color: Color = Color.auto
    statistics: bool = False
    redact: bool | None = None
    width: int | None = None

    def redacts(self, form: OutputFormat) -> bool:
        return form in SHARED if self.redact is None else self.redact


def output_from_options(
    shown: OutputFormat,
    reports: list[Path] | None,
    color: Color,
    statistics: bool,
    redact: bool | None,
    columns: int | None,
) -> Output:
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
    return Output(shown, files, color, statistics, redact, columns)


def put_out(diagnosis: Diagnosis, output: Output) -> int:
    """Write every report that is asked for; the exit status. What can't be written ends with 2, a reporter that
    breaks with 3, and neither keeps the other reports from being written."""
    fit_for = _redaction(diagnosis, output)
    statuses = [
        diagnosis.exit_code,
        *(_write_file(fit_for(form), path, form, output.width) for path, form in output.files),
    ]
    is_text = output.shown is OutputFormat.terminal
    look: TerminalLook = look_of_terminal(output.width, output.color) if is_text else {}
    report = _report_text(fit_for(output.shown), output.shown, **look)
    if report is None:
        statuses.append(3)
    else:
        try:
            write(report)
        except SystemExit as end:
            statuses.append(int(end.code or 0))
    _write_asides(fit_for(OutputFormat.terminal), output)
    return max(statuses)


def _redaction(diagnosis: Diagnosis, output: Output) -> Callable[[OutputFormat], Diagnosis]:
    """The diagnosis as a format may hold it; what is private is taken out once, for all formats."""

    @functools.cache
    def redacted() -> Diagnosis:
        from mpdoctor.reporters.privacy import surroundings_from_environment, without_private

        return without_private(diagnosis, surroundings_from_environment(os.environ))

    return lambda form: redacted() if output.redacts(form) else diagnosis


def _format_from_name(path: Path) -> OutputFormat:
    fitting = [suffix for suffix in SUFFIXES if path.name.lower().endswith(suffix)]
    if not fitting:
        known = ", ".join(f"{suffix} ({form.value})" for suffix, form in SUFFIXES.items())
        fail(f"--report {path}: its suffix chooses the format, and must be one of {known}.")
    return SUFFIXES[max(fitting, key=len)]


def _report_text(diagnosis: Diagnosis, form: OutputFormat, **look: Unpack[TerminalLook]) -> str | None:
    """The report; None where the reporter broke, which is a defect of mpdoctor: the findings are shown all the same."""
    from mpdoctor.reporters.rendering import lines_for_a_log, report_from_diagnosis

    try:
        return report_from_diagnosis(diagnosis, form.value, **look)
    except Exception:
        import traceback

        write(report_from_diagnosis(diagnosis, OutputFormat.concise.value), sys.stderr)
        lines = (f"mpdoctor: the {form.value} reporter broke:", *traceback.format_exc().split("\n"))
        write(lines_for_a_log(lines), sys.stderr)
        return None


def _write_file(diagnosis: Diagnosis, path: Path, form: OutputFormat, columns: int | None) -> int:
    from mpdoctor.project.named_files import write_text

    look: TerminalLook = {"width": columns} if columns and form is OutputFormat.terminal else {}
    report = _report_text(diagnosis, form, **look)
    if report is None:
        return 3
    try:
        write_text(path, report, "backslashreplace")
    except OSError as error:
        write(f"mpdoctor: --report {path} could not be written: {error.strerror}.\n", sys.stderr)
        return 2
    return 0


def _write_asides(diagnosis: Diagnosis, output: Output) -> None:
    """Write what is no part of a report for machines to standard error."""
    from mpdoctor.reporters.rendering import lines_for_a_log

    shown_to_people = output.shown is OutputFormat.terminal
    if output.statistics:
        from mpdoctor.reporters.statistics import statistics_from_findings

        counted = lines_for_a_log(statistics_from_findings(diagnosis.findings))
        write(f"\n{counted}" if shown_to_people else counted, sys.stdout if shown_to_people else sys.stderr)
    if not shown_to_people:
        messages = (f"mpdoctor: {broken.code} broke in {broken.where}: {broken.error}" for broken in diagnosis.crashed)
        write(lines_for_a_log(messages), sys.stderr)

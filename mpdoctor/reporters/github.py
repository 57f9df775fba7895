"""Annotations for GitHub Actions: one workflow command a finding, `::error file=…,line=…::message`.

https://docs.github.com/en/actions/reference/workflow-commands-for-github-actions
"""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.finding import Crashed, Diagnosis, Finding, Severity
from mpdoctor.reporters.printable import cell_text, visible

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "notice"}


def render(diagnosis: Diagnosis) -> str:
    commands = [_command_from_finding(finding) for finding in diagnosis.findings]
    commands += [_command_from_crash(crash) for crash in diagnosis.crashed]
    return "".join(f"{command}\n" for command in commands)


def _command_from_finding(finding: Finding) -> str:
    severity = Severity.INFO if finding.what_if else finding.severity or Severity.INFO
    place = finding.location
    parts = [f"under mixed_float16: {finding.message}" if finding.what_if else finding.message]
    if place is None:  # GitHub would show a file without a line at its first one
        parts.insert(0, f"{finding.target}:")
    elif place.cell:
        parts.insert(0, f"{cell_text(place.cell, place.line)}:")
    text = " ".join(parts) + (f"\nfix: {finding.help}" if finding.help else "")
    title = f"{finding.code} {finding.name}"
    return _command(_COMMANDS[severity], {**_properties_from_location(place), "title": title}, text)


def _command_from_crash(crash: Crashed) -> str:
    return _command("error", {"title": "mpdoctor itself"}, f"{crash.code} broke in {crash.where}: {crash.error}")


def _properties_from_location(place: Location | None) -> dict[str, str]:
    if place is None:
        return {}
    if place.cell:
        return {"file": place.path}
    properties = {"file": place.path, "line": str(place.line)}
    if place.end_line > place.line:  # GitHub takes columns on one line only
        return {**properties, "endLine": str(place.end_line)}
    if place.column:
        properties["col"] = str(place.column)
        if place.end_column > place.column:  # the last column, and not the one after it
            properties["endColumn"] = str(place.end_column - 1)
    return properties


def _command(name: str, properties: dict[str, str], text: str) -> str:
    given = ",".join(f"{key}={_escaped_property(value)}" for key, value in properties.items())
    return f"::{name} {given}::{_escaped(text)}"


def _escaped(text: str) -> str:
    return visible(text).replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _escaped_property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")

"""SARIF 2.1.0, for code scanning: results with rules, help and fingerprints, and notifications for what could not be
read, did not look, or broke.

https://docs.oasis-open.org/sarif/sarif/v2.1.0/sarif-v2.1.0.html
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.finding import AlsoSeen, Diagnosis, Edit, Excerpt, Finding, Fix, RuleSummary, Severity
from mpdoctor.reporters.fallback_location import Models
from mpdoctor.reporters.printable import cell_text, visible
from mpdoctor.reporters.string_walk import with_every_string

SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
ROOT = "SRCROOT"
FINGERPRINT = "mpdoctor/v1"
UNREADABLE = "MP001"
_NO_BYTES = re.compile("[\ud800-\udc7f\udd00-\udfff]")
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.INFO: "note"}


@dataclass(frozen=True)
class _Seen:
    """What findings without a line are led to: the paths of targets by their names, and models."""

    paths: Mapping[str, str]
    models: Models


def render(diagnosis: Diagnosis) -> str:
    rules = sorted(diagnosis.rules, key=lambda rule: rule.code)
    numbers = {rule.code: number for number, rule in enumerate(rules)}
    seen = _Seen({target.id: target.path for target in diagnosis.targets}, Models(diagnosis))
    run = {
        "tool": {"driver": _driver(diagnosis, rules)},
        "invocations": [_invocation(diagnosis)],
        "originalUriBaseIds": {ROOT: {"description": {"text": "The directory in which mpdoctor was run."}}},
        "columnKind": "unicodeCodePoints",
        "results": [_result(finding, numbers, seen) for finding in diagnosis.findings],
    }
    # of the diagnosis as it is, because a file is named by its bytes: here all of it is made fit to be seen
    log = with_every_string({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, lambda text, _: visible(text))
    return json.dumps(log, indent=2) + "\n"


def _driver(diagnosis: Diagnosis, rules: list[RuleSummary]) -> dict[str, Any]:
    return {
        "name": "mpdoctor",
        "version": diagnosis.version,
        "rules": [_rule(rule) for rule in rules],
    }


def _rule(rule: RuleSummary) -> dict[str, Any]:
    described = {
        "id": rule.code,
        "name": rule.name,
        "shortDescription": {"text": rule.summary},
        "fullDescription": {"text": rule.summary},
        "help": {"text": rule.help_markdown, "markdown": rule.help_markdown},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": ["mixed-precision"]},
    }
    return {**described, "helpUri": rule.url} if rule.url else described


def _invocation(diagnosis: Diagnosis) -> dict[str, Any]:
    unreadable = [finding for finding in diagnosis.findings if finding.code == UNREADABLE]
    notifications = [_notification("error", f.message, f.code, f.location) for f in unreadable]
    notifications += [
        _notification("error", f"{crash.code} broke in {crash.where}: {crash.error}", crash.code)
        for crash in diagnosis.crashed
    ]
    notifications += [_notification("note", skipped.reason, skipped.code) for skipped in diagnosis.skipped]
    notifications += [
        _notification("error" if stage.status == "failed" else "note", f"{target.id}: {name}: {stage.reason}", name)
        for target in diagnosis.targets
        for name, stage in target.stages.items()
        if stage.status != "done" and stage.reason
    ]
    return {
        "commandLine": visible(diagnosis.command),
        "executionSuccessful": diagnosis.exit_code < 2,
        "exitCode": diagnosis.exit_code,
        "toolExecutionNotifications": notifications,
    }


def _notification(level: str, text: str, about: str, place: Location | None = None) -> dict[str, Any]:
    notification: dict[str, Any] = {
        "level": level,
        "message": _message(text),
        "descriptor": {"id": about or "mpdoctor"},
    }
    return {**notification, "locations": [_location(place)]} if place else notification


def _result(finding: Finding, numbers: dict[str, int], seen: _Seen) -> dict[str, Any]:
    severity = Severity.INFO if finding.what_if else finding.severity or Severity.INFO
    text = f"Under mixed_float16: {finding.message}" if finding.what_if else finding.message
    properties = {"stage": finding.stage, "whatIf": finding.what_if, "model": finding.model, "layer": finding.layer}
    result: dict[str, Any] = {
        "ruleId": finding.code,
        "level": _LEVELS[severity],
        "message": _message(f"{text}\n{finding.help}" if finding.help else text),
        "locations": [_location_of_finding(finding, seen)],
        "partialFingerprints": {FINGERPRINT: finding.fingerprint},
        "properties": {name: value for name, value in properties.items() if value},
    }
    if finding.code in numbers:
        result["ruleIndex"] = numbers[finding.code]
    if finding.fix is not None and not any(edit.location.cell for edit in finding.fix.edits):
        result["fixes"] = [_fix(finding.fix)]
    related = [
        {"id": number, **_related_location(also, finding, seen)}
        for number, also in enumerate(finding.also_seen, start=1)
    ]
    return {**result, "relatedLocations": related} if related else result


def _fix(fix: Fix) -> dict[str, Any]:
    """A SARIF fix. Not for a notebook: an edit of a cell has no place in the file that SARIF could name."""
    paths = dict.fromkeys(edit.location.path for edit in fix.edits)
    changes = (
        {
            "artifactLocation": _file(path),
            "replacements": [_replacement(edit) for edit in fix.edits if edit.location.path == path],
        }
        for path in paths
    )
    title = fix.title if fix.safe else f"{fix.title} (changes what the program computes)"
    return {"description": _message(title), "artifactChanges": list(changes)}


def _replacement(edit: Edit) -> dict[str, Any]:
    place = edit.location
    region = {
        "startLine": place.line,
        "startColumn": place.column,
        "endLine": place.end_line,
        "endColumn": place.end_column,
    }
    return {"deletedRegion": region, "insertedContent": {"text": edit.text}}


def _location_of_finding(finding: Finding, seen: _Seen) -> dict[str, Any]:
    """Code scanning shows nothing without a file. A live finding without a line of its own is led to one that the
    examination saw, which is said in words; where there is none, to the file without any line."""
    near = seen.models.fallback_location_of_finding(finding)
    if finding.location is not None:
        location = _location(finding.location, finding.excerpt)
    elif near is not None:
        location = {**_location(near.location), "message": _message(near.what)}
    else:
        location = _location_of_target(finding, seen)
    logical = _logical_locations(finding, seen)
    return {**location, "logicalLocations": logical} if logical else location


def _location_of_target(finding: Finding, seen: _Seen) -> dict[str, Any]:
    return {"physicalLocation": {"artifactLocation": _file(seen.paths.get(finding.target) or finding.target)}}


def _logical_locations(finding: Finding, seen: _Seen) -> list[dict[str, Any]]:
    """The layers that a live finding speaks for, each named from its model down; without a layer the model."""
    if finding.stage == "source" and finding.layer is None:
        return []
    models = seen.models.of_finding(finding)
    model = visible(models[0].name) if len(models) == 1 else None
    others = finding.evidence.get("layers")  # of a saved diagnosis, whatever its file holds
    layers = [
        layer
        for layer in (finding.layer, *(others if isinstance(others, list | tuple) else ()))
        if isinstance(layer, str) and layer
    ]
    located = [_logical_location_of_layer(layer, model) for layer in dict.fromkeys(map(visible, layers))]
    if located or model is None:
        return located
    return [{"name": model, "fullyQualifiedName": model, "kind": "object"}]


def _logical_location_of_layer(path: str, model: str | None) -> dict[str, Any]:
    name = path.rpartition("/")[2] or path
    return {"name": name, "fullyQualifiedName": f"{model}/{path}" if model else path, "kind": "member"}


def _location(place: Location, excerpt: Excerpt | None = None) -> dict[str, Any]:
    """A line of a notebook's cell is no line of the file: it is said in words."""
    physical: dict[str, Any] = {"artifactLocation": _file(place.path)}
    if place.cell:
        return {"physicalLocation": physical, "message": {"text": cell_text(place.cell, place.line)}}
    region: dict[str, Any] = {"startLine": place.line}
    if place.column:
        region["startColumn"] = place.column
    if place.end_line >= place.line:
        region["endLine"] = place.end_line
    if place.column and place.end_column and (place.end_line, place.end_column) >= (place.line, place.column):
        region["endColumn"] = place.end_column
    if excerpt is not None and 0 <= place.line - excerpt.first_line < len(excerpt.lines):
        region["snippet"] = {"text": visible(excerpt.lines[place.line - excerpt.first_line])}
    return {"physicalLocation": {**physical, "region": region}}


def _related_location(also: AlsoSeen, finding: Finding, seen: _Seen) -> dict[str, Any]:
    """A sight without a line is shown in its file, or in that of the finding, and gets no line there either."""
    if also.path is not None and also.line is not None:
        location = _location(Location(also.path, also.line, cell=also.cell))
    elif also.path is not None or finding.location is not None:
        path = also.path or (finding.location.path if finding.location else "")
        location = {"physicalLocation": {"artifactLocation": _file(path)}}
    else:
        location = _location_of_target(finding, seen)
    cell = f"{cell_text(also.cell, also.line)}: " if also.cell else ""
    return {**location, "message": _message(f"{cell}{also.code}: {also.text}")}


def _file(path: str) -> dict[str, str]:
    """A path in the working directory is relative to it, another one a whole address. Bytes that are no text, which
    Python reads as U+DC80 to U+DCFF, are bytes again; no file is named by another half of a character."""
    pure = PurePath(_NO_BYTES.sub("?", path))
    uri = quote(pure.as_posix().encode(errors="surrogateescape"))
    return {"uri": f"file://{uri}"} if pure.is_absolute() else {"uri": uri, "uriBaseId": ROOT}


def _message(text: str) -> dict[str, str]:
    """A SARIF message. `[text](1)`, which viewers show as a link, is escaped."""
    return {"text": visible(text).replace("](", "]\\(")}

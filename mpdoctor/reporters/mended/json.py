"""A mended program as JSON: the contract that users script against, mended-1.json beside the diagnosis' schema."""

from __future__ import annotations

from mpdoctor.finding import Edit, Finding
from mpdoctor.mended import Mended, NeededEdit
from mpdoctor.reporters.json import json_text, object_from_diagnosis, object_from_edit

SCHEMA_VERSION = 1


def render(mended: Mended) -> str:
    return json_text(
        {
            "schema_version": SCHEMA_VERSION,
            "mpdoctor": mended.after.version,
            "command": mended.after.command,
            "mended": mended.is_healthy,
            "policy": mended.policy or None,
            "policy_in_force": mended.policy_in_force,
            "rounds": mended.rounds,
            "examinations": mended.examinations,
            "patch": mended.patch,
            "edits": [_edit(needed, edit) for needed in mended.edits for edit in needed.edits],
            "tried": [{"code": code or None, "title": title} for code, title in mended.tried],
            "stopped": [_stop(finding) for finding in mended.stopped],
            "hindered": mended.hindered,
            "before": object_from_diagnosis(mended.before),
            "after": object_from_diagnosis(mended.after),
        }
    )


def _stop(finding: Finding) -> dict[str, object]:
    place = finding.location
    return {
        "code": finding.code,
        "message": finding.message,
        "path": place.path if place is not None else None,
        "line": place.line if place is not None else None,
    }


def _edit(needed: NeededEdit, edit: Edit) -> dict[str, object]:
    return {
        "title": needed.title,
        "safe": needed.safe,
        "code": needed.code or None,
        **object_from_edit(edit),
    }

"""Edits as the JSON of a report has them, made into edits again."""

from __future__ import annotations

from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.finding import Edit


def edit_from_json(edit: dict[str, Any]) -> Edit:
    start, end = edit["start"], edit["end"]
    return Edit(Location(edit["path"], start["line"], start["column"], end["line"], end["column"]), edit["text"])

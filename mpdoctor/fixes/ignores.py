"""`--add-ignores`: an ignore comment on each line with a finding, so that only new findings are reported."""

from __future__ import annotations

import re
from collections.abc import Mapping

from mpdoctor.facts.location import Location
from mpdoctor.finding import Diagnosis, Edit, Finding
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.statements import LogicalLine, logical_line_at

REASON = "to be looked at"
_IGNORED = re.compile(r"(?P<before>#\s*mpdoctor\s*:\s*ignore\s*\[)(?P<selectors>[^\]]*)\]")


def ignoring_edits(diagnosis: Diagnosis, sources: Mapping[str, SourceFacts]) -> dict[int, tuple[Edit, ...]]:
    """The edit that adds an ignore comment, by the index of the finding: all findings on one line share one edit. A
    finding without a line, or where no comment can stand, has no entry."""
    lines: dict[tuple[str, LogicalLine], list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(diagnosis.findings):
        place = finding.location
        source = sources.get(place.path) if place is not None else None
        line = (
            logical_line_at(source, _line_in_all_cells(place, source))
            if place is not None and source is not None
            else None
        )
        if place is not None and line is not None and not finding.what_if:
            lines.setdefault((place.path, line), []).append((number, finding))
    edits: dict[int, tuple[Edit, ...]] = {}
    for (path, line), findings in lines.items():
        codes = tuple(dict.fromkeys(finding.code for _, finding in findings))
        names = ", ".join(dict.fromkeys(finding.name for _, finding in findings))
        edit = _edit(sources[path], line, codes, names, findings[0][1])
        edits.update({number: (edit,) if edit is not None else () for number, _ in findings})
    return edits


def _edit(source: SourceFacts, line: LogicalLine, codes: tuple[str, ...], names: str, finding: Finding) -> Edit | None:
    text = source.lines[line.end - 1]
    cell = finding.location.cell if finding.location is not None else 0
    number = line.end - dict(source.cells).get(cell, 1) + 1
    comment = text[line.comment[1] - 1 :] if line.comment is not None else ""
    there = _IGNORED.search(comment)
    if there is not None and line.comment is not None:
        selectors = [selector.strip() for selector in there["selectors"].split(",") if selector.strip()]
        all_of_them = ", ".join(dict.fromkeys([*selectors, *codes]))
        start = line.comment[1] + there.start("selectors")
        return Edit(Location(source.path, number, start, number, start + len(there["selectors"]), cell), all_of_them)
    end = len(text.rstrip()) + 1
    answer = f"# mpdoctor: ignore[{', '.join(codes)}] {REASON}: {names}"
    return Edit(Location(source.path, number, end, number, end, cell), f"  {answer}")


def _line_in_all_cells(place: Location, source: SourceFacts) -> int:
    """The line in the text of all cells."""
    return place.line + dict(source.cells).get(place.cell, 1) - 1

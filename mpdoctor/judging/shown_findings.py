"""Findings as a report shows them: each once, with its lines of source and a fingerprint."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from mpdoctor.facts.location import Location, location_in_cell
from mpdoctor.finding import AlsoSeen, Edit, Finding, Fix, RuleSummary
from mpdoctor.judging.excerpts import excerpt_from_location
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.rules.registry import rules_with_codes

LONGEST_TEXT = 2000  # characters: a program may name a layer by a million


def findings_for_report(
    findings: Iterable[Finding],
    sources: Mapping[str, SourceFacts],
    edited: Mapping[Path, bytes] = MappingProxyType({}),
) -> list[Finding]:
    """Fill in what a report needs. A line of a notebook is from here on counted in its cell. `edited`: texts that stand
    in for files."""
    distinct = _each_once(findings)
    if not distinct:
        return []
    from hashlib import sha256  # it brings OpenSSL, which a check that finds nothing does without

    seen: Counter[str] = Counter()
    shown = []
    for finding in distinct:
        here = _in_its_cell(finding, sources)
        place = here.location
        excerpt = excerpt_from_location(place, _texts(place, sources), edited) if place else None
        line = excerpt.lines[place.line - excerpt.first_line].strip() if excerpt and place else ""
        same = "\0".join([here.code, place.path if place else here.target, line, here.layer or ""])
        seen[same] += 1
        # the second of two equal lines is told apart by its number: where it stands may change
        text = same if seen[same] == 1 else f"{same}\0{seen[same]}"
        fingerprint = sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
        message, advice = _shortened(here.message), _shortened(here.help)
        told = dataclasses.replace(here, message=message, help=advice, excerpt=excerpt, fingerprint=fingerprint)
        shown.append(told)
    return shown


def _shortened(text: str) -> str:
    """The text without its middle where it is long: a sentence says last what is wrong with what it names."""
    if len(text) <= LONGEST_TEXT:
        return text
    return f"{text[: LONGEST_TEXT // 2]}…{text[-LONGEST_TEXT // 2 :]}"


def rule_summaries(findings: Sequence[Finding], site: str = "") -> tuple[RuleSummary, ...]:
    """Summaries of the rules that have findings. `site`: base address of the published documentation, "" for the
    default."""
    spoken = {f.code for f in findings} | {also.code for f in findings for also in f.also_seen}
    return tuple(
        RuleSummary(rule.code, rule.name, rule.summary, rule.page_at(site) or rule.url, rule.docs, rule.severity)
        for rule in rules_with_codes(spoken)
    )


def _each_once(findings: Iterable[Finding]) -> list[Finding]:
    """The findings with those of a file that several targets reach listed once, as in the file's own target."""
    kept: dict[object, Finding] = {}
    for number, finding in enumerate(findings):
        place = finding.location
        key = (finding.code, finding.what_if, place) if place else number
        if key not in kept or (place and finding.target == place.path):
            kept[key] = finding
    return list(kept.values())


def _in_its_cell(finding: Finding, sources: Mapping[str, SourceFacts]) -> Finding:
    place = finding.location
    cells = sources[place.path].cells if place and place.path in sources else ()
    also_seen = tuple(_sight_in_its_cell(also, sources) for also in finding.also_seen)
    if not place or (not cells and also_seen == finding.also_seen):
        return finding
    fix = finding.fix and _fix_in_its_cell(finding.fix, sources)
    return dataclasses.replace(finding, location=location_in_cell(place, cells), also_seen=also_seen, fix=fix)


def _fix_in_its_cell(fix: Fix, sources: Mapping[str, SourceFacts]) -> Fix:
    cells = {path: source.cells for path, source in sources.items()}
    edits = (Edit(location_in_cell(edit.location, cells.get(edit.location.path, ())), edit.text) for edit in fix.edits)
    return dataclasses.replace(fix, edits=tuple(edits))


def _sight_in_its_cell(also: AlsoSeen, sources: Mapping[str, SourceFacts]) -> AlsoSeen:
    if also.path is None or also.line is None or also.path not in sources:
        return also
    place = location_in_cell(Location(also.path, also.line), sources[also.path].cells)
    return dataclasses.replace(also, line=place.line, cell=place.cell)


def _texts(place: Location, sources: Mapping[str, SourceFacts]) -> dict[str, str]:
    """What was read of a file before the program ran; of a notebook the cell."""
    source = sources.get(place.path)
    if source is None:
        return {}
    if not place.cell:
        return {} if source.cells else {place.path: source.text}
    return {place.path: _text_of_cell(source, place.cell)}


@lru_cache(maxsize=1)
def _text_of_cell(source: SourceFacts, cell: int) -> str:
    first = dict(source.cells)[cell]
    after = next((start for number, start in source.cells if number > cell), None)
    return "\n".join(source.lines[first - 1 : None if after is None else after - 1]) + "\n"

"""The places where a finding was seen, and a finding as a sight of another one."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.facts.location import Location, line_in_words
from mpdoctor.finding import AlsoSeen, Finding


def sorted_by_place(findings: Iterable[Finding]) -> list[Finding]:
    """The findings sorted by path, line, column and code; those without a location last."""
    return sorted(findings, key=lambda f: (f.location is None, f.location or Location("", 0), f.code))


def same_line(primary: Finding, finding: Finding) -> bool:
    """Whether the primary, in any of its sights, stands on the finding's line."""
    place = finding.location
    if place is None:
        return False
    return (place.path, place.line) in places_of(primary)


def places_of(finding: Finding) -> set[tuple[str | None, int | None]]:
    """Every (path, line) that the finding, or a finding merged into it, was seen on."""
    place = finding.location
    return {(also.path, also.line) for also in finding.also_seen} | ({(place.path, place.line)} if place else set())


def is_another_sight(finding: Finding, place: Location | None) -> bool:
    """Whether the finding was seen on this line, and stands on another one."""
    own = finding.location
    if place is None or (own is not None and (own.path, own.line) == (place.path, place.line)):
        return False
    return (place.path, place.line) in places_of(finding)


def was_seen_there(finding: Finding, primary: Finding) -> bool:
    """Whether a training showed the finding, which the source tells as well, on the primary's own line."""
    place = primary.location
    sights = [also for also in finding.also_seen if (also.code, also.stage) == (finding.code, "training")]
    return place is not None and any((sight.path, sight.line) == (place.path, place.line) for sight in sights)


def sights_for(primary: Finding, finding: Finding) -> list[AlsoSeen]:
    """The finding and its own sights as sights of `primary`, without those that only point to the line on which that
    stands."""
    place = primary.location
    shown = (place.path, place.line) if place is not None else None
    further = (
        seen for seen in finding.also_seen if (seen.path, seen.line) != shown or not seen.text.endswith(" here.")
    )
    return [also_seen_from_finding(finding, primary), *further]


def also_seen_from_finding(finding: Finding, primary: Finding | None = None) -> AlsoSeen:
    """The finding as evidence of `primary`. Its message leaves out what the primary says already: the line, and a last
    sentence that both share."""
    place = finding.location
    path, line = (place.path, place.line) if place else (None, None)
    text = finding.message
    shown = primary.location if primary is not None else None
    if shown is not None and shown.path == path:
        text = text.replace(f" ({line_in_words(shown)})", "")
    before, end, last = text.rpartition(". ")
    if primary is not None and end and _clause(last) in primary.message.lower():
        text = f"{before}."
    return AlsoSeen(finding.code, finding.stage, text, path, line)


def _clause(sentence: str) -> str:
    """The sentence in lower case, as it would stand within another one."""
    return sentence.removeprefix("In the loss, ").lower()

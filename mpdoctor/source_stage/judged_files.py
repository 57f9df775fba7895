"""What the rules say of one file, alone or as a part of the program that it belongs to."""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Iterable, Iterator

from mpdoctor.finding import Crashed, Finding
from mpdoctor.program.breakdown import Breakdown
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.rules.registry import findings_from_facts

Judged = list[Finding | Crashed]


class ToldOfProgram:
    """What the rules say of a program, for each of its files. All rules look at it for the script, and once more for
    the imported files that show mixed precision where the script does not; for a single file only those rules look at
    it that found something there."""

    def __init__(self, codes: frozenset[str]) -> None:
        self._codes = codes
        self._by_script: dict[str, set[str]] = {}
        self._by_imported: dict[tuple[str, bool], dict[str, set[str]]] = {}
        self._script_shows = False

    def of_script(self, seen: SourceFacts) -> Judged:
        findings = list(findings_of_file(seen, self._codes))
        self._by_script, self._script_shows = _codes_by_path(findings), seen.shows_mixed_precision
        return findings

    def of_imported(self, seen: SourceFacts) -> Judged:
        codes = set(self._by_script.get(seen.path, ()))
        if seen.shows_mixed_precision and not self._script_shows:
            # besides its signs, all that a rule asks of the file before it speaks
            as_file = seen.package.partition(".")[0], bool(seen.cells)
            if as_file not in self._by_imported:
                findings = list(findings_of_file(seen, self._codes))
                self._by_imported[as_file] = _codes_by_path(findings)
                return findings
            codes |= self._by_imported[as_file].get(seen.path, set())
        return list(findings_of_file(seen, frozenset(codes))) if codes else []


def crash_from_breakdown(breakdown: Breakdown) -> Crashed:
    return Crashed("source", f"{breakdown.path} ({breakdown.where})", breakdown.error)


def distinct_findings(said: Iterable[Finding | Crashed]) -> list[Finding]:
    """The findings, of those by one rule at one place the first."""
    distinct: dict[object, Finding] = {}
    for number, item in enumerate(said):
        if isinstance(item, Finding):
            distinct.setdefault((item.code, item.location) if item.location else number, item)
    return list(distinct.values())


def _codes_by_path(said: Iterable[Finding | Crashed]) -> dict[str, set[str]]:
    """The codes of the findings in each file."""
    codes: dict[str, set[str]] = {}
    for item in said:
        if isinstance(item, Finding) and item.location is not None:
            codes.setdefault(item.location.path, set()).add(item.code)
    return codes


def findings_of_file(facts: SourceFacts, codes: frozenset[str]) -> Iterator[Finding | Crashed]:
    """The findings of the rules with these codes in one file; a crash for a rule that breaks."""
    from mpdoctor.semantics.source.edits.names import advice_in_names_of

    for said in findings_from_facts("in_source", facts, facts.keras, lambda rule: rule.code in codes):
        if isinstance(said, Finding):
            yield dataclasses.replace(said, help=advice_in_names_of(facts, said.help))
        else:
            yield said


def located_in(path: str, said: Iterable[Finding | Crashed], beside: Collection[str] | None) -> Judged:
    """The findings in one file, and crashes; with `beside`, the files of its program, also the findings that have no
    location or lie in other files than these."""
    return [
        item
        for item in said
        if isinstance(item, Crashed)
        or (item.location is not None and item.location.path == path)
        or (beside is not None and (item.location is None or item.location.path not in beside))
    ]

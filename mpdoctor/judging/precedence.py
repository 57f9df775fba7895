"""Who speaks when several rules see one defect: a finding that another explains becomes its evidence."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable
from functools import cache

from mpdoctor.finding import AlsoSeen, Finding

LINE, MODEL = "line", "model"
Ties = Callable[[str, str], bool]  # whether what stands in two files, by path as shown, may be about one model

# (who explains, what is explained, how near the two must be: on one source line, or about one model of one target)
EXPLAINS: tuple[tuple[tuple[str, ...], tuple[str, ...], str], ...] = (
    (("MP105", "MP111", "MP113", "MP208", "MP702"), ("MP209",), MODEL),
    (("MP701", "MP312", "MP116"), ("MP106",), MODEL),
    (("MP702",), ("MP309",), MODEL),
    (("MP201",), ("MP504", "MP507"), MODEL),
    (("MP101", "MP304", "MP310"), ("MP309",), LINE),
    (("MP407",), ("MP102", "MP301"), LINE),
    (("MP411", "MP303"), ("MP301",), LINE),
    (("MP310",), ("MP102",), LINE),
    (("MP104",), ("MP107",), LINE),
    (("MP203", "MP206", "MP207", "MP212", "MP214", "MP217"), ("MP202",), LINE),
    (("MP401", "MP402", "MP403", "MP404", "MP405", "MP406", "MP408", "MP410", "MP306", "MP308"), ("MP912",), MODEL),
    (("MP902", "MP903", "MP911"), ("MP905", "MP909"), MODEL),
    (("MP904", "MP601", "MP511", "MP911", "MP313"), ("MP907",), MODEL),
)
# The same where the right one was seen in the training alone: the source shows a place of its own.
EXPLAINS_LIVE = ((("MP904", "MP907"), ("MP503",)), (("MP308", "MP410"), ("MP401",)))
# Seen live, these stand on another line than in the source, as does what has no line at all: a model or a training
# that shows the defect confirms what the source shows.
CONFIRMED_LIVE = (
    "MP106",
    "MP107",
    "MP203",
    "MP204",
    "MP216",
    "MP304",
    "MP306",
    "MP310",
    "MP315",
    "MP401",
    "MP402",
    "MP403",
    "MP405",
    "MP408",
    "MP503",
    "MP509",
    "MP602",
    "MP603",
)
# Whatever stands on the line that raised explains that it raised.
RAISED = ("MP002", "MP901")
# What costs digits or time raises nothing, whatever line it stands on.
NEVER_RAISING = ("MP201", "MP209", "MP504", "MP507")
# What speaks of the very error that was raised explains it without a line, too.
OF_THE_ERROR = (
    "MP102",
    "MP104",
    "MP112",
    "MP202",
    "MP203",
    "MP205",
    "MP206",
    "MP211",
    "MP212",
    "MP214",
    "MP217",
    "MP301",
    "MP304",
    "MP306",
    "MP307",
    "MP310",
    "MP407",
    "MP411",
    "MP415",
    "MP505",
    "MP508",
    "MP509",
    "MP602",
    "MP605",
    "MP703",
)


def of_one_program(path: str, other: str) -> bool:
    """Of the files of a program that was named all are tied: the one that was named imports the others."""
    return True


def settled(findings: Iterable[Finding], are_tied: Ties = of_one_program) -> list[Finding]:
    """Merge the sights of one defect by several stages, then attach what is explained to what explains it.

    `are_tied` says of which files the findings may be about one model: in a directory lie many that have nothing to do
    with one another. The order of the list is: path, line, column, code; findings without a location last."""
    merged = _merged(sorted(findings, key=lambda finding: finding.what_if))
    candidates = Candidates(merged)
    extra: dict[int, list[AlsoSeen]] = {}
    spoken = []
    for number, finding in enumerate(merged):
        speaker = _speaker(merged, number, candidates, are_tied)
        if speaker == number:
            spoken.append(number)
        else:
            extra.setdefault(speaker, []).extend([sight(finding), *finding.also_seen])
    told = [dataclasses.replace(merged[i], also_seen=(*merged[i].also_seen, *extra.get(i, ()))) for i in spoken]
    return sorted(told, key=_reading_order)


def _speaker(merged: list[Finding], number: int, candidates: Candidates, are_tied: Ties) -> int:
    """Who speaks for a finding: itself, or whoever explains it and is not explained by another."""
    while True:
        finding = merged[number]
        explaining = [i for i in candidates.of(finding) if explains(merged[i], finding, are_tied)]
        if finding.code in RAISED:  # what speaks of the error itself before what else stands on its line
            explaining.sort(key=lambda i: merged[i].code not in OF_THE_ERROR)
        found = next(iter(explaining), None)
        if found is None:
            return number
        number = found


class Candidates:
    """The numbers of those that might explain a finding: what stands on its line, and what speaks of its code from
    anywhere. To ask each of a thousand findings about each other takes seconds."""

    def __init__(self, merged: list[Finding]) -> None:
        self._on_line: dict[tuple[str, str | None, int | None], list[int]] = {}
        self._by_code: dict[tuple[str, str], list[int]] = {}
        for number, finding in enumerate(merged):
            self._by_code.setdefault((finding.target, finding.code), []).append(number)
            for path, line in _lines(finding):
                self._on_line.setdefault((finding.target, path, line), []).append(number)

    def of(self, finding: Finding) -> list[int]:
        """In order."""
        place = finding.location
        found = set(self._on_line.get((finding.target, place.path, place.line), ()) if place else ())
        for code in _explaining_from_anywhere(finding.code):
            found.update(self._by_code.get((finding.target, code), ()))
        return sorted(found)


@cache
def _explaining_from_anywhere(code: str) -> tuple[str, ...]:
    anywhere = [left for left, right, nearness in EXPLAINS if code in right and nearness == MODEL]
    anywhere += [left for left, right in EXPLAINS_LIVE if code in right]
    anywhere += [OF_THE_ERROR] if code in RAISED else []
    return tuple(dict.fromkeys(one for left in anywhere for one in left))


def explains(speaker: Finding, finding: Finding, are_tied: Ties = of_one_program) -> bool:
    """Whether `speaker` is the reason why `finding` was seen too."""
    if speaker is finding or speaker.target != finding.target:
        return False
    if speaker.what_if and not finding.what_if:
        return False  # what would be is no reason for what is
    if finding.code in RAISED and speaker.code not in RAISED:
        of_it = speaker.code in OF_THE_ERROR and speaker.location == finding.location is None
        return of_it or (speaker.code not in NEVER_RAISING and _same_line(speaker, finding))
    if finding.stage == "training":
        live = any(speaker.code in left and finding.code in right for left, right in EXPLAINS_LIVE)
        if live and _same_model(speaker, finding, are_tied):
            return True
    for left, right, nearness in EXPLAINS:
        if speaker.code in left and finding.code in right:
            return _same_line(speaker, finding) if nearness == LINE else _same_model(speaker, finding, are_tied)
    return False


def sight(finding: Finding) -> AlsoSeen:
    place = finding.location
    return AlsoSeen(
        finding.code, finding.stage, finding.message, place.path if place else None, place.line if place else None
    )


def _merged(findings: Iterable[Finding]) -> list[Finding]:
    """One finding a source line and code; without a line, one a model and message."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        place = finding.location
        key: tuple[object, ...] = (
            (finding.code, finding.target, place.path, place.line)
            if place
            else (finding.code, finding.target, finding.model, finding.message)
        )
        first = kept.get(key) or _confirmed(kept.values(), finding)
        if first is None:
            kept[key] = finding
        elif first.stage != finding.stage:
            kept[next(k for k, f in kept.items() if f is first)] = _with_sight(first, finding)
        elif place and place.column and first.location and first.location.column != place.column:
            kept[(*key, place.column)] = finding
    return list(kept.values())


def _confirmed(kept: Iterable[Finding], finding: Finding) -> Finding | None:
    """The finding in the source that this live one confirms."""
    if finding.stage == "source" or (finding.location is not None and finding.code not in CONFIRMED_LIVE):
        return None
    same = (f for f in kept if (f.code, f.target, f.stage) == (finding.code, finding.target, "source"))
    return next(same, None)


def _with_sight(first: Finding, later: Finding) -> Finding:
    """The first sight speaks; it takes over what only the later one knows, and the worse severity."""
    worse = later.severity and first.severity and later.severity.rank > first.severity.rank
    return dataclasses.replace(
        first,
        severity=later.severity if worse else first.severity,
        model=first.model or later.model,
        layer=first.layer or later.layer,
        evidence={**later.evidence, **first.evidence},
        also_seen=(*first.also_seen, sight(later)),
    )


def _same_line(speaker: Finding, finding: Finding) -> bool:
    """Whether the speaker, in any of its sights, stands on the finding's line."""
    place = finding.location
    if place is None:
        return False
    return (place.path, place.line) in _lines(speaker)


def _lines(finding: Finding) -> set[tuple[str | None, int | None]]:
    """Those that it was seen on."""
    place = finding.location
    return {(also.path, also.line) for also in finding.also_seen} | ({(place.path, place.line)} if place else set())


def _same_model(one: Finding, other: Finding, are_tied: Ties) -> bool:
    if one.model is not None and other.model is not None and one.model != other.model:
        return False
    here, there = one.location, other.location
    return here is None or there is None or here.path == there.path or are_tied(here.path, there.path)


def _reading_order(finding: Finding) -> tuple[bool, str, int, int, str]:
    place = finding.location
    if place is None:
        return (True, "", 0, 0, finding.code)
    return (False, place.path, place.line, place.column, finding.code)

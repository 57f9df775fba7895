"""Which finding is the primary one where several rules report the same defect; the others become its evidence.

Which rules explain which stands in the rules' own files (EXPLAINS, CONFIRMED_LIVE, …: `rules.registry.Rule`).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping

from mpdoctor.facts.remedies import RemedyFacts
from mpdoctor.finding import AlsoSeen, Finding, Fix, Severity
from mpdoctor.judging.sights import (
    also_seen_from_finding,
    is_another_sight,
    places_of,
    same_line,
    sights_for,
    sorted_by_place,
    was_seen_there,
)
from mpdoctor.rules.registry import Rule, rule_with_code, rules_with_codes

ON_ONE_LINE = ("line", "zero")  # Nearness
Ties = Callable[[str, str], bool]  # whether what stands in two files, by path as shown, may be about one model


def of_one_program(path: str, other: str) -> bool:
    """Always True: the `Ties` for a script, which imports all other files that were read."""
    return True


def tied_by_imports(imports: Mapping[str, Collection[str]]) -> Ties:
    """`Ties` for a directory: two files are of one program where one imports the other. `imports`: for each path all
    files that it imports, directly or through others."""
    return lambda path, other: other in imports.get(path, ()) or path in imports.get(other, ())


def merged_findings(findings: Iterable[Finding], are_tied: Ties = of_one_program) -> list[Finding]:
    """Merge the sights of one defect by several stages, then attach what is explained to what explains it.

    `are_tied` says of which files the findings may be about one model: in a directory lie many that have nothing to do
    with one another. The order of the list is: path, line, column, code; findings without a location last."""
    merged = _one_for_each_place(sorted(findings, key=lambda finding: finding.what_if))
    candidates = Candidates(merged)
    extra: dict[int, list[AlsoSeen]] = {}
    severities: dict[int, Severity | None] = {}
    remedies: dict[int, tuple[RemedyFacts, ...]] = {}  # what was tried on the very line
    fixes: dict[int, Fix | None] = {}  # of what a training showed on the primary's line
    primaries = []
    for number, finding in enumerate(merged):
        primary = _primary_of(merged, number, candidates, are_tied)
        if primary == number:
            primaries.append(number)
        else:
            extra.setdefault(primary, []).extend(sights_for(merged[primary], finding))
            if finding.remedies and _was_tried_there(finding, merged[primary]):
                remedies.setdefault(primary, finding.remedies)
            if was_seen_there(finding, merged[primary]):
                fixes.setdefault(primary, finding.fix)
            if finding.what_if == merged[primary].what_if:
                severities[primary] = _worse(severities.get(primary, merged[primary].severity), finding.severity)
    return sorted_by_place(
        dataclasses.replace(
            merged[i],
            also_seen=(*merged[i].also_seen, *extra.get(i, ())),
            severity=severities.get(i, merged[i].severity),
            remedies=merged[i].remedies or remedies.get(i, ()),
            fix=merged[i].fix or fixes.get(i),
        )
        for i in primaries
    )


def _worse(one: Severity | None, other: Severity | None) -> Severity | None:
    """The more severe of both: a warning takes over the severity of an error that it explains."""
    return other if one is not None and other is not None and other.rank > one.rank else one


def _primary_of(merged: list[Finding], number: int, candidates: Candidates, are_tied: Ties) -> int:
    """The number of the finding that is reported in the place of this one: itself, or the end of the chain of findings
    that explain one another. Where the chain is a circle, the first of the circle."""
    asked: list[int] = []
    while number not in asked:
        asked.append(number)
        finding = merged[number]
        explaining = [i for i in candidates.of(finding) if explains(merged[i], finding, are_tied)]
        if _rule(finding).says_that_it_raised:  # what speaks of the error itself before what else stands on its line
            explaining.sort(key=lambda i: not _rule(merged[i]).speaks_of_the_error)
        elif "activation" in finding.evidence:  # of a model's outputs the one that it is about
            explaining.sort(key=lambda i: not _same_activation(merged[i], finding))
        primary = next(iter(explaining), None)
        if primary is None:
            return number
        number = primary
    return min(asked[asked.index(number) :])


class Candidates:
    """Index of the findings that might explain another one: those on its line, and those whose rule explains its code
    wherever they stand. Comparing each of a thousand findings with each other would take seconds."""

    def __init__(self, merged: list[Finding]) -> None:
        self._on_line: dict[tuple[str, str | None, int | None], list[int]] = {}
        self._by_code: dict[tuple[str, str], list[int]] = {}
        self._rules = rules_with_codes({finding.code for finding in merged})
        for number, finding in enumerate(merged):
            self._by_code.setdefault((finding.target, finding.code), []).append(number)
            for path, line in places_of(finding):
                self._on_line.setdefault((finding.target, path, line), []).append(number)

    def of(self, finding: Finding) -> list[int]:
        """The numbers of the findings that might explain this one, in ascending order."""
        place = finding.location
        numbers = set(self._on_line.get((finding.target, place.path, place.line), ()) if place else ())
        explaining = (rule.code for rule in self._rules if _explains_from_anywhere(rule, _rule(finding)))
        for code in (*explaining, _code_of_beginning(finding)):
            numbers.update(self._by_code.get((finding.target, code), ()))
        return sorted(numbers)


def _explains_from_anywhere(rule: Rule, other: Rule) -> bool:
    """Whether findings of `rule` explain findings of `other` wherever both stand."""
    return (
        rule.explains.get(other.code, "line") not in ON_ONE_LINE
        or (other.says_that_it_raised and (rule.speaks_of_the_error or rule.causes_error != ""))
        or bool(other.tells_of_divergence and (rule.causes_divergence or rule.tells_of_divergence))
    )


def explains(primary: Finding, finding: Finding, are_tied: Ties = of_one_program) -> bool:
    """Whether `primary` is the reason for `finding`, which then is reported as evidence of it and not on its own."""
    if primary is finding or primary.target != finding.target:
        return False
    if primary.what_if and not finding.what_if:
        return False  # what would be is no reason for what is
    if _rule(finding).says_that_it_raised and not _rule(primary).says_that_it_raised:
        return _explains_the_error(primary, finding, are_tied)
    if _tells_why_weights_ran_away(primary, finding) and _same_model(primary, finding, are_tied):
        return True
    if _sends_to(finding, primary, are_tied):
        return True
    return not _sends_to(primary, finding, are_tied) and _explains_by_its_rule(primary, finding, are_tied)


def _explains_the_error(primary: Finding, finding: Finding, are_tied: Ties) -> bool:
    """Whether `primary` explains a finding that reports an exception: as the same exception, as a defect on the line
    that raised, or as one that ends in this error elsewhere."""
    rule = _rule(primary)
    if rule.causes_error and rule.causes_error in str(finding.evidence.get("error", "")):
        return _same_model(primary, finding, are_tied)
    of_it = rule.speaks_of_the_error and (primary.location == finding.location is None or _same_error(primary, finding))
    return of_it or (not rule.never_raises and same_line(primary, finding))


def _sends_to(finding: Finding, other: Finding, are_tied: Ties) -> bool:
    """Whether a finding of a training names the rule of `other` as the place where the trouble begins."""
    return _code_of_beginning(finding) == other.code and _same_model(other, finding, are_tied)


def _explains_by_its_rule(primary: Finding, finding: Finding, are_tied: Ties) -> bool:
    nearness = _rule(primary).explains.get(finding.code)
    if nearness in ON_ONE_LINE:
        return same_line(primary, finding) and (nearness == "line" or finding.evidence.get("at_zero") is True)
    if nearness == "training" and finding.stage != "training" and not was_seen_there(finding, primary):
        return False  # the source shows a place of its own
    if "own_dtype" in finding.evidence:
        return False  # a loss that casts by itself stays as it is, whatever the model's output
    return nearness is not None and _same_model(primary, finding, are_tied)


def _was_tried_there(finding: Finding, primary: Finding) -> bool:
    """Whether what was tried against the finding was tried on a line of the primary's: where a 0 broke its operation,
    or where the primary was seen as well."""
    nearness = _rule(primary).explains.get(finding.code)
    return nearness == "zero" or (nearness == "line" and is_another_sight(primary, finding.location))


def _same_error(one: Finding, other: Finding) -> bool:
    """Whether both findings report one exception, on whichever line each of them stands."""
    names = ("exception", "error")
    return "error" in one.evidence and all(one.evidence.get(name) == other.evidence.get(name) for name in names)


def _same_activation(one: Finding, other: Finding) -> bool:
    return one.evidence.get("activation") == other.evidence.get("activation")


def _rule(finding: Finding) -> Rule:
    return rule_with_code(finding.code)


def _tells_why_weights_ran_away(primary: Finding, finding: Finding) -> bool:
    """Whether `primary` explains weights that diverged. Divergence is reported once: by its cause, else by the first of
    the rules that report it."""
    cause, effect = _rule(primary), _rule(finding)
    if not effect.tells_of_divergence or not _weights_ran_away(finding):
        return False
    is_first = 0 < cause.tells_of_divergence < effect.tells_of_divergence
    causes_it = cause.causes_divergence and primary.evidence.get("causes_divergence", True)
    return causes_it or (is_first and _weights_ran_away(primary))


def _code_of_beginning(finding: Finding) -> str:
    """The code of the rule that a training finding names as the beginning of its trouble, else ""."""
    return str(finding.evidence.get("told_by", ""))


def _weights_ran_away(finding: Finding) -> bool:
    return finding.evidence.get("weights_ran_away") is True


def _one_for_each_place(findings: Iterable[Finding]) -> list[Finding]:
    """One finding per source line and code; without a line, one per model and message. Sights of several stages become
    one finding. Two findings of one line stay apart where they name different columns and say different things."""
    kept: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        place = finding.location
        key: tuple[object, ...] = (
            (finding.code, finding.target, place.path, place.line)
            if place
            else (finding.code, finding.target, finding.model, finding.message)
        )
        first = kept.get(key) or _confirmed_by(kept.values(), finding)
        if first is None:
            kept[key] = finding
        elif first.stage != finding.stage:
            kept[next(k for k, f in kept.items() if f is first)] = _with_sight(first, finding)
        elif place and place.column and _says_something_else(first, finding):
            kept.setdefault((*key, finding.message, finding.help), finding)
    return list(kept.values())


def _says_something_else(first: Finding, finding: Finding) -> bool:
    """Whether two findings of one line and code name different columns and differ in message or help."""
    columns = {place.column for place in (first.location, finding.location) if place is not None}
    return len(columns) == 2 and (first.message, first.help) != (finding.message, finding.help)


def _confirmed_by(kept: Iterable[Finding], finding: Finding) -> Finding | None:
    """The finding in the source that this finding of a run confirms, None where there is none. One with a line of its
    own confirms another line where its rule says so, or where both are about the same class of layers."""
    if finding.stage == "source":
        return None
    anywhere = finding.location is None or _rule(finding).is_confirmed_live
    same = (f for f in kept if (f.code, f.target, f.stage) == (finding.code, finding.target, "source"))
    return next((f for f in same if anywhere or _are_of_one_class(f, finding)), None)


def _are_of_one_class(one: Finding, other: Finding) -> bool:
    return "layer_class" in one.evidence and one.evidence["layer_class"] == other.evidence.get("layer_class")


def _with_sight(first: Finding, later: Finding) -> Finding:
    """`first`, with `later` as evidence: it takes over what only `later` knows, and the worse severity. What a training
    has proved is better advice than what is known of the model alone."""
    seen = also_seen_from_finding(later)
    is_proved = first.stage == "model" and any(remedy.tried == "healed" for remedy in later.remedies)
    return dataclasses.replace(
        first,
        help=later.help if is_proved else first.help,
        remedies=first.remedies or (later.remedies if is_proved else ()),
        severity=_worse(first.severity, later.severity),
        model=first.model or later.model,
        layer=first.layer or later.layer,
        evidence={**later.evidence, **first.evidence},
        also_seen=(*first.also_seen, *(() if seen in first.also_seen else (seen,))),
    )


def _same_model(one: Finding, other: Finding, are_tied: Ties) -> bool:
    if one.model is not None and other.model is not None and one.model != other.model:
        return False
    here, there = one.location, other.location
    return here is None or there is None or here.path == there.path or are_tied(here.path, there.path)

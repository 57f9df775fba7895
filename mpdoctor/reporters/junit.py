"""JUnit's XML, for the test tab of a CI: a testsuite for each target, and in it

- a testcase for each stage: what was not looked at is skipped, with the reason, and is not told to have passed;
- a testcase for each finding, failed if it fails the run, else skipped. Its name is the rule and the line of source and
  not the number of that line, so that a CI takes it for the same one when lines are added above it.

Rules that found nothing are no testcases: eighty that passed would hide the two that did not, and hardly one of them
had anything to look at.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import groupby
from xml.etree import ElementTree

from mpdoctor.finding import Diagnosis, Finding, Severity, TargetReport
from mpdoctor.reporters.printable import one_line, place_text, shortened, visible
from mpdoctor.reporters.text.targets import NOT_DONE

ITSELF = "mpdoctor"
LONGEST_NAME = 160


def render(diagnosis: Diagnosis) -> str:
    root = ElementTree.Element("testsuites", name=ITSELF)
    by_target: dict[str, list[Finding]] = {target.id: [] for target in diagnosis.targets}
    of_none: list[Finding] = []
    for finding in diagnosis.findings:
        by_target.get(finding.target, of_none).append(finding)
    for target in diagnosis.targets:
        cases = [*_cases_from_stages(target, diagnosis), *_cases_from_findings(by_target[target.id], diagnosis)]
        _add_suite(root, target.id, cases)
    _add_suite(root, ITSELF, [*_cases_from_findings(of_none, diagnosis), *_cases_about_itself(diagnosis)])
    for name, number in _counts_of_cases(root).items():
        root.set(name, str(number))
    ElementTree.indent(root)
    # ASCII, so that no pipe can garble it
    written: bytes = ElementTree.tostring(root, encoding="us-ascii", xml_declaration=True)
    return written.decode("ascii") + "\n"


def _add_suite(root: ElementTree.Element, name: str, cases: list[ElementTree.Element]) -> None:
    if not cases:
        return
    suite = ElementTree.SubElement(root, "testsuite", name=one_line(name))
    suite.extend(cases)
    for count, number in _counts_of_cases(suite).items():
        suite.set(count, str(number))


def _counts_of_cases(element: ElementTree.Element) -> dict[str, int]:
    tags = {"tests": "testcase", "failures": "failure", "errors": "error", "skipped": "skipped"}
    return {name: sum(1 for _ in element.iter(tag)) for name, tag in tags.items()}


# --- stages ---------------------------------------------------------------------------------------------------------
def _cases_from_stages(target: TargetReport, diagnosis: Diagnosis) -> Iterator[ElementTree.Element]:
    """A stage that failed is an error only if the run ends so: else a finding says it, or the user ignores it."""
    for name, stage in target.stages.items():
        case = _case(target.id, f"{name} stage")
        if stage.status != "done":
            is_error = stage.status == "failed" and diagnosis.exit_code > 1
            _add_outcome(case, "error" if is_error else "skipped", stage.reason or stage.status)
        yield case


def _cases_about_itself(diagnosis: Diagnosis) -> Iterator[ElementTree.Element]:
    """What a rule or a reporter did not look at, what was not read or is not known, and what broke."""
    for code, skips in groupby(sorted(diagnosis.skipped, key=lambda skip: skip.code), key=lambda skip: skip.code):
        case = _case(ITSELF, NOT_DONE.get(code) or f"{code} did not look")
        reasons = [skip.reason for skip in skips]
        _add_outcome(case, "skipped", reasons[0], "\n".join(reasons))
        yield case
    for crash in diagnosis.crashed:
        case = _case(ITSELF, f"{crash.code} broke")
        _add_outcome(case, "error", crash.error, f"{crash.error}\nin {crash.where}")
        yield case


# --- findings -------------------------------------------------------------------------------------------------------
def _cases_from_findings(findings: Iterable[Finding], diagnosis: Diagnosis) -> Iterator[ElementTree.Element]:
    seen: Counter[tuple[str, str]] = Counter()
    for finding in findings:
        place = finding.location
        path, name = place.path if place else finding.target, _name_from_finding(finding)
        seen[path, name] += 1
        case = _case(path, name if seen[path, name] == 1 else f"{name} ({seen[path, name]})")
        if place is not None:
            case.set("file", one_line(place.path))
        if place is not None and not place.cell:  # a line of a cell is no line of the file
            case.set("line", str(place.line))
        fails = finding.fails_a_run(diagnosis.fail_on)
        severity = (finding.severity or Severity.INFO).value
        text = f"under mixed_float16: {finding.message}" if finding.what_if else finding.message
        _add_outcome(case, "failure" if fails else "skipped", text, _account_of_finding(finding, text), severity)
        yield case


def _name_from_finding(finding: Finding) -> str:
    rule = f"{finding.code} {finding.name}"
    line = _source_line(finding)
    if line:
        return f"{rule}: {line}"
    return f"{rule}: layer {finding.layer}" if finding.layer else rule


def _source_line(finding: Finding) -> str:
    place, excerpt = finding.location, finding.excerpt
    if place is None or excerpt is None or not 0 <= place.line - excerpt.first_line < len(excerpt.lines):
        return ""
    return excerpt.lines[place.line - excerpt.first_line].strip()


def _account_of_finding(finding: Finding, text: str) -> str:
    lines = [place_text(finding.location)] if finding.location else []
    lines.append(text)
    lines += [f"fix: {finding.help}"] if finding.help else []
    lines += [f"also seen ({seen.code}, {seen.stage}): {seen.text}" for seen in finding.also_seen]
    return "\n".join(lines)


# --- XML ------------------------------------------------------------------------------------------------------------
def _case(class_name: str, name: str) -> ElementTree.Element:
    shown = shortened(one_line(name), LONGEST_NAME)
    return ElementTree.Element("testcase", classname=one_line(class_name), name=shown)


def _add_outcome(case: ElementTree.Element, outcome: str, message: str, text: str = "", kind: str = "") -> None:
    element = ElementTree.SubElement(case, outcome, message=visible(message))
    if kind:
        element.set("type", kind)
    if text:
        element.text = visible(text)

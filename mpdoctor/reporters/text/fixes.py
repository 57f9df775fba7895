"""Which findings have fixes, in words, and the lines as a fix would leave them."""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from pathlib import PurePath

from mpdoctor.facts.location import Location
from mpdoctor.finding import Diagnosis, Excerpt, Finding, Severity

MENDED_FILES = ("keras-file", "hdf5-file")  # kinds of saved models of which `mend` makes another file


def how_to_fix(finding: Finding) -> str:
    """The option that applies a finding's fix, and the change that it makes, unless the help says that; "" where it has
    none."""
    fix = finding.fix
    if fix is None:
        return ""
    option = f"fixable with --fix{'' if fix.safe else ' --unsafe-fixes'}"
    return option if fix.title.lower() in finding.help.lower() else f"{option}: {fix.title}"


def fixable(findings: Iterable[Finding]) -> str:
    """ "3 fixable with --fix, 2 more with --unsafe-fixes"; "" where nothing is."""
    fixes = [finding.fix for finding in findings if finding.fix is not None and not finding.what_if]
    safe = sum(fix.safe for fix in fixes)
    unsafe = len(fixes) - safe
    if safe and unsafe:
        return f"{safe} fixable with --fix, {unsafe} more with --unsafe-fixes"
    return f"{len(fixes)} fixable with --fix{' --unsafe-fixes' if unsafe else ''}" if fixes else ""


def how_to_mend_file(diagnosis: Diagnosis) -> str:
    """How a new file without these findings is made of a saved model, which has no lines to edit; "" for other targets
    and where nothing was found."""
    (target, *others) = diagnosis.targets or (None,)
    if target is None or others or target.kind not in MENDED_FILES:
        return ""
    if not diagnosis.count(Severity.ERROR) + diagnosis.count(Severity.WARNING):
        return ""
    return f"a mended copy: mpdoctor mend {shlex.quote(target.id)} --output new{PurePath(target.id).suffix}"


def fixed_lines(finding: Finding) -> list[str]:
    """The lines that the fix changes as it leaves them; [] where not all of them are at hand."""
    excerpt, fix, place = finding.excerpt, finding.fix, finding.location
    if excerpt is None or fix is None or place is None:
        return []
    edits = sorted(fix.edits, key=lambda edit: edit.location)
    if not all(_lies_in(edit.location, place, excerpt) for edit in edits):
        return []
    first = min(edit.location.line for edit in edits)
    last = max(edit.location.end_line for edit in edits)
    text = "\n".join(excerpt.lines[first - excerpt.first_line : last - excerpt.first_line + 1])
    starts = _starts(text, first)
    for edit in reversed(edits):
        span = edit.location
        start, end = starts[span.line] + span.column - 1, starts[span.end_line] + span.end_column - 1
        text = text[:start] + edit.text + text[end:]
    return text.split("\n")


def _lies_in(span: Location, place: Location, excerpt: Excerpt) -> bool:
    last = excerpt.first_line + len(excerpt.lines) - 1
    lines = excerpt.first_line <= span.line <= span.end_line <= last
    if not lines or (span.path, span.cell) != (place.path, place.cell):
        return False
    # a line that is too long to be shown is cut
    return span.end_column - 1 <= len(excerpt.lines[span.end_line - excerpt.first_line])


def _starts(text: str, first: int) -> dict[int, int]:
    """The index in the text at which each line begins, by line number."""
    starts, at = {}, 0
    for number, line in enumerate(text.split("\n"), first):
        starts[number] = at
        at += len(line) + 1
    return starts

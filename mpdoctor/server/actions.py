"""Code actions for findings: their fixes, an ignore comment, and all safe fixes of a text at once."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.frozen import dataclass
from mpdoctor.finding import Edit, Finding
from mpdoctor.fixes.choices import everything
from mpdoctor.fixes.ignores import ignoring_edits
from mpdoctor.fixes.rounds import apply_fixes, fixes_of
from mpdoctor.fixes.texts import decoded
from mpdoctor.progress import SilentProgress
from mpdoctor.server.checking import Checked


@dataclass(frozen=True)
class Action:
    """A change that is offered for a finding. `is_safe`: the program means the same afterwards, or raised before."""

    title: str
    finding: Finding
    edits: tuple[Edit, ...]
    is_safe: bool


def fixes(check: Checked) -> Iterator[Action]:
    """The findings' own edits, where they are all of this text."""
    for finding in check.findings:
        fix = finding.fix
        if fix is None or finding.what_if or any(edit.location.path != check.shown for edit in fix.edits):
            continue
        unsafe = "" if fix.safe else " (unsafe: changes numbers or layers)"
        yield Action(f"{finding.code}: {fix.title}{unsafe}", finding, fix.edits, fix.safe)


def ignores(check: Checked) -> Iterator[Action]:
    """An ignore comment for all findings of a line."""
    if check.diagnosis is None:
        return
    for number, edits in ignoring_edits(check.diagnosis, check.sources).items():
        finding = check.diagnosis.findings[number]
        if edits and finding in check.findings:
            yield Action(f"{finding.code}: ignore on this line", finding, edits, is_safe=False)


def text_with_all_safe_fixes(check: Checked) -> str:
    """The text with them, and with those that are found once these are made; as it is where there is none."""
    if not any(action.is_safe for action in fixes(check)):
        return check.text
    outcome = apply_fixes(check.settings, SilentProgress(), fixes_of(unsafe=False), everything)
    after = next((file.after for file in outcome.changed if file.path == check.path), None)
    read = decoded(after) if after is not None else None
    return read[0] if read is not None else check.text

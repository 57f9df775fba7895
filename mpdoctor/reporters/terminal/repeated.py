"""Many infos of one rule: the first three in full, each further one as a line with its place and its message."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from rich.cells import cell_len
from rich.text import Text

from mpdoctor.finding import Finding, Severity
from mpdoctor.reporters.printable import one_line, place_text
from mpdoctor.reporters.terminal.style import SEVERITY_STYLES, Paragraph, Style, indented

TOLD_IN_FULL = 3
WORTH_A_LIST = 3  # fewer more are told in full as well
FEWEST_COLUMNS = 12  # for a message beside its place


def parted(findings: Sequence[Finding]) -> tuple[list[Finding], list[list[Finding]]]:
    """(those to tell in full, those to list by rule). What was seen elsewhere as well is told in full."""
    alike: defaultdict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.severity is Severity.INFO and finding.location is not None and not finding.also_seen:
            alike[finding.code].append(finding)
    listed = [of_rule[TOLD_IN_FULL:] for of_rule in alike.values() if len(of_rule) >= TOLD_IN_FULL + WORTH_A_LIST]
    in_lists = {id(finding) for of_rule in listed for finding in of_rule}
    return [finding for finding in findings if id(finding) not in in_lists], listed


def paragraph_from_repeated(findings: list[Finding], look: Style) -> Paragraph:
    """A line each, in which the message is cut where it does not fit."""
    first, style = findings[0], SEVERITY_STYLES[Severity.INFO]
    more = f" {first.name}, {len(findings)} more"
    lines: Paragraph = [Text.assemble((Severity.INFO.value, style), " ", (first.code, look.link(first)), more)]
    return lines + [indented(_line(finding, look)) for finding in findings]


def _line(finding: Finding, look: Style) -> Text:
    place = one_line(place_text(finding.location)) if finding.location is not None else ""
    room = look.width - 2 - cell_len(place) - 2
    if room < FEWEST_COLUMNS:
        return Text(place, style="dim", overflow="fold")
    message = Text(one_line(finding.message), no_wrap=True)
    message.truncate(room, overflow="ellipsis" if look.blocks else "crop")
    return Text.assemble((place, "dim"), "  ", message, no_wrap=True)

"""The end of a report: skipped parts and reasons, files the script wrote, crashes, and the command."""

from __future__ import annotations

from rich.text import Text

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.printable import one_line, shortened
from mpdoctor.reporters.terminal.style import Paragraph, Style, indented, labelled, left_out
from mpdoctor.reporters.text.fixes import fixable, how_to_mend_file
from mpdoctor.reporters.text.headline import code_to_explain
from mpdoctor.reporters.text.targets import about, broken, not_done

MOST_LINES = 100
MOST_ABOUT = 12
MOST_ABOUT_FILE = 400  # characters
ABOUT_LOOPS = "MP4"  # so begin the codes of findings on custom loops


def stages(diagnosis: Diagnosis, look: Style) -> Paragraph:
    """Stages that were skipped or failed, rules that could not look, stand-ins for data, files written, what broke."""
    undone, broke = not_done(diagnosis, look), broken(diagnosis, look)
    lines: Paragraph = [indented(Text(line, style="dim", overflow="fold")) for line in undone[:MOST_LINES]]
    lines += left_out(len(undone) - MOST_LINES, "line on what was not done", look)
    lines += [Text.assemble(("mpdoctor itself: ", "bold red"), text, overflow="fold") for text in broke[:MOST_LINES]]
    return lines + left_out(len(broke) - MOST_LINES, "such failure", look)


def ending(diagnosis: Diagnosis, look: Style) -> Paragraph:
    lines = about(diagnosis, look)[:MOST_ABOUT]
    lines += filter(None, [fixable(diagnosis.findings), look.name(how_to_mend_file(diagnosis), MOST_ABOUT_FILE)])
    code = code_to_explain(diagnosis)
    if code:
        lines.append(f"more on a rule: mpdoctor explain {code}")
    if any(finding.code.startswith(ABOUT_LOOPS) for finding in diagnosis.findings):
        lines.append("correct loops: mpdoctor explain loop")
    shown: Paragraph = [indented(Text(look.dot.join(lines), style="dim", overflow="fold"))]
    if not any(target.kind == "stdin" for target in diagnosis.targets):  # what came there does not come again
        command = Text(shortened(one_line(diagnosis.command), 600, look.more), overflow="fold")
        shown.append(labelled("run again:", command, most=None))  # in one line it can be copied
    return shown

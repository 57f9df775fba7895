"""Rendering: the one function through which every diagnosis becomes a report, in whatever format.

It makes every string safe to show first, whoever wrote it: no hidden characters, no terminal escapes, no commands for
the CI whose log the report is printed to."""

from __future__ import annotations

import dataclasses
import importlib
import re
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, TypedDict

from mpdoctor.reporters.printable import one_line, visible
from mpdoctor.reporters.string_walk import with_every_string

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from mpdoctor.compared import Compared
    from mpdoctor.finding import Diagnosis
    from mpdoctor.mended import Mended
    from mpdoctor.mended_file import MendedFile

# These may have several lines. Any other string is a name of something, and stays on one.
SEVERAL_LINES = frozenset(
    (
        "AlsoSeen.text",
        "Crashed.error",
        "FailureFacts.last_words",
        "FailureFacts.message",
        "Finding.help",
        "Finding.message",
        "Probe.advice",
        "Probe.went_on",
        "Probe.why",
        "RuleSummary.help_markdown",
        "Skipped.reason",
        "Stage.reason",
    )
)
# Columns count in the line as it is: whoever shows one makes it visible then.
AS_IT_IS = frozenset(("Excerpt.lines",))
# JSON is data, and ASCII. SARIF names files by their bytes, and makes visible what it says.
RAW = frozenset(("json", "sarif"))

# GitHub's runner takes `::name::` after blanks at the beginning of a line; `##[name]`, and Azure's `##vso[name]`,
# wherever they stand in a line. https://github.com/actions/runner/blob/main/src/Runner.Common/ActionCommand.cs
_AT_THE_BEGINNING = re.compile(r"^((?:[^\S\n]|\x1b\[[0-9;]*m)*):(?=:)", re.MULTILINE)
_ANYWHERE = re.compile(r"##(?=\w*\[)")
# What a line of a patch may hold as it is: tabs, and the carriage return before its end.
_BETWEEN_ENDS = re.compile(r"\r(?!\n)|[^\t\r\n]+")


class TerminalLook(TypedDict, total=False):
    """What a text report is to know of where it is shown: its columns, whether it has colours, and whether marks, lines
    and block characters can be shown."""

    width: int
    color: bool
    blocks: bool


def report_from_diagnosis(diagnosis: Diagnosis, form: str, **look: Unpack[TerminalLook]) -> str:
    """The report in one of the formats of `DISARMED`. `look`: for the terminal alone."""
    reporter = importlib.import_module(f"mpdoctor.reporters.{form}")
    shown = diagnosis if form in RAW else fit_to_show(diagnosis)
    return DISARMED[form](reporter.render(shown, **look))


def report_from_mended(mended: Mended, form: str, **look: Unpack[TerminalLook]) -> str:
    """The report on a mended program: JSON, or text with the patch. The patch is as it is, for git; `patch_to_show`
    makes it harmless."""
    from mpdoctor.reporters.mended import json, text

    if form == "json":
        return DISARMED["json"](json.render(mended))
    shown = with_every_string(
        mended, lambda held, field: held if field == "Mended.patch" else _visible_text(held, field)
    )
    above = DISARMED["terminal"](text.render(dataclasses.replace(shown, patch=""), **look))
    return above + text.shown_patch(mended.patch, look.get("color", False))


def report_from_mended_file(mended: MendedFile, form: str, **look: Unpack[TerminalLook]) -> str:
    """The report on a mended saved model, as JSON or text."""
    from mpdoctor.reporters.mended import file_json, file_text

    if form == "json":
        return DISARMED["json"](file_json.render(mended))
    return DISARMED["terminal"](file_text.render(with_every_string(mended, _visible_text), **look))


def report_from_compared(compared: Compared, form: str, **look: Unpack[TerminalLook]) -> str:
    """The report on a comparison, as JSON, Markdown, HTML or text."""
    reporter = importlib.import_module(f"mpdoctor.reporters.compared.{'text' if form == 'terminal' else form}")
    shown = compared if form in RAW else with_every_string(compared, _visible_text)
    return DISARMED[form](reporter.render(shown, **look))


def fit_to_show(diagnosis: Diagnosis) -> Diagnosis:
    """The diagnosis with invisible and control characters in its strings written as escapes."""
    return with_every_string(diagnosis, _visible_text)


def lines_for_a_log(lines: Iterable[str]) -> str:
    """The lines that are written beside a report."""
    return _text("".join(f"{one_line(line)}\n" for line in lines))


def patch_to_show(patch: str) -> str:
    """A patch for the eyes, as harmless as a report: `git apply` takes none of its lines that held anything hidden."""
    return _text(_BETWEEN_ENDS.sub(lambda found: visible(found[0]), patch))


def _visible_text(text: str, field: str) -> str:
    if text.isprintable() or field in AS_IT_IS:
        return text
    return visible(text) if field in SEVERAL_LINES else one_line(text)


# --- no command to a CI -----------------------------------------------------------------------------------------------
def _json(report: str) -> str:
    """`#` stands in strings alone, and no line begins within one."""
    return _ANYWHERE.sub(r"#\\u0023", report)


def _xml(report: str) -> str:
    return _AT_THE_BEGINNING.sub(r"\1&#58;", _ANYWHERE.sub("#&#35;", report))


def _text(report: str) -> str:
    return _AT_THE_BEGINNING.sub(r"\1\\:", _ANYWHERE.sub(r"#\\#", report))


def _columns(report: str) -> str:
    """Disarm CI commands by replacing a character, so that no line of the terminal gets longer."""
    return _AT_THE_BEGINNING.sub(r"\1\\", _ANYWHERE.sub(r"#\\", report))


def _commands(report: str) -> str:
    """Disarm CI commands within lines; those at the beginning of a line are mpdoctor's own."""
    return _ANYWHERE.sub(r"#\\#", report)


DISARMED: Mapping[str, Callable[[str], str]] = {
    "terminal": _columns,
    "concise": _text,
    "json": _json,
    "github": _commands,
    "sarif": _json,
    "gitlab": _json,
    "junit": _xml,
    "markdown": _text,
    "html": _xml,
    "svg": _xml,
}

"""The HTML report: one page that loads nothing, for offline reading, print, keyboard and screen readers.

Without scripts all of it is there; the one script adds a search to the tables of layers, a filter to many findings, and
buttons that copy a finding as Markdown and the lines that a fix leaves. A content security policy names that script and
the style by their hashes, so that nothing else runs, whatever a layer is called.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable

from jinja2 import Environment
from markupsafe import Markup

from mpdoctor.facts.written_numbers import count, magnitude_text, number_text
from mpdoctor.finding import Diagnosis, Finding, Severity
from mpdoctor.reporters.html import plot
from mpdoctor.reporters.html.colours import coloured
from mpdoctor.reporters.html.grouping import NOWHERE, groups_from_findings
from mpdoctor.reporters.html.page_parts import hash_of, prose, source, templates
from mpdoctor.reporters.markdown.sections import markdown_from_finding
from mpdoctor.reporters.printable import place_text, shortened
from mpdoctor.reporters.reading_order import weightiest_first
from mpdoctor.reporters.terminal.drawing import drawn
from mpdoctor.reporters.terminal.graphs import paragraphs_from_graphs
from mpdoctor.reporters.terminal.recorded_runs import paragraphs_from_runs
from mpdoctor.reporters.terminal.style import Style as TerminalLook
from mpdoctor.reporters.text import (
    checklist,
    environment,
    excerpts,
    findings,
    fixes,
    headline,
    layers,
    reference,
    second_training,
    targets,
    training,
)
from mpdoctor.reporters.text.findings import pages_from_rules
from mpdoctor.reporters.text.operations import numbers_at
from mpdoctor.reporters.text.style import Style

LONGEST_PROSE = 1500


def render(diagnosis: Diagnosis) -> str:
    style, script = (source(name) for name in ("style.css", "page.js"))
    look = Style()
    diagnosis = weightiest_first(diagnosis)
    page = _templates().get_template("report.html")
    return page.render(
        diagnosis=diagnosis,
        look=look,
        anchors=_Anchors(diagnosis.findings),
        pages=pages_from_rules(diagnosis.rules),
        headline=headline.headline_from_diagnosis(diagnosis, look),
        sections=_sections(diagnosis),
        graphs=drawn(paragraphs_from_graphs(diagnosis, TerminalLook(look.width, look.blocks)), look.width),
        runs=drawn(paragraphs_from_runs(diagnosis, TerminalLook(look.width, look.blocks)), look.width),
        style=Markup(style),
        script=Markup(script),
        style_hash=hash_of(style),
        script_hash=hash_of(script),
    )


def _sections(diagnosis: Diagnosis) -> list[tuple[str, str, str]]:
    """(anchor, title, how much of it), of those that have something to say."""
    real = sum(not finding.what_if for finding in diagnosis.findings)
    what_if = len(diagnosis.findings) - real
    counted = sum(len(model.layers) for _, model in diagnosis.models)
    parts = [
        ("findings", "Findings", real),
        ("what-if", "If mixed_float16 were turned on", what_if),
        ("training", "Training", len(diagnosis.probes)),
        ("layers", "Layers", counted),
    ]
    shown = [(anchor, title, str(number)) for anchor, title, number in parts if number]
    if diagnosis.runs:
        shown.append(("runs", "Recorded training", str(len(diagnosis.runs))))
    if diagnosis.graphs:
        shown.append(("graphs", "Saved graphs", str(len(diagnosis.graphs))))
    return [*shown, ("environment", "Environment", "")]


@functools.cache
def _templates() -> Environment:
    pages = templates()
    pages.globals.update(
        Severity=Severity,
        checklist=checklist.checklist_from_diagnosis,
        count=count,
        environment=environment.rows_from_environment,
        NOWHERE=NOWHERE,
        excerpt=lambda finding: coloured(excerpts.lines_from_finding(finding)),
        findings=findings,
        fixes=fixes,
        groups_from_findings=groups_from_findings,
        layers=layers,
        markdown=markdown_from_finding,
        number_text=number_text,
        magnitude_text=magnitude_text,
        numbers_at=numbers_at,
        place=place_text,
        plot=plot,
        targets=targets,
        training=training,
        reference=reference,
        second_training=second_training,
        mood_of_verdict=headline.mood_of_verdict,
    )
    pages.filters.update(prose=_prose, share=lambda value: f"{value:.0%}" if value == value else "nan")
    return pages


def _prose(text: str) -> Markup:
    return prose(shortened(text, LONGEST_PROSE))


class _Anchors:
    """The HTML anchor of each finding."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._numbers = {id(finding): number for number, finding in enumerate(findings, 1)}

    def of(self, finding: Finding) -> str:
        return f"finding-{self._numbers[id(finding)]}"

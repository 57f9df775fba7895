"""The HTML report: one page that loads nothing, for offline reading, print, keyboard and screen readers.

Without scripts all of it is there; the one script adds a search to the tables of layers, a filter to many findings, and
buttons that copy a finding as Markdown and the lines that a fix leaves. A content security policy names that script and
the style by their hashes, so that nothing else runs, whatever a layer is called.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from mpdoctor.facts.written_numbers import magnitude_text, number_text
from mpdoctor.finding import Diagnosis, Finding, Severity
from mpdoctor.reporters.html import plot
from mpdoctor.reporters.html.colours import coloured
from mpdoctor.reporters.html.grouping import NOWHERE, groups_from_findings
from mpdoctor.reporters.markdown.sections import markdown_from_finding
from mpdoctor.reporters.printable import place_text, shortened, visible
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
from mpdoctor.reporters.text.style import Style, count, parts_from_prose

TEMPLATES = Path(__file__).parent / "templates"
LONGEST_PROSE = 1500


def render(diagnosis: Diagnosis) -> str:
    style, script = (_source(name) for name in ("style.css", "page.js"))
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
        style_hash=_hash(style),
        script_hash=_hash(script),
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
    templates = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    templates.globals.update(
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
    templates.filters.update(prose=_prose, share=lambda value: f"{value:.0%}" if value == value else "nan")
    return templates


def _shown(value: Any) -> Any:
    """Whatever the page shows: nothing hidden in it stays hidden."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def _prose(text: str) -> Markup:
    parts = parts_from_prose(visible(shortened(text, LONGEST_PROSE)))
    return Markup("").join(Markup("<code>{}</code>").format(part) if is_code else part for is_code, part in parts)


class _Anchors:
    """The HTML anchor of each finding."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._numbers = {id(finding): number for number, finding in enumerate(findings, 1)}

    def of(self, finding: Finding) -> str:
        return f"finding-{self._numbers[id(finding)]}"


def _source(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hash(source: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(source.encode("utf-8")).digest()).decode("ascii")

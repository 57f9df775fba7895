"""The report for people: the verdict, what is wrong, why and what to change, and how the training went."""

from __future__ import annotations

from rich.text import Text

from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.reading_order import weightiest_first
from mpdoctor.reporters.terminal.drawing import drawn
from mpdoctor.reporters.terminal.ending import ending, stages
from mpdoctor.reporters.terminal.findings import paragraph_from_finding
from mpdoctor.reporters.terminal.graphs import paragraph_from_graph
from mpdoctor.reporters.terminal.layers import paragraphs_from_models
from mpdoctor.reporters.terminal.recorded_runs import paragraph_from_run
from mpdoctor.reporters.terminal.repeated import paragraph_from_repeated, parted
from mpdoctor.reporters.terminal.style import Paragraph, Style, left_out
from mpdoctor.reporters.terminal.training import paragraph_from_probe
from mpdoctor.reporters.terminal.verdict import headlines
from mpdoctor.reporters.text.findings import pages_from_rules

MOST_FINDINGS = 1000  # that a person reads; the other formats hold all of them
MOST_TRAININGS = 50
MOST_GRAPHS = 20


def render(diagnosis: Diagnosis, *, width: int = 80, color: bool = False, blocks: bool = True) -> str:
    """`blocks`: whether marks, lines and block characters can be shown; else all that is ours is ASCII."""
    look = Style(width, blocks, pages_from_rules(diagnosis.rules))
    return drawn(paragraphs_from_diagnosis(diagnosis, look), width, color)


def paragraphs_from_diagnosis(diagnosis: Diagnosis, look: Style, most: int = MOST_FINDINGS) -> list[Paragraph]:
    """`most`: of the findings."""
    diagnosis = weightiest_first(diagnosis)
    real = [finding for finding in diagnosis.findings if not finding.what_if]
    what_if = [finding for finding in diagnosis.findings if finding.what_if]
    in_full, repeated = parted(real[:most])
    # little to say: a few lines, no paragraphs
    short = not diagnosis.findings and not diagnosis.graphs and len(diagnosis.probes) < 2
    paragraphs = [
        headlines(diagnosis, look),
        *(paragraph_from_finding(finding, look) for finding in in_full),
        *(paragraph_from_repeated(of_rule, look) for of_rule in repeated),
        left_out(len(real) - most, "finding", look),
        *paragraphs_from_models(diagnosis, look),
        *(paragraph_from_graph(graph, look) for _, graph in diagnosis.graphs[:MOST_GRAPHS]),
        left_out(len(diagnosis.graphs) - MOST_GRAPHS, "graph", look),
        *(paragraph_from_probe(probe, look, short=short) for probe in diagnosis.probes[:MOST_TRAININGS]),
        left_out(len(diagnosis.probes) - MOST_TRAININGS, "training", look),
        *(paragraph_from_run(run, look) for run in diagnosis.runs[:MOST_TRAININGS]),
        left_out(len(diagnosis.runs) - MOST_TRAININGS, "recorded training", look),
        stages(diagnosis, look),
    ]
    if what_if:
        paragraphs.append([Text("If you turned on mixed_float16", style="bold underline")])
        paragraphs += [paragraph_from_finding(finding, look) for finding in what_if[:most]]
        paragraphs.append(left_out(len(what_if) - most, "finding", look))
    paragraphs.append(ending(diagnosis, look))
    paragraphs = [paragraph for paragraph in paragraphs if paragraph]
    return [[line for paragraph in paragraphs for line in paragraph]] if short else paragraphs

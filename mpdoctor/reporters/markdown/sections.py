"""The open parts of a Markdown report: findings, layers, training, environment."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis, Finding, Severity
from mpdoctor.reporters.markdown.escaping import block, code, folded, prose, table
from mpdoctor.reporters.printable import place_text
from mpdoctor.reporters.terminal.drawing import drawn
from mpdoctor.reporters.terminal.graphs import paragraphs_from_graphs
from mpdoctor.reporters.terminal.recorded_runs import paragraphs_from_runs
from mpdoctor.reporters.terminal.style import Paragraph
from mpdoctor.reporters.terminal.style import Style as TerminalLook
from mpdoctor.reporters.terminal.training import paragraph_from_probe
from mpdoctor.reporters.text.environment import rows_from_environment
from mpdoctor.reporters.text.excerpts import lines_from_finding
from mpdoctor.reporters.text.findings import also_seen, further_layers
from mpdoctor.reporters.text.layers import ByLayer, LayerRow, findings_by_layer, in_dtypes, rows_from_model
from mpdoctor.reporters.text.style import Style

MOST_FINDINGS = 25
MOST_OPEN_LAYERS = 12
MOST_LAYERS = 100
MOST_MODELS = 4


def environment(diagnosis: Diagnosis, look: Style) -> str:
    rows = rows_from_environment(diagnosis, look)
    return table(("Environment", ""), ((prose(label), code(text, 300)) for label, text in rows))


# --- findings ---------------------------------------------------------------------------------------------------------
def findings(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    real = [finding for finding in diagnosis.findings if not finding.what_if]
    what_if = [finding for finding in diagnosis.findings if finding.what_if]
    for title, findings in (("Findings", real), ("If mixed_float16 were turned on", what_if)):
        if findings:
            yield f"### {prose(title)}"
        for finding in findings[:MOST_FINDINGS]:
            yield markdown_from_finding(finding, look)
        if len(findings) > MOST_FINDINGS:
            yield f"*{prose(f'And {len(findings) - MOST_FINDINGS} more.')}*"


def markdown_from_finding(finding: Finding, look: Style) -> str:
    severity = (finding.severity or Severity.INFO).value
    parts = [f"#### {severity} {prose(f'{finding.code} {finding.name}')}", prose(finding.message)]
    if finding.location:
        parts.append(code(place_text(finding.location)))
    lines = list(_excerpt(finding))
    if lines:
        parts.append(block(lines))
    named = further_layers(finding)
    if named:
        parts.append(f"Layers: {', '.join(code(name, 60) for name in named[:6])}{_and_more(len(named) - 6)}")
    if finding.help:
        parts.append(f"**Fix:** {prose(finding.help)}")
    parts += [f"*{prose(seen)}*" for seen in also_seen(finding, look)[:3]]
    return "\n\n".join(filter(None, parts))


def _excerpt(finding: Finding) -> Iterator[str]:
    lines = lines_from_finding(finding)
    gutter = len(str(lines[-1].number)) if lines else 0
    for line in lines:
        yield f"{line.number:>{gutter}} │ {line.text}".rstrip()
        if line.marked:
            yield f"{' ' * gutter} │ {' ' * len(line.before)}{'^' * len(line.marked)}"


def _and_more(number: int) -> str:
    return f" and {number} more" if number > 0 else ""


# --- layers -----------------------------------------------------------------------------------------------------------
def layers(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    models = [model for _, model in diagnosis.models if model.layers]
    named = findings_by_layer(diagnosis)
    for model in models[:MOST_MODELS]:
        yield _layers(model, named, look)
    left = len(models) - MOST_MODELS
    if left > 0:
        more = count(left, "more model")
        yield f"*{prose(f'And the layers of {more}.')}*"


def _layers(model: ModelFacts, named: ByLayer, look: Style) -> str:
    rows = rows_from_model(model, named)
    # where there are too many, those that somebody looks for
    shown = rows if len(rows) <= MOST_LAYERS else [row for row in rows if row.odd or row.findings][:MOST_LAYERS]
    rows_shown = table(
        ("Layer", "Class", "Policy", "Compute → variable", "Output", "Findings"), (_layer(row, look) for row in shown)
    )
    if len(shown) < len(rows):
        rows_shown += f"\n\n*{prose(f'And {len(rows) - len(shown)} more, which compute as most do.')}*"
    title = f"Layers of {look.name(model.name, 60)}"
    if len(rows) <= MOST_OPEN_LAYERS:
        return f"### {prose(title)}\n\n{rows_shown}"
    return folded(f"{title} ({in_dtypes(model.layers, look)})", rows_shown)


def _layer(row: LayerRow, look: Style) -> tuple[str, ...]:
    layer = row.layer
    shown = f"{layer.compute_dtype} {look.arrow} {layer.variable_dtype}" if layer.follows_policy else ""
    dtypes = code(shown, 50)
    cells = [code(layer.path, 80), code(layer.class_name, 40), code(layer.policy, 40), dtypes]
    if row.odd:
        cells = [f"**{cell}**" if cell else "" for cell in cells]
    return (*cells, code(row.outputs, 40), ", ".join(dict.fromkeys(finding.code for finding in row.findings)))


# --- graphs and trainings: as the terminal draws them -----------------------------------------------------------------
def graphs(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    terminal = TerminalLook(look.width, look.blocks)
    for paragraph in paragraphs_from_graphs(diagnosis, terminal):
        yield _block([paragraph], look)


def trainings(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    terminal = TerminalLook(look.width, look.blocks)
    if diagnosis.probes:
        yield "### Training"
    for probe in diagnosis.probes:
        yield _block([paragraph_from_probe(probe, terminal, short=False)], look)


def recorded_runs(diagnosis: Diagnosis, look: Style) -> Iterator[str]:
    terminal = TerminalLook(look.width, look.blocks)
    if diagnosis.runs:
        yield "### Recorded training"
    for paragraph in paragraphs_from_runs(diagnosis, terminal):
        yield _block([paragraph], look)


def _block(paragraphs: list[Paragraph], look: Style) -> str:
    return block(drawn(paragraphs, look.width).rstrip("\n").split("\n"))

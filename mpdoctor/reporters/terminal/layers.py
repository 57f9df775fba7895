"""The layer table, shown where the layers of a model compute in different dtypes."""

from __future__ import annotations

from collections import Counter

from rich.table import Table
from rich.text import Text

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis
from mpdoctor.reporters.terminal.style import Paragraph, Style, indented, left_out

MOST_ROWS = 12
MOST_MODELS = 20
ABOUT_LAYERS = ("MP1", "MP2")  # findings on policies and on layers


def paragraphs_from_models(diagnosis: Diagnosis, look: Style) -> list[Paragraph]:
    """A float32 output in a mixed model is as it should be: no table for that alone, but for what is spoken of."""
    spoken_of = {
        (finding.target, finding.model)
        for finding in diagnosis.findings
        if finding.code.startswith(ABOUT_LAYERS) and not finding.what_if
    }
    models = [
        model
        for target, model in diagnosis.models
        if spoken_of & {(target, None), (target, model.id)} and _has_several_dtypes(model)
    ]
    tables = [_table(model, look) for model in models[:MOST_MODELS]]
    return [*tables, left_out(len(models) - MOST_MODELS, "model", look)]


def _layers_under_policies(model: ModelFacts) -> list[LayerFacts]:
    return [layer for layer in model.layers if layer.follows_policy]


def _has_several_dtypes(model: ModelFacts) -> bool:
    return len({layer.compute_dtype for layer in _layers_under_policies(model)}) > 1


def _table(model: ModelFacts, look: Style) -> Paragraph:
    layers = _layers_under_policies(model)
    usual = Counter(layer.compute_dtype for layer in layers).most_common(1)[0][0]
    shown = _rows(layers, usual)
    more = max(0, look.width - 80) // 2  # of a wide terminal names get the half, and half of that
    table = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False, header_style="dim")
    headings = ["layer", "class", "policy", f"compute {look.arrow} variable"]
    if any(_output(layer) for layer in shown):
        headings.append("output")
    for heading in headings:
        table.add_column(heading, overflow="ellipsis" if look.blocks else "crop", no_wrap=True)
    for layer in shown:
        dtypes = (layer.policy, f"{layer.compute_dtype} {look.arrow} {layer.variable_dtype}", _output(layer))
        table.add_row(
            Text(look.name(layer.path, 23 + more), style="" if layer.compute_dtype == usual else "bold yellow"),
            Text(look.name(layer.class_name, 18 + more // 2)),
            *(Text(look.name(text, 24)) for text in dtypes[: len(headings) - 2]),
        )
    lines: Paragraph = [Text.assemble(("Layers", "bold"), f" of {look.name(model.name, 40)}"), indented(table)]
    left = Counter(layer.policy for layer in layers) - Counter(layer.policy for layer in shown)
    for policy, number in sorted(left.items()):
        text = f"{look.more} {count(number, 'more layer')} in {look.name(policy, 24)}"
        lines.append(indented(Text(text, style="dim")))
    return lines


def _rows(layers: list[LayerFacts], usual: str) -> list[LayerFacts]:
    """The layers to show: all where they are few, else those with an unusual dtype and the first of the others."""
    if len(layers) <= MOST_ROWS:
        return layers
    first = next(layer for layer in layers if layer.compute_dtype == usual)
    odd = [layer for layer in layers if layer.compute_dtype != usual][: MOST_ROWS - 1]
    return [layer for layer in layers if layer is first or any(layer is odd_layer for odd_layer in odd)]


def _output(layer: LayerFacts) -> str:
    """The dtypes of the layer's outputs; "" where they are its compute dtype."""
    return "" if layer.output_dtypes in ((), (layer.compute_dtype,)) else ", ".join(layer.output_dtypes)

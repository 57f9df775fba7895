"""The layers of a model as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from mpdoctor.facts.model import LayerFacts, ModelFacts
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.reporters.words.look import Look, count


@dataclass(frozen=True)
class LayerRow:
    """`odd`: it computes in another dtype than most. `findings`: those that name it."""

    layer: LayerFacts
    odd: bool
    findings: tuple[Finding, ...]

    @property
    def outputs(self) -> str:
        return ", ".join(self.layer.output_dtypes)

    @property
    def parameters(self) -> int:
        return sum(size for _, size, _ in self.layer.variables)


def rows_from_model(diagnosis: Diagnosis, model: ModelFacts) -> list[LayerRow]:
    usual = usual_dtype(model)
    named: dict[str, list[Finding]] = {}
    for finding in diagnosis.findings:
        if finding.layer and finding.model in (None, model.id):
            named.setdefault(finding.layer, []).append(finding)
    return [
        LayerRow(
            layer,
            layer.follows_policy and layer.compute_dtype != usual,
            tuple(named.get(layer.path, ())),
        )
        for layer in model.layers
    ]


def usual_dtype(model: ModelFacts) -> str:
    floating = Counter(layer.compute_dtype for layer in model.layers if layer.follows_policy)
    return floating.most_common(1)[0][0] if floating else ""


def in_dtypes(layers: Iterable[LayerFacts], look: Look) -> str:
    """ "3 layers: 2 in float16, 1 in float32"."""
    layers = [layer for layer in layers if not layer.is_operation]
    dtypes = Counter(layer.compute_dtype for layer in layers if layer.follows_policy)
    told = ", ".join(f"{number} in {look.name(dtype, 24)}" for dtype, number in dtypes.most_common())
    return f"{count(len(layers), 'layer')}{': ' if told else ''}{told}"

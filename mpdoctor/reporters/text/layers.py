"""The layers of a model as rows of a table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.written_numbers import count
from mpdoctor.finding import Diagnosis, Finding
from mpdoctor.reporters.text.style import Style


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


# Findings with their numbers, by the layer and the model that they name; without a model, all are meant.
ByLayer = Mapping[tuple[str | None, str], list[tuple[int, Finding]]]


def findings_by_layer(diagnosis: Diagnosis) -> ByLayer:
    named: dict[tuple[str | None, str], list[tuple[int, Finding]]] = {}
    for number, finding in enumerate(diagnosis.findings):
        if finding.layer:
            named.setdefault((finding.model, finding.layer), []).append((number, finding))
    return named


def rows_from_model(model: ModelFacts, named: ByLayer) -> list[LayerRow]:
    usual = usual_dtype(model)
    return [
        LayerRow(
            layer, layer.follows_policy and layer.compute_dtype != usual, _findings_naming(layer.path, model, named)
        )
        for layer in model.layers
    ]


def _findings_naming(layer: str, model: ModelFacts, named: ByLayer) -> tuple[Finding, ...]:
    findings = [*named.get((None, layer), ()), *named.get((model.id, layer), ())]
    return tuple(finding for _, finding in sorted(findings, key=lambda numbered: numbered[0]))


def usual_dtype(model: ModelFacts) -> str:
    floating = Counter(layer.compute_dtype for layer in model.layers if layer.follows_policy)
    return floating.most_common(1)[0][0] if floating else ""


def in_dtypes(layers: Iterable[LayerFacts], look: Style) -> str:
    """ "3 layers: 2 in float16, 1 in float32"."""
    layers = [layer for layer in layers if not layer.is_operation]
    dtypes = Counter(layer.compute_dtype for layer in layers if layer.follows_policy)
    counts = ", ".join(f"{number} in {look.name(dtype, 24)}" for dtype, number in dtypes.most_common())
    return f"{count(len(layers), 'layer')}{': ' if counts else ''}{counts}"

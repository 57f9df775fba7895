"""Layers in a diagnosis: those that a finding, or a remedy that healed, names for float32, and those that the code of a
layer makes, which no configuration holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from mpdoctor.finding import Diagnosis, Finding


def layers_named_by(finding: Finding, diagnosis: Diagnosis) -> tuple[str, ...]:
    healed = [remedy for remedy in finding.remedies if remedy.tried == "healed"]
    if healed:
        in_layers = [remedy.layers for remedy in healed if remedy.kind == "float32-layers"]
        return min(in_layers, key=len) if in_layers else tuple(_output_layers(diagnosis))
    if finding.layer is None or any(remedy.tried == "failed" for remedy in finding.remedies):
        return ()
    return (finding.layer,)


def _output_layers(diagnosis: Diagnosis) -> Iterator[str]:
    """Float32 there is a loss in float32."""
    for _, model in diagnosis.models:
        yield from (layer.path for layer in model.layers if layer.is_output and layer.computes_in_half)


def layers_made_by_code(diagnosis: Diagnosis, known: Mapping[str, Any]) -> Iterator[str]:
    for _, model in diagnosis.models:
        own = {layer.path for layer in model.layers if layer.own_class} | {""}
        for layer in model.layers:
            if layer.follows_policy and layer.path not in known and layer.path.rpartition("/")[0] in own:
                yield layer.path

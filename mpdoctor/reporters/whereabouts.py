"""Where to look for a finding about a live model that knows no line of its own."""

from __future__ import annotations

from dataclasses import dataclass

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import LayerFacts, ModelFacts
from mpdoctor.finding import Diagnosis, Finding


@dataclass(frozen=True)
class Whereabouts:
    """A line that the examination saw, and in words what stands there."""

    location: Location
    what: str


def whereabouts_from_finding(finding: Finding, diagnosis: Diagnosis) -> Whereabouts | None:
    """The class of the finding's layer where it is the user's own, else the line that made the layer, else the
    training call of its model. None for a finding with a line, and where no such line was seen."""
    if finding.location is not None or finding.stage == "source":
        return None
    models = models_of_finding(finding, diagnosis)
    for layer in (layer for model in models for layer in model.layers if layer.path == finding.layer):
        found = _whereabouts_from_layer(layer)
        if found is not None:
            return found
    calls = {model.call.location for model in models if model.call.location is not None}
    return Whereabouts(calls.pop(), "the training call") if len(calls) == 1 else None


def models_of_finding(finding: Finding, diagnosis: Diagnosis) -> list[ModelFacts]:
    """The model that a finding is about; without its name, all of its target that could be meant."""
    models = [model for target, model in diagnosis.models if target == finding.target]
    if finding.model is not None:
        return [model for model in models if model.id == finding.model]
    if finding.layer is not None:
        return [model for model in models if any(layer.path == finding.layer for layer in model.layers)]
    return models


def _whereabouts_from_layer(layer: LayerFacts) -> Whereabouts | None:
    if layer.own_class and layer.class_location is not None:
        return Whereabouts(layer.class_location, f"the class of layer {layer.path}")
    if layer.made_at is not None:
        return Whereabouts(layer.made_at, f"where layer {layer.path} is made")
    return None

"""Where to look for a finding about a live model that knows no line of its own."""

from __future__ import annotations

from collections import defaultdict

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Diagnosis, Finding


@dataclass(frozen=True)
class FallbackLocation:
    """A line that the examination saw, and in words what stands there."""

    location: Location
    what: str


class Models:
    """The models of a diagnosis, found by what a finding names: a search for each finding would take long where there
    are many of both."""

    def __init__(self, diagnosis: Diagnosis) -> None:
        self._of_target: dict[str, list[ModelFacts]] = defaultdict(list)
        self._named: dict[tuple[str, str], list[ModelFacts]] = defaultdict(list)
        self._with_layer: dict[tuple[str, str], list[ModelFacts]] = defaultdict(list)
        self._layers: dict[tuple[str, str, str], list[LayerFacts]] = defaultdict(list)
        self._calls: dict[str, set[Location]] = defaultdict(set)
        for target, model in diagnosis.models:
            self._of_target[target].append(model)
            self._named[target, model.id].append(model)
            for path in dict.fromkeys(layer.path for layer in model.layers):
                self._with_layer[target, path].append(model)
            for layer in model.layers:
                self._layers[target, model.id, layer.path].append(layer)
            if model.call.location is not None:
                self._calls[target].add(model.call.location)

    def of_finding(self, finding: Finding) -> list[ModelFacts]:
        """The model that a finding is about; without its name, all of its target that could be meant."""
        if finding.model is not None:
            return self._named.get((finding.target, finding.model), [])
        if finding.layer is not None:
            return self._with_layer.get((finding.target, finding.layer), [])
        return self._of_target.get(finding.target, [])

    def fallback_location_of_finding(self, finding: Finding) -> FallbackLocation | None:
        """The class of the finding's layer where it is the user's own, else the line that made the layer, else the
        training call of its model. None for a finding with a line, and where no such line was seen."""
        if finding.location is not None or finding.stage == "source":
            return None
        for layer in self._layers_of_finding(finding):
            location = _fallback_location_from_layer(layer)
            if location is not None:
                return location
        calls = self._calls_of_finding(finding)
        return FallbackLocation(next(iter(calls)), "the training call") if len(calls) == 1 else None

    def _layers_of_finding(self, finding: Finding) -> list[LayerFacts]:
        if finding.layer is None:
            return []
        models = dict.fromkeys(model.id for model in self.of_finding(finding))
        return [layer for model in models for layer in self._layers[finding.target, model, finding.layer]]

    def _calls_of_finding(self, finding: Finding) -> set[Location]:
        if finding.model is None and finding.layer is None:
            return self._calls.get(finding.target, set())
        return {model.call.location for model in self.of_finding(finding) if model.call.location is not None}


def _fallback_location_from_layer(layer: LayerFacts) -> FallbackLocation | None:
    if layer.own_class and layer.class_location is not None:
        return FallbackLocation(layer.class_location, f"the class of layer {layer.path}")
    if layer.made_at is not None:
        return FallbackLocation(layer.made_at, f"where layer {layer.path} is made")
    return None

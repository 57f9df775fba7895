"""The layers of a live model that came from a file."""

from __future__ import annotations

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved.file import LoadFacts


def layers_inside(model: ModelFacts, load: LoadFacts) -> list[LayerFacts]:
    """The layers of the loaded part; all layers where the model itself was loaded."""
    return [layer for layer in model.layers if not load.part or layer.path.startswith(load.part + "/")]

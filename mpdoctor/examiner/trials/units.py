"""The units of a trial: layers that one line of the program constructs, with the sublayers that Keras makes in them.

Sublayers that the program makes itself are units of their own."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from mpdoctor.examiner.process.user_code import class_location
from mpdoctor.examiner.trials.step_outcome import SeenCall
from mpdoctor.facts.half_dtypes import HALF
from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasLayer


class Unit(NamedTuple):
    """A layer and its `parts`, the inner layers that take its dtype; its path, and the program's line that makes it."""

    layer: KerasLayer
    parts: tuple[KerasLayer, ...]
    path: str
    location: Location | None

    @property
    def holds_given_layers(self) -> bool:
        """Whether the parts are copies of a layer that the program gave it, and whose own dtype they take."""
        return any(cls.__name__ == "Bidirectional" for cls in type(self.layer).__mro__)

    @property
    def layers(self) -> tuple[KerasLayer, ...]:
        return (self.layer, *self.parts)


def units_of_step(keras: KerasAdapter, layer_hooks: LayerHooks, calls: list[SeenCall]) -> list[Unit]:
    """The units of all called layers that compute in 16 bits, in the order of their first call."""
    units: dict[int, Unit] = {}
    for call in calls:
        layer = call.layer
        if id(layer) in units or layer.compute_dtype not in HALF or keras.is_function(layer):
            continue
        if _is_whole(keras, call) or _is_made_by_parent(keras, layer_hooks, call):
            continue
        location = None if layer_hooks.origins.made_by(layer) else layer_hooks.origins.made_at(layer)
        taken = keras.made_input(call.parent.layer, layer) if call.parent is not None else None
        parts = (*_parts(keras, layer_hooks, layer), *(() if taken is None else (taken,)))
        units[id(layer)] = Unit(layer, parts, call.path, location)
    return list(units.values())


def _is_whole(keras: KerasAdapter, call: SeenCall) -> bool:
    """Whether it is a model that is trained, or one of Keras' own classes that holds layers and computes nothing."""
    layer = call.layer
    return isinstance(layer, keras.Model) and (call.parent is None or class_location(type(layer)) is None)


def _is_made_by_parent(keras: KerasAdapter, layer_hooks: LayerHooks, call: SeenCall) -> bool:
    parent = call.parent
    return (
        parent is not None
        and not isinstance(parent.layer, keras.Model)
        and _is_made_by_library(layer_hooks, call.layer)
    )


def _is_made_by_library(layer_hooks: LayerHooks, layer: KerasLayer) -> bool:
    return layer_hooks.origins.made_at(layer) is None or bool(layer_hooks.origins.made_by(layer))


def _parts(keras: KerasAdapter, layer_hooks: LayerHooks, layer: KerasLayer) -> list[KerasLayer]:
    """The inner layers that take the dtype of this layer."""
    if isinstance(layer, keras.Model) or keras.keeps_its_dtype(layer):
        return []
    own = [sublayer for sublayer in keras.sublayers(layer) if _is_made_by_library(layer_hooks, sublayer)]
    return own + [inner for sublayer in own for inner in _parts(keras, layer_hooks, sublayer)]

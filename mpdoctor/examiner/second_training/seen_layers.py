"""Checks that layers set to float32 really compute in float32 in the steps that count."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mpdoctor.examiner.capture.layer_calls import dtype_name, flat_tensors
from mpdoctor.facts.half_dtypes import HALF

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasLayer


class SeenLayers:
    """Watches these layers while it is entered, whether steps run eagerly or are traced.

    counts
        Whether what runs now is of a function that takes steps: what another one puts out, the next step may be given
        as it was in the first training."""

    def __init__(self, layer_hooks: LayerHooks, layers: list[KerasLayer]) -> None:
        self._layer_hooks, self._layers = layer_hooks, {id(layer): layer for layer in layers}
        self._dtypes: dict[int, set[str]] = {}
        self.counts = False

    def __enter__(self) -> SeenLayers:
        self._layer_hooks.observer = self
        return self

    def __exit__(self, *error: object) -> None:
        self._layer_hooks.observer = None

    @property
    def problem(self) -> str:
        """Why the steps do not show what they would be, a clause; "" where they do."""
        for identity, layer in self._layers.items():
            if identity not in self._dtypes:
                return f"`{layer.name}` is not called in the function that takes the steps"
            for dtype in HALF:
                if dtype in self._dtypes[identity]:
                    return f"`{layer.name}` puts out {dtype} where its step is traced anew"
        return ""

    # --- called by LayerHooks -------------------------------------------------------------------------------------
    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[KerasLayer, tuple[object, ...], dict[str, object]]:
        return layer, args, kwargs

    def leave(self, layer: KerasLayer, outputs: object) -> object:
        if self.counts and id(layer) in self._layers:
            self._dtypes.setdefault(id(layer), set()).update(map(dtype_name, flat_tensors(outputs)))
        return outputs

    def abandon(self, layer: KerasLayer) -> None:
        """The layer of this call raised."""

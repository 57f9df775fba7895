"""Which layer an operation of a step's graph belongs to, by the name scope that Keras opens for a layer's call."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from mpdoctor.examiner.capture.layer_calls import flat_tensors, is_symbolic
from mpdoctor.examiner.capture.open_call import OpenCall, OpenCallsObserver

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks


class ScopedLayer(NamedTuple):
    """`path` as in the facts of the model; `dtype` is what it computes in."""

    path: str
    dtype: str


class LayerScopes(OpenCallsObserver):
    """Watches the calls of layers, of which there are some while a step is traced and none in a compiled step. Models
    are left out: what they compute themselves is no layer's."""

    def __init__(self) -> None:
        super().__init__()
        self._models: tuple[type, ...] = ()
        self._of: dict[str, ScopedLayer] = {}
        self.layer_of = functools.lru_cache(maxsize=None)(self._layer_of)

    def install(self, layer_hooks: LayerHooks, model_class: type) -> None:
        """For layers of the Keras whose models are of this class."""
        self._models += (model_class,)
        layer_hooks.observer = self

    # --- called by LayerHooks -------------------------------------------------------------------------------------
    def leave(self, call: OpenCall, outputs: object) -> object:
        self.abandon(call)
        if not isinstance(call.layer, self._models):
            tensors = [tensor for tensor in flat_tensors(outputs) if not is_symbolic(tensor)]
            names = (getattr(getattr(tensor, "op", None), "name", "") for tensor in tensors)  # an eager one has none
            for scope in filter(None, (scope_of(call.layer.name, name) for name in names)):
                self._of[scope] = ScopedLayer(call.path, str(call.layer.compute_dtype))
        return outputs

    # --- afterwards -----------------------------------------------------------------------------------------------
    def _layer_of(self, operation: str) -> ScopedLayer | None:
        """The innermost layer of an operation such as `StatefulPartitionedCall/gradient_tape/model/dense/MatMul`:
        gradients are computed in the scopes of what they belong to. None where there is no layer."""
        parts = operation.split("/")
        for end in range(len(parts) - 1, 0, -1):
            for start in range(end):
                layer = self._of.get("/".join(parts[start:end]))
                if layer is not None:
                    return layer
        return None


def scope_of(layer: str, operation: str) -> str:
    """The scope of this layer in which an operation stands: its name, with a number where it was taken; "" where it
    stands in none."""
    *scopes, _ = operation.split("/")
    own = re.compile(re.escape(layer) + r"(_\d+)?")
    last = next((place for place in reversed(range(len(scopes))) if own.fullmatch(scopes[place])), None)
    return "" if last is None else "/".join(scopes[: last + 1])

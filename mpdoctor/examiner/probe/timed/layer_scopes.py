"""Which layer an operation of a step's graph belongs to, by the name scope that Keras opens for a layer's call."""

from __future__ import annotations

import functools
import re
from typing import TYPE_CHECKING, NamedTuple

from mpdoctor.examiner.capture.layer_calls import flat_tensors, is_symbolic
from mpdoctor.examiner.capture.open_call import OpenCall, OpenCalls

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.keras.adapter import KerasLayer


class ScopedLayer(NamedTuple):
    """`path` as in the facts of the model; `dtype` is what it computes in."""

    path: str
    dtype: str


class LayerScopes:
    """Watches the calls of layers, of which there are some while a step is traced and none in a compiled step. Models
    are left out: what they compute themselves is no layer's."""

    def __init__(self) -> None:
        self._models: tuple[type, ...] = ()
        self._of: dict[str, ScopedLayer] = {}
        self._open = OpenCalls[OpenCall]()
        self.layer_of = functools.lru_cache(maxsize=None)(self._layer_of)

    def install(self, watch: LayerHooks, model_class: type) -> None:
        """For layers of the Keras whose models are of this class."""
        self._models += (model_class,)
        watch.observer = self

    # --- called by LayerHooks -------------------------------------------------------------------------------------
    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[OpenCall, tuple[object, ...], dict[str, object]]:
        call = OpenCall(layer, self._open.innermost)
        self._open.begin(call)
        return call, args, kwargs

    def leave(self, call: OpenCall, outputs: object) -> object:
        self.abandon(call)
        if not isinstance(call.layer, self._models):
            tensors = [tensor for tensor in flat_tensors(outputs) if not is_symbolic(tensor)]
            names = (getattr(getattr(tensor, "op", None), "name", "") for tensor in tensors)  # an eager one has none
            for scope in filter(None, (scope_of(call.layer.name, name) for name in names)):
                self._of[scope] = ScopedLayer(call.path, str(call.layer.compute_dtype))
        return outputs

    def abandon(self, call: OpenCall) -> None:
        self._open.end(call)

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

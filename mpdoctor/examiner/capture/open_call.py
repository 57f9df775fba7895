"""A layer call in progress, and its path in the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasLayer


class OpenCall:
    """A call of a layer that is under way, inside of another one or of none."""

    def __init__(self, layer: KerasLayer, parent: OpenCall | None) -> None:
        self.layer, self.parent = layer, parent

    @property
    def path(self) -> str:
        """The path as in the facts of the model: without the model itself, unless that was called."""
        names, call = [self.layer.name], self.parent
        while call is not None and call.parent is not None:
            names.append(call.layer.name)
            call = call.parent
        return "/".join(reversed(names))

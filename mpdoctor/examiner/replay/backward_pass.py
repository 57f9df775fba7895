"""Which layer call, and which line of the user's, an operation of the backward pass belongs to."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import tensorflow as tf

from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.replay.observed_calls import ObservedCall


class Use(NamedTuple):
    """One operation on the way forward: its number, TensorFlow's name for it, the layer call that it ran in and the
    user's line."""

    number: int
    name: str
    layer: ObservedCall | None
    line: Location | None


class BackwardPass:
    """Remembers the operations of the forward pass by their tensors, and finds them again from gradients.

    labels
        By the id of a gradient: the layer call at whose output it arrives.
    """

    def __init__(self) -> None:
        self.labels: dict[int, ObservedCall] = {}
        self._makers: dict[int, Use] = {}  # by tensor: the operation that made it
        self._users: dict[int, list[Use]] = {}  # by tensor: those that used it
        self._reused: dict[int, Use] = {}  # by tensor of the way back that is made of forward tensors alone
        self._gradients: set[int] = set()  # the other tensors of the way back

    def note_forward(self, use: Use, inputs: list[tf.Tensor], outputs: list[tf.Tensor]) -> None:
        self._makers.update((t._id, use) for t in outputs)
        for tensor in inputs:
            self._users.setdefault(tensor._id, []).append(use)

    def origin(
        self, name: str, inputs: list[tf.Tensor], outputs: list[tf.Tensor]
    ) -> tuple[ObservedCall | None, Location | None]:
        """(layer call, the user's line) of an operation on the way back: a gradient tells whose it is; where no
        gradient goes in, as in that of a power, the operation of the way forward that used the same tensors does."""
        use = self._whose_gradient(name, inputs)
        layer = next((self.labels[t._id] for t in inputs if t._id in self.labels), None)
        if layer is not None:
            self.labels.update((t._id, layer) for t in outputs)
        elif use is not None and not any(t._id in self._gradients for t in inputs):
            layer = use.layer
            self._reused.update((t._id, use) for t in outputs)
            return layer, use.line
        self._gradients.update(t._id for t in outputs)
        return layer, None if use is None else use.line

    def _whose_gradient(self, name: str, inputs: list[tf.Tensor]) -> Use | None:
        """The operation of the forward pass that an operation of the backward pass belongs to: the one that its name
        says, if that made an input; else the last one that all forward tensors among the inputs belong to, else the
        last one that any of them belongs to."""
        forward = name[: -len("Grad")] if name.endswith("Grad") else ""
        made = [use for use in (self._makers.get(t._id) for t in inputs) if use is not None and use.name == forward]
        if made:
            return made[0]
        known = [uses for uses in map(self._uses_of, inputs) if uses]
        shared = set(known[0]).intersection(*known[1:]) if known else set()
        return max(shared or set().union(*known), key=lambda use: use.number, default=None)

    def _uses_of(self, tensor: tf.Tensor) -> list[Use]:
        """The operations of the forward pass that used this tensor; where none did, the operation that made it."""
        if tensor._id in self._reused:
            return [self._reused[tensor._id]]
        maker = self._makers.get(tensor._id)
        return self._users.get(tensor._id, []) or ([] if maker is None else [maker])

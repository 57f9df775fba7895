"""An examination, as the parts know it that compare and try steps again. `session.Session` is one, and uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from mpdoctor.examiner.capture.layer_hooks import LayerHooks
    from mpdoctor.examiner.hooks.gradient_tapes import GradientTapes
    from mpdoctor.examiner.protocol.events import Events
    from mpdoctor.examiner.protocol.request import Request
    from mpdoctor.facts.machine.devices import DeviceFacts


class Examination(Protocol):
    """What was asked, where to tell what is seen, and the hooks that see it."""

    @property
    def request(self) -> Request: ...

    @property
    def events(self) -> Events: ...

    @property
    def layer_hooks(self) -> LayerHooks: ...

    @property
    def tapes(self) -> GradientTapes: ...

    def devices(self) -> tuple[DeviceFacts, ...]: ...

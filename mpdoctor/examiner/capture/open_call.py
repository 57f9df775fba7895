"""The layer calls in progress, and their paths in the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

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


Call = TypeVar("Call", bound=OpenCall)


class OpenCalls(Generic[Call]):
    """The calls that are under way, each inside of the one before."""

    def __init__(self) -> None:
        self._calls: list[Call] = []

    @property
    def innermost(self) -> Call | None:
        return self._calls[-1] if self._calls else None

    def begin(self, call: Call) -> None:
        self._calls.append(call)

    def end(self, call: Call) -> None:
        """Forget the call, and the calls inside it that raised."""
        while self._calls and self._calls.pop() is not call:
            pass


class OpenCallsObserver:
    """Base of observers that note nothing of a call before it ends."""

    def __init__(self) -> None:
        self._open = OpenCalls[OpenCall]()

    def enter(
        self, layer: KerasLayer, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> tuple[OpenCall, tuple[object, ...], dict[str, object]]:
        call = OpenCall(layer, self._open.innermost)
        self._open.begin(call)
        return call, args, kwargs

    def abandon(self, call: OpenCall) -> None:
        self._open.end(call)

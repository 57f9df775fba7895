"""A decorator for the probe's methods that Keras calls during the user's training: their errors are mpdoctor's own."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Callable, Protocol, TypeVar, cast

if TYPE_CHECKING:
    from mpdoctor.examiner.session import Session


Method = TypeVar("Method", bound=Callable[..., object])


class OfSession(Protocol):
    """Interface of the objects whose methods are guarded."""

    session: Session


def own_work(method: Method) -> Method:
    """The method, as own work of its session: see `Session.own_work`."""

    @functools.wraps(method)
    def guarded(self: OfSession, *args: object, **kwargs: object) -> object:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.session.broke(error)

    return cast("Method", guarded)

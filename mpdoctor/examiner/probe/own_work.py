"""A decorator for the probe's methods that Keras calls during the user's training: their errors are mpdoctor's own."""

from __future__ import annotations

import functools
from typing import Any, Callable


def own_work(method: Callable[..., Any]) -> Callable[..., Any]:
    """An exception in here is a defect of ours: it ends the process and is reported as such, and no `except` of the
    user's can take it for the training's."""

    @functools.wraps(method)
    def guarded(self: Any, *args: object, **kwargs: object) -> Any:
        try:
            return method(self, *args, **kwargs)
        except Exception as error:
            self.session.broke(error)

    return guarded

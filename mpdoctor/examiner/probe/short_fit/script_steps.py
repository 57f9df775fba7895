"""How many batches the script's own fit() would train: its epochs times the batches of one, which Keras knows or which
the first epoch shows."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


class OwnBatches:
    """The batches of one fit().

    in_all
        The batches of all epochs that it asks for; None where that is not known, or not before the first epoch is
    over.
    """

    def __init__(self, keras: KerasAdapter, arguments: dict[str, Any], seen: Callable[[], int]) -> None:
        """`arguments` are those of the script's fit(), `seen()` counts the batches that were trained so far."""
        self.in_all: int | None = None
        self._epochs = _whole(arguments.get("epochs", 1))
        before = _whole(arguments.get("initial_epoch", 0))
        if self._epochs is not None and before is not None:
            self._epochs -= before
        self._seen, self._keras = seen, keras

    def counted(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """The arguments of a fit(), with a callback that counts."""
        own, base = self, self._keras.module.callbacks.Callback

        class Counting(base):  # type: ignore[misc, valid-type]
            def on_train_begin(self, logs: object = None) -> None:
                own.take((self.params or {}).get("steps"))

            def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
                self.before = own._seen()

            def on_epoch_end(self, epoch: int, logs: object = None) -> None:
                if own.in_all is None:
                    own.take(own._seen() - self.before)

        return {**arguments, "callbacks": [*(arguments.get("callbacks") or []), Counting()]}

    def take(self, batches: int | None) -> None:
        """Note that an epoch has this many batches."""
        known = _whole(batches)
        if known is not None and known > 0 and self._epochs is not None:
            self.in_all = known * self._epochs


def _whole(number: Any) -> int | None:
    """What is no whole number fit() itself will refuse."""
    try:
        return operator.index(number)
    except TypeError:
        return None

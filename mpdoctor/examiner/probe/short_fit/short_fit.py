"""Shortens fit(): the same training, without anything that only makes sense at full length."""

from __future__ import annotations

from types import GeneratorType
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator

from mpdoctor.knowledge.api_names import LIBRARIES

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


ENDLESS = 10**9
# Keras' own callbacks that write files, validate, or end the training early. LearningRateScheduler and the like stay.
DROPPED = (
    "BackupAndRestore",
    "CSVLogger",
    "EarlyStopping",
    "ModelCheckpoint",
    "ProgbarLogger",
    "RemoteMonitor",
    "TensorBoard",
    "TerminateOnNaN",
)
WRITERS = ("BackupAndRestore", "CSVLogger", "ModelCheckpoint", "TensorBoard")
LOGGERS = ("wandb", "mlflow", "neptune", "comet_ml", "clearml")


def shortened_fit(keras: KerasAdapter, arguments: dict[str, Any], at_end: Callable[[], None]) -> dict[str, Any]:
    """The arguments of the user's fit(), changed: epochs repeat until the probe has seen enough, nothing is printed,
    validated or saved. A callback that is not Keras' own may read validation results, so with one of these a single
    batch is validated. `at_end` is called after the epoch in which a generator gave its last batch."""
    changed = dict(arguments, epochs=ENDLESS, verbose=0)
    callbacks = _kept(keras, arguments.get("callbacks"))
    changed["callbacks"] = callbacks
    if any(_may_read_validation(callback) for callback in callbacks):
        if arguments.get("validation_data") is not None:
            changed["validation_steps"] = 1
        if arguments.get("validation_freq") is not None:
            changed["validation_freq"] = 1  # it may be read at the end of any epoch
    elif arguments.get("validation_split"):
        changed["validation_freq"] = ENDLESS  # the split itself stays: it decides what is trained on
    else:
        changed["validation_data"] = None
    if isinstance(arguments.get("x"), GeneratorType):
        changed["x"], end = _watched(keras, arguments["x"], arguments.get("steps_per_epoch"), at_end)
        changed["callbacks"] = [*callbacks, end]
    return changed


def _watched(
    keras: KerasAdapter, batches: Iterable[object], steps: int | None, at_end: Callable[[], None]
) -> tuple[Iterator[object], object]:
    """The generator, and a callback that knows when it is spent: Keras 3 would go on with the first two batches, which
    it looked at beforehand."""
    spent = []

    def watched() -> Iterator[object]:
        yield from batches
        spent.append(True)

    callback: Any = keras.module.callbacks.Callback

    class End(callback):
        def on_epoch_begin(self, epoch: int, logs: object = None) -> None:
            self.batches = 0

        def on_train_batch_end(self, batch: int, logs: object = None) -> None:
            self.batches += 1

        def on_epoch_end(self, epoch: int, logs: object = None) -> None:
            # read ahead, a generator may be spent before its last batches were trained on
            if spent and (steps is None or self.batches < steps):
                at_end()

    return watched(), End()


def left_out(keras: KerasAdapter, callbacks: object) -> list[str]:
    """The classes of those callbacks that write files and do not run in the short training."""
    writers = tuple(getattr(keras.module.callbacks, name) for name in WRITERS if hasattr(keras.module.callbacks, name))
    names = [
        type(callback).__name__
        for callback in _listed(callbacks)
        if isinstance(callback, writers) or type(callback).__module__.startswith(LOGGERS)
    ]
    return list(dict.fromkeys(names))


def _may_read_validation(callback: object) -> bool:
    """Whether it is the user's own class, somebody else's, or Keras' around functions of the user's."""
    cls = type(callback)
    return cls.__name__ == "LambdaCallback" or cls.__module__.partition(".")[0] not in LIBRARIES


def _listed(callbacks: object) -> list[object]:
    if callbacks is None:
        return []
    return list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]


def _kept(keras: KerasAdapter, callbacks: object) -> list[object]:
    given = _listed(callbacks)
    dropped = tuple(getattr(keras.module.callbacks, name) for name in DROPPED if hasattr(keras.module.callbacks, name))
    return [
        callback
        for callback in given
        if not isinstance(callback, dropped) and not type(callback).__module__.startswith(LOGGERS)
    ]

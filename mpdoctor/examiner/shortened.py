"""fit(), shortened: the same training, without what only makes sense at full length."""

from __future__ import annotations

from types import GeneratorType
from typing import Any, Callable

from mpdoctor.examiner.ownership import class_location

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
LOGGERS = ("wandb", "mlflow", "neptune", "comet_ml", "clearml")


def shortened_fit(keras: Any, arguments: dict[str, Any], at_end: Callable[[], None]) -> dict[str, Any]:
    """The arguments of the user's fit(), changed: epochs repeat until the probe has seen enough, nothing is printed,
    validated or saved. A callback of the user's own may read validation results, so with one of these a single batch
    is validated. `at_end` is called after the epoch in which a generator gave its last batch."""
    changed = dict(arguments, epochs=ENDLESS, verbose=0)
    callbacks = _kept(keras, arguments.get("callbacks"))
    changed["callbacks"] = callbacks
    if any(class_location(type(callback)) for callback in callbacks):
        if arguments.get("validation_data") is not None:
            changed["validation_steps"] = 1
    elif arguments.get("validation_split"):
        changed["validation_freq"] = ENDLESS  # the split itself stays: it decides what is trained on
    else:
        changed["validation_data"] = None
    if isinstance(arguments.get("x"), GeneratorType):
        changed["x"], end = _watched(keras, arguments["x"], arguments.get("steps_per_epoch"), at_end)
        changed["callbacks"] = [*callbacks, end]
    return changed


def _watched(keras: Any, batches: Any, steps: int | None, at_end: Callable[[], None]) -> tuple[Any, Any]:
    """The generator, and a callback that knows when it is spent: Keras 3 would go on with the first two batches, which
    it looked at beforehand."""
    spent = []

    def watched() -> Any:
        yield from batches
        spent.append(True)

    class End(keras.module.callbacks.Callback):
        def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
            self.batches = 0

        def on_train_batch_end(self, batch: int, logs: Any = None) -> None:
            self.batches += 1

        def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
            # read ahead, a generator may be spent before its last batches were trained on
            if spent and (steps is None or self.batches < steps):
                at_end()

    return watched(), End()


def _kept(keras: Any, callbacks: Any) -> list[Any]:
    if callbacks is None:
        return []
    given = list(callbacks) if isinstance(callbacks, (list, tuple)) else [callbacks]
    dropped = tuple(getattr(keras.module.callbacks, name) for name in DROPPED if hasattr(keras.module.callbacks, name))
    return [
        callback
        for callback in given
        if not isinstance(callback, dropped) and not type(callback).__module__.startswith(LOGGERS)
    ]

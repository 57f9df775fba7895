"""fit(), shortened: the same training, without what only makes sense at full length."""

from __future__ import annotations

from typing import Any

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


def shortened_fit(keras: Any, arguments: dict[str, Any]) -> dict[str, Any]:
    """The arguments of the user's fit(), changed: epochs repeat until the probe has seen enough, nothing is printed,
    validated or saved. A callback of the user's own may read validation results, so with one of these a single batch
    is validated."""
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
    return changed


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

"""Under a forced policy: runs the user's fit(), or one step, again until nothing more needs float32 instead."""

from __future__ import annotations

import functools
from contextlib import suppress
from types import GeneratorType
from typing import TYPE_CHECKING, Any, Callable

from mpdoctor.examiner.replay.variable_snapshot import all_have_values

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.training_call import TrainingCall
    from mpdoctor.examiner.probe.training_under_way import TrainingUnderWay


def fit_until_mended(
    training: TrainingUnderWay, fit: Callable[..., object], training_call: TrainingCall, shortened: dict[str, Any]
) -> object:
    """Keras 3 calls model, loss and metrics once before the first step. A generator has given its first batches
    then, and is not begun again."""
    mender = training.session.mender
    while True:
        count = mender.count
        try:
            return fit(training_call.model, **shortened)
        except Exception as error:
            once = training.count.calls or training.is_ending or isinstance(shortened.get("x"), GeneratorType)
            if once or not all_have_values() or not mender.mends_step(error, training_call.model, count):
                raise


def step_until_mended(
    training: TrainingUnderWay, training_call: TrainingCall, run: Callable[[object], object], batch: object
) -> object:
    """Take a step. An error ends the training; under a forced policy only if float32 is no help."""
    mender = training.session.mender
    if mender.is_on and not training.count.calls and training_call.model is not None:
        with suppress(Exception):  # the step itself will raise it
            training.keras.make_variables(training_call.model, batch)
    while True:
        count = mender.count
        try:
            logs = run(batch)
        except Exception as error:
            first = training.replay.first_error(error, functools.partial(training_call.repeat_step, batch))
            if not (all_have_values() and mender.mends_step(first, training_call.model, count)):
                training.failed(first)
            training_call.make_graph_anew()
        else:
            mender.step_ran()
            return logs

"""How a target ended, told to the parent: without a training call, by an exception, or by exiting."""

from __future__ import annotations

import os
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from mpdoctor.examiner.exceptions import OtherBackend, Unusable, first_line
from mpdoctor.examiner.failures.failure import failure_from_exception, failure_under_watch
from mpdoctor.examiner.protocol.event_kinds import StoppedAfterTraining, TrainingStatus
from mpdoctor.examiner.protocol.request import Request
from mpdoctor.examiner.session import Session
from mpdoctor.examiner.targets.caught_exceptions import caught_exceptions
from mpdoctor.facts.failure import During, FailureFacts
from mpdoctor.facts.saved.file import SAVED

if TYPE_CHECKING:
    from mpdoctor.examiner.probe.training import Training


class NoModel(Exception):
    """The program ended and no Keras model is alive."""


def tell_how_it_ended(session: Session, error: BaseException, seconds: float) -> None:
    """Tell of an exception that left the program, `seconds` after its start. Where a training was under way, it is
    concluded, and with it the process."""
    training = session.training
    if isinstance(error, SystemExit):
        if training is not None:
            training.conclude("script")
        _say_it_exited(session, error)
    elif training is None and session.has_trained:
        session.events.send(StoppedAfterTraining(first_line(error)))  # which may come of a fit() that was cut short
    elif isinstance(error, NoModel):
        session.fail(
            FailureFacts("exited", "script", exit_code=0, message="The script ended.", caught=caught_exceptions())
        )
    else:
        failure = replace(
            failure_under_watch(session, error, _stage_of_error(session, error)),
            kind="unusable" if _is_unusable(error) else "raised",
            saw_model=bool(session.models()),
            seconds=seconds,
        )
        if training is not None and _is_behind_loop(training, error):
            _tell_of_error_behind_loop(session, training, error, failure)
        else:
            _tell_of_error(session, error, failure)


def _tell_of_error_behind_loop(
    session: Session, training: Training, error: BaseException, failure: FailureFacts
) -> None:
    if not _is_of_training_or_precision(failure):
        session.events.send(StoppedAfterTraining(first_line(error)))
        training.conclude("script")
    training.tell_end_of_loop()
    session.fail(with_own_path(session.request, replace(failure, during="behind")))


def _tell_of_error(session: Session, error: BaseException, failure: FailureFacts) -> None:
    if session.training is not None and _is_between_steps(session.training, error):
        failure = replace(failure, during="between")
    if session.training is None and failure.under_tape and session.request.probe:
        from mpdoctor.examiner.probe.failed_loop import training_of_failed_loop

        session.training = training_of_failed_loop(session, error, failure)
    if session.training is not None:
        session.training.conclude("failed", failure)
    if failure.during != "loading":  # what a file that cannot be loaded leaves behind is half a model
        session.tell_models()
    session.fail(with_own_path(session.request, failure))


def _stage_of_error(session: Session, error: BaseException) -> During:
    """What the program was doing when it raised."""
    if session.training is not None or session.tapes.left_a_tape(error):
        return "training"
    return "loading" if session.request.kind in SAVED else "script"


def _is_of_training_or_precision(failure: FailureFacts) -> bool:
    """Whether Keras, a layer, a tape or a 16-bit dtype has to do with it: a second loop may have raised."""
    of_training = bool(failure.inside or failure.layer or failure.under_tape)
    return of_training or re.search(r"\bhalf\b|float16", failure.message) is not None


def _is_behind_loop(training: Training, error: BaseException) -> bool:
    """Whether the program's own loop had ended when it raised."""
    if not training.is_loop or not training.count.calls:
        return False
    from mpdoctor.examiner.probe.loop_end import came_behind_loop

    return came_behind_loop(training.lines_of_step, error)


def _is_between_steps(training: Training, error: BaseException) -> bool:
    """Whether the program's own loop raised behind the inner loop that takes its steps."""
    if not training.is_loop or not training.count.calls:
        return False
    from mpdoctor.examiner.probe.loop_end import came_between_steps

    return came_between_steps(training.lines_of_step, error)


def with_own_path(request: Request, failure: FailureFacts) -> FailureFacts:
    """The facts with the path that the user gave: the file that was loaded may be a copy."""
    if not request.path:
        return failure
    return replace(failure, message=failure.message.replace(request.judged, os.path.dirname(request.path)))


def _say_it_exited(session: Session, error: SystemExit) -> None:
    """sys.exit() before any training call: what was built is still looked at."""
    code = error.code if isinstance(error.code, int) else (0 if error.code is None else 1)
    if session.models():
        look_at_untrained_models(session)
    failure = replace(
        failure_from_exception(error, "script"),
        kind="exited",
        exit_code=code,
        saw_model=bool(session.models()),
        caught=caught_exceptions(),
    )
    if code or not session.models():
        session.fail(failure)


def _is_unusable(error: BaseException) -> bool:
    return isinstance(error, (OtherBackend, Unusable))


def look_at_untrained_models(session: Session) -> None:
    """A script that ended without a training call, or whose custom loop ended before enough steps were seen."""
    if session.training is not None:
        session.training.conclude("script")
    if session.has_trained:
        return
    if not session.tell_models():
        raise NoModel()
    kept_from_training = tuple(caught for caught in caught_exceptions() if caught.before_training)
    if kept_from_training and not session.has_predicted:
        session.fail(FailureFacts("exited", "script", exit_code=0, saw_model=True, caught=kept_from_training))
    session.events.send(TrainingStatus("skipped", _why_not_trained(session)))


def _why_not_trained(session: Session) -> str:
    if any(session.tapes.took_gradients_by(model.trainable_variables) for _, model in session.models()):
        return "the program takes gradients by the weights, and no optimizer applies them"
    if not session.has_predicted:
        return "no training call"
    if session.predictions.changed_weights():
        return "no optimizer trains the model; the program changes its weights itself, between its predictions"
    return "the program only predicts"

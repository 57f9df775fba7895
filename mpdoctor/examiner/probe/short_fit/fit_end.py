"""The end of fit(): an epoch's and the training's own, gone through once after the last step that was looked at. What
callbacks would write is left out, and what fails is told by the callback that it failed in."""

from __future__ import annotations

import _thread
import functools
import time
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Callable

from mpdoctor.examiner.exceptions import chain_of, first_line
from mpdoctor.examiner.failures.failure import failure_from_exception, failure_under_watch
from mpdoctor.examiner.failures.saving import ask_for_configuration, saving_checkpoint
from mpdoctor.examiner.probe.short_fit.blocked_file_writes import FileLeftOut, no_files
from mpdoctor.examiner.probe.short_fit.short_fit import left_out
from mpdoctor.examiner.protocol.event_kinds import FitEnded
from mpdoctor.facts.failure import During, FailureFacts
from mpdoctor.facts.fit_ending import EndingFacts, NotMeasured
from mpdoctor.facts.location import Location

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter, KerasModel
    from mpdoctor.examiner.session import Session


SECONDS = 10.0  # that the end of a fit() may take: a callback may evaluate a whole data set there
METHODS = ("on_epoch_begin", "on_epoch_end", "on_train_begin", "on_train_end")
NOT_THERE = ("File not found", "No file or directory found", "No such file or directory", "Unable to open file")


class FitEnd:
    """The end of one fit().

    begun
        Whether enough steps were seen, and fit() is on its way to its end.
    """

    def __init__(self, session: Session, keras: KerasAdapter, model: KerasModel, called_at: Location | None) -> None:
        self._session, self._keras, self._model, self._called_at = session, keras, model, called_at
        self.begun = False
        self._not_looked: list[tuple[NotMeasured, str]] = []
        self._left_out: list[str] = []
        self._walls = ExitStack()
        self._is_reported = False
        self._saving: object | None = None

    def watch(self, arguments: dict[str, Any], kept: list[object]) -> None:
        """`arguments` are those of the user's fit(), `kept` the callbacks that run in the short training."""
        given = arguments.get("callbacks")
        self._left_out = left_out(self._keras, given)
        self._saving = saving_checkpoint(self._keras, given, arguments)
        for callback in kept:
            for name in METHODS:
                method = getattr(callback, name, None)
                if callable(method) and hasattr(callback, "__dict__"):
                    self._walls.callback(_put_back, callback, name, vars(callback).get(name))
                    vars(callback)[name] = self._watched(callback, name, method)

    def _watched(self, callback: object, name_of_hook: str, method: Callable[..., object]) -> Callable[..., object]:
        @functools.wraps(method)
        def run(*args: object, **kwargs: object) -> object:
            try:
                return method(*args, **kwargs)
            except Exception as error:
                reason = self._excuse(error)
                if not reason:
                    raise
                name = f"{type(callback).__name__}.{name_of_hook}"
                self._not_looked.append(("fit", f"`{name}`{self._line(error)} on, {_reason(error)}: {reason}"))
                return None

        return run

    def _excuse(self, error: Exception) -> str:
        """Why an error of a callback's may be our doing; "" for one that fit() would raise without us, too."""
        if isinstance(error, FileLeftOut):
            return "nothing is written here at the end of fit()"
        if _is_about_files(error):
            if self._left_out:
                return f"the files of {' and '.join(self._left_out)} are left out here"
            if self.begun:
                return "nothing is written here at the end of fit()"
        if self.begun and isinstance(error, (LookupError, ZeroDivisionError)):
            return "fit() was cut short, and what it looks for may come later"
        return ""

    # --- the end itself -----------------------------------------------------------------------------------------------
    def begin(self) -> None:
        """Keras ends the epoch, and the training, where the step that runs now has ended."""
        self.begun = True
        self._session.events.stage("the end of fit()")
        self._walls.enter_context(no_files(self._keras))
        self._model.stop_training = True
        seconds = min(SECONDS, max(self._session.request.budget, 1.0))
        _thread.start_new_thread(self._wait, (seconds,))

    def _wait(self, seconds: float) -> None:
        time.sleep(seconds)
        if not self._is_reported:
            self._not_looked.append(("fit", f"the end of fit(), which took longer than {seconds:g} seconds"))
            self.tell()
            self._session.finish()

    def failed(self, error: Exception) -> None:
        """Report an error that left fit() after the last step that was looked at."""
        reason = self._excuse(error)
        if reason:
            self._not_looked.append(("fit", f"the end of fit(){self._line(error)} on, {_reason(error)}: {reason}"))
            self.tell()
        else:
            failure = failure_of_fit(self._session, self._keras, error, "ending")
            self.tell(failure if failure.location else replace(failure, location=self._called_at))

    def tell(self, failure: FailureFacts | None = None) -> None:
        if self._is_reported:
            return
        self._is_reported = True
        self._walls.close()
        self._session.events.send(FitEnded(EndingFacts(failure, tuple(self._not_looked))))

    def end(self) -> None:
        """fit() came to its end."""
        self.tell(None if self._is_reported or self._saving is None else self._failure_of_saving(self._saving))

    def _failure_of_saving(self, checkpoint: object) -> FailureFacts | None:
        try:
            ask_for_configuration(self._keras, self._model, checkpoint)
        except Exception as error:
            name = f"{type(checkpoint).__name__}.on_epoch_end"
            failure = replace(failure_under_watch(self._session, error, "ending"), saw_model=True, callback=name)
            return failure if failure.location else replace(failure, location=self._called_at)
        return None

    def _line(self, error: BaseException) -> str:
        """A clause that names the user's line from which on fit() was not looked at; its beginning where no line is
        known."""
        place = failure_from_exception(error, "ending").location
        return " from its beginning" if place is None else f" from {self._session.request.line_in_words(place)}"


def _put_back(callback: object, name: str, own: object) -> None:
    if own is None:
        vars(callback).pop(name, None)
    else:
        vars(callback)[name] = own


def failure_of_fit(session: Session, keras: KerasAdapter, error: BaseException, during: During) -> FailureFacts:
    """The failure, with the callback whose method raised."""
    failure = failure_under_watch(session, error, during)
    return replace(failure, saw_model=True, callback=callback_of_error(keras, error))


def callback_of_error(keras: KerasAdapter, error: BaseException) -> str:
    """ "Class.method" of the callback that raised; "" where none did."""
    base = keras.module.callbacks.Callback
    trace, given = error.__traceback__, ""
    while trace is not None:
        code, names = trace.tb_frame.f_code, trace.tb_frame.f_locals
        owner = names.get(code.co_varnames[0]) if code.co_argcount else None
        is_list = type(owner).__name__ == "CallbackList"  # which is a callback, too, in Keras 3
        if isinstance(owner, base) and not is_list and code.co_name.startswith("on_"):
            return f"{type(owner).__name__}.{code.co_name}"
        if is_list and isinstance(names.get("callback"), base):  # a function in the place of its method
            hook = str(names.get("hook_name") or code.co_name)
            given = f"{type(names['callback']).__name__}.{hook}" if trace.tb_next is not None else ""
        trace = trace.tb_next
    return given


def _reason(error: BaseException) -> str:
    return f"which would write {error.path}" if isinstance(error, FileLeftOut) else first_line(error)


def _is_about_files(error: BaseException) -> bool:
    """Whether it says that something could not be read or written, as Python, h5py, Keras or TensorFlow say it."""
    import tensorflow as tf

    kinds = (OSError, tf.errors.NotFoundError, tf.errors.PermissionDeniedError)
    return any(isinstance(cause, kinds) or any(said in str(cause) for said in NOT_THERE) for cause in chain_of(error))

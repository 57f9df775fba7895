"""The steps of a fit, counted where the model takes them: around its `train_function`, which Keras calls from the host.

A callback's own hook after each batch would have Keras 3 read the metrics from the device after each step: where no
callback has one it does that beside the training.
"""

from __future__ import annotations

import contextlib
import sys
from typing import Any, Callable

import tensorflow as tf

MOST_CAPTURED = 64  # steps: then what was seen is told without a batch
END_OF_DATA = (StopIteration, tf.errors.OutOfRangeError)


class RunningFit:
    """The innermost call of a function `fit`. Where an error ends it, callbacks are told nothing, and what they put
    into the model stays there."""

    def __init__(self) -> None:
        self.is_over = False
        self._frame: Any = sys._getframe(1)
        while self._frame is not None and self._frame.f_code.co_name != "fit":
            self._frame = self._frame.f_back

    def goes_on(self) -> bool:
        """Whether this is called from within it. A loop that calls callbacks by itself has no fit, and goes on."""
        if self.is_over or self._frame is None:
            return not self.is_over
        frame: Any = sys._getframe(1)
        while frame is not None and frame is not self._frame:
            frame = frame.f_back
        return frame is not None

    def end(self) -> None:
        """What its call holds is held by nothing here any longer."""
        self.is_over, self._frame = True, None


class FitSteps:
    """Stands in for a model's train_function until `end`. `after(steps)` is called after each call of it,
    `before(iterator)` before each: it may return what is to be done with the batch that the step is about to be given.
    `left(how)` is called once where an error has ended the fit: by the step that raised, or by a later step, which is
    no more of this fit.
    """

    def __init__(
        self,
        model: Any,
        after: Callable[[int], None],
        left: Callable[[str], None],
        before: Callable[[Any], Callable[[Any], None] | None] | None = None,
    ) -> None:
        self.model, self.after, self.left, self.before = model, after, left, before
        self.steps_of_epoch: int | None = None
        self.done = 0
        self._per_call: int | None = None
        self._fit = RunningFit()
        self._captured: Callable[[Any, bool], bool] | None = None
        self._left = 0
        self.original = without_fits_that_were_left(model.train_function)
        if self.original is not None:
            model.train_function = self._step

    def begin_epoch(self, steps: int | None) -> None:
        self.steps_of_epoch, self.done, self._per_call = steps, 0, None

    def end(self) -> None:
        """End the counting. Where another wrapper was put around this one in the meantime, that one still calls it, and
        it only hands on."""
        self._fit.end()
        if self.original is not None and self.model.train_function == self._step:
            self.model.train_function = without_fits_that_were_left(self.original)

    def goes_on(self) -> bool:
        return self._fit.goes_on()

    def leave(self, how: str) -> None:
        if not self._fit.is_over:
            self.end()
            self.left(how)

    def capture(self, captured: Callable[[Any, bool], bool]) -> bool:
        """Give each batch from the next step on to `captured`, until it returns True or has had the last one allowed.
        False where batches cannot be had one by one."""
        if self.original is None or self.per_call() != 1 or tf.distribute.has_strategy():
            return False
        self._captured, self._left = captured, MOST_CAPTURED
        return True

    def _step(self, iterator: Any) -> Any:
        if not self.goes_on():
            self.leave("interrupted")
            return self.original(iterator)
        try:
            returned = self._take_step(iterator)
        except END_OF_DATA:
            raise
        except BaseException as error:
            with contextlib.suppress(Exception):  # what raised comes first, also where it left a device unreadable
                self.leave(f"raised {type(error).__name__}")
            raise
        self._count_steps()
        return returned

    def _take_step(self, iterator: Any) -> Any:
        look = None if self.before is None else self.before(iterator)
        if (self._captured is not None or look is not None) and isinstance(iterator, tf.data.Iterator):
            return self._captured_step(iterator, look)
        return self.original(iterator)

    def _count_steps(self) -> None:
        steps = self.per_call()
        if self.steps_of_epoch:
            steps = max(min(steps, self.steps_of_epoch - self.done), 1)
        self.done += steps
        self.after(steps)

    def per_call(self) -> int:
        """steps_per_execution, a number in Keras 3 and a variable in Keras 2, which is read once an epoch, or each time
        where Keras tunes it."""
        if self._per_call is None or getattr(self.model, "autotune_steps_per_execution", False):
            steps = getattr(self.model, "steps_per_execution", None)
            steps = steps or getattr(self.model, "_steps_per_execution", None)
            self._per_call = 1 if steps is None else int(steps.numpy() if hasattr(steps, "numpy") else steps)
        return self._per_call

    def _captured_step(self, iterator: Any, look: Callable[[Any], None] | None) -> Any:
        """The next batch is taken from the iterator and given to the step in another one of the same kind, so that
        nothing is traced anew and no batch is lost."""
        try:
            batch = next(iterator)
        except StopIteration:  # the step finds that out itself, and moves its layers' seeds as it does so
            return self.original(iterator)
        if look is not None:
            look(batch)
        alone = iter(tf.data.Dataset.from_generator(lambda: iter([batch]), output_signature=iterator.element_spec))
        returned = self.original(alone)
        captured = self._captured
        if captured is not None:
            self._left -= 1
            if captured(batch, self._left == 0):
                self._captured = None
        return returned


def without_fits_that_were_left(function: Any) -> Any:
    """The train_function without the counters of fits that an error has ended."""
    while isinstance(getattr(function, "__self__", None), FitSteps) and not function.__self__.goes_on():
        function.__self__.leave("interrupted")
        function = function.__self__.original
    return function

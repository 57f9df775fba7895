"""The steps of a fit, counted where the model takes them: around its `train_function`, which Keras calls from the host.

A callback's own hook after each batch would have Keras 3 read the metrics from the device after each step: where no
callback has one it does that beside the training.
"""

from __future__ import annotations

from typing import Any, Callable

import tensorflow as tf

MOST_CAPTURED = 64  # steps: then what was seen is told without a batch


class FitSteps:
    """Stands in for a model's train_function until `end`. `after(steps)` is called after each call of it,
    `before(iterator)` before each: it may return what is to be done with the batch that the step is about to be given.
    """

    def __init__(
        self,
        model: Any,
        steps_of_epoch: int | None,
        after: Callable[[int], None],
        before: Callable[[Any], Callable[[Any], None] | None] | None = None,
    ) -> None:
        self.model, self.after, self.before = model, after, before
        self.steps_of_epoch, self.done = steps_of_epoch, 0
        self.original = model.train_function
        self._captured: Callable[[Any, bool], bool] | None = None
        self._left = 0
        if self.original is not None:
            model.train_function = self._step

    def end(self) -> None:
        if self.original is not None and self.model.train_function == self._step:
            self.model.train_function = self.original

    def capture(self, captured: Callable[[Any, bool], bool]) -> bool:
        """From the next step on each batch is given to `captured`, until it says that it was the one, or has had the
        last. False where batches cannot be had one by one."""
        if self.original is None or self.per_call() != 1 or tf.distribute.has_strategy():
            return False
        self._captured, self._left = captured, MOST_CAPTURED
        return True

    def _step(self, iterator: Any) -> Any:
        look = None if self.before is None else self.before(iterator)
        if (self._captured is not None or look is not None) and isinstance(iterator, tf.data.Iterator):
            returned = self._captured_step(iterator, look)
        else:
            returned = self.original(iterator)
        self._count()
        return returned

    def _count(self) -> None:
        steps = self.per_call()
        if self.steps_of_epoch:
            steps = max(min(steps, self.steps_of_epoch - self.done), 1)
        self.done += steps
        self.after(steps)

    def per_call(self) -> int:
        """steps_per_execution, a number in Keras 3 and a variable in Keras 2."""
        steps = getattr(self.model, "steps_per_execution", None) or getattr(self.model, "_steps_per_execution", None)
        return 1 if steps is None else int(steps.numpy() if hasattr(steps, "numpy") else steps)

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

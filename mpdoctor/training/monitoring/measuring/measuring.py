"""When a step is measured, and what becomes of it: it is read from the device at a later step, and whatever goes wrong
with it ends the measuring, in words, and never the training."""

from __future__ import annotations

from typing import Any, Callable, Iterator

import tensorflow as tf

from mpdoctor.training.monitoring.measuring.measured import Measured, MeasuredPart, exponents_from
from mpdoctor.training.monitoring.measuring.measured_step import MeasuredStep, NotMeasured, OnDevice


class Measuring:
    """Measures every `every`-th step; with None it does nothing and `is_due` is always False. `tell` receives what was
    measured, `end` the reason why measuring ends; `exponents`: whether they are counted."""

    def __init__(
        self, every: int | None, tell: Callable[[Measured], None], end: Callable[[str], None], exponents: bool
    ) -> None:
        self.every, self._tell, self._end, self._exponents = every, tell, end, exponents
        self._waiting: list[tuple[int, OnDevice]] = []
        self._made: MeasuredStep | None = None
        self._made_of: Any = None

    def is_due(self, step: int) -> bool:
        return self.every is not None and step % self.every == 0

    def refuse_calls(self, iterator: Any, steps: int) -> None:
        """End measuring where a call of the fit takes several steps, or where its iterator is not a plain one."""
        if steps != 1:
            self.end("is one of several that are taken at once (steps_per_execution)")
        elif not isinstance(iterator, tf.data.Iterator):
            self.end(f"takes its batches from a {type(iterator).__name__}, as under a tf.distribute strategy")

    def measure(self, number: int, step: Callable[..., Any], optimizers: list[Any], *args: Any, **kwargs: Any) -> None:
        """The step that is about to be taken with these arguments."""
        try:
            refuse_what_cannot_be_measured(step, optimizers, args, kwargs)
            if self._made is None or self._made_of != step:
                self._made = MeasuredStep(step, optimizers, scale_still_to_come, self._exponents)
                self._made_of = step
            self._waiting.append((number, self._made(*args, **kwargs)))
        except Exception as error:  # whatever the user's step raises in a trace, and whatever a device does
            self.end(error_text(error))

    def read(self) -> None:
        """Read the step that was measured: the device has gone on since."""
        waiting, self._waiting = self._waiting, []
        for number, on_device in waiting:
            try:
                measured = measured_from(number, on_device)
            except Exception as error:
                self.end(error_text(error))
                return
            self._tell(measured)

    def end(self, why: str) -> None:
        self.every, self._waiting, self._made = None, [], None
        self._end(why)


def error_text(error: Exception) -> str:
    if isinstance(error, NotMeasured):
        return str(error)
    lines = str(error).strip().splitlines() or [""]
    return f"raises {type(error).__name__} where it is measured: {lines[-1].strip()}"[:300]


def refuse_what_cannot_be_measured(step: Callable[..., Any], optimizers: list[Any], args: Any, kwargs: Any) -> None:
    """NotMeasured says why. What a function of Python does to lists and files it would do a second time: in a
    tf.function, and in the `train_step` that Keras makes one of, it does so when traced alone."""
    if not hasattr(step, "python_function") and getattr(step, "__name__", "") != "train_step":
        raise NotMeasured("is no tf.function")
    if tf.config.functions_run_eagerly():
        raise NotMeasured("runs eagerly (tf.config.run_functions_eagerly)")
    if tf.distribute.has_strategy() or any(
        _is_distributed(v) for optimizer in optimizers for v in _variables_of(optimizer)
    ):
        raise NotMeasured("runs under a tf.distribute strategy")
    if any(hasattr(value, "__next__") for value in tf.nest.flatten((args, kwargs))):
        raise NotMeasured("is given an iterator, and a batch that is measured would be lost for the training")


def _variables_of(optimizer: Any) -> Iterator[Any]:
    """Variables that every optimizer has from its first step on."""
    for holder in (optimizer, getattr(optimizer, "inner_optimizer", None)):
        variable = getattr(holder, "iterations", None)
        if variable is not None:
            yield variable


def _is_distributed(variable: Any) -> bool:
    value = getattr(variable, "_value", variable) if type(variable).__module__.startswith("keras.") else variable
    return isinstance(value, tf.distribute.DistributedValues)


def scale_still_to_come(optimizer: Any) -> Any:
    """What gradients as the optimizer is given them are multiplied by to be as float16 held them: the loss scale where
    they have been divided by it already, as in Keras 2."""
    are_scaled = vars(optimizer).get("_apply_unscales", hasattr(optimizer, "scale_loss"))
    scale = getattr(optimizer, "loss_scale", None)
    if are_scaled or scale is None:
        return tf.constant(1.0)
    return tf.cast(tf.convert_to_tensor(scale), tf.float32)


def measured_from(step: int, on_device: OnDevice) -> Measured:
    """What was measured of a step, read from the device."""
    parts: dict[str, list[MeasuredPart]] = {"layer": [], "gradient": []}
    for texts, numbers, counts in zip(*(tensor.numpy() for tensor in on_device)):
        name, kind, dtype = (text.decode("utf-8", "replace") for text in texts)
        largest, not_finite, zero, subnormal = numbers.tolist()
        exponents = exponents_from(counts.tolist())
        parts[kind].append(MeasuredPart(name, dtype, largest, not_finite, zero, subnormal, exponents))
    return Measured(step, parts["layer"], parts["gradient"])

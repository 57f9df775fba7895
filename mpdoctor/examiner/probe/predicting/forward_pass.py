"""One forward pass, repeated eagerly with its layers and operations observed: which of them made the first number of
the outputs that is not finite."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Callable, Iterator

import tensorflow as tf

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.replay.culprits import Culprits, culprits_from_step
from mpdoctor.examiner.replay.observed_calls import ObservedCall
from mpdoctor.examiner.replay.step_observer import StepObserver
from mpdoctor.examiner.replay.variable_snapshot import variables_put_back

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter


class ForwardObserver(StepObserver):
    """What breaks a forward pass are the outputs of layers that no other layer called."""

    def clear(self) -> None:
        super().clear()
        self.outputs: list[tf.Tensor] = []

    def leave(self, call: ObservedCall, outputs: object) -> object:
        marked = super().leave(call, outputs)
        if call.parent is None:
            self.outputs += [tensor for tensor in tf.nest.flatten(outputs) if isinstance(tensor, tf.Tensor)]
        return marked

    @property
    def bad(self) -> list[tf.Tensor]:
        return [tensor for tensor in self.outputs if self.trace.is_bad(tensor)]


def culprits_of_forward_pass(
    keras: KerasAdapter, layer_hooks: LayerHooks, run: Callable[[], object]
) -> Culprits | None:
    """The first thing that broke in a forward pass; None where every output was finite this time. `run` moves no
    variable: all are restored."""
    eagerly = tf.config.functions_run_eagerly()
    tf.config.run_functions_eagerly(True)
    try:
        with _nothing_recorded(), variables_put_back(), ForwardObserver(keras, layer_hooks, None) as observer:
            run()
        return culprits_from_step(observer, 0, None)
    finally:
        tf.config.run_functions_eagerly(eagerly)


@contextmanager
def _nothing_recorded() -> Iterator[None]:
    """A repetition is no part of what the program's own tapes differentiate."""
    try:
        from tensorflow.python.eager import record
    except ImportError:  # until 2.11
        from tensorflow.python.eager import tape as record
    with record.stop_recording():
        yield

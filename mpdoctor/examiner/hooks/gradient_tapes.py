"""Hooks on GradientTape: what the program differentiates by which variables, and errors raised under a tape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterable

from mpdoctor.examiner.exceptions import chain_of
from mpdoctor.examiner.keras.private_state import tensorflow_variable_of
from mpdoctor.examiner.process.patching import replace_method

if TYPE_CHECKING:
    import tensorflow as tf

    from mpdoctor.examiner.capture.loss_hooks import Losses
    from mpdoctor.examiner.keras.adapter import KerasVariable


class GradientTapes:
    """`losses()` are the session's.

    differentiated
        What a tape was asked to differentiate last.
    sources
        By what a tape was ever asked to differentiate, by identity.
    took_inner
        Whether a tape was ever asked by anything but variables: of a gradient penalty the inner one is.
    """

    def __init__(self, losses: Callable[[], Losses]) -> None:
        self._losses = losses
        self.differentiated: tf.Tensor | None = None
        self.sources: set[int] = set()
        self.took_inner = False
        self._failed_in: BaseException | None = None

    def install(self) -> None:
        import tensorflow as tf

        replace_method(tf.GradientTape, "gradient", self._gradient)
        replace_method(tf.GradientTape, "__exit__", self.leave)

    def _gradient(
        self,
        original: Callable[..., object],
        tape: tf.GradientTape,
        target: tf.Tensor,
        sources: object,
        *args: object,
        **kwargs: object,
    ) -> object:
        import tensorflow as tf

        self._losses().differentiated(target, sources)
        self.differentiated = target
        flat = tf.nest.flatten(sources)
        self.sources.update(map(id, flat))
        self.took_inner = self.took_inner or any(not hasattr(source, "assign") for source in flat)
        return original(tape, target, sources, *args, **kwargs)

    def took_gradients_by(self, variables: Iterable[KerasVariable]) -> bool:
        """Whether a tape was ever asked to differentiate by one of these."""
        return any(id(form) in self.sources for each in variables for form in (each, tensorflow_variable_of(each)))

    def leave(
        self, original: Callable[..., object], tape: tf.GradientTape, kind: object, error: BaseException, trace: object
    ) -> object:
        if error is not None:
            self._failed_in = error
        return original(tape, kind, error, trace)

    def left_a_tape(self, error: BaseException) -> bool:
        return any(cause is self._failed_in for cause in chain_of(error))

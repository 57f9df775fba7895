"""Hooks on calls of tf.functions: steps of a custom loop are observed, and mended, in the outermost one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable

from mpdoctor.examiner.keras.private_state import function_made_anew

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasModel
    from mpdoctor.examiner.session import Session


class FunctionCalls:
    """The hooks on tf.functions of one examination."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._under_way: list[Callable[..., object]] = []  # the outermost first
        self._made_anew: dict[Callable[..., object], Callable[..., object]] = {}

    def call(
        self, original: Callable[..., object], function: Callable[..., object], *args: object, **kwargs: object
    ) -> object:
        """The outermost call of a tf.function is where the host may look at what its graph recorded."""
        if self._session.training is not None and self._session.training.is_loop and not self._under_way:
            self._session.training.before_call()
        self._under_way.append(function)
        try:
            if len(self._under_way) == 1 and (self._session.training is None or self._session.training.is_loop):
                result = self._call_until_mended(original, function, args, kwargs)
            else:
                result = original(function, *args, **kwargs)
        except Exception as error:
            if len(self._under_way) == 1 and self._session.training is not None and self._is_stop(error):
                self._session.training.stopped_in_graph(function, args, kwargs)
            raise
        finally:
            self._under_way.pop()
        if self._session.training is not None and self._session.training.is_loop and not self._under_way:
            self._session.training.after_call(function, args, kwargs)
        if not self._under_way:
            self._session.predictions.function_returned(function, args, kwargs, result)
        return result

    def _call_until_mended(
        self,
        original: Callable[..., object],
        function: Callable[..., object],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> object:
        """The outermost tf.function of a custom loop. Under a forced policy what raises in it, while it is traced or
        run, is computed in float32 from then on, in a graph that is made anew."""
        while True:
            count = self._session.mender.count
            try:
                result = original(self._made_anew.get(function, function), *args, **kwargs)
            except Exception as error:
                if self._is_stop(error):
                    raise
                first = error
                if self._session.training is not None:
                    first = self._session.training.first_error_of_call(error, function, args, kwargs)
                if not self._mends_loop(first, count):
                    if first is error:
                        raise
                    raise first from None
                self._made_anew[function] = function_made_anew(function)
            else:
                self._session.mender.step_ran()
                return result

    def _mends_loop(self, error: Exception, count: int) -> bool:
        from mpdoctor.examiner.replay.variable_snapshot import all_have_values  # it needs TensorFlow

        mender = self._session.mender
        return mender.is_on and all_have_values() and mender.mends_step(error, self._only_model(), count)

    def _only_model(self) -> KerasModel | None:
        models = self._session.models()
        return models[0][1] if len(models) == 1 else None

    def _is_stop(self, error: Exception) -> bool:
        """Whether it is how a loop inside of a tf.function ends itself, because enough was seen."""
        from mpdoctor.examiner.probe.graph_stop import is_stop

        return is_stop(error)

    @property
    def outermost(self) -> Callable[..., object] | None:
        """The tf.function of the program's whose call is under way; None outside of all."""
        return self._under_way[0] if self._under_way else None

    @property
    def in_xla(self) -> bool:
        """Whether what is traced now will be compiled by XLA, as a tf.function with jit_compile."""
        return any(getattr(function, "_jit_compile", False) for function in self._under_way)

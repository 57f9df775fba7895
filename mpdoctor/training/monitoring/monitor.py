"""`LossScaleMonitor`: the loss scale and the skipped steps of a whole training, in logs and in a run file.

A callback of every Keras at once: it has the methods that they call, and derives from none of their classes.
"""

from __future__ import annotations

import functools
import os
from typing import Any, Callable

from mpdoctor.training.monitoring.arguments import checked_steps, listed, refuse_what_cannot_be
from mpdoctor.training.monitoring.fit_steps import FitSteps
from mpdoctor.training.monitoring.kept_batch import keep_batch, path_of_batch
from mpdoctor.training.monitoring.measuring.measuring import Measuring
from mpdoctor.training.monitoring.recording import Recording
from mpdoctor.training.monitoring.replayed_batch import culprit_of_batch
from mpdoctor.training.monitoring.trouble import Trouble, nothing_to_watch, warning_text, what_next
from mpdoctor.training.monitoring.users_line import warn_of_training
from mpdoctor.training.monitoring.watched_optimizer import loss_scale_optimizer_in
from mpdoctor.training.monitoring.watched_series import WatchedSeries

EVERY = 20


class LossScaleMonitor:
    """Watches the loss scale of a training, warns once where nothing is trained any more, and says why.

    `model.fit(..., callbacks=[LossScaleMonitor()])`, or for a loop of your own:

        monitor = LossScaleMonitor(optimizer=optimizer, model=model)
        step = monitor.wrap(step)
        with monitor:
            for batch in data:
                step(batch)

    path
        The run file, for `mpdoctor show`; a training that is started again goes on in it. None: none is written.
    log_dir
        Where the two numbers, and what is measured, are written for TensorBoard, with histograms of exponents.
    every
        Steps between two readings of the optimizer. For 100 steps after a skipped one it reads each.
    stop_when
        "stuck" ends the fit, or the loop by `monitor.stopped`, where nothing is trained any more.
    replay
        Whether a batch that fails for good is computed once more, eagerly, to name the layer.
    keep_batch
        Whether that batch and the weights it failed with are kept beside the run file, as run.batch.npz.
    measure_every
        1000: each thousandth step is computed once more up to its gradients, and the largest activation of each layer
        and what float16 loses of activations and gradients are recorded. None: no step is.
    optimizer, model
        Of a loop of your own; one or a list of them. A fit has its model's, unless others are named.
    """

    _chief_worker_only = None
    _supports_tf_logs = True
    params: Any = None

    def __init__(
        self,
        path: str | os.PathLike[str] | None = "run.mpdoctor",
        log_dir: str | os.PathLike[str] | None = None,
        every: int = EVERY,
        stop_when: str | None = None,
        *,
        replay: bool = True,
        keep_batch: bool = False,
        measure_every: int | None = None,
        optimizer: Any = None,
        model: Any = None,
    ) -> None:
        every, measure_every = checked_steps(every, measure_every)
        refuse_what_cannot_be(path, stop_when, replay, keep_batch, listed(optimizer))
        self.path, self.every, self.stop_when = path, every, stop_when
        self.replay, self.keep_batch = replay, keep_batch
        self.stopped = False
        self.warnings: list[str] = []
        self.model: Any = None
        self._models = listed(model)
        self._unreported: tuple[WatchedSeries, Trouble] | None = None
        self._recording = Recording(path, log_dir, every)
        self._measuring = Measuring(
            measure_every, self._recording.measured, self._end_measuring, self._recording.has_summaries
        )
        self._fit: FitSteps | None = None
        self._has_stepped = False  # before that, variables are still being made
        self._at_epoch: dict[int, int] = {}
        self._loop_optimizers = listed(optimizer)
        self._batch: tuple[Callable[..., Any], Any, Any] | None = None

    # --- a fit --------------------------------------------------------------------------------------------------------
    def set_params(self, params: Any) -> None:
        self.params = params

    def set_model(self, model: Any) -> None:
        self.model = model

    def _implements_train_batch_hooks(self) -> bool:
        """Always False: steps are counted where the model takes them, and Keras need not read its metrics for us after
        each."""
        return False

    _implements_test_batch_hooks = _implements_predict_batch_hooks = _implements_train_batch_hooks

    def on_train_begin(self, logs: Any = None) -> None:
        if self._fit is not None and not self._fit.goes_on():
            self._fit.leave("interrupted")
        self.stopped = False
        self._watch(self._loop_optimizers or [self.model.optimizer], [self.model])
        if self._measuring.every is not None and self.model.run_eagerly:
            self._measuring.end("runs eagerly")
        if self._recording.series:
            measures = self._measuring.every is not None
            before = self._before_fit_step if measures else None
            self._fit = FitSteps(self.model, self._after_fit_step, self._end_by_error, before)

    def on_epoch_begin(self, epoch: int, logs: Any = None) -> None:
        self._recording.epoch = epoch
        self._at_epoch = {series.number: series.skipped for series in self._recording.series}
        if self._fit is not None:
            self._fit.begin_epoch((self.params or {}).get("steps"))

    def on_epoch_end(self, epoch: int, logs: Any = None) -> None:
        self._read_all()
        for series in self._recording.series[:1] if logs is not None else ():
            logs["loss_scale"] = series.scale
            logs["skipped_steps"] = series.skipped - self._at_epoch.get(series.number, 0)
        self._recording.end_epoch(epoch)

    def on_train_end(self, logs: Any = None) -> None:
        if self._fit is not None:
            self._fit.end()
            self._fit = None
        if self._unreported is not None:
            self._report_trouble(*self._unreported)
        self._recording.end("stopped" if self.stopped else "finished")

    def _end_by_error(self, how: str) -> None:
        """Called when an error ends the fit, of which callbacks are not notified."""
        self._fit = None
        self._read_all()
        if self._unreported is not None:
            self._report_trouble(*self._unreported)
        self._recording.end(how)

    def _before_fit_step(self, iterator: Any) -> Callable[[Any], None] | None:
        if self._measuring.every is not None and self._fit is not None:
            self._measuring.refuse_calls(iterator, self._fit.per_call())
        return functools.partial(self._measure, self.model.train_step) if self._is_due() else None

    def _after_fit_step(self, steps: int) -> None:
        self._has_stepped = True
        for series in self._recording.series:
            if series.count(steps):
                self._read_series(series)

    # --- a loop -------------------------------------------------------------------------------------------------------
    def __enter__(self) -> LossScaleMonitor:
        if not self._loop_optimizers:
            raise ValueError("Say which optimizer the loop trains with: LossScaleMonitor(optimizer=optimizer).")
        self.stopped = False
        self._recording.epoch = None
        self._watch(self._loop_optimizers, self._models)
        return self

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        self._read_all()
        self._recording.end("stopped" if self.stopped else "finished" if kind is None else f"raised {kind.__name__}")

    def wrap(self, step: Callable[..., Any]) -> Callable[..., Any]:
        """`step`, a training step of yours or a tf.function, counted each time it is called."""

        @functools.wraps(step, updated=())
        def counted(*args: Any, **kwargs: Any) -> Any:
            if self._is_due():
                self._measure(step, *args, **kwargs)
            returned = step(*args, **kwargs)
            self._batch = (step, args, kwargs)
            self.after_step()
            return returned

        return counted

    def after_step(self, steps: int = 1) -> None:
        """For loops whose steps are no function that `wrap` could take: so many more were taken."""
        if not self._recording.series:
            self.__enter__()
        elif self._batch is None and self._is_due():
            self._measuring.end("is not known: `monitor.wrap(step)` would know it")
        self._after_fit_step(steps)

    # --- readings -----------------------------------------------------------------------------------------------------
    def _watch(self, optimizers: list[Any], models: list[Any]) -> None:
        if self._recording.is_mute:
            return
        self._models = [model for model in models if model is not None]
        wrappers = [loss_scale_optimizer_in(optimizer) for optimizer in optimizers]
        if all(optimizer is None for optimizer in wrappers):
            self._warn(nothing_to_watch(optimizers))
        self._recording.start([optimizer for optimizer in wrappers if optimizer is not None], self._models)
        self._has_stepped = False

    def _read_all(self) -> None:
        for series in self._recording.series:
            self._read_series(series)

    def _read_series(self, series: WatchedSeries) -> None:
        trouble = self._recording.read(series)
        self._measuring.read()
        if trouble is not None:
            self._begin_trouble(series, trouble)

    def _begin_trouble(self, series: WatchedSeries, trouble: Trouble) -> None:
        """Report trouble together with a failing batch: in a fit the next one, in a custom loop the last one."""
        if self.replay and self._fit is not None and self._fit.capture(self._replay_captured):
            self._unreported = (series, trouble)
        elif self.replay and self._fit is None and self._batch is not None and self._models:
            step, args, kwargs = self._batch
            self._report_trouble(series, trouble, functools.partial(step, *args, **kwargs), (args, kwargs))
        else:
            self._report_trouble(series, trouble)

    def _replay_captured(self, batch: Any, is_last: bool) -> bool:
        """Whether this batch was one that fails, or the last that is looked at."""
        assert self._unreported is not None
        series, trouble = self._unreported
        return self._report_trouble(series, trouble, functools.partial(self.model.train_step, batch), batch, is_last)

    def _report_trouble(
        self,
        series: WatchedSeries,
        trouble: Trouble,
        step: Callable[[], Any] | None = None,
        batch: Any = None,
        is_last: bool = True,
    ) -> bool:
        culprit, kept = None, ""
        if step is not None:
            try:
                culprit = culprit_of_batch(step, batch, series.watched.optimizer, self._models, self._all_watched())
            except Exception as error:  # whatever the user's own step raises when it is run eagerly
                culprit = {"not_replayed": f"{type(error).__name__}: {error}"[:300]}
            if culprit is None and not is_last:
                return False
            if self.keep_batch and self._recording.file is not None:
                kept = keep_batch(path_of_batch(self._recording.file.path), batch, self._models)
        words = warning_text(trouble, culprit)
        first = series.trouble_watch.first_skip
        said = {"event": trouble.kind, "since": first, "text": words, **(culprit or {})}
        if kept:
            said["kept"] = kept
        self._recording.event(said, series)
        self._unreported = None
        if self.stop_when == "stuck":
            self.stopped = True
            if self.model is not None:
                self.model.stop_training = True
        self._warn(words + what_next(self._recording.file, kept))
        return True

    # --- what is measured ---------------------------------------------------------------------------------------------
    def _is_due(self) -> bool:
        """Whether the step that comes now is to be measured."""
        series = self._recording.series
        return self._has_stepped and bool(series) and self._measuring.is_due(series[0].taken + 1)

    def _measure(self, step: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
        self._measuring.measure(self._recording.series[0].taken + 1, step, self._all_watched(), *args, **kwargs)

    def _all_watched(self) -> list[Any]:
        watched: list[Any] = [series.watched.optimizer for series in self._recording.series]
        return watched + [
            optimizer for optimizer in self._loop_optimizers if loss_scale_optimizer_in(optimizer) not in watched
        ]

    def _end_measuring(self, why: str) -> None:
        for series in self._recording.series[:1]:
            self._recording.event({"event": "not_measured", "text": why}, series)
        self._warn(f"No step is measured any more: the step {why}. The training goes on as it would without.")

    # --- warnings, and the hooks that do nothing ----------------------------------------------------------------------
    def _warn(self, words: str) -> None:
        if words not in self.warnings:
            self.warnings.append(words)
            warn_of_training(words)

    def __getattr__(self, name: str) -> Any:
        """The other hooks that a Keras asks for do nothing."""
        if name.startswith("on_") and name.endswith(("_begin", "_end")):
            return _nothing
        raise AttributeError(f"'LossScaleMonitor' object has no attribute '{name}'")


def _nothing(*_: Any, **__: Any) -> None:
    return None


_nothing._is_default = True  # type: ignore[attr-defined]  # of Keras 3: a hook that need not be waited for

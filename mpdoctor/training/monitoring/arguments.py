"""Checks the arguments of LossScaleMonitor, with messages for wrong ones."""

from __future__ import annotations

import numbers
import os
import re
from typing import Any

STOPS = (None, "stuck")
ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")  # gs://bucket/run.mpdoctor would become folders of that name


def checked_steps(every: Any, measure_every: Any) -> tuple[int, int | None]:
    """ValueError where they are no numbers of steps."""
    for name, steps in (("every", every), ("measure_every", 1 if measure_every is None else measure_every)):
        if isinstance(steps, bool) or not isinstance(steps, numbers.Integral) or steps < 1:
            raise ValueError(f'"{name}" must be a whole number of steps, at least 1, but got: {steps!r}.')
    return int(every), None if measure_every is None else int(measure_every)


def refuse_what_cannot_be(path: Any, stop_when: Any, replay: Any, keep_batch: Any, optimizers: list[Any]) -> None:
    """TypeError or ValueError says what to give instead."""
    if path is not None and not (isinstance(path, (str, os.PathLike)) and os.fspath(path)):
        raise TypeError(f'"path" must be the name of a file, or None for no run file, but got: {path!r}.')
    if path is not None and ADDRESS.match(os.fspath(path)):
        raise ValueError(
            f'"path" must be a file of this machine, but got: {path}. Lines are appended to the run file, '
            "for which an address has no way: copy it there afterwards. log_dir may be an address."
        )
    if stop_when not in STOPS:
        raise ValueError(f'"stop_when" must be None or "stuck", but got: {stop_when!r}.')
    if keep_batch and (path is None or not replay):
        raise ValueError("keep_batch=True keeps the replayed batch beside the run file: give a path, and replay=True.")
    for optimizer in optimizers:
        if isinstance(optimizer, (str, type)) or not callable(getattr(optimizer, "apply_gradients", None)):
            raise TypeError(
                f'"optimizer" must be an optimizer itself, or a list of them, but got: {optimizer!r}. Give the one '
                "that your loop calls: LossScaleMonitor(optimizer=optimizer)."
            )


def listed(value: Any) -> list[Any]:
    """What was given, as a list: [] for None, and one object as a list of it."""
    return [] if value is None else list(value) if isinstance(value, (list, tuple)) else [value]

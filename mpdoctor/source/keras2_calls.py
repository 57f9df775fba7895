"""Calls that Keras 2 takes and Keras 3 refuses: whoever writes them runs Keras 2.

Each measured in 3.15 and 2.15: `lr` of an optimizer, `fit_generator` and its like, arguments of the generators that
`fit` had, a name as the first argument of `add_weight`."""

from __future__ import annotations

from collections.abc import Iterable

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.events import Call
from mpdoctor.program.values import Api, Attribute, known

_GENERATOR_METHODS = ("fit_generator", "evaluate_generator", "predict_generator")
_FITTING = ("fit", "evaluate", "predict")
_GENERATOR_ARGUMENTS = ("use_multiprocessing", "max_queue_size")


def refused_by_keras3(path: str, calls: Iterable[Call]) -> str:
    """The first such call of this file, as a program writes it, where it does not ask first; else ""."""
    certain = (call for call in calls if call.location.path == path and not call.context.guarded)
    return next(filter(None, map(_refused, certain)), "")


def _refused(call: Call) -> str:
    if isinstance(call.callee, Api):
        is_optimizer = call.keyword("lr") is not None and kind_of_class(call.callee.name) == "optimizer"
        return f"{call.callee.name.rpartition('.')[2]}(lr=…)" if is_optimizer else ""
    if not isinstance(call.callee, Attribute):
        return ""
    method = call.callee.name
    if method in _GENERATOR_METHODS:
        return f"{method}(…)"
    if method in _FITTING:
        return next((f"{method}({name}=…)" for name in _GENERATOR_ARGUMENTS if call.keyword(name) is not None), "")
    if method == "add_weight" and isinstance(known(call.argument(0)), str):
        return f'add_weight("{known(call.argument(0))}", …)'
    return ""

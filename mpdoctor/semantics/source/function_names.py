"""The functions of TensorFlow and Keras that a program calls, by name: "log" for tf.math.log, K.log and ops.log."""

from __future__ import annotations

from functools import cache, lru_cache

from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Value

_FUNCTIONS = ("tensorflow", "tensorflow.nn", "tensorflow.math", "keras.ops", "keras.ops.numpy", "keras.backend")
_ACTIVATIONS = ("keras.activations", *(place for place in _FUNCTIONS if place != "keras.ops.numpy"))


def function_named(value: Value) -> str:
    """ "log" for a call of tf.math.log, K.log, ops.log; "" for other values."""
    return _last_name(value, _FUNCTIONS)


def function_or_activation_named(value: Value) -> str:
    """ "softmax" for a call of tf.nn.softmax, ops.softmax, keras.activations.softmax; "" for other values."""
    return _last_name(value, _ACTIVATIONS)


@lru_cache(maxsize=1)
def functions_called(facts: SourceFacts) -> tuple[tuple[Call, str], ...]:
    """The calls that `function_named` has a name for, in order, each with it: a dozen rules ask for a few of them."""
    named = ((call, function_named(call)) for call in facts.library_calls)
    return tuple((call, name) for call, name in named if name)


def _last_name(value: Value, places: tuple[str, ...]) -> str:
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return ""
    place, function = _split(value.callee.name)
    return function if place in places else ""


@cache
def _split(name: str) -> tuple[str, str]:
    """(module, function) of a function's public name."""
    place, _, function = public_name(name).rpartition(".")
    return place, function

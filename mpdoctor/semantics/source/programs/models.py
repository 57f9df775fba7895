"""Which values of a program are Keras models."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.values import Api, Value

_GIVE_MODELS = (
    "keras.models.load_model",
    "keras.models.clone_model",
    "keras.models.model_from_json",
    "keras.models.model_from_config",
)


def is_model(value: Value) -> bool:
    """Whether it is certainly a Keras model: of a library's class, made by a library's function, or of a class of
    the user's own."""
    own = class_of(value)
    if own is not None:
        return own.kind == "model"
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return False
    name = value.callee.name
    if kind_of_class(name) == "model" or value.callee.is_(*_GIVE_MODELS):
        return True
    return name.startswith("keras.applications.") and name.rpartition(".")[2][:1].isupper()

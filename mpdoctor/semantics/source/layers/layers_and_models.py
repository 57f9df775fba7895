"""Whether a value is a layer or a model, and whether the user's own code takes what is assigned to it."""

from __future__ import annotations

from typing import Literal

from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Api, Attribute, Item, Value, options
from mpdoctor.semantics.source.layers.model_layers import layer_name
from mpdoctor.semantics.source.programs.models import is_model

_PACKAGES = ("keras.", "tensorflow.", "tf_keras.", "abc.", "builtins.")


def layer_or_model(value: Value) -> Literal["layer", "model"] | None:
    """What a value certainly is; None of others."""
    if is_model(value):
        return "model"
    of: Value = value
    while isinstance(of, Item):
        of = of.of
    if of is not value and isinstance(of, Attribute) and of.name == "layers":
        return "layer" if all(is_model(option) for option in options(of.of)) else None
    own = class_of(value)
    if own is not None:
        return "layer" if own.kind == "layer" else None
    return "layer" if layer_name(value) is not None else None


def takes_assignments_itself(own: ClassFacts, name: str) -> bool:
    """Whether a class of the user's, or a base that is not known, may define what assigning this attribute does."""
    return any(
        not ancestor.body_names.isdisjoint((name, "__setattr__")) or not all(map(_is_known, ancestor.bases))
        for ancestor in own.lineage()
    )


def _is_known(base: Value) -> bool:
    """Whether a base is a class of Keras or of Python, or the user's own."""
    return all(
        isinstance(option, Defined) or (isinstance(option, Api) and option.name.startswith(_PACKAGES))
        for option in options(base)
    )

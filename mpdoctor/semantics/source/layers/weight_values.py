"""Which values are computed only from a layer's weights."""

from __future__ import annotations

from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Value, options
from mpdoctor.semantics.source.layers.layer_variables import is_weight

SINGLE = ("kernel", "bias", "embeddings", "gamma", "beta", "recurrent_kernel", "depthwise_kernel", "pointwise_kernel")
DEEPEST = 20


def weight_holder(value: Value) -> Value | None:
    """The layer whose weight it is, as `layer.kernel` or as one of `layer.trainable_weights`; None for other values."""
    if isinstance(value, Attribute) and value.name in SINGLE:
        return value.of if _is_layer(value.of) else None
    while isinstance(value, Item):
        value = value.of
        if isinstance(value, Attribute) and value.name in WEIGHT_LISTS:
            return value.of if _is_layer(value.of) else None
    return None


def is_made_of_weights(value: Value, depth: int = 0) -> bool:
    """Whether it is a weight, or computed from weights and numbers only."""
    found = [_is_one_of_weights(option, depth) for option in options(value)]
    return bool(found) and all(found)


@asked_once
def _is_one_of_weights(value: Value, depth: int) -> bool:
    if depth > DEEPEST:
        return False
    if is_weight(value) or weight_holder(value) is not None:
        return True
    if isinstance(value, Item):
        return is_made_of_weights(value.of, depth + 1)
    inner: tuple[Value, ...] = ()
    if isinstance(value, Operation):
        inner = value.operands
    elif isinstance(value, Call) and isinstance(value.callee, Api):
        inner = value.arguments(slice(2))
    elif isinstance(value, Collection) and value.kind == "list":
        inner = value.items
    others = [part for part in inner if not isinstance(part, (Known, Api))]
    return bool(others) and all(is_made_of_weights(other, depth + 1) for other in others)


def _is_layer(value: Value) -> bool:
    own = class_of(value)
    if own is not None:
        return own.kind in ("layer", "model")
    return isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.name.startswith("keras.layers.")

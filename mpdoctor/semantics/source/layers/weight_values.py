"""Which values are weights of layers and models, are computed only from them, or are what their regularizers add."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from mpdoctor.facts.half_dtypes import HALF, MIXED
from mpdoctor.knowledge.layer_kinds import WEIGHT_LISTS
from mpdoctor.program.context import Context
from mpdoctor.program.dtypes.dtype_names import VARIABLE
from mpdoctor.program.dtypes.own_layers import is_weight
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.memoize import asked_once
from mpdoctor.program.policy_settings import UNSURE
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, Attribute, Collection, Either, Item, Known, Value, agreed, known, options, walk
from mpdoctor.semantics.source.layers.call_dtypes import policies_of_instances
from mpdoctor.semantics.source.layers.layer_variables import owner_of_weight
from mpdoctor.semantics.source.programs.models import is_model

SINGLE = ("kernel", "bias", "embeddings", "gamma", "beta", "recurrent_kernel", "depthwise_kernel", "pointwise_kernel")
DEEPEST = 20
SUMS_OF_WEIGHTS = ("l2_loss", "reduce_sum", "norm")
WRAPPER = "keras.layers.Wrapper"  # keeps the layer that it is given, as `layer`
REGULARIZING = "keras.layers.ActivityRegularization"
OF_WEIGHTS = ("kernel_regularizer", "bias_regularizer", "embeddings_regularizer", "recurrent_regularizer")
OTHERS_ADD = ("activity_regularizer", "regularizer")  # the second may be of add_weight, or of the user's own layer


def weight_holder(value: Value) -> Value | None:
    """The layer whose weight it is, as `layer.kernel` or as one of `layer.trainable_weights`; None for other values."""
    if isinstance(value, Attribute) and value.name in SINGLE:
        return value.of if _is_layer(value.of) else None
    while isinstance(value, Item):
        value = value.of
        if isinstance(value, Attribute) and value.name in WEIGHT_LISTS:
            return value.of if _is_layer(value.of) else None
    return None


def wrapper_around(layer: Value) -> ClassFacts | None:
    """The class of the user's, derived from Keras' Wrapper, that keeps this layer as its `layer`, or as the `cell` of
    that."""
    if isinstance(layer, Either):
        return agreed(map(wrapper_around, layer.options))
    if isinstance(layer, Attribute) and layer.name == "cell":
        return wrapper_around(layer.of)
    own = class_of(layer.of) if isinstance(layer, Attribute) and layer.name == "layer" else None
    return own if own is not None and any(base.is_(WRAPPER) for base in own.library_bases()) else None


def is_of_weights_without_autocast(facts: SourceFacts, value: Value, context: Context) -> bool:
    """Whether a value in `call()` is computed of weights that name no dtype and that the layer does not cast: it is
    float32 under a mixed policy."""
    if facts.dtype_at(value, context) != VARIABLE:
        return False
    weights = (part for part in walk(value) if isinstance(part, Call) and is_weight(part))
    return _keep_float32(facts, [weight.context.owner or owner_of_weight(weight) for weight in weights])


def is_of_layer_in_dtype_of_weights(facts: SourceFacts, value: Value, context: Context) -> bool:
    """Whether it is the output of a layer that another layer makes with `dtype=self.dtype`: float32 under a mixed
    policy."""
    if facts.dtype_at(value, context) != VARIABLE:
        return False
    layers = [
        option.callee for option in options(value) if isinstance(option, Call) and isinstance(option.callee, Call)
    ]
    made_by = [
        option.of for layer in layers for option in options(layer.keyword("dtype")) if isinstance(option, Attribute)
    ]
    return len(made_by) == len(layers) and _keep_float32(facts, [class_of(outer) for outer in made_by])


def _keep_float32(facts: SourceFacts, owners: Sequence[ClassFacts | None]) -> bool:
    """Whether the weights of all these layers are float32, and what they compute is not, in some run of the program."""
    return bool(owners) and all(
        owner is not None and any(policy in MIXED for policy in policies_of_instances(facts, owner)) for owner in owners
    )


def is_kept_in_float32(facts: SourceFacts, value: Value) -> bool:
    """Whether it is a weight of a library's model, outside `call()` and in no policy that keeps weights in 16 bits, or
    the penalty of one."""
    model = _model_of_weight(value)
    policies = facts.policies_at(model) if model is not None else ()
    is_weight = model is not None and UNSURE not in policies and set(HALF).isdisjoint(policies)
    return is_weight or _is_penalty(facts, value)


def _model_of_weight(value: Value) -> Call | None:
    """The library's model, not one of the user's own, of whose `trainable_variables` it is one."""
    while isinstance(value, Item):
        value = value.of
        if isinstance(value, Attribute) and value.name in WEIGHT_LISTS:
            is_library = class_of(value.of) is None and is_model(value.of)
            return value.of if isinstance(value.of, Call) and is_library else None
    return None


def _is_penalty(facts: SourceFacts, value: Value) -> bool:
    """Whether it is `model.losses` or one of them, in a program whose layers add nothing but penalties of weights."""
    value = value.of if isinstance(value, Item) else value
    is_losses = isinstance(value, Attribute) and value.name == "losses" and is_model(value.of)
    return is_losses and _only_weights_are_penalized(facts)


@lru_cache(maxsize=1)
def _only_weights_are_penalized(facts: SourceFacts) -> bool:
    """Whether the program penalizes weights and nothing else."""
    given = {name for call in facts.calls for name, value in call.keywords if known(value) is not None}
    adds = any(facts.method_calls("add_loss")) or any(is_call_of(call, REGULARIZING) for call in facts.calls)
    return not adds and given.isdisjoint(OTHERS_ADD) and not given.isdisjoint(OF_WEIGHTS)


def is_made_of_weights(value: Value, depth: int = 0) -> bool:
    """Whether it is a weight, or computed from weights and numbers only."""
    are_weights = [_is_one_of_weights(option, depth) for option in options(value)]
    return bool(are_weights) and all(are_weights)


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


def is_weight_decay(value: Value) -> bool:
    """Whether it is a sum of squared weights, which is too large for 16 bits (MP510)."""
    parts = value.operands if isinstance(value, Operation) and value.operator in ("*", "/") else (value,)
    sums = [part for part in parts if isinstance(part, Call) and isinstance(part.callee, Api)]
    summed = [part.argument(0) for part in sums if part.method in SUMS_OF_WEIGHTS]
    return any(weights is not None and is_made_of_weights(weights) for weights in summed)


def _is_layer(value: Value) -> bool:
    own = class_of(value)
    if own is not None:
        return own.is_layer
    if wrapper_around(value) is not None:
        return True
    return isinstance(value, Call) and isinstance(value.callee, Api) and value.callee.name.startswith("keras.layers.")

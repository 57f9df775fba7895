"""The variables that layers hold: weights of Keras', and raw ones of TensorFlow's."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Attribute, Call, Value, is_api, known

FLOATS = ("float32", "float64")
ASSIGNING = ("assign", "assign_add", "assign_sub")
ADDING = ("add_weight", "add_variable")


def added_weights(facts: SourceFacts) -> Iterator[Call]:
    """The calls of `self.add_weight(…)` in layers and models of the user's own."""
    for call in facts.method_calls(*ADDING):
        owner = call.context.owner
        if isinstance(call.callee, Attribute) and owner is not None and owner.kind in ("layer", "model"):
            yield call


def raw_variables(facts: SourceFacts) -> Iterator[Call]:
    """The calls of `tf.Variable(…)` in the methods of layers and models of the user's own."""
    return (call for call in facts.calls_of("tensorflow.Variable") if is_raw_variable_of_layer(call))


def is_raw_variable_of_layer(value: Value) -> bool:
    if not isinstance(value, Call) or not is_api(value.callee, "tensorflow.Variable"):
        return False
    owner, function = value.context.owner, value.context.function
    is_in_layer = owner is not None and owner.kind in ("layer", "model")
    return is_in_layer and function is not None and function.name != "call"


def may_be_trained(weight: Call) -> bool:
    """Unless it is given `trainable=False`."""
    return known(weight.keyword("trainable")) is not False

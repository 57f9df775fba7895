"""The variables that layers hold: weights of Keras', and raw ones of TensorFlow's. Which calls make a layer with
weights."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.api_names import ADDING_WEIGHTS, is_layer_class, public_name
from mpdoctor.knowledge.layer_kinds import WEIGHTLESS
from mpdoctor.program.dtypes.dtype_names import AUTOCAST
from mpdoctor.program.dtypes.tensor_dtypes import dtype_named
from mpdoctor.program.events import Call
from mpdoctor.program.instances import belongs_to, class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, Attribute, Value, is_api, known, walk
from mpdoctor.semantics.source.programs.running_functions import functions_around

FLOATS = ("float32", "float64")
LAYERS = ("layer", "model")
ASSIGNING = ("assign", "assign_add", "assign_sub")
OWN_DTYPES = ("dtype_policy", "_dtype_policy", "dtype", "compute_dtype", "variable_dtype")
EMPTY = ("Layer", "Wrapper", "TFSMLayer")  # classes of Keras' that have no weights of their own
RAW = ("tensorflow.Variable", "keras.backend.variable")  # the second makes one of the first in both Kerases


def added_weights(facts: SourceFacts) -> Iterator[Call]:
    """The calls of `self.add_weight(…)` in layers and models of the user's own."""
    for call in facts.method_calls(*ADDING_WEIGHTS):
        owner = call.context.owner or owner_of_weight(call)
        if isinstance(call.callee, Attribute) and owner is not None and _is_of_layers(facts, owner):
            yield call


def owner_of_weight(adding: Call) -> ClassFacts | None:
    """The user's class for which a function of no class adds a weight: `layer.add_weight(…)`."""
    return None if adding.receiver is None else class_of(adding.receiver)


def raw_variables(facts: SourceFacts) -> Iterator[Call]:
    """The calls of `tf.Variable(…)` in the methods of layers and models of the user's own."""
    return (call for call in facts.calls_of(*RAW) if is_raw_variable_of_layer(facts, call))


def is_raw_variable_of_layer(facts: SourceFacts, value: Value) -> bool:
    """Whether it is a `tf.Variable` that a method of a layer makes, or a function that such a method calls."""
    if not isinstance(value, Call) or not is_api(value.callee, *RAW):
        return False
    around = (value.context.function, *functions_around(facts, value.context))
    owned = [(function, function.owner) for function in around if function is not None]
    of_layers = [function for function, owner in owned if owner is not None and _is_of_layers(facts, owner)]
    return bool(of_layers) and all(function.name != "call" for function in of_layers)


def _is_of_layers(facts: SourceFacts, own: ClassFacts) -> bool:
    """Whether it is a class of layers or models, or one that is mixed into such a class."""
    return belongs_to(own, LAYERS, facts.classes)


def is_stored_as_computed(facts: SourceFacts, weight: Call) -> bool:
    """Whether a weight is given the layer's compute dtype, `dtype=self.compute_dtype`, so that it holds 16-bit numbers
    under a mixed policy, and takes them (TensorFlow 2.10 and 2.15)."""
    given = weight.argument(2, "dtype") or weight.keyword("dtype")
    return given is not None and dtype_named(given, facts.keras) == AUTOCAST


def may_be_trained(weight: Call) -> bool:
    """Whether the weight is made without `trainable=False`."""
    return known(weight.keyword("trainable")) is not False


def layer_with_weights(call: Call, asked: set[ClassFacts] | None = None) -> str | None:
    """The class of the layer or model with weights that a call makes; None for any other call."""
    own = class_of(call)
    if own is not None:
        return own.name if own.is_layer and makes_weights(own, asked) else None
    if not isinstance(call.callee, Api) or not is_layer_class(call.callee.name):
        return None
    name = public_name(call.callee.name).rpartition(".")[2]
    return None if name in WEIGHTLESS else name


def makes_weights(own: ClassFacts, asked: set[ClassFacts] | None = None) -> bool:
    """Whether a user's class makes weights itself, or inherits them from a Keras layer. Layers inside it take its dtype
    only where they are given it. A class may hold layers of its own class: none is asked twice."""
    asked = set() if asked is None else asked
    if own in asked:
        return False
    asked.add(own)
    held = (value for ancestor in own.lineage() for value in ancestor.attributes.values())
    made = (call for value in held for call in walk(value) if isinstance(call, Call))
    if any(
        call.method in ADDING_WEIGHTS or (_is_given_its_dtype(call) and layer_with_weights(call, asked))
        for call in made
    ):
        return True
    bases = (public_name(base.name).rpartition(".") for base in own.library_bases())
    return any(place == "keras.layers" and name not in (*WEIGHTLESS, *EMPTY) for place, _, name in bases)


def _is_given_its_dtype(layer: Call) -> bool:
    """Whether an inner layer is given the dtype of the layer around it, by whichever of its names: under a 16-bit
    policy they are all the same."""
    given = layer.keyword("dtype") if layer.keywords else None
    return isinstance(given, Attribute) and given.name in OWN_DTYPES and class_of(given.of) is not None

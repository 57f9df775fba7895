"""Which values of a program are Keras models, which of them others are built on, and which values are made from a
keras.Input."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.knowledge.api_names import FITTING, is_network, kind_of_class
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, is_call_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value, options, walk
from mpdoctor.semantics.source.programs.attribute_access import reads, receivers

TRAINING = ("compile", *FITTING)
OUTPUTS = ("output", "outputs")
_GIVE_MODELS = (
    "keras.models.load_model",
    "keras.models.clone_model",
    "keras.models.model_from_json",
    "keras.models.model_from_config",
)


def is_built_on(facts: SourceFacts, call: Call) -> bool:
    """Whether a method is called on one of several models that an object may hold, and the program builds another one
    on it: `self.model = Model(self.model.inputs, top(self.model.output))`. Then the other one is meant."""
    return call.receiver in _built_on(facts) and len(receivers(facts, call)) > 1


@lru_cache(maxsize=1)
def _built_on(facts: SourceFacts) -> frozenset[Value]:
    return frozenset(option for read in reads(facts, OUTPUTS) for option in options(read.of))


def is_model(value: Value) -> bool:
    """Whether it is certainly a Keras model: of a library's class, made by a library's function, or of a class of
    the user's own."""
    own = class_of(value)
    if own is not None:
        return own.kind == "model"
    if not isinstance(value, Call) or not isinstance(value.callee, Api):
        return False
    name = value.callee.name
    return kind_of_class(name) == "model" or value.callee.is_(*_GIVE_MODELS) or is_network(name)


def is_of_keras_own_class(value: Value) -> bool:
    """Whether it is made by `keras.Model(…)` or `keras.Sequential(…)`, and of no class of the program or of another
    library."""
    return is_call_of(value, "keras.Model", "keras.Sequential")


def models_of_callback(facts: SourceFacts, value: Value) -> tuple[Value, ...]:
    """The models that `self.model` of a callback may be: those whose fit() is given a callback of that class; () for
    any other value."""
    owner = class_of(value.of) if isinstance(value, Attribute) and value.name in ("model", "_model") else None
    if owner is None or owner.kind != "callback":
        return ()
    models: dict[Value, None] = {}
    for call in facts.method_calls("fit", "fit_generator"):
        if any(class_of(part) is owner for part in walk(call.keyword("callbacks"))):
            models.update(dict.fromkeys(options(call.receiver)))
    return tuple(models)


def is_any_made_of_input(facts: SourceFacts, values: tuple[Value, ...]) -> bool:
    """Whether one of these is made from a keras.Input, as in a functional model."""
    made_of_input = _made_of_input(facts)
    return any(_is_made_of_input(value, made_of_input) for value in values)


@lru_cache(maxsize=1)
def _made_of_input(facts: SourceFacts) -> dict[Value, bool]:
    """Whether a value is made from a keras.Input, as far as that was asked."""
    return {}


def is_any_symbolic(facts: SourceFacts, values: tuple[Value, ...]) -> bool:
    """Whether one of these is a tensor of a functional model without numbers yet: a keras.Input, or what layers and
    operations make of one. What a whole functional model gives for an array is none."""
    known = _symbolic(facts)
    return any(_is_made_of_input(value, known, of_callees=False) for value in values)


@lru_cache(maxsize=1)
def _symbolic(facts: SourceFacts) -> dict[Value, bool]:
    """Whether a value is a symbolic tensor, as far as that was asked."""
    return {}


def _is_made_of_input(value: Value, known: dict[Value, bool], of_callees: bool = True) -> bool:
    """Whether a keras.Input is among what a value was made from; of calls the callee too, where `of_callees`."""
    waiting = [value]
    while waiting:
        made = waiting[-1]
        callee = made.callee if isinstance(made, Call) and not of_callees else None
        parts = [part for part in made.parts if part is not callee]
        if made not in known:  # its parts first
            known[made] = is_call_of(made, "keras.Input")
            waiting += [part for part in parts if part not in known]
        else:
            known[made] = known[made] or any(known[part] for part in parts)
            waiting.pop()
    return known[value]

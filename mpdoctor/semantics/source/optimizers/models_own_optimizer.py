"""The optimizer of a model that its own methods read, where the program has put one there itself and compile() puts
another in its place."""

from __future__ import annotations

from mpdoctor.program.events import Call, Read
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Attribute, Value, options
from mpdoctor.semantics.source.optimizers.wrappers import wrapped
from mpdoctor.semantics.source.texts.written import text_of


def is_wrapped_by_own_compile(facts: SourceFacts, optimizer: Value | None, event: Call | Read) -> bool:
    """Whether the program asks `self.optimizer` here, and compile() of that model has wrapped the bare optimizer that
    the model's class put there: Keras writes the wrapper into the same attribute (measured in TensorFlow 2.15 and Keras
    3.15)."""
    if ".optimizer" not in (text_of(facts, event.location) or ""):
        return False
    models = (own for own in facts.classes if own.kind == "model" and "optimizer" in own.attributes)
    return any(
        any(option is optimizer for option in options(own.attributes["optimizer"]))
        and wrapped(facts, Attribute(event.location, Instance(event.location, own), "optimizer"), event)
        for own in models
    )

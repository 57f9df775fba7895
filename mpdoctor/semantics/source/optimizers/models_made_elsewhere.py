"""Models that a file defines for other programs to make and compile: what their training step has as its optimizer."""

from __future__ import annotations

from mpdoctor.program.instances import is_of_super
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.semantics.source.layers.call_dtypes import policies_of_instances


def is_wrapped_in_step(facts: SourceFacts, own: ClassFacts) -> bool | None:
    """Whether `self.optimizer` is wrapped in the `train_step` of a model's class that this file defines and never
    makes: fit() calls that with the optimizer that compile() was given, and has wrapped under mixed_float16. None of
    other classes."""
    if own.kind != "model" or own.location.path != facts.path or facts.makings_of(own):
        return None
    return _hands_its_optimizer_on(facts, own) and _is_float16_wherever_made(facts, own)


def _hands_its_optimizer_on(facts: SourceFacts, own: ClassFacts) -> bool:
    """Whether Keras' own `compile` gets the optimizer: the class has none of its own, or that hands it on as given."""
    method = own.find_method("compile")
    if method is None:
        return True
    handed = [
        call.keyword("optimizer") or call.argument(0)
        for call in facts.method_calls("compile")
        if call.context.function is method and is_of_super(call)
    ]
    return bool(handed) and all(isinstance(given, Parameter) for given in handed)


def _is_float16_wherever_made(facts: SourceFacts, own: ClassFacts) -> bool:
    """Whether a policy is set for the program's models, and no other than mixed_float16 for those of this class."""
    is_set = facts.assume_mixed or bool(facts.policy_calls) or bool(facts.policies_elsewhere)
    return is_set and policies_of_instances(facts, own) == {"mixed_float16"}

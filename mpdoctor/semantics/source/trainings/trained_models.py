"""Models that a program trains, and those that it uses and does not train: frozen ones, copies that only predict."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import known, options, walk
from mpdoctor.semantics.source.layers.model_layers import layers_of
from mpdoctor.semantics.source.loops.gradient_sums import gradients_kept_until
from mpdoctor.semantics.source.loops.gradients import applied_gradients
from mpdoctor.semantics.source.programs.branches import may_not_run
from mpdoctor.semantics.source.programs.models import TRAINING, is_model

_APPLYING = ("apply_gradients", "apply", "minimize")
_GIVEN_WEIGHTS = ("set_weights", "load_weights")


def trainings(facts: SourceFacts) -> Iterator[tuple[Call, Call]]:
    """(compile, fit or apply call, the model that it trains) for every model that the program is seen to make."""
    for call in facts.method_calls(*TRAINING):
        for model in options(call.receiver):
            if isinstance(model, Call) and is_model(model):
                yield call, model
    models: dict[int, list[Call]] = {}  # by the id of the weights: a step that is followed often names the same ones
    applying = [call for call in facts.method_calls(*APPLYING) if not may_not_run(facts, call.context)]
    kept = ((apply, gradient) for apply in applying for _, gradient in gradients_kept_until(facts, apply))
    for apply, gradient in (*applied_gradients(facts), *kept):
        weights = gradient.argument(1, "sources")
        if id(weights) not in models:
            models[id(weights)] = [part for part in walk(weights) if isinstance(part, Call) and is_model(part)]
        for model in models[id(weights)]:
            yield apply, model


def is_frozen(facts: SourceFacts, model: Call) -> bool:
    """Whether the program writes `trainable = False` to this model, and nothing else."""
    given = [
        known(write.value)
        for write in facts.writes
        if write.name == "trainable" and any(option is model for option in options(write.of))
    ]
    return bool(given) and all(trainable is False for trainable in given)


def is_in_untrained_model(facts: SourceFacts, layer: Call) -> bool:
    """Whether a layer is part of a model that is frozen or is given the weights of another, and of none that the
    program may train."""
    return any(
        layer in (model, *layers_of(facts, model)) and not _may_be_trained(facts, model)
        for model in _frozen_or_given_weights(facts)
    )


def _frozen_or_given_weights(facts: SourceFacts) -> Iterator[Call]:
    frozen = (write.of for write in facts.writes if write.name == "trainable" and known(write.value) is False)
    given = (call.receiver for call in facts.method_calls(*_GIVEN_WEIGHTS))
    for receiver in (*frozen, *given):
        for model in options(receiver):
            if isinstance(model, Call) and is_model(model):
                yield model


def _may_be_trained(facts: SourceFacts, model: Call) -> bool:
    """Whether something may train it: a model that a parameter stands for, or a loop of one's own, may train any that
    is not frozen."""
    if is_frozen(facts, model):
        return False
    receivers = [option for call in facts.method_calls(*TRAINING) for option in options(call.receiver)]
    if any(True for _ in facts.method_calls(*_APPLYING)) or not all(
        isinstance(receiver, Call) for receiver in receivers
    ):
        return True
    return any(part is model for _, outer in trainings(facts) for part in walk(outer))

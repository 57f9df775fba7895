"""Programs that predict with a model, and certainly do not train it."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import is_api
from mpdoctor.semantics.source.programs.running_functions import TRAINING, functions_around, surrounding
from mpdoctor.semantics.source.programs.using_scripts import is_compiled_to_be_used, is_for_training

CUSTOM_GRADIENT = "tensorflow.custom_gradient"
_PREDICTING = (
    *("predict", "predict_on_batch", "generate", "load_weights", "set_weights"),
    *("save_weights", "save_to_preset"),  # of a program that trains nothing, and converts the weights of another
)


def only_predicts(facts: SourceFacts) -> bool:
    """Whether the program loads or predicts and certainly does not train: then 16-bit weights do no harm."""
    trains = any(
        not _is_of_an_override(facts, call) and not _is_custom(facts, call) for call in facts.method_calls(*TRAINING)
    )
    compiled = (call for call in _compiled_by_choice(facts) if not is_compiled_to_be_used(facts, call))
    trains = trains or any(map(is_for_training, compiled))
    return not trains and any(True for _ in facts.method_calls(*_PREDICTING))


def _is_of_an_override(facts: SourceFacts, call: Call) -> bool:
    """Whether it is `super().fit(…)` in a model's own `fit`, and no other file imports this one: then it trains only
    where that `fit` is called."""
    function, receiver = call.context.function, call.receiver
    is_super = isinstance(receiver, Call) and is_api(receiver.callee, "builtins.super")
    return is_super and function is not None and function.name == call.method and not facts.is_imported


def _is_custom(facts: SourceFacts, gradient: Call) -> bool:
    """Whether it computes one operation's gradient, in a function that `tf.custom_gradient` decorates."""
    functions = (gradient.context.function, *functions_around(facts, gradient.context))
    around = (outer for function in functions for outer in surrounding(facts, function))
    return any(is_api(decorator, CUSTOM_GRADIENT) for function in around for decorator in function.decorators)


def _compiled_by_choice(facts: SourceFacts) -> list[Call]:
    """The places that compile models, without constructors: KerasHub's constructors compile each object, whatever it is
    for."""
    compiling = list(facts.method_calls("compile"))
    in_constructors = {call.location for call in compiling if _is_in_constructor(facts, call)}
    return [call for call in compiling if in_constructors.isdisjoint((call.location, *call.context.callers))]


def _is_in_constructor(facts: SourceFacts, call: Call) -> bool:
    functions = filter(None, (call.context.function, *functions_around(facts, call.context)))
    return any(function.owner is not None and function.name == "__init__" for function in functions)

"""Scripts that use a model which was trained elsewhere, programs that predict alone, and tests that compile a model and
no more: what is wrong with a training does not concern them."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Value, is_api, options
from mpdoctor.semantics.source.programs.models import is_built_on, is_of_keras_own_class
from mpdoctor.semantics.source.programs.running_functions import (
    TRAINING,
    functions_around,
    is_in_test_without,
    surrounding,
)

CUSTOM_GRADIENT = "tensorflow.custom_gradient"
_PREDICTING = (
    *("predict", "predict_on_batch", "generate", "load_weights", "set_weights"),
    *("save_weights", "save_to_preset"),  # of a program that trains nothing, and converts the weights of another
)

TAKING_LOSSES = (
    *FITTING,
    *("train_step", "gradient", "apply_gradients", "minimize"),
    *("evaluate", "evaluate_generator", "test_on_batch"),
)


def is_compiled_to_be_used(facts: SourceFacts, compiling: Call) -> bool:
    """Whether a script that nobody imports loads the weights of the model that it compiles, or a test compiles one, and
    neither trains or evaluates anything nor hands the model to anybody who could."""
    if is_in_test_without(facts, compiling.context, TAKING_LOSSES):
        return not _is_handed_on(facts, compiling.receiver)
    if facts.is_imported or not compiling.context.reached:
        return False
    if not any(compiling.receiver in options(call.receiver) for call in facts.method_calls("load_weights")):
        return False
    return not _is_handed_on(facts, compiling.receiver) and not any(True for _ in facts.calls_named(*TAKING_LOSSES))


def _is_handed_on(facts: SourceFacts, model: Value | None) -> bool:
    """Whether the model is an argument of a call that is not followed, as those of the program's own functions are."""
    others = (call for call in facts.calls if not isinstance(call.callee, Defined))
    given = (part for call in others for part in (*call.args, *(value for _, value in call.keywords)))
    return any(model in options(part) for part in given)


def is_for_training(compiling: Call) -> bool:
    """Whether a model is compiled with an optimizer or a loss, or with arguments that are not known. KerasHub's models
    are also compiled with a sampler alone, to generate text. `compile()` of a model of Keras' own classes, which has no
    loss then, is for predicting; other models may have one by default."""
    given = {name for name, _ in compiling.keywords}
    if not (compiling.args or compiling.open or given):
        return not all(map(is_of_keras_own_class, options(compiling.receiver)))
    return bool(compiling.args) or compiling.open or bool(given & {"optimizer", "loss"})


def trains_model(facts: SourceFacts, call: Call) -> bool:
    """Whether a call of a model's method trains that model as it is, or compiles it for that."""
    is_idle = call.method == "compile" and not is_for_training(call)
    return not (is_idle or is_compiled_to_be_used(facts, call) or is_built_on(facts, call))


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

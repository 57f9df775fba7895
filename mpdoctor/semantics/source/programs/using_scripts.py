"""Scripts that use a model which was trained elsewhere, and tests that compile a model and no more: what is wrong with
a training does not concern them."""

from __future__ import annotations

from mpdoctor.knowledge.api_names import FITTING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import Value, options
from mpdoctor.semantics.source.programs.models import is_built_on, is_of_keras_own_class
from mpdoctor.semantics.source.programs.running_functions import is_in_test_without

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

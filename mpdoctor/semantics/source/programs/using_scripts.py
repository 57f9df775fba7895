"""Scripts that use a model which was trained elsewhere: what is wrong with a training does not concern them."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined
from mpdoctor.program.values import options

TAKING_LOSSES = (
    *("fit", "fit_generator", "train_on_batch", "train_step", "gradient", "apply_gradients", "minimize"),
    *("evaluate", "evaluate_generator", "test_on_batch"),
)


def is_compiled_to_be_used(facts: SourceFacts, compiling: Call) -> bool:
    """Whether a script that nobody imports loads the weights of the model that it compiles, and neither trains or
    evaluates anything nor hands the model to anybody who could."""
    if facts.is_imported or not compiling.context.reached:
        return False
    if not any(compiling.receiver in options(call.receiver) for call in facts.method_calls("load_weights")):
        return False
    others = (call for call in facts.calls if not isinstance(call.callee, Defined))  # its own functions are followed
    given = (part for call in others for part in (*call.args, *(value for _, value in call.keywords)))
    is_handed_on = any(compiling.receiver in options(part) for part in given)
    return not is_handed_on and not any(True for _ in facts.calls_named(*TAKING_LOSSES))

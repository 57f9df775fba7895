"""The functions and classes of a program's own that compute its losses, and the code that runs in them."""

from __future__ import annotations

from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts
from mpdoctor.program.values import options, walk
from mpdoctor.semantics.source.programs.running_functions import functions_around, method_around, surrounding


def name_of_predictions(facts: SourceFacts, call: Call, losses: set[int]) -> str:
    """What the loss in which a call stands names its predictions; "" in a function that it calls."""
    for function in surrounding(facts, call.context.function):
        of_loss = function.owner is not None and function.owner.kind == "loss" and function.name == "call"
        if of_loss or id(function) in losses:
            given = function.parameters[function.first_given :]
            return given[1] if len(given) > 1 and not given[1].startswith("*") else ""
    return ""


def runs_in_a_loss(facts: SourceFacts, context: Context, losses: set[int]) -> bool:
    """Whether the call runs in a loss; `losses` are the ids of the loss functions."""
    method = method_around(facts, context)
    if method is not None and method.owner is not None:
        return method.owner.kind == "loss"
    return any(id(function) in losses for function in (context.function, *functions_around(facts, context)))


def stands_in_a_loss(facts: SourceFacts, call: Call, losses: set[int]) -> bool:
    """Whether it stands in the loss itself, and in no function that the loss calls."""
    around = list(surrounding(facts, call.context.function))
    return any(id(function) in losses for function in around) or method_around(facts, call.context) in around


def ids_of_loss_functions(facts: SourceFacts) -> set[int]:
    """Ids of the functions that are handed to compile() as losses."""
    given = [call.argument(1, "loss") for call in facts.method_calls("compile")]
    return {
        id(inner.of)
        for value in given
        for option in options(value)
        for inner in walk(option)
        if isinstance(inner, Defined) and isinstance(inner.of, FunctionFacts)
    }

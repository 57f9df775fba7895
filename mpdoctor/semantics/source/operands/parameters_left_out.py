"""Parameters of `call()` that a program leaves out, and their replacement: `if mask is None: mask = …`."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.program.events import Call, Operation
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Parameter
from mpdoctor.program.values import Either, Known, Value, walk


def taken_instead(facts: SourceFacts, value: Value) -> tuple[str, Value] | None:
    """The name of the parameter and what stands in for it, where a value is one or the other and some call of the layer
    leaves the parameter out."""
    choices = value.options if isinstance(value, Either) else ()
    if len(choices) != 2:
        return None
    left_out = [choice for choice in choices if isinstance(choice, Parameter)]
    made = [choice for choice in choices if isinstance(choice, Call | Operation)]
    if len(left_out) != 1 or len(made) != 1:
        return None
    parameter, instead = left_out[0], made[0]
    if not _is_none(parameter.default) or not any(
        parameter in walk(branch.test) for branch in instead.context.branches
    ):
        return None
    return (parameter.name, instead) if _is_left_out(facts, parameter) else None


def _is_none(value: Value | None) -> bool:
    return isinstance(value, Known) and value.value is None


def _is_left_out(facts: SourceFacts, parameter: Parameter) -> bool:
    function = parameter.function
    if function is None or function.name != "call" or function.owner is None:
        return False
    return any(
        not call.open and len(call.args) < parameter.index and call.keyword(parameter.name) is None
        for call in _calls_of_layers(facts).get(id(function.owner), ())
    )


@lru_cache(maxsize=1)
def _calls_of_layers(facts: SourceFacts) -> dict[int, list[Call]]:
    """The calls of a program's own layers, by the ids of their classes and of those that they inherit `call()` from."""
    calls: dict[int, list[Call]] = {}
    for call in facts.object_calls:
        own = class_of(call.callee)
        method = own.find_method("call") if own is not None else None
        owner: ClassFacts | None = method.owner if method is not None else None
        if owner is not None:
            calls.setdefault(id(owner), []).append(call)
    return calls

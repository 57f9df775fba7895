"""The values that a call returns if its function was not followed from there; also through a strategy's `reduce`."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Defined, FunctionFacts, Instance, Parameter
from mpdoctor.program.values import Collection, Item, Value, is_api, known, options

MOST_CALLS = 5  # functions that return what another one gives back
REDUCTIONS = ("tensorflow.distribute.ReduceOp.MEAN", "tensorflow.distribute.ReduceOp.SUM")


def given_back(facts: SourceFacts, value: Value | None) -> Iterator[Value]:
    """The values that it may be. A call of a user's function, also by `strategy.run`, stands for what the function
    returns where it was walked on its own. Where one method returns what another one has stored in the object, the call
    stands for what that other one was given. `strategy.reduce(…)` stands for what it reduces."""
    return _given_back(facts, value, (), MOST_CALLS)


def _given_back(facts: SourceFacts, value: Value | None, owners: tuple[Value, ...], deepest: int) -> Iterator[Value]:
    """Like `given_back`; `owners` are the objects that a parameter's method may belong to, `deepest` how many functions
    are still looked into."""
    seen = set[int]()
    waiting = [(option, owners, deepest) for option in options(value)]
    for option, owners, left in waiting:
        if id(option) in seen:
            continue
        seen.add(id(option))
        inside = list(_inside(facts, option, owners, left)) if left else []
        own = options(option.receiver) if isinstance(option, Call) and option.receiver else owners
        waiting += [(part, own, left - 1) for returned in inside for part in options(returned)]
        if not inside:
            yield option


def _inside(facts: SourceFacts, value: Value, owners: tuple[Value, ...], left: int) -> Iterator[Value]:
    if isinstance(value, Item):
        for whole in _given_back(facts, value.of, owners, left - 1):
            yield from _items(whole, value.index)
    elif isinstance(value, Parameter) and owners:
        yield from _kept(facts, value, owners)
    elif isinstance(value, Call) and (reduced := _reduced(value)) is not None:
        yield reduced
    elif isinstance(value, Call) and (function := _not_followed(value)) is not None:
        # Where it was called with known arguments, these may not be those of this call.
        alone = (returned for returned in facts.returns_of(function) if not returned.context.callers)
        yield from (returned.value for returned in alone)


def _kept(facts: SourceFacts, parameter: Parameter, owners: tuple[Value, ...]) -> Iterator[Value]:
    """What a method of one of these objects is given for a parameter, by the program or by another method of it."""
    for call in facts.method_calls(parameter.function.name) if parameter.function and parameter.function.owner else ():
        is_called = isinstance(call.callee, Defined) and call.callee.of is parameter.function
        receivers = options(call.receiver)
        is_own = any(isinstance(receiver, Instance) or receiver is owner for receiver in receivers for owner in owners)
        given = call.argument(parameter.index - 1, parameter.name) if is_called and is_own else None
        if given is not None:
            yield given


def _items(whole: Value, index: Value | None) -> Iterator[Value]:
    """One item of a list or tuple; each of them where a loop goes over it."""
    if not isinstance(whole, Collection):
        return
    if index is None:
        yield from whole.items
    elif (item := whole.entry(known(index))) is not None:
        yield item


def _reduced(call: Call) -> Value | None:
    """The value that `strategy.reduce(…)` reduces over the replicas."""
    operation = call.argument(0, "reduce_op") if call.method == "reduce" and call.receiver is not None else None
    is_reduction = is_api(operation, *REDUCTIONS) or known(operation) in ("MEAN", "SUM", "mean", "sum")
    return call.argument(1, "value") if is_reduction else None


def _not_followed(call: Call) -> FunctionFacts | None:
    """The function that a call, or `strategy.run`, calls."""
    callee = call.argument(0, "fn") if call.method == "run" and not isinstance(call.callee, Defined) else call.callee
    if call.result is not None or not isinstance(callee, Defined) or not isinstance(callee.of, FunctionFacts):
        return None
    return callee.of

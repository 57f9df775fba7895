"""An optimizer that is wrapped only under `if cfg.fp16:`, or in each round of a loop, and used afterwards as if it were
never wrapped."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mpdoctor.program.context import Branch
from mpdoctor.program.events import Call, Event
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import MISSING, Api, Attribute, Earlier, Known, Value, certainly_known, options
from mpdoctor.semantics.source.layers.model_layers import half_policy_calls, policies_shown
from mpdoctor.semantics.source.optimizers.wrappers import inner_argument, wrapped
from mpdoctor.semantics.source.programs.branches import have_the_same_answer


def wrapped_on_condition(facts: SourceFacts, value: Value, event: Event) -> tuple[Value, ...]:
    """The optimizers inside, where a value is one of two: a bare optimizer, or the same in a wrapper that an `if` puts
    around it; and what uses it there uses both, or the wrapped one alone."""
    choices = options(value)
    if choices and all(isinstance(choice, Attribute) and choice.name == "optimizer" for choice in choices):
        return _wrapped_under_a_policy_on_condition(facts, value, event)
    wrappers = [choice for choice in choices if isinstance(choice, Call) and wrapped(facts, choice, event)]
    if len(wrappers) != 1 or len(choices) < 2 or event.context.guarded or wrappers[0].context.guarded:
        return ()
    inside = options(inner_argument(wrappers[0]))
    bare = [choice for choice in choices if choice is not wrappers[0]]
    if not all(any(choice is inner for inner in inside) for choice in bare):
        return ()
    return inside if _may_have_happened(wrappers[0], event) else ()


def _wrapped_under_a_policy_on_condition(facts: SourceFacts, value: Value, event: Event) -> tuple[Value, ...]:
    """The optimizers of a model that compile() wraps where an `if` has set the policy, `model.optimizer`."""
    settings = [
        call
        for call in half_policy_calls(facts)
        if "mixed_float16" in policies_shown(facts, call)
        and not call.context.guarded
        and call.order < event.order
        and call.context.run in (0, event.context.run)
    ]
    if event.context.guarded or not any(_may_have_happened(setting, event) for setting in settings):
        return ()
    return wrapped(facts, value, event, certain=False)


def _may_have_happened(before: Event, event: Event) -> bool:
    """Whether `before`, which stands behind an `if`, may have happened where `event` happens, around which no test asks
    about that."""
    around = {branch.statement for branch in event.context.branches}
    arms = [branch for branch in before.context.branches if branch.statement not in around]
    of_both = {(branch.statement, branch.taken) for branch in before.context.branches}
    asked = [branch for branch in event.context.branches if (branch.statement, branch.taken) not in of_both]
    return bool(arms) and all(_may_be_taken(arm) and _is_compatible(arm, asked) for arm in arms)


def wrapped_in_the_round_before(value: Value, wrapper: Call) -> bool:
    """Whether a wrapper in a loop is put around what it has made itself in the round before: every round that
    another one follows has made the value there, and no `if` in the loop stands around it."""
    return any(
        bool(carried.handed_on)
        and len(wrapper.context.branches) <= carried.branches
        and all(option is wrapper for end in carried.handed_on for option in options(end))
        for carried in options(value)
        if isinstance(carried, Earlier)
    )


def _may_be_taken(arm: Branch) -> bool:
    """Whether an arm's test asks for something, and may come out so."""
    certain = certainly_known(arm.test)
    return (certain is MISSING or bool(certain) is arm.taken) and any(True for _ in _subjects(arm.test))


def _is_compatible(arm: Branch, asked: Iterable[Branch]) -> bool:
    """Whether each of these `if`s that is about the same things as an arm certainly comes out as it does: an `else` of
    it, and `if not mixed:`, use the bare optimizer alone."""
    about = set(_subjects(arm.test))
    return all(about.isdisjoint(_subjects(branch.test)) or have_the_same_answer(arm, branch) for branch in asked)


def _subjects(test: Value) -> Iterator[str]:
    """What a test is about, by name; a constant that a class or an object keeps is one value for all who ask. Of an
    argument of the command line the name alone: its parser makes the others, too."""
    waiting, seen = [test], {id(test)}
    for part in waiting:
        if isinstance(part, Known):
            yield f"constant {id(part)}"
        if isinstance(part, (Attribute, Parameter)) or (isinstance(part, Api) and part.root != "builtins"):
            yield part.name
        inside = () if _is_of_command_line(part) else part.parts
        waiting += [inner for inner in inside if id(inner) not in seen]
        seen.update(map(id, inside))


def _is_of_command_line(value: Value) -> bool:
    made = value.of if isinstance(value, Attribute) else None
    return isinstance(made, Call) and made.method == "parse_args"

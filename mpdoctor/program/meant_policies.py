"""The policies of mixed precision that a program is meant for, where it sets one that comes from outside of its text:
those that it asks for, and mixed_float16 where it scales the loss whatever the policy is."""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import MIXED
from mpdoctor.program.call_index import CallIndex
from mpdoctor.program.context import Branch
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.policy_settings import makes_policy, policy_given
from mpdoctor.program.user_definitions import Parameter
from mpdoctor.program.values import Attribute, Collection, Item, Value, known, options, walk

WRAPPER = "keras.mixed_precision.LossScaleOptimizer"
_EQUAL, _UNEQUAL = ("==", "is", "in"), ("!=", "is not", "not in")
_BUILTINS = "builtins."


def policies_meant(setting: Call, calls: CallIndex) -> tuple[str, ...]:
    """The policies of mixed precision that the program shows to be meant by a call that sets one which it does not
    name; () where it shows none."""
    given = policy_given(setting)
    name = given.argument(0, "name") if isinstance(given, Call) and makes_policy(given) else given
    if not setting.context.reached or not _comes_from_outside(name):
        return ()
    if any(map(_is_always_made, calls.by_names((WRAPPER,)))):
        return ("mixed_float16",)
    asked = {id(branch): branch for call in calls.all if _does_something(call) for branch in call.context.branches}
    return tuple(dict.fromkeys(found for branch in asked.values() for found in _asked_for(branch, name)))


def _comes_from_outside(name: Value | None) -> bool:
    """Whether it is one setting, `config["policy"]` or `config.policy`, that no caller hands over."""
    return isinstance(name, (Item, Attribute)) and not any(isinstance(part, Parameter) for part in walk(name))


def _is_always_made(wrapper: Call) -> bool:
    context = wrapper.context
    return context.reached and not context.guarded and all(branch.only for branch in context.branches)


def _does_something(call: Call) -> bool:
    """Whether it is no more than telling, or the making of an exception."""
    return bool(call.context.branches) and not getattr(call.callee, "name", "").startswith(_BUILTINS)


def _asked_for(branch: Branch, setting: Value | None) -> Iterator[str]:
    """The policies of mixed precision that a setting may be in an arm of an `if` that asks for them."""
    for test in (branch.test, *branch.parts):
        if isinstance(test, Operation) and len(test.operands) == 2:
            yield from _compared_with(test, branch.taken, setting)
        elif branch.taken and isinstance(test, Call) and _asks_for_its_beginning(test, setting):
            yield from _beginning_with(known(test.argument(0)))


def _asks_for_its_beginning(test: Call, setting: Value | None) -> bool:
    return test.method == "startswith" and _is_same_setting(test.receiver, setting)


def _compared_with(test: Operation, taken: bool, setting: Value | None) -> Iterator[str]:
    asked, other = test.operands
    if test.operator not in (_EQUAL if taken else _UNEQUAL):
        return
    if _is_same_setting(other, setting):
        asked, other = other, asked
    if _is_same_setting(asked, setting):
        held = other.items if isinstance(other, Collection) else (other,)
        yield from (name for name in MIXED for item in held if known(item) == name)


def _beginning_with(text: object) -> tuple[str, ...]:
    return tuple(name for name in MIXED if isinstance(text, str) and text and name.startswith(text))


def _is_same_setting(one: Value | None, other: Value | None) -> bool:
    """Whether both read the same key of the same settings."""
    if one is None or other is None or one is other:
        return one is other and one is not None
    if isinstance(one, Attribute) and isinstance(other, Attribute):
        return one.name == other.name and _is_same_setting(one.of, other.of)
    if isinstance(one, Item) and isinstance(other, Item):
        key = known(one.index)
        return isinstance(key, str) and key == known(other.index) and _is_same_setting(one.of, other.of)
    return any(_is_same_setting(option, other) for option in options(one) if option is not one)

"""Attributes that a program assigns (`object.name = value`), remembered for the objects of its own classes."""

from __future__ import annotations

from mpdoctor.program.command_line import parsing_call
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.values import Known, Value, options
from mpdoctor.source.interpreter.attributes import attribute_of
from mpdoctor.source.interpreter.settings.trees import is_empty_tree
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Draft, Written
from mpdoctor.source.joining import joined
from mpdoctor.source.syntax_nodes import SETTING_UP


def store_attribute(state: State, of: Value, name: str, value: Value) -> None:
    """Remember `of.name = value` for the objects of the user's own classes.

    A straight line replaces what was there, in __init__ and build or in any method that the program is seen to call of
    this object; elsewhere both stay possible. A None is only a placeholder ("not built yet") for whatever comes after
    it."""
    choices = options(of)
    function = state.context.function
    is_setting_up = function is not None and function.name in SETTING_UP
    is_straight = len(choices) == 1 and not state.context.branches and not state.context.loops
    for choice in choices:
        _store_setting(state, choice, name, value, is_straight)
        own = class_of(choice)
        if own is None:
            continue
        state.walk.set_up.add(id(own))
        if isinstance(choice, Call):
            attributes = _attributes_of(state, choice)
            replaces = is_straight and (is_setting_up or state.context.reached)
        else:
            attributes = own.attributes
            replaces = is_straight and is_setting_up and id(own) not in state.walk.instantiated
        if replaces:
            state.walk.written.pop((id(attributes), name), None)
        now = value if replaces else _joined_with_others(state, attributes, name, value, len(choices) == 1)
        state.walk.side_effects.set(attributes, name, now)
        if isinstance(choice, Call):
            _store_for_class(state, own.attributes, (id(attributes), name), value, replaces)


def _store_for_class(state: State, held: dict[str, Value], key: tuple[int, str], value: Value, replaces: bool) -> None:
    """Add the value to those that objects of a class hold. What one function gave this object first and then put
    something else in the place of is none of them: `self.x = tf.range(n)`, `self.x = tf.reshape(self.x, …)`. `key`: the
    object's attributes, by their id, and the name."""
    others = held.get(key[1])
    draft = state.walk.drafts.get(key)
    if replaces and draft is not None and draft.frame is state.frame and draft.value is others:
        others = draft.others
    together = _old_or_new(others, value)
    state.walk.drafts[key] = Draft(state.frame, others, together)
    state.walk.side_effects.set(held, key[1], together)


def _store_setting(state: State, of: Value, name: str, value: Value, is_straight: bool) -> None:
    """Remember an attribute of a tree of settings, or of what argparse gives."""
    if isinstance(of, Call) and is_empty_tree(of):
        held = _attributes_of(state, of)
        state.walk.side_effects.set(held, name, value if is_straight else _old_or_new(held.get(name), value))
    if (parsed := parsing_call(of)) is not None:
        before = None if is_straight else attribute_of(state, of, name, value.location)
        state.walk.side_effects.set(_attributes_of(state, parsed), name, _old_or_new(before, value))


def _joined_with_others(state: State, held: dict[str, Value], name: str, value: Value, is_certain: bool) -> Value:
    """The value, and those that an attribute has from other functions; of what the function in hand gave it before on a
    straight line, nobody else sees anything."""
    before, written = held.get(name), state.walk.written.get((id(held), name))
    entered = state.frame.entered
    is_straight = state.context.branches == entered.branches and state.context.loops == entered.loops
    if not is_straight or not is_certain:
        state.walk.written.pop((id(held), name), None)
        return _old_or_new(before, value)
    if written is not None and written.frame is state.frame:
        before = written.before
    state.walk.written[id(held), name] = Written(state.frame, before, value)
    return _old_or_new(before, value)


def _attributes_of(state: State, instance: Call) -> dict[str, Value]:
    if id(instance) not in state.attributes:
        state.attributes[id(instance)] = state.walk.side_effects.created({})
    return state.attributes[id(instance)]


def _old_or_new(old: Value | None, new: Value) -> Value:
    if old is None or (isinstance(old, Known) and old.value is None):
        return new
    if isinstance(new, Known) and new.value is None:
        return old
    return joined((old, new))

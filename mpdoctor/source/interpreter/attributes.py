"""Attributes (`object.name`) read and assigned: of libraries, modules and the user's own classes."""

from __future__ import annotations

import ast
from dataclasses import field

from mpdoctor.facts.frozen import dataclass
from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Instance
from mpdoctor.program.values import Api, Attribute, Collection, Either, Item, Known, Unknown, Value, options
from mpdoctor.source.interpreter.call_inlining import inline_call
from mpdoctor.source.interpreter.counted_attributes import first_or_later
from mpdoctor.source.interpreter.dispatch import evaluate
from mpdoctor.source.interpreter.imports import name_in_module
from mpdoctor.source.interpreter.name_lookup import find, library_name
from mpdoctor.source.interpreter.settings.command_line import argument_written, default_of_argument, default_of_flag
from mpdoctor.source.interpreter.settings.data_classes import is_enumeration, is_enumeration_member
from mpdoctor.source.interpreter.settings.own_dicts import item_as_attribute, name_of_item
from mpdoctor.source.interpreter.settings.trees import is_empty_tree, kept_by_name, setting_of_tree
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_read, record_use
from mpdoctor.source.interpreter.state.scopes import Module
from mpdoctor.source.joining import joined, with_default, without_none


@dataclass(frozen=True, eq=False, repr=False)
class Super(Call):
    """`super()`: looks names up behind one class of an instance's own."""

    instance: Value = field(default_factory=Unknown)
    behind: ClassFacts = field(default_factory=ClassFacts)


def evaluate_attribute(state: State, node: ast.Attribute, is_called: bool = False) -> Value:
    """The value of `of.name`; records that it is read. `is_called`: it is the function of a call, which is recorded
    by itself."""
    dotted, inner = [node], node.value
    while isinstance(inner, ast.Attribute):
        dotted.append(inner)
        inner = inner.value
    if not isinstance(inner, ast.Name):
        value = evaluate(state, inner)
    else:  # the start of a dotted name is a use of its own only where nothing of a library follows
        value = find(state, inner.id, inner)
        if isinstance(value, Api):
            return _library_attribute(state, value, dotted)
    for read in reversed(dotted):
        value = _read_attribute(state, value, read, is_called and read is node)
    if not is_called and isinstance(value, Attribute) and isinstance(value.of, Collection):
        state.walk.methods_by_name[id(value)] = (value, node.value)
    otherwise = state.frame.otherwise
    is_known = not otherwise or not isinstance(value, Known) or ast.unparse(node) not in otherwise
    return value if is_known else Unknown(value.location)


def _library_attribute(state: State, root: Api, dotted: list[ast.Attribute]) -> Value:
    location = state.place(dotted[0])
    value = library_name(".".join([root.spelled, *[read.attr for read in reversed(dotted)]]), location)
    if isinstance(value, Api):
        record_use(state, value, location, dotted=len(dotted))
    return _or_default_of_flag(state, value)


def _or_default_of_flag(state: State, value: Value) -> Value:
    default = default_of_flag(state, value) if state.flags else None
    return value if default is None else with_default(default, value)


def _read_attribute(state: State, of: Value, node: ast.Attribute, is_called: bool) -> Value:
    location = state.place(node)
    if not isinstance(of, (Either, Api, Module)):
        value = attribute_of(state, of, node.attr, location, is_called)
        record_read(state, of, node.attr, location, state.module.source.attribute_name(node), is_called)
        return value
    values, others = [], []
    of = without_none(of)
    for choice in options(of):
        value = attribute_of(state, choice, node.attr, location, is_called)
        values.append(value)
        if isinstance(choice, Api) and isinstance(value, Api):
            record_use(state, value, location, dotted=1)
        elif not isinstance(choice, Module):
            others.append(choice)
    if others:
        read_from = of if len(others) == len(values) else joined(others)
        record_read(state, read_from, node.attr, location, state.module.source.attribute_name(node), is_called)
    return joined(values)


def attribute_of(state: State, of: Value, name: str, location: Location, is_called: bool = True) -> Value:
    """The value of `of.name`; an `Attribute` where nothing better is known. What is called `items` in a namespace of
    settings is a setting, unless it `is_called`."""
    if isinstance(of, Api):
        return _or_default_of_flag(state, library_name(f"{of.spelled}.{name}", location))
    if isinstance(of, Module):
        return name_in_module(state, of, name, location)
    value: Value | None = None
    if isinstance(of, (Call, Instance, Item)):
        value = _attribute_of_object(state, of, name, location)
    elif isinstance(of, Collection):
        is_method = is_called and hasattr(dict, name)
        value = None if is_method else of.field(name)
    elif isinstance(of, Defined):
        if name == "__name__":
            return Known(location, of.of.name)
        value = _attribute_of_class(state, of.of, of, name, location, of) if isinstance(of.of, ClassFacts) else None
    elif name == "value" and is_enumeration_member(of):
        return of
    elif of in state.members:
        own = state.members[of]
        value = _attribute_of_class(state, own, of, name, location, Defined(location, own))
    return value or Attribute(location, of, name)


def _attribute_of_object(state: State, of: Value, name: str, location: Location) -> Value | None:
    """An attribute of an instance of the user's own class, or of the result of a library's call."""
    own = class_of(of)
    if isinstance(of, Super):
        value = _attribute_behind(state, of, name, location)
    elif own is not None:
        value = _attribute_of_instance(state, own, of, name, location)
    elif is_empty_tree(of):
        value = setting_of_tree(state, of, name, location)
    else:
        value = kept_by_name(of, name) or argument_written(state, of, name)
    default = default_of_argument(state, of, name) if value is None else None
    if default is None or isinstance(options(default)[0], Defined):  # each command has a function, no other
        return value or default
    return with_default(default, Attribute(location, of, name))


def _attribute_of_instance(state: State, own: ClassFacts, of: Value, name: str, location: Location) -> Value | None:
    value = _written_here(state, own, of, name)
    if value is None:
        held = state.attributes.get(id(of), {}).get(name)
        value = held or _attribute_of_class(state, own, of, name, location, Defined(location, own))
        if isinstance(value, Known) and name in state.module.counted_attributes:
            value = first_or_later(state, value)
    return value or item_as_attribute(state, own, of, name) or _attribute_asked_for(state, own, of, name, location)


def _attribute_of_class(
    state: State, own: ClassFacts, of: Value, name: str, location: Location, itself: Value
) -> Value | None:
    if name == "__class__":
        return itself
    for cls in own.lineage():
        if name in cls.attributes:
            return cls.attributes[name]
        if name in cls.methods:
            is_instance = not isinstance(of, Defined)
            return _bound_method(state, cls.methods[name], of if is_instance else None, itself, location)
    metaclass = state.metaclasses.get(id(own)) if isinstance(of, Defined) and state.metaclasses else None
    method = None if metaclass is None else metaclass.find_method(name)
    if metaclass is None or method is None:
        return None if metaclass is None else metaclass.attributes.get(name)
    return _bound_method(state, method, of, of, location)


def _attribute_asked_for(state: State, own: ClassFacts, of: Value, name: str, location: Location) -> Value | None:
    """What the class' own `__getattr__` gives for a name that nothing else has."""
    is_asked = not name.startswith("__")
    return inlined_method(state, own, "__getattr__", (of, Known(location, name)), location) if is_asked else None


def inlined_method(
    state: State, own: ClassFacts, name: str, args: tuple[Value, ...], location: Location
) -> Value | None:
    """The result of a method that Python itself calls; None where the class has none, or the result is not known."""
    method = own.find_method(name)
    closure = state.closures.get(id(method)) if method is not None else None
    return None if closure is None else inline_call(state, closure, args, (), is_open=False, location=location)


def _attribute_behind(state: State, of: Super, name: str, location: Location) -> Value | None:
    for cls in list(of.behind.lineage())[1:]:
        if name in cls.methods:
            return _bound_method(state, cls.methods[name], of.instance, Defined(location, cls), location)
    return None


def _bound_method(
    state: State, facts: FunctionFacts, bound: Value | None, itself: Value, location: Location
) -> Value | None:
    closure = state.closures.get(id(facts))
    if closure is None or closure.is_static:
        return Defined(location, facts)
    if closure.is_classmethod:
        return Defined(location, facts, itself)
    if closure.is_property and bound is not None:
        return inline_call(state, closure, (bound,), (), is_open=False, location=location)
    return Defined(location, facts, bound)


def item_of_object(state: State, of: Value, index: Value, location: Location) -> Value | None:
    """What was kept there, what the class' own `__getitem__` gives, or an enumeration's member of that name; None where
    nothing is known of it."""
    if isinstance(of, Defined) and isinstance(of.of, ClassFacts) and isinstance(index, Known):
        return of.of.attributes.get(str(index.value)) if is_enumeration(of.of) else None
    own = class_of(of)
    if own is None:
        return None
    return inlined_method(state, own, "__getitem__", (of, index), location) or _item_kept(state, of, index)


def _item_kept(state: State, of: Value, index: Value) -> Value | None:
    names = [name_of_item(of, choice) for choice in options(index)]
    held = state.attributes.get(id(of), {})
    items = [held.get(name) for name in names if name is not None]
    return joined(items) if items and None not in items else None


def _written_here(state: State, own: ClassFacts, of: Value, name: str) -> Value | None:
    """What the function in hand wrote last, on a straight line, or the one that called it, outside a loop."""
    held = state.attributes.get(id(of), {}) if isinstance(of, Call) else own.attributes
    written = state.walk.written.get((id(held), name))
    if written is None:
        return None
    if written.frame is state.frame:
        may_be_counted_on = (
            state.context.loops > written.frame.entered.loops and name in state.module.counted_attributes
        )
        return None if may_be_counted_on else written.value
    is_callers = state.context.loops == written.frame.entered.loops and state.frame.is_called_by(written.frame)
    return written.value if is_callers else None

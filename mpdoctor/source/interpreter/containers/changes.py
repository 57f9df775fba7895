"""Lists and dicts that the program changes in place: the new value stands wherever the program keeps the old one."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts, Defined, Instance
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Unknown, Value, known, options
from mpdoctor.source.interpreter.attributes import attribute_of
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Keywords, Scope
from mpdoctor.source.joining import joined, tells_of_all, without_none
from mpdoctor.source.syntax_nodes import nodes_in

_MOST_ELEMENTS = 12
_MOST_UNKNOWN_KEYS = 20  # values that a dict is given under keys that are not known
_MOST_ENTRIES = 500


def put_back(state: State, holder: ast.expr, old: Value, new: Value) -> None:
    """Put what a container has become in its place: under a name, in an attribute or in another container, among the
    others that may stand there."""
    state.walk.changed[id(new)] = new
    if isinstance(holder, ast.Name):
        rebind(state, holder.id, _with_replaced_choice(state.scope.find(holder.id), old, new))
    elif isinstance(holder, ast.Attribute):
        for choice in options(kept(state, holder.value)):
            if isinstance(choice, Collection):
                put_back(state, holder.value, choice, with_item(state, choice, Known(new.location, holder.attr), new))
            else:
                _replace_attribute(state, choice, holder.attr, old, new)
    elif (entry := _written_entry(holder)) is not None:
        container, index = entry[0], kept(state, entry[1])
        for choice in options(kept(state, container)):
            if isinstance(choice, Collection) and index is not None:
                put_back(state, container, choice, with_item(state, choice, index, new))


def put_back_everywhere(state: State, holder: ast.expr, old: Collection, new: Collection) -> None:
    """`put_back`, and also wherever a function and those around it hold the container under another name, or in an
    attribute of their objects: `self.settings = settings`, and then `settings["dtype"] = …`."""
    put_back(state, holder, old, new)
    scope: Scope | None = state.scope
    while scope is not None:
        for name in [name for name, value in scope.names.items() if value is old]:
            if scope is state.scope or not state.context.reached:
                state.bind(name, new)
            else:
                state.walk.side_effects.set(scope.names, name, new)
        for held in [state.attributes.get(id(value), {}) for value in scope.names.values() if class_of(value)]:
            for attribute in [attribute for attribute, value in held.items() if value is old]:
                state.walk.side_effects.set(held, attribute, new)
        scope = scope.parent


def _written_entry(holder: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """The container and the index or key of `container[index]` and `container.setdefault(key, [])`."""
    if isinstance(holder, ast.Subscript):
        return holder.value, holder.slice
    if isinstance(holder, ast.Call) and isinstance(holder.func, ast.Attribute) and holder.func.attr == "setdefault":
        return (holder.func.value, holder.args[0]) if holder.args else None
    return None


def kept(state: State, node: ast.expr) -> Value | None:
    """What stands there, of an expression that has been evaluated before."""
    if isinstance(node, ast.Constant):
        return Known(state.place(node), node.value)
    if isinstance(node, ast.Name):
        return state.scope.find(node.id)
    if isinstance(node, ast.Attribute):
        of = kept(state, node.value)
        return joined(attribute_of(state, choice, node.attr, state.place(node)) for choice in options(of))
    entry = _written_entry(node)
    if entry is not None:
        of, index = kept(state, entry[0]), known(kept(state, entry[1]))
        return of.entry(index) if isinstance(of, Collection) and isinstance(index, (str, int)) else None
    return None


def rebind(state: State, name: str, value: Value) -> None:
    """Bind the name to another value in the scope that holds it: the function's own, or one around it."""
    holder = state.scope
    while name not in holder.names and name not in holder.redirected and holder.parent is not None:
        holder = holder.parent
    if holder is state.scope or name not in holder.names or not state.context.reached:
        state.bind(name, value)
    else:
        state.walk.side_effects.set(holder.names, name, value)


def _with_replaced_choice(value: Value | None, old: Value, new: Value) -> Value:
    return joined(new if choice is old else choice for choice in options(value)) if old in options(value) else new


def _replace_attribute(state: State, holder: Value, name: str, old: Value, new: Value) -> None:
    of_object, of_class = state.attributes.get(id(holder), {}), _attributes_of_class(holder, name) or {}
    if name not in of_object and old not in options(of_class.get(name)):  # a property may read it
        behind = next((other for other, value in of_object.items() if value is old), None)
        name, of_class = (name, of_class) if behind is None else (behind, {})
    for held in (of_object, of_class):
        if name in held:
            state.walk.side_effects.set(held, name, _with_replaced_choice(held[name], old, new))
            written = state.walk.written.get((id(held), name))
            if written is not None:
                written.value = _with_replaced_choice(written.value, old, new)
    if isinstance(holder, Call):
        _replace_in_class(state, holder, name, old, new)


def _replace_in_class(state: State, made: Call, name: str, old: Value, new: Value) -> None:
    """Also where methods that Keras calls find it, which are followed with what is known of any object of the class."""
    own = class_of(made)
    known_of_class = own.attributes.get(name) if own is not None else None
    if own is not None and known_of_class is not None and old in options(known_of_class):
        state.walk.side_effects.set(own.attributes, name, _with_replaced_choice(known_of_class, old, new))


def keep_item(state: State, of: Value, index: Value, value: Value) -> None:
    """Remember `outputs["loss"] = …`, of what the call of a library or of an object that is not known gives. Columns of
    a table are no such items: what text they hold is asked of the lines that write them."""
    choices, key = options(of), known(index)
    for choice in choices if isinstance(key, str) else ():
        made = choice
        while isinstance(made, Item):
            made = made.of
        if not isinstance(made, Call) or class_of(made) is not None or _is_table(made):
            continue
        if id(choice) not in state.attributes:
            state.walk.changed[id(choice)] = choice
            state.attributes[id(choice)] = state.walk.side_effects.created({})
        held, context, name = state.attributes[id(choice)], made.context, f"[{key!r}]"
        is_straight = (context.branches, context.loops) == (state.context.branches, state.context.loops)
        before = None if is_straight and len(choices) == 1 else held.get(name, Item(index.location, choice, index))
        state.walk.side_effects.set(held, name, joined((*options(before), value)))


def _is_table(made: Call) -> bool:
    """Whether a function of pandas gives it, or a method of what one gives."""
    while isinstance(made.callee, Attribute) and isinstance(made.callee.of, Call):
        made = made.callee.of
    return isinstance(made.callee, Api) and made.callee.root == "pandas"


def kept_item(state: State, of: Value, index: Value) -> Value | None:
    """What the program has put there, as `keep_item` remembers it; None where it has put nothing there."""
    held = state.attributes.get(id(of)) if isinstance(of, (Item, Call)) else None
    return held.get(f"[{index.value!r}]") if held and isinstance(index, Known) else None


def _attributes_of_class(holder: Value, name: str) -> dict[str, Value] | None:
    """The attributes of `self`'s class, or of the class itself: those of the nearest class in its lineage that has this
    attribute."""
    own = holder.of if isinstance(holder, (Defined, Instance)) else None
    if not isinstance(own, ClassFacts):
        return None
    return next((cls.attributes for cls in own.lineage() if name in cls.attributes), None)


def with_item(state: State, of: Collection, index: Value, value: Value) -> Collection:
    """The container after `of[index] = value`."""
    if of.kind == "dict" and isinstance(index, Known) and len(of.items) < _MOST_ENTRIES:
        is_open = of.open or bool(state.context.loops)
        kept = [place for place, key in enumerate(of.keys) if is_open or known(key) != index.value]
        items, keys = tuple(of.items[i] for i in kept), tuple(of.keys[i] for i in kept)
        return of.with_entries((*keys, index), (*items, value), is_open)
    if of.kind == "dict" and len(of.items) < _MOST_UNKNOWN_KEYS:  # any of these is under any key
        items = (*of.items, value)
        return of.with_entries((Unknown(of.location),) * len(items), items, is_open=True)
    return _with_element(state, of, index, value)


def _with_element(state: State, of: Collection, index: Value, value: Value) -> Collection:
    """A list with another element at an index; where that is not known, any element may be this one or as before. What
    stands there before the program fills it, a None, is never taken."""
    place = known(index)
    if isinstance(place, int) and not state.context.loops and of.kind == "list":
        if not of.open and -len(of.items) <= place < len(of.items):
            place %= len(of.items)
            return Collection(of.location, of.kind, (*of.items[:place], value, *of.items[place + 1 :]))
        if of.open and place == -1:
            before = of.items[:-1] if of.ending else of.items
            return Collection(of.location, of.kind, (*before, value), open=True, ending=max(of.ending, 1))
    if of.kind != "list" or len(of.items) > _MOST_ELEMENTS:
        return Collection(of.location, of.kind, (), open=True)
    element = without_none(joined((*of.items, value)))
    return Collection(of.location, "list", (element,), open=True, uniform=tells_of_all(value))


def put_back_arguments(
    state: State, call: ast.Call, closure: Closure, args: tuple[Value, ...], keywords: Keywords, after: dict[str, Value]
) -> None:
    """Give the caller's lists and dicts the contents that the called function has given them. `args`: with the object
    of a method; `after`: the function's own names when it has run."""
    for parameter, written, given in _handed_over(call, closure, args, keywords):
        held = after.get(parameter)
        if isinstance(given, Collection) and held is not None and held is not given:
            choices = [choice for choice in options(held) if choice is not given]
            if all(id(choice) in state.walk.changed for choice in choices) and not _is_assigned(closure, parameter):
                put_back(state, written, given, held)


def _handed_over(
    call: ast.Call, closure: Closure, args: tuple[Value, ...], keywords: Keywords
) -> Iterator[tuple[str, ast.expr, Value | None]]:
    """(parameter, the expression for it, its value) of a call that unpacks nothing by `*`."""
    parameters = [*closure.node.args.posonlyargs, *closure.node.args.args]
    bound, named = len(args) - len(call.args), dict(keywords)
    if bound >= 0 and not any(isinstance(written, ast.Starred) for written in call.args):
        for parameter, written, given in zip(parameters[bound:], call.args, args[bound:], strict=False):
            yield parameter.arg, written, given
    for keyword in call.keywords:
        if keyword.arg is not None:
            yield keyword.arg, keyword.value, named.get(keyword.arg)


def _is_assigned(closure: Closure, name: str) -> bool:
    """Whether the function gives the name another object, perhaps a copy."""
    body = closure.node.body
    return isinstance(body, list) and any(
        isinstance(inner, ast.Name) and inner.id == name and isinstance(inner.ctx, ast.Store)
        for inner in nodes_in(body)
    )

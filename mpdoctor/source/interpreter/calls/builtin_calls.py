"""Calls of Python's own functions and methods: super, getattr, dict, list.append, dict.get …"""

from __future__ import annotations

import ast

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Instance
from mpdoctor.program.values import MISSING, Api, Attribute, Collection, Known, Unknown, Value, known, options
from mpdoctor.source.constant_folding import constant_from_call, constant_from_method, constant_from_numbers
from mpdoctor.source.interpreter.assignments import remember_keyword
from mpdoctor.source.interpreter.attributes import Super, attribute_of, store_attribute
from mpdoctor.source.interpreter.calls.container_calls import dict_of, filtered, next_of, sequence_of, zipped
from mpdoctor.source.interpreter.containers import chained, contents_of, dictionary, item_of
from mpdoctor.source.interpreter.settings.command_line import arguments_as_dictionary, remember_argument
from mpdoctor.source.interpreter.settings.data_classes import as_dictionary, copy_with
from mpdoctor.source.interpreter.settings.keras_epsilon import EPSILON, epsilon_of_keras
from mpdoctor.source.interpreter.settings.own_dicts import keep_attributes, keep_items
from mpdoctor.source.interpreter.settings.trees import TREES, value_from_json
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_read, record_write
from mpdoctor.source.interpreter.state.scopes import Keywords
from mpdoctor.source.joining import joined, tells_of_all
from mpdoctor.source.names import api_from_name

_MUTATING = ("append", "extend", "insert", "add", "update", "pop", "remove", "clear", "setdefault")


def call_builtin(
    state: State, name: str, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
) -> Value | None:
    """What a function of Python itself gives; None for those that need no knowledge."""
    match name:
        case "builtins.super":
            return _call_super(state, args, location)
        case "builtins.getattr":
            return _call_getattr(state, args, is_open, location)
        case "builtins.setattr":
            return _call_setattr(state, args, location)
        case "builtins.staticmethod":
            return args[0] if len(args) == 1 else None
        case "builtins.dict":
            return dict_of(args, keywords, is_open, location)
        case "builtins.list" | "builtins.tuple":
            return None if is_open else sequence_of(name.partition(".")[2], args, location)
        case "builtins.zip":
            return None if is_open or keywords else zipped(args, location)
        case "builtins.filter":
            return filtered(args, location)
        case "builtins.next":
            return next_of(args, location)
        case "builtins.vars":
            return as_dictionary(state, name, args, location) or arguments_as_dictionary(state, args, location)
        case "builtins.sum" | "builtins.max" | "builtins.min":
            return None if is_open or keywords else _call_on_numbers(name, args, location)
    constant = constant_from_call(name, args)
    return None if constant is MISSING else Known(location, constant)


def call_library(
    state: State, name: str, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
) -> Value | None:
    """What a library's function gives that the interpreter follows itself: a tree of settings, a module by its name, a
    copy of a dataclass."""
    copied = None if is_open else copy_with(state, name, args, keywords, location)
    copied = copied or as_dictionary(state, name, args, location)
    if copied is not None:
        return copied
    if public_name(name) in EPSILON:
        return epsilon_of_keras(state, name, args, location)
    if name == "importlib.import_module" and len(args) == 1 and isinstance(known(args[0]), str):
        return api_from_name(known(args[0]), location)
    if name == "collections.OrderedDict":
        return dict_of(args, keywords, is_open, location)
    if name == "itertools.chain" and args and not is_open:
        return chained(location, args)
    if name == "json.loads" and args:
        return value_from_json(known(args[0]), location)
    return _tree_of_settings(args, keywords, location) if name in TREES and not is_open else None


def _tree_of_settings(args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """A dict, of what the call names or is given."""
    if not args and keywords:
        keys = tuple(Known(location, key) for key, _ in keywords)
        return Collection(location, "dict", tuple(value for _, value in keywords), keys)
    is_dict = len(args) == 1 and isinstance(args[0], Collection) and args[0].kind == "dict"
    return args[0] if is_dict and not keywords else None


def _call_getattr(state: State, args: tuple[Value, ...], is_open: bool, location: Location) -> Value | None:
    name = known(args[1]) if len(args) > 1 else MISSING
    if not isinstance(name, str):
        return None
    if len(args) == 2 and not is_open:  # with a default the program is prepared, and reads nothing
        record_read(state, args[0], name, location, location, False)
    found = [attribute_of(state, choice, name, location) for choice in options(args[0])]
    return joined((*found, *args[2:3]))


def _call_setattr(state: State, args: tuple[Value, ...], location: Location) -> Value | None:
    name = known(args[1]) if len(args) == 3 else MISSING
    if not isinstance(name, str):
        return None
    record_write(state, args[0], name, args[2], location, None, False)
    store_attribute(state, args[0], name, args[2])
    return Known(location, None)


def _call_on_numbers(name: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """`sum(sizes.values())`, `max(2, width)`"""
    given = contents_of(args[0]) if len(args) == 1 else Collection(location, "tuple", args)
    constant = constant_from_numbers(name, given)
    return None if constant is MISSING else Known(location, constant)


def _call_super(state: State, args: tuple[Value, ...], location: Location) -> Value | None:
    function = state.frame.function
    while function is not None and function.owner is None:
        function = function.enclosing
    if function is None or function.owner is None or not function.parameters:
        return None
    behind = args[0].of if args and isinstance(args[0], Defined) else function.owner
    instance = args[1] if len(args) > 1 else state.scope.find(function.parameters[0])
    if not isinstance(behind, ClassFacts) or instance is None:
        return None
    callee = Api(location, "builtins.super", "builtins", "builtins.super")
    return Super(location, callee, args, (), state.context, state.order, instance=instance, behind=behind)


def remember_base_arguments(state: State, callee: Value, keywords: Keywords, node: ast.Call) -> None:
    """`super().__init__(dtype=…)` where the class behind it is the user's own as well."""
    inside, called = state.frame.function, callee.of if isinstance(callee, Defined) else None
    if not isinstance(called, FunctionFacts) or inside is None or not called.name == inside.name == "__init__":
        return
    if called.owner is not None and inside.owner is not None and called.owner is not inside.owner:
        _remember_base_arguments_of(state, inside.owner, keywords, node)


def call_known_method(state: State, callee: Attribute, call: Call, node: ast.Call) -> Value | None:
    """Methods of lists and dicts that the program writes out, and super().__init__ of a library's
    class."""
    of = callee.of
    remember_argument(state, call)
    if callee.name == "setdefault" and len(call.args) == 2 and isinstance(node.func, ast.Attribute):
        remember_keyword(state, node.func.value, call.args[0], call.args[1])
    keep_attributes(state, of, call)
    if isinstance(of, Super) and callee.name == "__init__":
        keep_items(state, of.instance, call.args, call.keywords)
        _remember_base_arguments_of(state, of.behind, call.keywords, node)
        return None
    if isinstance(of, Known) and not call.open:
        constant = constant_from_method(of.value, callee.name, call.args, call.keywords)
        return None if constant is MISSING else Known(call.location, constant)
    if not isinstance(of, Collection):
        return None
    if callee.name in _MUTATING:
        _mutate(state, of, callee.name, call, node)
        return None
    return _read_from_dict(of, callee.name, call) if of.kind == "dict" else None


def _read_from_dict(of: Collection, method: str, call: Call) -> Value | None:
    """What `get`, `keys`, `values` and `items` of a dictionary give that is written out."""
    if method == "get" and call.args:
        got = [_got(of, key, call) for key in options(call.args[0])]
        return joined(got) if None not in got else None
    pairs = (Collection(call.location, "tuple", pair) for pair in zip(of.keys, of.items, strict=True))
    held = {"values": of.items, "keys": of.keys, "items": tuple(pairs)}.get(method)
    return None if held is None else Collection(call.location, "list", held, (), of.open, uniform=of.uniform)


def _got(of: Collection, key: Value, call: Call) -> Value | None:
    """What `get` gives for one of the values that its key may be. `names.get(name, name)` gives that value again only
    where it is no key."""
    found = item_of(of, key, call.location)
    default = call.argument(1) or Known(call.location, None)
    default = key if key in options(default) else default
    certain = isinstance(key, Known) and not of.open
    if isinstance(found, Unknown):
        return default if certain else None
    return found if certain else joined((found, default))


def _mutate(state: State, of: Collection, method: str, call: Call, node: ast.Call) -> None:
    """A list or dict that is changed in place becomes a new value under the same name, among the others that the name
    may stand for."""
    receiver = node.func.value if isinstance(node.func, ast.Attribute) else None
    new = _changed(of, method, call, is_certain=not state.context.loops)
    if len(new.items) > 500:
        new = Collection(of.location, of.kind, of.items, of.keys, True)
    if isinstance(receiver, ast.Name):
        state.bind(receiver.id, _with_replaced_choice(state.scope.find(receiver.id), of, new))
    elif isinstance(receiver, ast.Attribute):
        for choice in options(_holder_of(state, receiver)):
            _replace_attribute(state, choice, receiver.attr, of, new)


def _with_replaced_choice(value: Value | None, old: Value, new: Value) -> Value:
    return joined(new if choice is old else choice for choice in options(value)) if old in options(value) else new


def _changed(of: Collection, method: str, call: Call, is_certain: bool) -> Collection:
    added = call.args[:1]
    if method == "append" and added and of.kind == "list":
        if not is_certain and not of.items and not of.open:  # each element is made so, as by a comprehension
            return Collection(of.location, of.kind, added, (), True, uniform=tells_of_all(added[0]))
        return Collection(of.location, of.kind, (*of.items, *added), (), of.open or not is_certain)
    if method == "extend" and added and isinstance(added[0], Collection) and of.kind == "list":
        rest = added[0]
        return Collection(of.location, of.kind, (*of.items, *rest.items), (), of.open or rest.open or not is_certain)
    if method == "update" and of.kind == "dict" and is_certain and not of.uniform and not call.open:
        given = dict_of(call.args, call.keywords, False, call.location)
        return _updated(of, given if isinstance(given, Collection) else None)
    return Collection(of.location, of.kind, of.items, of.keys, True)


def _updated(of: Collection, given: Collection | None) -> Collection:
    if given is None:
        return Collection(of.location, of.kind, of.items, of.keys, True)
    return dictionary(of.location, (*of.keys, *given.keys), (*of.items, *given.items), of.open or given.open)


def _holder_of(state: State, node: ast.Attribute) -> Value:
    inner = node.value
    return (state.scope.find(inner.id) or Unknown()) if isinstance(inner, ast.Name) else Unknown()


def _replace_attribute(state: State, holder: Value, name: str, old: Value, new: Value) -> None:
    attributes = state.attributes.get(id(holder))
    if attributes is not None and name in attributes:
        state.walk.side_effects.set(attributes, name, _with_replaced_choice(attributes[name], old, new))
    if isinstance(holder, Instance) and name in holder.of.attributes:
        state.walk.side_effects.set(
            holder.of.attributes, name, _with_replaced_choice(holder.of.attributes[name], old, new)
        )


def _keys_written_out(node: ast.Call) -> set[str]:
    """Of `**{"dtype": "float32", **kwargs}`."""
    handed_on = [keyword.value for keyword in node.keywords if keyword.arg is None]
    keys = [key for value in handed_on if isinstance(value, ast.Dict) for key in value.keys]
    return {key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)}


def _remember_base_arguments_of(state: State, own: ClassFacts, keywords: Keywords, node: ast.Call) -> None:
    """Only what is written out, here or before (`kwargs["dtype"] = …`): what else `**kwargs` hands on differs from
    one instance to the next."""
    written = {keyword.arg for keyword in node.keywords} | _keys_written_out(node)
    handed_on = any(keyword.arg is None for keyword in node.keywords)
    own_keywords = state.frame.keywords_set if handed_on else {}
    for name, value in {**dict(keywords), **own_keywords}.items():
        if name in written or name in own_keywords:
            old = own.base_arguments.get(name)
            state.walk.side_effects.set(own.base_arguments, name, value if old is None else joined((old, value)))

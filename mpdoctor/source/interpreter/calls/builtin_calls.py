"""Calls of Python's own functions and methods: super, getattr, dict, str.lower …"""

from __future__ import annotations

import ast
from collections.abc import Callable

from mpdoctor.facts.location import Location
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.program.command_line import LOADING_SETTINGS, default_of_setting
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import MISSING, Api, Attribute, Collection, Known, Value, known, options
from mpdoctor.source.constant_folding import ASKING_OF_NUMBERS, constant_from_call, constant_from_numbers
from mpdoctor.source.constant_folding.texts import value_from_method
from mpdoctor.source.interpreter.assignments import remember_keyword
from mpdoctor.source.interpreter.attributes import Super, attribute_of
from mpdoctor.source.interpreter.call_inlining import inline_call
from mpdoctor.source.interpreter.calls.base_arguments import remember_base_arguments_of
from mpdoctor.source.interpreter.calls.entered_by_hand import enter_by_hand
from mpdoctor.source.interpreter.calls.metaclass_calls import class_from_base
from mpdoctor.source.interpreter.containers.calls import (
    added_up,
    copied,
    dict_of,
    filtered,
    in_order,
    mapping_of,
    next_of,
    one_of,
    queue_of,
    sequence_of,
    zipped,
)
from mpdoctor.source.interpreter.containers.elements import contents_of
from mpdoctor.source.interpreter.containers.literals import chained
from mpdoctor.source.interpreter.containers.methods import call_method_of_container
from mpdoctor.source.interpreter.settings.command_line import arguments_as_dictionary, remember_argument
from mpdoctor.source.interpreter.settings.data_classes import as_dictionary, copy_with
from mpdoctor.source.interpreter.settings.keras_epsilon import EPSILON, epsilon_of_keras
from mpdoctor.source.interpreter.settings.own_dicts import keep_attributes, keep_items
from mpdoctor.source.interpreter.settings.trees import NODES, TREES, value_from_json
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.recording import record_read, record_use, record_write
from mpdoctor.source.interpreter.state.scopes import Keywords
from mpdoctor.source.interpreter.stored_attributes import store_attribute
from mpdoctor.source.joining import joined
from mpdoctor.source.names import api_from_name

_ON_CONTAINERS: dict[str, Callable[[tuple[Value, ...], Keywords, Location], Value | None]] = {
    "builtins.list": lambda args, keywords, location: sequence_of("list", args, location),
    "builtins.tuple": lambda args, keywords, location: sequence_of("tuple", args, location),
    "builtins.zip": lambda args, keywords, location: None if keywords else zipped(args, location),
    "builtins.filter": lambda args, keywords, location: filtered(args, location),
    "builtins.sorted": in_order,
    "builtins.next": lambda args, keywords, location: next_of(args, location),
    "itertools.chain": lambda args, keywords, location: chained(location, args) if args else None,
    "collections.deque": queue_of,
    "collections.ChainMap": lambda args, keywords, location: mapping_of(args, location),
    "types.MappingProxyType": lambda args, keywords, location: mapping_of(args, location),
    "random.choice": lambda args, keywords, location: one_of(args, location),
    "copy.copy": lambda args, keywords, location: copied(args),
    "copy.deepcopy": lambda args, keywords, location: copied(args),
}


def call_builtin(
    state: State, name: str, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
) -> Value | None:
    """The result of a function of Python itself; None for functions that need no special treatment."""
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
        case "builtins.type" if len(args) == 1:
            own = class_of(args[0])
            return None if own is None else Defined(location, own)
        case "builtins.globals":
            return _call_globals(state, location)
        case "builtins.vars":
            return _call_vars(state, name, args, location)
        case "builtins.sum" | "builtins.max" | "builtins.min":
            return None if is_open or keywords else _call_on_numbers(name, args, location) or added_up(args, location)
    if name in _ON_CONTAINERS:
        return None if is_open else _ON_CONTAINERS[name](args, keywords, location)
    constant = constant_from_call(name, args)
    return None if constant is MISSING else Known(location, constant)


def _call_vars(state: State, name: str, args: tuple[Value, ...], location: Location) -> Value | None:
    if len(args) == 1 and isinstance(args[0], Collection):  # a tree of settings
        return args[0]
    return as_dictionary(state, name, args, location) or arguments_as_dictionary(state, args, location)


def _call_globals(state: State, location: Location) -> Value:
    names = state.module.scope.names
    keys = tuple(Known(location, name) for name in names)
    return Collection(location, "dict", tuple(names.values()), keys, open=True)


def call_library(
    state: State, name: str, args: tuple[Value, ...], keywords: Keywords, is_open: bool, location: Location
) -> Value | None:
    """The result of a library's function that the interpreter follows itself: a tree of settings, a module by its name,
    a copy of a dataclass, whether a number is infinite. None for others."""
    copied = None if is_open else copy_with(state, name, args, keywords, location)
    copied = copied or as_dictionary(state, name, args, location)
    if copied is not None:
        return copied
    if public_name(name) in EPSILON:
        return epsilon_of_keras(state, name, args, location)
    if name == "collections.OrderedDict":
        return dict_of(args, keywords, is_open, location)
    if is_open:
        return None
    if public_name(name) in LOADING_SETTINGS:
        from mpdoctor.source.interpreter.settings.setting_files import settings_loaded  # few programs read any

        return settings_loaded(state, name, args, location) or _of_python(state, name, args, keywords, location)
    if name in _OF_PYTHON:
        return _of_python(state, name, args, keywords, location)
    if name in _ACTIVATIONS:
        return _activation(name, args, location)
    if name in _ON_CONTAINERS:
        return _ON_CONTAINERS[name](args, keywords, location)
    if name in ASKING_OF_NUMBERS:
        answer = constant_from_call(name, args)
        return None if answer is MISSING else Known(location, answer)
    return _tree_of_settings(args, keywords, location) if name in TREES and name not in NODES else None


def _of_python(
    state: State, name: str, args: tuple[Value, ...], keywords: Keywords, location: Location
) -> Value | None:
    return _OF_PYTHON[name](state, args, keywords, location) if args and name in _OF_PYTHON else None


def _module_named(state: State, args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    from mpdoctor.source.interpreter.calls.named_modules import module_named  # few programs ask so

    return module_named(state, args, location)


def _activation(getter: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """The function that `keras.activations.get("softmax")` returns."""
    name = known(args[0]) if len(args) == 1 else None
    is_named = isinstance(name, str) and name.isidentifier()
    return api_from_name(f"{getter.removesuffix('get')}{name}", location) if is_named else None


def _default_dict(state: State, args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """`collections.defaultdict(list)`; None where it is not known what its factory makes."""
    factory = args[0]
    closure = state.closures.get(id(factory.of)) if isinstance(factory, Defined) else None
    default = None
    if closure is not None:
        default = inline_call(state, closure, (), (), is_open=False, location=location)
    elif isinstance(factory, Api):
        default = call_builtin(state, factory.name, (), (), is_open=False, location=location)
    held = dict_of(args[1:], keywords, is_open=False, location=location)
    if default is None or not isinstance(held, Collection):
        return None
    return Collection(location, "dict", held.items, held.keys, held.open, default=default)


_ACTIVATIONS = tuple(f"{library}.activations.get" for library in ("keras", "tf_keras", "tensorflow.keras"))
_OF_PYTHON: dict[str, Callable[[State, tuple[Value, ...], Keywords, Location], Value | None]] = {
    "importlib.import_module": _module_named,
    "collections.defaultdict": _default_dict,
    "json.loads": lambda state, args, keywords, location: value_from_json(known(args[0]), location),
    "omegaconf.OmegaConf.to_container": lambda state, args, keywords, location: mapping_of(args[:1], location),
}


def _tree_of_settings(args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """A dict, of what the call names or is given."""
    if not args and keywords:
        keys = tuple(Known(location, key) for key, _ in keywords)
        return Collection(location, "dict", tuple(value for _, value in keywords), keys)
    is_dict = len(args) == 1 and isinstance(args[0], Collection) and args[0].kind == "dict"
    return args[0] if is_dict and not keywords else None


def _call_getattr(state: State, args: tuple[Value, ...], is_open: bool, location: Location) -> Value | None:
    names: tuple[str, ...] = ()
    if len(args) > 1 and isinstance(name := known(args[1]), str):
        names = (name,)
    elif len(args) > 1:
        from mpdoctor.source.interpreter.calls.attribute_names import attribute_names  # few programs ask so

        names = attribute_names(args[0], args[1])
    if not names:
        return None
    values = [attribute_of(state, choice, name, location) for name in names for choice in options(args[0])]
    if len(args) == 2 and not is_open and len(names) == 1:  # with a default the program is prepared, and reads nothing
        record_read(state, args[0], names[0], location, location, is_called=False)
        for value in values:
            if isinstance(value, Api) and isinstance(args[0], Api):
                record_use(state, value, location, dotted=1)
    return joined((*values, *args[2:3]))


def _call_setattr(state: State, args: tuple[Value, ...], location: Location) -> Value | None:
    name = known(args[1]) if len(args) == 3 else MISSING
    if not isinstance(name, str):
        return None
    record_write(state, args[0], name, args[2], location, None, augmented=False)
    store_attribute(state, args[0], name, args[2])
    return Known(location, None)


def _call_on_numbers(name: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """The result of `sum(sizes.values())` or `max(2, width)` for known numbers."""
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


def call_known_method(state: State, callee: Attribute, call: Call, node: ast.Call) -> Value | None:
    """Methods of lists and dicts that the program writes out, super().__init__ of a library's class, and `get` of
    settings that are not written out."""
    of = callee.of
    remember_argument(state, call)
    if callee.name == "setdefault" and len(call.args) == 2 and isinstance(node.func, ast.Attribute):
        remember_keyword(state, node.func.value, call.args[0], call.args[1])
    keep_attributes(state, of, call)
    if isinstance(of, Super) and callee.name == "__init__":
        keep_items(state, of.instance, call.args, call.keywords)
        remember_base_arguments_of(state, of.behind, call.keywords, node)
        return None
    if isinstance(of, Super) and state.walk.class_made is not None:
        return class_from_base(state, callee.name)
    if isinstance(of, Known) and not call.open:
        return value_from_method(of, callee.name, call.args, call.keywords, call.location)
    if isinstance(of, Collection):
        return call_method_of_container(state, of, callee, call, node)
    entered = enter_by_hand(state, of, callee.name, call)
    if entered is not None:
        return entered
    default = default_of_setting(call)
    return None if default is None else joined((default, call))

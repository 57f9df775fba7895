"""Settings that a program reads from a file of its project, as `yaml.safe_load(open("config.yaml"))` does.

A value from such a file counts as a default: another one is possible too, as the user may change the file."""

from __future__ import annotations

import os
from collections import ChainMap
from pathlib import Path
from typing import Any

from mpdoctor.facts.location import Location
from mpdoctor.program.command_line import LOADING_SETTINGS, without_command_line
from mpdoctor.program.events import Call, Operation
from mpdoctor.program.values import Api, Attribute, Collection, Item, Known, Unknown, Value, is_api, known
from mpdoctor.source.constant_folding import is_computable
from mpdoctor.source.interpreter.settings.structured import STORED, as_defaults
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Closure, Module
from mpdoctor.source.joining import joined
from mpdoctor.source.plain_settings import ENDINGS, UNREAD

_PATHS = ("pathlib.Path", "pathlib.PurePath")
_JOINING = ("os.path.join", *_PATHS)
_SAME = ("os.path.abspath", "os.path.realpath", "os.path.normpath", "os.path.expanduser", "os.fspath", "builtins.str")
_SAME_METHODS = ("resolve", "absolute", "expanduser", "as_posix")
_READING = ("read", "read_text", "read_bytes", "open", "decode")
_HYDRA = "hydra.main"
_DEEPEST = 12
_MOST_SETTINGS = 400
_REFERENCE = "${"  # to another setting, as Hydra has it


def settings_loaded(state: State, name: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """What a function gives that loads a file of settings; None where the file is not known, or is not at hand."""
    place = Api(location, name)
    if not args or not is_api(place, *LOADING_SETTINGS):
        return None
    path = _path_of(state, _file_read(args[0]))
    held = UNREAD if path is None or not path.endswith(ENDINGS) else _held_in(state, path)
    if not isinstance(held, dict) or _size(held) > _MOST_SETTINGS:
        return None
    return _value_of(held, place, Unknown(location))


def settings_of_hydra(state: State, closure: Closure) -> dict[str, Value]:
    """The parameter of a function under `@hydra.main(config_path="conf", config_name="config")`, by its name."""
    for decorator in closure.facts.decorators:
        if not isinstance(decorator, Call) or not is_api(decorator.callee, _HYDRA) or not closure.facts.parameters:
            continue
        place, name = decorator.argument(0, "config_path"), known(decorator.argument(1, "config_name"))
        if (stored := state.flags.get(f"{STORED}{name}")) is not None:
            api = Api(decorator.location, _HYDRA)
            return {closure.facts.parameters[0]: as_defaults(state, stored, api, Known(decorator.location, name))}
        directory = _path_from([_directory_of(_file_of(state, closure.module)), _path_of(state, place)])
        if directory is None or not isinstance(name, str):
            continue
        held = _composed_settings(state, directory, name)
        if isinstance(held, dict) and _size(held) <= _MOST_SETTINGS:
            api = Api(decorator.location, _HYDRA)
            return {closure.facts.parameters[0]: _value_of(held, api, Unknown(decorator.location))}
    return {}


def _composed_settings(state: State, directory: str, name: str) -> Any:
    """What Hydra composes: the content of a file, and under the name of each group in its `defaults` that of the file
    chosen."""
    held = _held_below(state, directory, name)
    chosen = held.get("defaults", []) if isinstance(held, dict) else UNREAD
    if not isinstance(chosen, list):
        return UNREAD
    if not all(isinstance(choice, dict) or choice == "_self_" for choice in chosen):
        return UNREAD
    composed = {key: value for key, value in held.items() if key != "defaults"}
    groups = ((group, option) for choice in chosen if isinstance(choice, dict) for group, option in choice.items())
    for group, option in groups:
        inside = _held_below(state, directory, f"{group}/{option}") if str(group).isidentifier() else UNREAD
        composed[group] = _merged_group(composed.get(group, {}), inside)
    return composed


def _merged_group(own: Any, inside: Any) -> Any:
    is_whole = isinstance(inside, dict) and isinstance(own, dict) and "defaults" not in inside
    return dict(ChainMap(inside, own)) if is_whole else UNREAD


def _held_below(state: State, directory: str, name: str) -> Any:
    file = name if name.endswith(ENDINGS) else f"{name}.yaml"
    return _held_in(state, os.path.join(directory, file))  # noqa: PTH118


def _held_in(state: State, path: str) -> Any:
    """What a file of settings holds, UNREAD where it is not certain which file is meant: a program is started in its
    own directory, or in that of its project."""
    root = state.module.root
    if root is None or not path.isprintable():  # a NUL in a path is an error to the system
        return UNREAD
    values = {}
    for directory in (root, *state.files.import_roots(root)):
        place = Path(os.path.normpath(directory / path))
        file = state.files.settings(place, directory)
        state.walk.settings_read[str(place)] = file.digest
        if file.digest:
            values[place] = file.held
    return values.popitem()[1] if len(values) == 1 else UNREAD


def _file_read(value: Value, depth: int = 0) -> Value:
    """The path behind `open(path)`, `path.open()`, `path.read_text()`, `file.read()` and what decodes that."""
    if not isinstance(value, Call) or depth > _DEEPEST:
        return value
    if isinstance(value.callee, Attribute) and value.method in _READING:
        return _file_read(value.callee.of, depth + 1)
    opened = value.argument(0, "file") if is_api(value.callee, "builtins.open", "io.open") else None
    return value if opened is None else _file_read(opened, depth + 1)


def _path_of(state: State, value: Value | None, depth: int = 0) -> str | None:
    """The path that a value names, where all of it is written out or follows from the module's own; None otherwise."""
    choices = without_command_line(value) if value is not None else ()
    if len(choices) != 1 or depth > _DEEPEST:
        return None
    value, deeper = choices[0], depth + 1
    if isinstance(value, Known):
        return value.value if isinstance(value.value, str) else None
    if isinstance(value, Attribute):
        return _directory_of(_path_of(state, value.of, deeper)) if value.name == "parent" else None
    if isinstance(value, Item):
        return _outer_directory(state, value, deeper)
    if isinstance(value, Operation):
        return _path_of_operation(state, value, deeper)
    if isinstance(value, Call):
        return _path_of_call(state, value, deeper)
    return _file_of_module(state, value)


def _path_of_operation(state: State, operation: Operation, depth: int) -> str | None:
    parts = [_path_of(state, operand, depth) for operand in operation.operands]
    if operation.operator == "/":
        return _path_from(parts)
    texts = [part for part in parts if part is not None]
    is_text = operation.operator in ("+", "f-string") and len(texts) == len(parts)
    return "".join(texts) if is_text else None


def _path_of_call(state: State, call: Call, depth: int) -> str | None:
    given = [_path_of(state, argument, depth) for argument in call.args]
    if call.open or call.keywords:
        return None
    if isinstance(call.callee, Api):
        if call.callee.is_("os.path.dirname") and len(given) == 1:
            return _directory_of(given[0])
        if call.callee.is_(*_SAME) and len(given) == 1:
            return given[0]
        return _path_from(given) if call.callee.is_(*_JOINING) else None
    if not isinstance(call.callee, Attribute):
        return None
    path = _path_of(state, call.callee.of, depth)
    if call.method == "joinpath":
        return _path_from([path, *given])
    if call.method == "with_name":
        return _path_from([_directory_of(path), *given])
    if call.method == "with_suffix" and path is not None and len(given) == 1 and given[0] is not None:
        return os.path.splitext(path)[0] + given[0]  # noqa: PTH122 - paths are texts here
    return path if call.method in _SAME_METHODS else None


def _outer_directory(state: State, item: Item, depth: int) -> str | None:
    """`path.parents[1]`"""
    count = known(item.index)
    if not isinstance(item.of, Attribute) or item.of.name != "parents" or not isinstance(count, int):
        return None
    path = _path_of(state, item.of.of, depth)
    for _ in range(min(count, _DEEPEST) + 1):
        path = _directory_of(path)
    return path


def _file_of_module(state: State, value: Value) -> str | None:
    """The file behind `__file__`, whichever module it was taken from."""
    modules = (state.module, *state.modules.values())
    candidates = (module for module in modules if module.scope.names.get("__file__") is value)
    return next((_file_of(state, module) for module in candidates), None)


def _file_of(state: State, module: Module) -> str | None:
    imported = next((path for path, other in state.modules.items() if other is module), None)
    if imported is not None or module.root is None:
        return None if imported is None else str(imported)
    return str(module.root / Path(module.source.path).name)


def _directory_of(path: str | None) -> str | None:
    return None if path is None else os.path.dirname(path)  # noqa: PTH120 - paths are texts here


def _path_from(parts: list[str | None]) -> str | None:
    texts = [part for part in parts if part is not None]
    return os.path.join(*texts) if texts and len(texts) == len(parts) else None  # noqa: PTH118


def _size(held: Any, depth: int = 0) -> int:
    if depth > _DEEPEST:
        return _MOST_SETTINGS
    inner = held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
    return 1 + sum(_size(item, depth + 1) for item in inner)


def _value_of(held: Any, place: Api, key: Value) -> Value:
    """What a file of settings holds, as a value of the program; Unknown for what is no plain value."""
    if isinstance(held, dict):
        keys = tuple(Known(place.location, name) if _is_plain(name) else Unknown(place.location) for name in held)
        items = (_value_of(item, place, name) for name, item in zip(keys, held.values(), strict=True))
        return Collection(place.location, "dict", tuple(items), keys)
    if isinstance(held, list):
        return Collection(place.location, "list", tuple(_value_of(item, place, key) for item in held))
    if not _is_plain(held) or (isinstance(held, str) and _REFERENCE in held):
        return Unknown(place.location)
    return joined((Known(place.location, held), Item(place.location, place, key)))


def _is_plain(held: Any) -> bool:
    """Whether rules can compute with it; YAML has dates as well."""
    return held is None or (isinstance(held, (str, int, float)) and is_computable(held))

"""Settings in a class of the program's own: a dict whose items are attributes as well, or attributes from keywords."""

from __future__ import annotations

from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, Attribute, Collection, Known, Value, known
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Keywords

_DICTS = ("builtins.dict", "collections.OrderedDict", "collections.UserDict")
_READING = ("builtins.dict.__getitem__", "builtins.dict.get")


def is_dict_class(own: ClassFacts) -> bool:
    return any(base.is_(*_DICTS) for base in own.library_bases())


def keep_items(state: State, instance: Value, args: tuple[Value, ...], keywords: Keywords) -> None:
    """Keep what a dict of the program's own is made with: `Settings(policy="mixed_float16")`, `Settings({"depth":
    2})`."""
    own = class_of(instance)
    if own is not None and is_dict_class(own):
        _set_attributes(
            state, instance, {f"[{name!r}]": value for name, value in _items_by_name(args, keywords).items()}
        )


def keep_attributes(state: State, updated: Value, call: Call) -> None:
    """Keep the attributes that `self.__dict__.update(settings)` sets."""
    is_own = isinstance(updated, Attribute) and updated.name == "__dict__" and class_of(updated.of) is not None
    if is_own and isinstance(updated, Attribute) and call.method == "update":
        _set_attributes(state, updated.of, _items_by_name(call.args, call.keywords))


def name_of_item(of: Value, index: Value | None) -> str | None:
    """Under which name an object of the user's own class of dicts keeps an item: `registry["adam"]`."""
    own = class_of(of)
    if own is None or not isinstance(index, Known) or not isinstance(index.value, (str, int)):
        return None
    return f"[{index.value!r}]" if is_dict_class(own) else None


def item_as_attribute(state: State, own: ClassFacts, of: Value, name: str) -> Value | None:
    """`settings.policy`, where the class reads its items so; None where it does not, or holds no such item."""
    held = state.attributes.get(id(of), {})
    reading = own.attributes.get("__getattr__")
    reads_items = isinstance(reading, Api) and reading.name in _READING
    return held.get(f"[{name!r}]") if reads_items or held.get("__dict__") is of else None


def _items_by_name(args: tuple[Value, ...], keywords: Keywords) -> dict[str, Value]:
    items: dict[str, Value] = {}
    for given in args:
        if isinstance(given, Collection) and given.kind == "dict":
            pairs = zip(given.keys, given.items, strict=False)
            items.update((name, item) for key, item in pairs if isinstance(name := known(key), str))
    return items | dict(keywords)


def _set_attributes(state: State, instance: Value, values: dict[str, Value]) -> None:
    held = state.attributes.get(id(instance))
    if held is None:
        held = state.attributes[id(instance)] = state.walk.side_effects.created({})
    for name, value in values.items():
        state.walk.side_effects.set(held, name, value)

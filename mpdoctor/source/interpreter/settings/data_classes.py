"""Dataclasses, named tuples and enumerations: their fields, and copies of them with other values."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Collection, Known, Value, is_api, known, options
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.interpreter.state.scopes import Keywords

FIELD = ("dataclasses.field", "attr.ib", "attr.field", "attrs.field", "pydantic.Field")
_AS_A_DICT = ("dataclasses.asdict", "builtins.vars", "attr.asdict", "attrs.asdict")
_REPLACE = ("dataclasses.replace", "copy.replace", "attr.evolve", "attrs.evolve")
_ENUMERATIONS = ("Enum", "StrEnum", "IntEnum", "Flag", "IntFlag")


def default_of_field(value: Value) -> Value:
    """What a field holds that nobody gives a value, where the class body says it as `field(default=…)`."""
    if not isinstance(value, Call) or not is_api(value.callee, *FIELD):
        return value
    return value.keyword("default") or (
        value.args[0] if is_api(value.callee, "pydantic.Field") and value.args else value
    )


def factory_of_field(value: Value) -> Value | None:
    """The function that makes the field's value for each object."""
    if not isinstance(value, Call) or not is_api(value.callee, *FIELD):
        return None
    return value.keyword("default_factory") or value.keyword("factory")


def fields_of(own: ClassFacts) -> dict[str, Value]:
    """The fields of a data class and their defaults, those of the bases first, as `__init__` takes them."""
    fields: dict[str, Value] = {}
    for cls in reversed(list(own.lineage())):
        fields |= {name: value for name, value in cls.attributes.items() if not name.startswith("_")}
    return fields


def named_tuple(callee: Value, args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """An object of a class that `collections.namedtuple` has made; None of any other, and where a field is not seen."""
    if not isinstance(callee, Call) or not is_api(callee.callee, "collections.namedtuple"):
        return None
    names = _field_names(callee.argument(1, "field_names"))
    defaults = callee.keyword("defaults")
    given: dict[str, Value] = {}
    if isinstance(defaults, Collection):
        given.update(zip(reversed(names), reversed(defaults.items), strict=False))
    given.update(zip(names, args, strict=False))
    given.update(keywords)
    return tuple_with_names({name: given[name] for name in names}, location) if set(given) == set(names) else None


def _field_names(written: Value | None) -> list[str]:
    text = known(written)
    if isinstance(text, str):
        return text.replace(",", " ").split()
    names = [known(name) for name in written.items] if isinstance(written, Collection) else []
    return [name for name in names if isinstance(name, str)]


def tuple_with_names(fields: dict[str, Value], location: Location) -> Collection:
    return Collection(location, "tuple", tuple(fields.values()), tuple(Known(location, name) for name in fields))


def is_plain_named_tuple(own: ClassFacts) -> bool:
    """Whether it is a `typing.NamedTuple` without methods of its own."""
    return not own.methods and any(base.name == "typing.NamedTuple" for base in own.library_bases())


def is_enumeration(own: ClassFacts) -> bool:
    return any(base.name in [f"enum.{name}" for name in _ENUMERATIONS] for base in own.library_bases())


def member_by_value(own: ClassFacts, args: tuple[Value, ...]) -> Value | None:
    """The member that `Precision("float16")` returns."""
    is_certain = len(args) == 1 and isinstance(args[0], Known) and is_enumeration(own)
    held = own.attributes.values() if is_certain else ()
    return next((member for member in held if known(member) == known(args[0])), None)


def remember_members(state: State, own: ClassFacts) -> None:
    """Remember which enumeration a constant is a member of, whose methods it has."""
    for member in own.attributes.values() if own.methods and is_enumeration(own) else ():
        if is_enumeration_member(member):
            state.walk.side_effects.set(state.members, member, own)


def copy_with(state: State, name: str, args: tuple[Value, ...], keywords: Keywords, location: Location) -> Value | None:
    """`dataclasses.replace(settings, policy=…)`: an object of the same class, of which some fields are others."""
    if name not in _REPLACE or len(args) != 1 or len(options(args[0])) != 1:
        return None
    own = class_of(args[0])
    if own is None:
        return None
    copy = Call(location, Defined(location, own), (), keywords, state.context, state.next_order())
    held = {**state.attributes.get(id(args[0]), {}), **dict(keywords)}
    state.attributes[id(copy)] = state.walk.side_effects.created(held)
    return copy


def as_dictionary(state: State, name: str, args: tuple[Value, ...], location: Location) -> Value | None:
    """`dataclasses.asdict(settings)` and `vars(settings)`, of an object that is seen to be made."""
    if name not in _AS_A_DICT or len(args) != 1 or not isinstance(args[0], Call) or args[0].open:
        return None
    own, held = class_of(args[0]), state.attributes.get(id(args[0]))
    if own is None or held is None:
        return None
    fields = {**fields_of(own), **held} if own.find_method("__init__") is None else held
    keys = tuple(Known(location, key) for key in fields)
    return Collection(location, "dict", tuple(fields.values()), keys)


def is_enumeration_member(value: Value) -> bool:
    """Whether a constant on which `.value` is read counts as a member of an enumeration: constants have no such
    attribute otherwise."""
    return isinstance(value, Known) and isinstance(value.value, (str, int, float))

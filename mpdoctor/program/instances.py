"""Whether a value is the result of a library's function, or an instance of a library's class or of a user's own."""

from __future__ import annotations

from collections.abc import Container, Iterable

from mpdoctor.knowledge.api_names import is_layer_class
from mpdoctor.program.events import Call
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts, Instance
from mpdoctor.program.values import Api, Either, Value, is_api, options


def is_call_of(value: Value | None, *names: str) -> bool:
    """Whether it is for certain the result of calling one of these library functions or classes itself."""
    if isinstance(value, Call):
        return is_api(value.callee, *names)
    return isinstance(value, Either) and all(is_call_of(option, *names) for option in value.options)


def is_instance_of(value: Value | None, *names: str) -> bool:
    """Whether it is for certain an instance of one of these library classes, or of a class of the user's own
    below it."""
    choices = options(value)
    return bool(choices) and all(_is_one_instance(option, names) for option in choices)


def class_of(value: Value) -> ClassFacts | None:
    """The user's own class that it is an instance of."""
    if isinstance(value, Call):
        made = value.callee
        return made.of if isinstance(made, Defined) and isinstance(made.of, ClassFacts) else None
    return value.of if isinstance(value, Instance) else None


def is_class_of_layers(value: Value | None) -> bool:
    """Whether it is a class of layers or models, of a library or of the user's own, and not one of its objects."""
    if isinstance(value, Api):
        return is_layer_class(value.name)
    return isinstance(value, Defined) and isinstance(value.of, ClassFacts) and value.of.is_layer


def has_method(value: Value, function: FunctionFacts) -> bool:
    """Whether calling the object's method of that name runs this function, which its class or a base of it defines."""
    own = class_of(value)
    return own is not None and own.find_method(function.name) is function


def belongs_to(own: ClassFacts, kinds: Container[str | None], classes: Iterable[ClassFacts]) -> bool:
    """Whether it is a class of one of these kinds ("layer", "model" …), or one that is mixed into such a class among
    the program's."""
    return own.kind in kinds or any(
        below.kind in kinds and any(base is own for base in below.lineage()) for below in classes
    )


def _is_one_instance(value: Value, names: tuple[str, ...]) -> bool:
    if isinstance(value, Call) and is_api(value.callee, *names):
        return True
    own = class_of(value)
    return own is not None and any(base.is_(*names) for base in own.library_bases())


def method_called(value: Value | None) -> FunctionFacts | None:
    """The `__call__` of an object of the user's own class, where that derives from no class of a library; None of other
    values."""
    own = class_of(value) if isinstance(value, Call) else None
    return own.find_method("__call__") if own is not None and not any(own.library_bases()) else None


def is_of_super(call: Call) -> bool:
    """Whether it calls a method of `super()`."""
    return isinstance(call.receiver, Call) and is_api(call.receiver.callee, "builtins.super")

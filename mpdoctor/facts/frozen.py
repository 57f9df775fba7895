"""Facts never change once they were made. The type checker sees to it: Python itself would take four times as long to
make each, and of a large project the source stage makes millions.

    @dataclass(frozen=True, eq=False)   # as from the standard library

A start waits for every class as well: the standard library compiles six methods for each, which takes 0.64 ms, and a
check of one file has more than a hundred such classes. Here one is compiled, `__init__`, once something is made; the
others are the same for all classes. That takes 0.05 ms (Python 3.11).
"""

from __future__ import annotations

import dataclasses
import sys
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Callable

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(*, frozen: bool, eq: bool = True, repr: bool = True, slots: bool = True, **options: Any) -> Callable:
        """Facts that compare as equal have equal hashes, as those that Python freezes do. Slots take less room, where
        Python makes them."""
        if sys.version_info >= (3, 10):
            options["slots"] = slots
        if options.get("order"):  # which are sorted, and compared a lot: Python's own are quickest
            return dataclasses.dataclass(eq=eq, repr=repr, unsafe_hash=frozen and eq, **options)

        def made(written: type) -> type:
            own = vars(written).keys()
            cls = dataclasses.dataclass(init=False, eq=False, repr=False, **options)(written)
            fields = dataclasses.fields(cls)
            if eq and "__eq__" not in own:
                cls.__eq__ = _equality([field.name for field in fields if field.compare])
            if eq and "__hash__" not in own:
                hashed = [field.name for field in fields if field.hash or (field.hash is None and field.compare)]
                cls.__hash__ = _hash(hashed) if frozen else None
            if repr and "__repr__" not in own:
                cls.__repr__ = _repr
            cls.__init__ = _compiled_later(cls)
            cls.__signature__ = _SIGNATURE
            return cls

        return made


def _compiled_later(cls: Any) -> Callable[..., None]:
    """An `__init__` that puts the compiled one in its place when it is first called."""

    def __init__(self: Any, *args: Any, **keywords: Any) -> None:
        cls.__init__ = compiled = _init(cls)
        compiled(self, *args, **keywords)

    return __init__


class _Signature:
    """What `inspect.signature` tells of a class, made when it is asked for."""

    def __get__(self, _: Any, cls: Any) -> Any:
        import inspect

        signature = inspect.signature(_init(cls))
        hints = {field.name: field.type for field in dataclasses.fields(cls)}
        parameters = list(signature.parameters.values())[1:]
        return signature.replace(
            parameters=[parameter.replace(annotation=hints[parameter.name]) for parameter in parameters]
        )


_SIGNATURE = _Signature()


def _init(cls: Any) -> Any:
    """An `__init__` like that of `dataclasses.dataclass`."""
    fields = dataclasses.fields(cls)
    names: dict[str, Any] = {"_missing": dataclasses.MISSING}
    body = ["self.__post_init__()"] if hasattr(cls, "__post_init__") else []
    written = [_parameter_and_assignment(field, names) for field in fields]
    by_name = [getattr(field, "kw_only", False) for field in fields]  # since Python 3.10
    parameters = ["self", *(parameter for (parameter, _), last in zip(written, by_name) if not last)]
    if any(by_name):
        parameters += ["*", *(parameter for (parameter, _), last in zip(written, by_name) if last)]
    body = [*(assignment for _, assignment in written), *body] or ["pass"]
    exec(f"def __init__({', '.join(parameters)}):\n    " + "\n    ".join(body), names)
    return names["__init__"]


def _parameter_and_assignment(field: Any, names: dict[str, Any]) -> tuple[str, str]:
    """A field as parameter, and how it is set. `names` gets what these name."""
    name = field.name
    if field.default_factory is not dataclasses.MISSING:
        names[f"_make_{name}"] = field.default_factory
        return f"{name}=_missing", f"self.{name} = _make_{name}() if {name} is _missing else {name}"
    if field.default is not dataclasses.MISSING:
        names[f"_default_{name}"] = field.default
        return f"{name}=_default_{name}", f"self.{name} = {name}"
    return name, f"self.{name} = {name}"


def _equality(names: list[str]) -> Callable[[Any, Any], Any]:
    values = _values(names)

    def equal(self: Any, other: Any) -> Any:
        return values(self) == values(other) if other.__class__ is self.__class__ else NotImplemented

    return equal


def _hash(names: list[str]) -> Callable[[Any], int]:
    values = _values(names)
    return lambda self: hash(values(self))


def _values(names: list[str]) -> Callable[[Any], Any]:
    return attrgetter(*names) if names else lambda self: ()


def _repr(self: Any) -> str:
    """The `repr` of the standard library's dataclasses, without its guard against circles: facts hold none."""
    fields = (f"{f.name}={getattr(self, f.name)!r}" for f in dataclasses.fields(self) if f.repr)
    return f"{type(self).__qualname__}({', '.join(fields)})"

"""Modules by the names that `importlib.import_module` is given."""

from __future__ import annotations

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Value, known, options
from mpdoctor.source.interpreter.calls.attribute_names import texts_around_gaps
from mpdoctor.source.interpreter.imports import first_party_module, import_any_of
from mpdoctor.source.interpreter.state.interpreter_state import State
from mpdoctor.source.names import api_from_name


def module_named(state: State, args: tuple[Value, ...], location: Location) -> Value | None:
    """The module that `importlib.import_module("keras")` returns; None for `import_module("models." + name)`, which may
    import any module of that package."""
    name = known(args[0])
    if isinstance(name, str):
        return (first_party_module(state, name) or api_from_name(name, location)) if len(args) == 1 else None
    for option in options(args[0]):
        before, *behind = texts_around_gaps(option)
        if behind and before.endswith("."):
            import_any_of(state, before[:-1], behind[-1])
        elif not behind:
            first_party_module(state, before)
    return None

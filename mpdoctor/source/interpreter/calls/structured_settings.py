"""Settings that a program writes out for Hydra or OmegaConf: a class of its own, an object of one, or a dict."""

from __future__ import annotations

from collections.abc import Callable

from mpdoctor.facts.location import Location
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.user_definitions import ClassFacts, Defined
from mpdoctor.program.values import Api, Collection, Known, Value, is_api, known
from mpdoctor.source.interpreter.settings.structured import STORED, as_defaults
from mpdoctor.source.interpreter.state.interpreter_state import State

_STORE = "hydra.core.config_store.ConfigStore.instance"

Make = Callable[[Value], Value]  # what a class makes that is called without arguments


def remember_stored(state: State, call: Call, make: Make) -> None:
    """Remember the settings of `ConfigStore.instance().store("config", Settings)` under their name, which `hydra.main`
    asks for."""
    is_stored = isinstance(call.receiver, Call) and is_api(call.receiver.callee, _STORE)
    name, node = (known(call.argument(0, "name")), call.argument(1, "node")) if is_stored else (None, None)
    if not isinstance(name, str) or node is None or call.argument(2, "group") is not None:
        return
    made = _settings_made(node, make)
    if made is not None:
        state.walk.side_effects.set(state.flags, STORED + name, made)


def merged_settings(state: State, args: tuple[Value, ...], location: Location, make: Make) -> Value | None:
    """What `OmegaConf.merge(defaults, OmegaConf.from_cli())` gives: the first settings with what the others are known
    to say, as defaults; None where the first ones are not known."""
    settings = _settings_made(args[0], make)
    if settings is None:
        return None
    for other in args[1:]:
        settings = _with_items_of(settings, other)
    return as_defaults(state, settings, Api(location, "omegaconf.OmegaConf.load"), Known(location, ""))


def _settings_made(written: Value, make: Make) -> Value | None:
    if isinstance(written, Defined) and isinstance(written.of, ClassFacts):
        return make(written)
    return written if class_of(written) is not None or isinstance(written, Collection) else None


def _with_items_of(settings: Value, other: Value) -> Value:
    if not (isinstance(settings, Collection) and isinstance(other, Collection) and other.kind == "dict"):
        return settings
    held = dict(zip(map(known, settings.keys), settings.items, strict=False))
    for name, item in zip(map(known, other.keys), other.items, strict=False):
        held[name] = _with_items_of(held[name], item) if isinstance(item, Collection) and name in held else item
    keys = tuple(Known(settings.location, name) for name in held)
    return Collection(settings.location, "dict", tuple(held.values()), keys, settings.open or other.open)

"""A custom optimizer's `get_config` leaves out arguments of its `__init__`.

## Why it matters
Loading and cloning a model, and the LossScaleOptimizer's own `from_config`, make a new optimizer from
`get_config`. An argument missing there gets its default again: an optimizer made with alpha=3 and trained under
mixed_float16 had alpha=1 after model.save and load_model (Keras 3.15 and tf_keras 2.21). Nothing raises.

## Flagged
```python
import keras


class Mine(keras.optimizers.SGD):
    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha


model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.mixed_precision.LossScaleOptimizer(Mine(alpha=3.0)), "mse")
model.save("model.keras")
```

## Fixed
```python
import keras


class Mine(keras.optimizers.SGD):
    def __init__(self, alpha=1.0, **kwargs):
        super().__init__(**kwargs)
        self.alpha = alpha

    def get_config(self):
        return {**super().get_config(), "alpha": self.alpha}


model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile(keras.mixed_precision.LossScaleOptimizer(Mine(alpha=3.0)), "mse")
model.save("model.keras")
```

## Versions
All.

## Where users met it
OverLordGoldDragon/keras-adamw#46, NVIDIA-Merlin/HugeCTR#462.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence

from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.wrapper_delegation import HYPER_PARAMETERS, OF_EVERY_OPTIMIZER
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call, Write
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Known, Value, options, walk
from mpdoctor.semantics.source.edits.configs import with_entries
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.programs.running_functions import functions_around
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
MOST_SHOWN = 3  # entries of a configuration; an edit writes all
# The arguments that Keras' own `Optimizer` and its subclasses save; in Keras 2 the older names as well.
SAVED_BY_OPTIMIZER = OF_EVERY_OPTIMIZER | {"name"}
OF_KERAS2 = frozenset(("lr", "decay"))
# A missing `get_config` matters only once the program saves, loads or copies something.
SAVES = (
    *("save", "save_model", "load_model", "clone_model", "model_from_json", "to_json", "get_config", "from_config"),
    *("serialize", "deserialize", "ModelCheckpoint", "BackupAndRestore"),
)
# Ways to read all attributes at once, after which the saved keys are unknown.
AT_ONCE = ("vars", "getattr", "setattr", "signature", "__dict__")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for own in facts.classes:
        dropped = _dropped(facts, own) if own.kind == "optimizer" and _is_made(facts, own) else []
        if dropped:
            kept_as = _kept_as(facts, own)
            initializer = own.methods["__init__"]
            required = [name for name in dropped if name not in initializer.defaults]
            held = {name: kept_as[name] for name in dropped}
            title = f"Save {listed([f'`{name}`' for name in dropped])} in get_config"
            fix = unsafe_fix(title, with_entries(facts, own.location, held))
            yield dataclasses.replace(_finding(own.name, held, own.location, required), fix=fix)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if not (model.may_train and model.computes_in_half):
        return
    for link in model.optimizer:
        saved = SAVED_BY_OPTIMIZER | (frozenset() if model.keras.is_keras3 else OF_KERAS2)
        dropped = [name for name in link.dropped if name not in saved]
        if dropped and link.class_location is not None:
            yield _finding(link.class_name, {name: name for name in dropped}, link.class_location)


def _finding(class_name: str, dropped: dict[str, str], location: Location, required: Sequence[str] = ()) -> Finding:
    """The finding for a class. `dropped` maps each argument to the attribute that stores it; `required` names those
    without a default."""
    entries = ", ".join(f'"{name}": self.{attribute}' for name, attribute in list(dropped.items())[:MOST_SHOWN])
    entries += ", …" if len(dropped) > MOST_SHOWN else ""
    return Finding(
        f"{class_name} does not save {listed([f'`{name}`' for name in dropped])} in its `get_config`: "
        + _consequence(dropped, required),
        f"In `{class_name}.get_config` return `{{**super().get_config(), {entries}}}`.",
        location,
    )


def _consequence(dropped: Mapping[str, str], required: Sequence[str]) -> str:
    if required:
        names = listed([f"`{name}`" for name in required])
        has = "has no default" if len(required) == 1 else "have no defaults"
        return f"loading a saved model, or cloning the optimizer, raises TypeError, because {names} {has}."
    their = "it has its default" if len(dropped) == 1 else "they have their defaults"
    return f"after saving and loading, or cloning, {their} again."


def _dropped(facts: SourceFacts, own: ClassFacts) -> list[str]:
    """Parameters of `__init__` that are stored on the instance and that no `get_config` of the user's classes names; []
    where that is not certain."""
    initializer = own.methods.get("__init__")
    if initializer is None or not _is_saved_by_config(facts, own) or not _is_keras_optimizer(own):
        return []
    named = _named_in(facts, own)
    if named is None:
        return []
    older = frozenset() if facts.keras.is_keras3 else OF_KERAS2
    kept_as, saved = _kept_as(facts, own), named | older | _saved_by_its_base(own)
    return [name for name in initializer.parameters[1:] if name in kept_as and not saved & {name, kept_as[name]}]


def _kept_as(facts: SourceFacts, own: ClassFacts) -> dict[str, str]:
    """The attribute that stores a parameter of `__init__`: it has the same name, or holds the same value."""
    initializer = own.methods["__init__"]
    kept: dict[str, str] = {}
    for position, name in enumerate(initializer.parameters[1:]):
        if name.startswith("*"):
            continue
        given = [call.argument(position, name) for call in facts.makings_of(own) if _sets_up(initializer, call)]
        values = {id(option) for value in (*given, initializer.defaults.get(name)) for option in options(value)}
        alike = [attribute for attribute in (name, "_" + name) if attribute in own.attributes]
        holding = [attribute for attribute, value in own.attributes.items() if {*map(id, options(value))} & values]
        if alike or holding:
            kept[name] = (alike or holding)[0]
    return kept


def _sets_up(initializer: FunctionFacts, making: Call) -> bool:
    made = class_of(making)
    return made is not None and made.find_method("__init__") is initializer


def _saved_by_its_base(own: ClassFacts) -> frozenset[str]:
    """The arguments that a class's Keras base saves: `beta_1` for Adam, none for the class Optimizer itself."""
    bases = [option for cls in own.lineage() for base in cls.bases for option in options(base)]
    plain = all(base.name.endswith(".Optimizer") for base in bases if isinstance(base, Api))
    return SAVED_BY_OPTIMIZER if plain else SAVED_BY_OPTIMIZER | HYPER_PARAMETERS


def _is_keras_optimizer(own: ClassFacts) -> bool:
    """Whether all its bases are known, and come from keras.optimizers or from the program."""
    bases = [option for cls in own.lineage() for base in cls.bases for option in options(base)]
    return all(
        isinstance(base, Defined) or (isinstance(base, Api) and base.name.startswith("keras.optimizers."))
        for base in bases
    )


def _is_saved_by_config(facts: SourceFacts, own: ClassFacts) -> bool:
    """Whether its configuration has to be complete: the class writes one, or the program saves, and no `from_config` of
    the class fills in the rest."""
    if own.find_method("from_config"):
        return False
    return own.find_method("get_config") is not None or any(True for _ in facts.calls_named(*SAVES))


def _named_in(facts: SourceFacts, own: ClassFacts) -> set[str] | None:
    """Every text in the `get_config` methods of a class and its bases; None where keys may come from elsewhere."""
    methods = [cls.methods["get_config"] for cls in own.lineage() if "get_config" in cls.methods]
    calls = [call for call in facts.calls if _runs_in(facts, call.context, methods)]
    writes = [write for write in facts.writes if _runs_in(facts, write.context, methods)]
    returned = (event.value for method in methods for event in facts.returns_of(method))
    inside = list(_inside(calls, writes, returned))
    if any(map(_may_hold_any_key, inside)) or any(map(_has_open_key, writes)):
        return None
    return {name for call in calls for name, _ in call.keywords} | set(filter(None, map(_text, inside)))


def _runs_in(facts: SourceFacts, context: Context, methods: list[FunctionFacts]) -> bool:
    """Whether it is code of one of the methods, or of a function that one calls."""
    return any(function in methods for function in (context.function, *functions_around(facts, context)))


def _inside(calls: Iterable[Call], writes: Iterable[Write], returned: Iterable[Value]) -> Iterator[Value]:
    """Every value that a method passes, writes or returns."""
    for call in calls:
        for value in (call, *call.args):
            yield from walk(value)
    for write in writes:
        for part in (write.value, write.index):
            yield from walk(part)
    for value in returned:
        yield from walk(value)


def _has_open_key(write: Write) -> bool:
    return write.index is not None and not isinstance(write.index, Known)


def _text(value: Value) -> str:
    return value.value if isinstance(value, Known) and isinstance(value.value, str) else ""


def _may_hold_any_key(value: Value) -> bool:
    if isinstance(value, Collection) and value.kind == "dict":
        return any(not isinstance(key, Known) for key in value.keys)
    return isinstance(value, (Api, Attribute)) and value.name.rpartition(".")[2] in AT_ONCE


def _is_made(facts: SourceFacts, own: ClassFacts) -> bool:
    """Whether the program makes an optimizer of this class or of a subclass."""
    return bool(facts.makings_of(own))

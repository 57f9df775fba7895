"""A layer's configuration lacks its dtype, so a copied or loaded layer gets another one, or cannot be made.

## Why it matters
Loading and cloning make a new layer from `get_config()`. If that leaves out what `super().get_config()`
returns, the new layer takes the global policy: a float16 layer was float32 after loading, without any message
(Keras 3.15, tf_keras 2.21, TensorFlow 2.15 and 2.10). A layer whose `__init__` takes no `**kwargs` cannot be
given its dtype back: `TypeError: __init__() got an unexpected keyword argument 'dtype'`, or `'name'`.

## Flagged
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Block(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def call(self, inputs):
        return inputs

    def get_config(self):
        return {"units": self.units}
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")


class Block(keras.layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units

    def call(self, inputs):
        return inputs

    def get_config(self):
        return {**super().get_config(), "units": self.units}
```

## Versions
All. Advice where nothing is saved; a warning where the same program saves, loads or clones a model.

## Where users met it
keras-team/keras#19752, HamadYA/GhostFaceNets#52.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Edit, Finding, Fix, Severity
from mpdoctor.knowledge.api_names import public_name
from mpdoctor.knowledge.layer_kinds import OF_BASE_CONFIG
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts
from mpdoctor.program.values import Api, Attribute, Collection, Value, known, options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.passed_keywords import passing_keywords
from mpdoctor.semantics.source.layers.model_layers import layers_of
from mpdoctor.semantics.source.texts.written import text_of
from mpdoctor.semantics.source.trainings.saved_files import drops_dtype

SEVERITY = Severity.INFO
FIXES = ("unsafe",)
CLONING = ("keras.models.clone_model", "keras.models.model_from_json")
FILES = (".keras", ".h5", ".hdf5")
LEFT_OUT = (
    "{0}.get_config leaves out the layer's dtype: a loaded or cloned layer takes the global policy in force then."
)
NOT_TAKEN = (
    "{0}.get_config returns a dtype, which `{0}.__init__` does not take: loading or cloning the layer raises TypeError."
)
TAKE = "Take `**kwargs` and pass them on: `def __init__(self, …, **kwargs): super().__init__(**kwargs)`."
BASE_CONFIG = "`return {**super().get_config(), …}`"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    remade = _remade_classes(facts)
    for own in facts.classes:
        is_remade = remade is None or id(own) in remade
        defect = _defect(facts, own, is_remade) if own.kind == "layer" else None
        if defect is not None:
            message, help, location = defect
            is_of_config = location == own.methods.get("get_config", own).location
            fix = _fix_of_config(facts, own) if is_of_config else _fix_of_constructor(facts, own)
            is_warning = is_remade and bool(facts.makings_of(own))
            yield Finding(message, help, location, severity=Severity.WARNING if is_warning else None, fix=fix)


def _fix_of_config(facts: SourceFacts, own: ClassFacts) -> Fix | None:
    """The edit that puts the base configuration first in the dict that `get_config` itself writes out and returns, with
    those by which the constructor takes what is in it."""
    constructor = own.find_method("__init__")
    taking = [] if constructor is None or _takes_base(constructor) else _taking_base(facts, own)
    start = _start_of_config(facts, own)
    return None if taking is None else unsafe_fix("Start from the base configuration", start, taking)


def _fix_of_constructor(facts: SourceFacts, own: ClassFacts) -> Fix | None:
    return unsafe_fix("Take `**kwargs` and pass them on", _taking_base(facts, own))


def _taking_base(facts: SourceFacts, own: ClassFacts) -> list[Edit] | None:
    constructor = own.methods.get("__init__")
    return None if constructor is None else passing_keywords(facts, constructor, OF_BASE_CONFIG)


def _start_of_config(facts: SourceFacts, own: ClassFacts) -> Edit | None:
    config = own.methods["get_config"]
    returned = [
        returned
        for returned in facts.returns_of(config)
        if isinstance(returned.value, Collection)
        and config.location.line <= returned.value.location.line <= returned.location.end_line
    ]
    written = text_of(facts, returned[0].value.location) if len(returned) == 1 else None
    if written is None or not written.startswith("{"):
        return None
    more = "" if written[1:].lstrip().startswith("}") else ", "
    place = returned[0].value.location
    start = dataclasses.replace(place, column=place.column + 1, end_line=place.line, end_column=place.column + 1)
    return Edit(start, f"**super().get_config(){more}")


def _defect(facts: SourceFacts, own: ClassFacts, is_remade: bool) -> tuple[str, str, Location] | None:
    config, initializer = own.methods.get("get_config"), own.methods.get("__init__")
    if config is not None and drops_dtype(facts, config):
        constructor = own.find_method("__init__")
        help = _start_from_base(constructor is None or _takes_base(constructor))
        return LEFT_OUT.format(own.name), help, config.location
    if initializer is None or _takes_dtype(initializer):
        return None
    if config is not None and _calls_base(facts, config):
        return NOT_TAKEN.format(own.name), TAKE, initializer.location
    if is_remade and facts.makings_of(own) and own.find_method("get_config") is None:
        return (
            f"`{own.name}.__init__` takes no dtype: loading or cloning the layer raises, or gives it the global policy "
            "in force then.",
            TAKE,
            initializer.location,
        )
    return None


def _start_from_base(takes_base: bool) -> str:
    return f"Start from the base configuration: {BASE_CONFIG}." + ("" if takes_base else f" {TAKE}")


def in_model(model: ModelFacts) -> Iterator[Finding]:
    told: set[str] = set()
    for layer in model.layers:
        defect = _live_defect(model, layer) if layer.computes_in_half and layer.class_name not in told else None
        if defect is not None:
            told.add(layer.class_name)
            message, help, location = defect
            yield Finding(message, help, location, layer=layer.path, evidence={"policy": layer.policy})


def _live_defect(model: ModelFacts, layer: LayerFacts) -> tuple[str, str, Location | None] | None:
    config = layer.config
    if config is None or config.config_at is None or config.holds_dtype is None:
        return None
    if not config.holds_dtype:
        gives_itself_one = not config.takes_dtype and layer.policy != model.global_policy
        help = _start_from_base(config.takes_base)
        return None if gives_itself_one else (LEFT_OUT.format(layer.class_name), help, config.config_at)
    return None if config.takes_dtype else (NOT_TAKEN.format(layer.class_name), TAKE, config.constructor_at)


def _calls_base(facts: SourceFacts, config: FunctionFacts) -> bool:
    """Whether it calls Keras' own get_config; a user's base class is reported at that class."""
    return any(
        call.context.function is config and isinstance(call.callee, Attribute)
        for call in facts.method_calls("get_config")
    )


def _takes_base(constructor: FunctionFacts) -> bool:
    """Whether it takes all that Keras' own get_config() returns."""
    return set(constructor.parameters) >= OF_BASE_CONFIG or any(
        name.startswith("**") for name in constructor.parameters
    )


def _takes_dtype(initializer: FunctionFacts) -> bool:
    return "dtype" in initializer.parameters or any(name.startswith("**") for name in initializer.parameters)


def _remade_classes(facts: SourceFacts) -> frozenset[int] | None:
    """The ids of the classes whose layers the program makes again from configurations; None where it may be any class.
    `from_config` of a user's class makes that class again, and the layers that its methods make."""
    if _remakes_any(facts):
        return None
    called = [class_of(call.receiver) for call in facts.method_calls("from_config") if call.receiver is not None]
    remade = {id(own) for own in called if own is not None and own.is_layer}
    while remade:
        inside = {
            id(own)
            for own in facts.classes
            if any(
                call.context.owner is not None and id(call.context.owner) in remade for call in facts.makings_of(own)
            )
        }
        if inside <= remade:
            break
        remade |= inside
    return frozenset(remade)


def _remakes_any(facts: SourceFacts) -> bool:
    """Whether the program saves, loads or clones whole models through their configurations. Keras 2 does not use them
    when it loads a SavedModel, the format it writes to a name without a suffix: the layers keep their dtype
    (tf_keras 2.21, TensorFlow 2.15, 2.10, 2.4)."""
    if any(not _is_of_libraries_layers(facts, call) for call in facts.calls_of(*CLONING)):
        return True
    if any(facts.keras.is_keras3 or _is_file(call) for call in facts.calls_of("keras.models.load_model")):
        return True
    for call in facts.method_calls("save"):
        own = class_of(call.receiver) if call.receiver is not None else None
        is_own = own is not None and own.is_layer
        if (is_own and facts.keras.is_keras3) or _is_file(call):
            return True
    return False


def _is_of_libraries_layers(facts: SourceFacts, cloning: Call) -> bool:
    """Whether what it clones holds none of the program's own layers."""
    given = cloning.argument(0, "model") or cloning.argument(0, "json_string")
    texts = (option for option in options(given) if isinstance(option, Call))
    cloned = [text.receiver if text.method == "to_json" else text for text in texts]
    made = [option for value in cloned for option in options(value)]
    return bool(made) and all(_holds_libraries_layers(facts, option) for option in made)


def _holds_libraries_layers(facts: SourceFacts, model: Value) -> bool:
    """Whether it is a network of keras.applications, or a model of which all layers that are seen are Keras' own."""
    if not isinstance(model, Call) or not isinstance(model.callee, Api):
        return False
    layers = layers_of(facts, model)
    return public_name(model.callee.name).startswith("keras.applications.") or (
        bool(layers) and all(isinstance(layer.callee, Api) for layer in layers)
    )


def _is_file(call: Call) -> bool:
    """Whether the file's suffix shows that configurations are read or written."""
    path = known(call.argument(0, "filepath"))
    return isinstance(path, str) and path.endswith(FILES)

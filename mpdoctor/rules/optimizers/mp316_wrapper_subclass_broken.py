"""A class derives from LossScaleOptimizer, and can't be made in its Keras, or overrides methods that are never called.

## Why it matters
From TensorFlow 2.10 to 2.15, and in tf_keras, `tf.keras.mixed_precision.LossScaleOptimizer` is an empty base class:
calling it makes an object of another class, which has no public name. A class that derives from it raises
`TypeError: … takes no arguments` when it is made, or `object.__init__() takes exactly one argument`. In
TensorFlow 2.4 the same class worked.

Keras 3 lets the class be made, but calls neither `get_scaled_loss` nor `get_unscaled_gradients`: fit() trains with
Keras' own loss scale of 32768, and says nothing.

## Flagged
```python
# keras: 2.15
import tensorflow as tf


class Gentle(tf.keras.mixed_precision.LossScaleOptimizer):
    def get_scaled_loss(self, loss):
        return super().get_scaled_loss(loss) / 64


optimizer = Gentle(tf.keras.optimizers.SGD(0.1))
```

## Fixed
```python
# keras: 2.15
import tensorflow as tf


class Gentle(type(tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.SGD()))):
    def get_scaled_loss(self, loss):
        return super().get_scaled_loss(loss) / 64


optimizer = Gentle(tf.keras.optimizers.SGD(0.1))
```

## Versions
Made in TensorFlow 2.4, 2.10 and 2.15, tf_keras 2.21 and Keras 3.15, with and without an `__init__` of its own.

## Where users met it
tensorflow/tensorflow#38357 advises such a class, keras-team/keras#16560.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts
from mpdoctor.program.values import Api, Value, is_api, options
from mpdoctor.semantics.source.edits.expressions import replaced, unsafe_fix
from mpdoctor.semantics.source.edits.names import keras_name
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER, inner_argument
from mpdoctor.semantics.source.texts.syntax_trees import class_around, location_of
from mpdoctor.semantics.source.texts.written import text_of
from mpdoctor.semantics.wording import listed

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
FAILS_IN = ("model",)
CONFIRMED_LIVE = True
OPTIMIZERS = "keras.optimizers."
# What Python says where `type.__call__` hands arguments to a class without an `__init__` that takes them.
REFUSED = r"(?:(\w+)\(\) takes no arguments|object\.__init__\(\) takes exactly one argument.*)"
# What Keras 3 calls in place of each method of Keras 2.
CALLED_BY_KERAS3 = {"get_scaled_loss": "scale_loss", "get_unscaled_gradients": "apply"}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for own in facts.classes:
        wrappers = [base for base in own.bases if all(is_api(option, WRAPPER) for option in options(base))]
        if wrappers and facts.keras.is_keras3:
            yield from _never_called(facts, own)
        elif any(_is_empty(base, facts.keras) for base in wrappers) and _is_made_by_base(facts, own):
            said = _cannot_be_made(own.name, facts.keras)
            yield Finding(said, _derive_from(facts, own), own.location, fix=_other_base(facts, own))


def _is_empty(base: Value, keras: Keras) -> bool:
    """Whether a LossScaleOptimizer is the class from which no other can be derived: the public one."""
    spelled = [option.spelled.split(".") if isinstance(option, Api) else [] for option in options(base)]
    is_public = all(parts[-2:-1] == ["mixed_precision"] and not {"python", "src"} & {*parts} for parts in spelled)
    return is_public and (keras.package == "tf_keras" or (2, 10) <= keras.tensorflow_release < (2, 16))


def _is_made_by_base(facts: SourceFacts, own: ClassFacts) -> bool:
    """Whether making one hands arguments to the empty base class: through an `__init__` of its own, or without one."""
    if own.find_method("__new__") is not None:
        return False
    if own.find_method("__init__") is None:
        return True
    return any(call.context.owner is own for call in facts.method_calls("__init__"))


def _never_called(facts: SourceFacts, own: ClassFacts) -> Iterator[Finding]:
    overrides = {name: own.find_method(name) for name in CALLED_BY_KERAS3}
    unused = {
        name: called
        for name, called in CALLED_BY_KERAS3.items()
        if overrides[name] and not own.find_method(called) and not _is_called_elsewhere(facts, own, name)
    }
    first = next((overrides[name] for name in unused), None)
    if first is not None:
        names, instead = (listed([f"`{name}`" for name in names]) for names in (unused, unused.values()))
        yield Finding(
            f"Keras 3 never calls {names}, which {own.name} overrides: fit() trains with Keras' own loss scale.",
            f"Override {instead} in `{own.name}`: Keras 3 multiplies the loss in `scale_loss`, and divides the "
            "gradients in `apply`.",
            first.location,
        )


def _is_called_elsewhere(facts: SourceFacts, own: ClassFacts, name: str) -> bool:
    """Whether the program itself calls the method anywhere but in the class and those that it derives from."""
    own_classes = list(own.lineage())
    return any(all(call.context.owner is not cls for cls in own_classes) for call in facts.method_calls(name))


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    refused = re.fullmatch(REFUSED, failure.said_by_library)
    if refused is None or failure.inside != "loss scaling" or failure.keras is None:
        return
    base = "tf_keras" if failure.keras.package == "tf_keras" else "tf.keras"
    yield Finding(
        _cannot_be_made(refused[1] or "The optimizer's class", failure.keras),
        _derived(f"{base}.mixed_precision.LossScaleOptimizer", f"{base}.optimizers.SGD"),
        failure.location,
    )


def _cannot_be_made(name: str, keras: Keras) -> str:
    return f"{name} derives from `LossScaleOptimizer`, an empty base class in {keras}: making one raises TypeError."


def _derive_from(facts: SourceFacts, own: ClassFacts) -> str:
    wrapper, optimizer = "mixed_precision.LossScaleOptimizer", _wrapped_class(facts, own)
    return _derived(keras_name(facts, wrapper) or wrapper, keras_name(facts, optimizer) or optimizer)


def _other_base(facts: SourceFacts, own: ClassFacts) -> Fix | None:
    """The class that is made in the place of the empty one as the only base."""
    definition = class_around(facts, own.location.line) if own.location.path == facts.path else None
    optimizer = keras_name(facts, _wrapped_class(facts, own))
    if definition is None or definition.name != own.name or len(definition.bases) != 1 or optimizer is None:
        return None
    place = location_of(facts, definition.bases[0])
    made = replaced(facts, place, f"type({text_of(facts, place)}({optimizer}()))")
    return unsafe_fix("Derive the subclass from the class that is made", made)


def _wrapped_class(facts: SourceFacts, own: ClassFacts) -> str:
    """The class of Keras' optimizers that objects of the class are made with: legacy ones have a base of their own."""
    for making in facts.makings_of(own):
        for given in options(inner_argument(making)):
            if isinstance(given, Call) and isinstance(given.callee, Api) and given.callee.name.startswith(OPTIMIZERS):
                return given.callee.name.removeprefix("keras.")
    return "optimizers.SGD"


def _derived(wrapper: str, optimizer: str) -> str:
    return f"Derive it from the class that is made in its place: `type({wrapper}({optimizer}()))`."

"""The program assigns `dtype_policy` of an existing model, which does not change how its layers compute.

## Why it matters
Keras 2 raises `Can't set the attribute "dtype_policy"`. Keras 3 accepts the assignment and changes only the
policy of the model object: in Keras 3.15 the layers of a Sequential kept computing in float32, while compile()
put a LossScaleOptimizer around Adam because the model now says mixed_float16. Mixed precision looks switched on
and is not.

## Flagged
```python
import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.dtype_policy = "mixed_float16"
```

## Fixed
```python
import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
```

## Versions
All. An error in Keras 2, which refuses the assignment to a single layer as well; a warning in Keras 3, where a
single layer does take its new policy.

## Where users met it
keras-team/keras#19752.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.dtypes.tensor_dtypes import policies_named
from mpdoctor.program.events import Write
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Instance
from mpdoctor.program.values import options
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.policies import set_at_top
from mpdoctor.semantics.source.layers.model_layers import layer_or_model
from mpdoctor.semantics.source.programs.attribute_access import writes

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
MODEL_ONLY = (
    "This changes the policy of the model object and of none of its layers: they keep computing as they were built."
)
REFUSED = "`dtype_policy` cannot be assigned in Keras 2: this line raises AttributeError."
HELP = "Set the global policy before the layers are made, or pass `dtype=…` to each layer."
FAILS_IN = ("model", "training")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for write in writes(facts, ("dtype_policy",)):
        if write.context.guarded or _is_own_property(write):
            continue
        kinds = {layer_or_model(option) for option in options(write.of)}
        if kinds == {"model"} and facts.keras.is_keras3:
            yield Finding(MODEL_ONLY, HELP, write.location, fix=_fix(facts, write))
        elif kinds and kinds <= {"model", "layer"} and not facts.keras.is_keras3:
            fix = _fix(facts, write) if kinds == {"model"} else None
            yield Finding(REFUSED, HELP, write.location, severity=Severity.ERROR, fix=fix)


def _fix(facts: SourceFacts, write: Write) -> Fix | None:
    named = policies_named(write.value)
    return unsafe_fix("Set the policy at the top", *set_at_top(facts, named[0], write)) if len(named) == 1 else None


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    if 'Can\'t set the attribute "dtype_policy"' in failure.said_by_library:
        yield Finding(
            "`dtype_policy` cannot be assigned in Keras 2.",
            HELP,
            failure.location,
            severity=Severity.ERROR,
        )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    yield from _left_behind(model.policy_before, model.policy, model.policy_set_at, model.layers)
    for nested in model.layers:
        if nested.is_model:
            inside = tuple(model.inside(nested))
            yield from _left_behind(nested.policy_before, nested.policy, nested.policy_set_at, inside)


def _left_behind(before: str, now: str, place: Location | None, layers: tuple[LayerFacts, ...]) -> Iterator[Finding]:
    """Models whose new policy none of their layers followed."""
    weighty = [layer for layer in layers if layer.variables and not layer.is_model]
    if before not in ("", now) and weighty and all(layer.policy != now for layer in weighty):
        yield Finding(
            MODEL_ONLY,
            HELP,
            place,
            evidence={"model": now, "layers": sorted({layer.policy for layer in weighty})},
        )


def _is_own_property(write: Write) -> bool:
    """Whether the user's own class defines the assignment, or is still being built (`self.dtype_policy = …`)."""
    for option in options(write.of):
        own: ClassFacts | None = class_of(option)
        if own is None:
            continue
        function = write.context.function
        in_constructor = isinstance(option, Instance) or (function is not None and function.owner is own)
        if own.find_method("dtype_policy") is not None or own.find_method("__setattr__") is not None or in_constructor:
            return True
    return False

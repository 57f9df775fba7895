"""A float32 model is loaded under a mixed policy and trained: it stays float32.

## Why it matters
A saved model contains the policy of each of its layers, and the global policy changes none of them. Under
mixed_float16 the loaded layers compute in float32, while the optimizer becomes a LossScaleOptimizer: the cost
of mixed precision without its speed (measured in Keras 3.15, tf_keras 2.21 and TensorFlow 2.15).

## Flagged
```python
import keras

model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
model.save("pretrained.keras")

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.models.load_model("pretrained.keras")
model.compile("adam", "mse")
```

## Fixed
```python
import keras


def build():
    return keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1, dtype="float32")])


model = build()
model.save_weights("pretrained.weights.h5")

keras.mixed_precision.set_global_policy("mixed_float16")
model = build()
model.load_weights("pretrained.weights.h5")
model.compile("adam", "mse")
```

## Versions
All.

## Where users met it
zzh8829/yolov3-tf2#243, tensorflow/hub#466.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.half_dtypes import HALF_POLICIES
from mpdoctor.facts.layer import LayerFacts
from mpdoctor.facts.model import ModelFacts
from mpdoctor.facts.saved.file import LoadFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import walk
from mpdoctor.semantics.source.trainings.saved_files import (
    holds_layers_without_dtype,
    loads,
    policies_in_file,
    training_of,
)
from mpdoctor.semantics.source.trainings.trained_models import is_frozen, trainings

SEVERITY = Severity.WARNING
EXPLAINS = {"MP209": "model", "MP309": "model"}


def in_model(model: ModelFacts) -> Iterator[Finding]:
    if model.call.kind == "none":
        return
    for load in model.loads:
        heavy = _float32_layers(model, load)
        if heavy and load.policy in HALF_POLICIES:
            yield Finding(
                f"`{load.file}` was saved with float32 layers: all {len(heavy)} layers with weights stay float32, "
                f"although the global policy was {load.policy} when it was loaded.",
                "Build the model again under the policy and copy the weights with `new.set_weights(old.get_weights())` "
                "or `load_weights`.",
                load.location,
                model=model.id,
                layer=load.part or None,
                evidence={"file": load.file, "policy": load.policy, "float32 layers": [layer.path for layer in heavy]},
            )


def _float32_layers(model: ModelFacts, load: LoadFacts) -> list[LayerFacts]:
    """The loaded layers with weights, where everything that was loaded computes in float32; else []."""
    layers = [layer for layer in model.loaded_by(load) if layer.floating and not layer.is_model]
    is_float32 = all(layer.compute_dtype == "float32" for layer in layers)
    return [layer for layer in layers if layer.variables] if is_float32 else []


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for load in loads(facts):
        policies = facts.policies_at(load)
        if load.context.guarded or not policies or any(policy not in HALF_POLICIES for policy in policies):
            continue
        saved = policies_in_file(facts, load)
        if holds_layers_without_dtype(facts):
            return  # those take the policy at the load, and whether others are in the file is not looked at (MP213)
        if saved and saved <= {None, "float32"} and training_of(facts, load) and not _is_teacher(facts, load):
            yield Finding(
                f"The policy is {policies[0]} here, but the model in this file was saved with float32 layers: they "
                "stay float32, whatever the policy.",
                "Build the model again under the policy and copy the weights with `new.set_weights(old.get_weights())` "
                "or `load_weights`.",
                load.location,
            )


def _is_teacher(facts: SourceFacts, load: Call) -> bool:
    """Whether it is frozen and kept beside the model that is trained, in an object of a class of the user's: it gives
    targets, often in float32 on purpose."""
    holders = [outer for _, outer in trainings(facts) if any(part is load for part in walk(outer))]
    return is_frozen(facts, load) and all(outer is not load and class_of(outer) is not None for outer in holders)

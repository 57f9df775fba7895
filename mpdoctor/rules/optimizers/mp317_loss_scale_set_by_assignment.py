"""A loss scale or its settings are assigned to a LossScaleOptimizer, which does not take them that way.

## Why it matters
In Keras 2 `optimizer.loss_scale = 1024.0` raises AttributeError: `loss_scale`, `dynamic`, `initial_scale` and
`dynamic_growth_steps` can only be read. In Keras 3 the assignment succeeds and Keras does not read it: the loss scale
began at 32768 and was halved and doubled as before.

## Flagged
```python
from tensorflow import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())
optimizer.loss_scale = 1024.0
```

## Fixed
```python
from tensorflow import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam(), initial_scale=1024.0)
```

## Versions
All. Tried in TensorFlow 2.4, 2.10 and 2.15 and in Keras 3.15. In Keras 3 `initial_scale` can be assigned before the
first step, and `dynamic_growth_steps` at any time.

## Where users met it
Programs that set the scale as they set the learning rate.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Severity
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.optimizers.wrappers import wrapped
from mpdoctor.semantics.source.programs.attribute_access import reads, same_object, writes
from mpdoctor.semantics.source.programs.branches import is_ruled_out
from mpdoctor.semantics.source.texts.written import owner_of_setting

SEVERITY = Severity.ERROR
REFUSED_IN_KERAS2 = ("loss_scale", "dynamic", "initial_scale", "dynamic_growth_steps", "dynamic_counter")
UNREAD_IN_KERAS2 = ("initial_loss_scale", "dynamic_scale", "increment_period")
UNREAD_IN_KERAS3 = ("loss_scale", "dynamic", "initial_loss_scale", "increment_period")
ASSIGNED = frozenset((*REFUSED_IN_KERAS2, *UNREAD_IN_KERAS2, *UNREAD_IN_KERAS3))
HELP = "Give it where the wrapper is made: `LossScaleOptimizer(optimizer, {})`."
FIXED_IN_KERAS3 = "For a fixed scale in Keras 3 give the optimizer inside a `loss_scale_factor`, and wrap nothing."
ARGUMENTS = {  # the argument of the constructor that sets it, by what is assigned
    "dynamic": "dynamic=False, initial_scale=…",
    "dynamic_growth_steps": "dynamic_growth_steps=…",
    "increment_period": "dynamic_growth_steps=…",
}


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    refused = () if facts.keras.is_keras3 else REFUSED_IN_KERAS2
    unread = UNREAD_IN_KERAS3 if facts.keras.is_keras3 else UNREAD_IN_KERAS2
    for write in writes(facts, ASSIGNED):
        if write.name not in (*refused, *unread) or write.context.guarded or is_ruled_out(write.context):
            continue
        is_read = any(same_object(read.of, write.of) for read in reads(facts, (write.name,)))
        if wrapped(facts, write.of, write) and (write.name in refused or not is_read):
            of = owner_of_setting(facts, write)
            yield Finding(
                f"`{write.name}` of a LossScaleOptimizer can only be read in Keras 2: this line raises AttributeError."
                if write.name in refused
                else f"`{of}.{write.name}` sets an attribute that Keras does not read: the loss scale stays as it was.",
                _help(write.name, facts.keras.is_keras3),
                write.location,
                severity=Severity.ERROR if write.name in refused else Severity.WARNING,
            )


def _help(name: str, is_keras3: bool) -> str:
    if is_keras3 and name == "dynamic":
        return FIXED_IN_KERAS3
    return HELP.format(ARGUMENTS.get(name, "initial_scale=…"))

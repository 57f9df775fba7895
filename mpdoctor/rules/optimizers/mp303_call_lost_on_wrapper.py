"""`exclude_from_weight_decay`, or an argument of `apply_gradients`, does not get through a LossScaleOptimizer.

## Why it matters
The wrapper inherits `exclude_from_weight_decay` from its base class and keeps the list to itself. The call
succeeds, and the weights that it names are decayed all the same: with AdamW(1.0, weight_decay=0.1) a bias of 1
became 0.9 through the wrapper, and stayed 1 where the method was called on the optimizer inside. The wrapper of
Keras 2's classic optimizers has no such method and raises AttributeError.

The `apply_gradients` of that classic wrapper passes on only `name` and `experimental_aggregate_gradients`. With
`decay_var_list=…`, which an optimizer's own `apply_gradients` may take, it raises `TypeError: got an unexpected
keyword argument` (TensorFlow 2.4 and 2.10; legacy optimizers in 2.15 and tf_keras). The wrapper of the new
optimizers passes on every argument.

## Flagged
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.AdamW(weight_decay=0.01))
optimizer.exclude_from_weight_decay(var_names=["bias", "gamma"])
```

## Fixed
```python
import keras

optimizer = keras.mixed_precision.LossScaleOptimizer(keras.optimizers.AdamW(weight_decay=0.01))
optimizer.inner_optimizer.exclude_from_weight_decay(var_names=["bias", "gamma"])
```

## Versions
All that have weight decay: Keras 3, tf_keras, TensorFlow 2.11 and later. Arguments of `apply_gradients`: TensorFlow up
to 2.10, and legacy optimizers of Keras 2.

## Where users met it
Found by measuring. There is no report on GitHub, because the method call does not fail.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.wrapper_delegation import CLASSIC
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.attributes import of_inner_optimizer
from mpdoctor.semantics.source.edits.expressions import safe_fix
from mpdoctor.semantics.source.optimizers.attribute_access import reads
from mpdoctor.semantics.source.optimizers.wrappers import kinds_of_wrapper, lacks, wrapped
from mpdoctor.semantics.wording import name_of_optimizer, text_at

SEVERITY = Severity.ERROR
FIXES = ("safe",)
EXPLAINS = {"MP301": "line"}
LOST = "exclude_from_weight_decay"
HELP = {
    "skip_gradients_aggregation": "Its classic name is `experimental_aggregate_gradients=False`.",
    "": "Before this call, store it in an attribute of `optimizer.inner_optimizer` that the inner optimizer's own "
    "`apply_gradients` reads.",
}
TAKEN_BY_CLASSIC = ("grads_and_vars", "name", "experimental_aggregate_gradients")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    yield from _refused_arguments(facts)
    for read in reads(facts, (LOST,)):
        inside = () if read.context.guarded or not read.is_called else wrapped(facts, read.of, read)
        if not inside:
            continue
        of = text_at(facts, read.location).rpartition("." + LOST)[0] or "optimizer"
        name = name_of_optimizer(inside[0])
        yield Finding(
            f"`{of}.{LOST}` raises AttributeError: the LossScaleOptimizer has no such method."
            if lacks(LOST, inside, facts.keras)
            else f"`{of}.{LOST}` sets the list on the LossScaleOptimizer, which does not pass it on: {name} decays all "
            "weights.",
            f"Call it on the optimizer inside: `{of}.inner_optimizer.{LOST}(…)`.",
            read.location,
            fix=safe_fix("Call it on the inner optimizer", of_inner_optimizer(facts, read)),
        )


def _refused_arguments(facts: SourceFacts) -> Iterator[Finding]:
    """Keywords of `apply_gradients` for which the wrapper of classic optimizers raises."""
    if facts.keras.is_keras3:
        return
    for call in facts.method_calls("apply_gradients"):
        refused = next((name for name, _ in call.keywords if name and name not in TAKEN_BY_CLASSIC), "")
        if not refused or call.receiver is None or call.context.guarded:
            continue
        inside = wrapped(facts, call.receiver, call)
        if inside and all(kinds_of_wrapper(optimizer, facts.keras) == (CLASSIC,) for optimizer in inside):
            yield Finding(
                f"The LossScaleOptimizer's `apply_gradients` takes no `{refused}`, and passes none on to "
                f"{name_of_optimizer(inside[0])}: this call raises TypeError.",
                HELP.get(refused, HELP[""]),
                call.location,
            )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    innermost = model.optimizer[-1].class_name if model.optimizer else ""
    for link in model.optimizer:
        for call in link.lost_calls:
            yield Finding(
                f"`{call.name}` sets the list on the LossScaleOptimizer, which does not pass it on: {innermost} "
                "decays all "
                "weights.",
                f"Call it on the optimizer inside: `optimizer.inner_optimizer.{call.name}(…)`.",
                call.location,
            )

"""`exclude_from_weight_decay`, or an argument of `apply_gradients`, is given to a LossScaleOptimizer, and never reaches
the optimizer inside.

## Why it matters
The wrapper has this method from its base class and keeps the list for itself, so the call succeeds and the
weights that it names are decayed all the same: with AdamW(1.0, weight_decay=0.1) a bias of 1 became 0.9
through the wrapper, and stayed 1 where the optimizer inside was told. The wrapper of Keras 2's classic
optimizers has no such method and raises AttributeError.

That classic wrapper's `apply_gradients` hands on `name` and `experimental_aggregate_gradients` alone: with
`decay_var_list=…`, which an optimizer's own `apply_gradients` may take, it raises `TypeError: got an unexpected
keyword argument` (TensorFlow 2.4 and 2.10; legacy optimizers in 2.15 and tf_keras). The wrapper of the new
optimizers hands on all of them.

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
Found by measuring; no report on GitHub, because of the method nothing fails.
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
    "": "Tell it to the optimizer inside before this call, in an attribute of `optimizer.inner_optimizer` that its own "
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
            else f"`{of}.{LOST}` tells the LossScaleOptimizer, which keeps it for itself; {name} decays all weights.",
            f"Call it on the optimizer inside: `{of}.inner_optimizer.{LOST}(…)`.",
            read.location,
            fix=safe_fix("Call it on the inner optimizer", of_inner_optimizer(facts, read)),
        )


def _refused_arguments(facts: SourceFacts) -> Iterator[Finding]:
    """Keywords of `apply_gradients` that the wrapper of classic optimizers raises on."""
    if facts.keras.is_keras3:
        return
    for call in facts.method_calls("apply_gradients"):
        refused = next((name for name, _ in call.keywords if name and name not in TAKEN_BY_CLASSIC), "")
        if not refused or call.receiver is None or call.context.guarded:
            continue
        inside = wrapped(facts, call.receiver, call)
        if inside and all(kinds_of_wrapper(optimizer, facts.keras) == (CLASSIC,) for optimizer in inside):
            yield Finding(
                f"The LossScaleOptimizer's `apply_gradients` takes no `{refused}`, and hands none on to "
                f"{name_of_optimizer(inside[0])}: this call raises TypeError.",
                HELP.get(refused, HELP[""]),
                call.location,
            )


def in_model(model: ModelFacts) -> Iterator[Finding]:
    innermost = model.optimizer[-1].class_name if model.optimizer else ""
    for link in model.optimizer:
        for call in link.lost_calls:
            yield Finding(
                f"`{call.name}` tells the LossScaleOptimizer, which keeps it for itself; {innermost} decays all "
                "weights.",
                f"Call it on the optimizer inside: `optimizer.inner_optimizer.{call.name}(…)`.",
                call.location,
            )

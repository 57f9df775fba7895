"""Gradients are applied inside `strategy.scope()` but outside `strategy.run`, so not on a replica.

## Why it matters
Keras raises `ValueError: apply() must be called in a replica context` (`apply_gradients()` in Keras 2). A
LossScaleOptimizer asks its replica whether the gradients are finite, and code that is only inside a scope runs
on no replica. It raises even with a single device, and a bare optimizer fails there as well (`'NoneType' object
has no attribute 'merge_call'`). The scope is for making models and optimizers; put the step into a function and
pass that to `strategy.run`.

## Flagged
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
    optimizer = keras.optimizers.SGD(0.1)
    for gradients in []:
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
strategy = tf.distribute.MirroredStrategy()
with strategy.scope():
    model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
    optimizer = keras.optimizers.SGD(0.1)


def update(gradients):
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for gradients in []:
    strategy.run(update, args=(gradients,))
```

## Versions
All.

## Where users met it
tensorflow/tensorflow#36955, tensorflow/tensorflow#43974, tensorflow/tensorflow#35226.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.api_names import kind_of_class
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.instances import class_of, method_called
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, Defined, FunctionFacts
from mpdoctor.program.values import Api, Value, options
from mpdoctor.semantics.source.optimizers.bare_optimizers import BY_NAME
from mpdoctor.semantics.wording import receiver_text

SEVERITY = Severity.ERROR
FAILS_IN = ("model", "training")
# In the scope of each of them both a bare optimizer and a wrapper raise (TensorFlow 2.4, 2.10, 2.15 and 2.21); not in
# that of `get_strategy()`.
STRATEGIES = (
    *("MirroredStrategy", "MultiWorkerMirroredStrategy", "CentralStorageStrategy", "TPUStrategy"),
    "OneDeviceStrategy",
)
RUNNING = ("run", "experimental_run", "experimental_run_v2", "call_for_each_replica", "merge_call", "update")
HELP = "Put the step into a function and call `strategy.run(step, args=(…))`. Keep the scope for making the model."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    if not facts.shows_mixed_precision:
        return
    for apply in facts.method_calls(*APPLYING):
        if apply.context.guarded or not any(map(_is_scope, apply.context.withs)) or not _is_of_optimizer(apply):
            continue
        if not _runs_on_a_replica(facts, apply.context):
            of = receiver_text(facts, apply)
            yield Finding(
                f"`{of}.{apply.method}` is called in `strategy.scope()` but outside `strategy.run`: it raises, because "
                "it has to run on a replica.",
                HELP,
                apply.location,
            )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    said = failure.said_by_library
    takes_all_replicas = "Type PerReplica is not supported" in said and ".apply" in failure.failing_line
    if takes_all_replicas or "must be called in a replica context" in said:
        yield Finding(
            "Gradients are applied outside `strategy.run`, so not on a replica.",
            HELP,
            failure.location,
        )


def _is_of_optimizer(apply: Call) -> bool:
    """Whether it applies gradients. Only optimizers have an `apply_gradients`; moving averages, which a scope may
    update, and tables have an `apply` as well."""
    return apply.method == "apply_gradients" or all(map(_is_optimizer, options(apply.receiver)))


def _is_optimizer(made: Value) -> bool:
    own = class_of(made)
    if own is not None:
        return own.kind == "optimizer"
    if not isinstance(made, Call) or not isinstance(made.callee, Api):
        return False
    return made.callee.is_(*BY_NAME) or kind_of_class(made.callee.name) == "optimizer"


def _is_scope(value: Value) -> bool:
    """Whether it is the scope of a strategy, whichever of several the program has chosen."""
    return all(map(_is_scope_of_one, options(value)))


def _is_scope_of_one(value: Value) -> bool:
    strategies = options(value.receiver) if isinstance(value, Call) and value.method == "scope" else ()
    return bool(strategies) and all(map(_is_strategy, strategies))


def _is_strategy(value: Value) -> bool:
    return (
        isinstance(value, Call)
        and isinstance(value.callee, Api)
        and value.callee.name.startswith("tensorflow.distribute.")
        and value.method in STRATEGIES
    )


def _runs_on_a_replica(facts: SourceFacts, context: Context) -> bool:
    """Whether a caller is `strategy.run(step)`, or a library, which may call the function in any context. A `run` of
    the user's own class is none, but may pass on what it is given."""
    if context.owner is not None and context.owner.kind in ("model", "layer"):
        return True
    running = list(facts.method_calls(*RUNNING))
    if any(call.location in context.callers and not _is_of_own_class(call) for call in running):
        return True
    around = [context, *(call.context for call in facts.calls if call.location in context.callers)]
    functions = {id(place.function) for place in around if place.function is not None}
    return any(id(function) in functions for call in running for function in _functions_in(call))


def _is_of_own_class(call: Call) -> bool:
    return call.receiver is not None and class_of(call.receiver) is not None


def _functions_in(call: Call) -> Iterator[FunctionFacts | ClassFacts]:
    """The user's functions passed to a call, and `__call__`s of objects: directly, in a `functools.partial` or in a
    `tf.function`."""
    for given in call.given:
        for choice in options(given):
            if isinstance(choice, Defined):
                yield choice.of
            elif isinstance(choice, Call) and isinstance(choice.callee, Api):
                yield from _functions_in(choice)
            elif (method := method_called(choice)) is not None:
                yield method

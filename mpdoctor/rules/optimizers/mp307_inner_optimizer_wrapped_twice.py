"""Two LossScaleOptimizers wrap the same optimizer, which Keras 2 refuses.

## Why it matters
Keras 2 raises `ValueError: "inner_optimizer" is already wrapped by a LossScaleOptimizer`. Under mixed_float16
every compile() wraps the optimizer that it is given. Compiling two models with one optimizer, one model twice,
or a new model in each round of a loop therefore raises the second time, although it works in float32. Give each
model its own optimizer, or compile again with `model.optimizer`.

## Flagged
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
optimizer = tf.keras.optimizers.Adam(1e-4)
first = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
first.compile(optimizer, "mse")
second = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
second.compile(optimizer, "mse")
```

## Fixed
```python
# keras: tf_keras
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
first = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
first.compile(tf.keras.optimizers.Adam(1e-4), "mse")
second = tf.keras.Sequential([tf.keras.Input((4,)), tf.keras.layers.Dense(1, dtype="float32")])
second.compile(tf.keras.optimizers.Adam(1e-4), "mse")
```

## Versions
Keras 2: TensorFlow 2.4 to 2.15 and tf_keras. Keras 3 allows it, and the wrappers share the optimizer's state.

## Where users met it
tensorflow/tensorflow#48862; keisen/tf-keras-vis warns of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.values import Api, Attribute, Value
from mpdoctor.semantics.source.edits.expressions import argument_replaced, unsafe_fix
from mpdoctor.semantics.source.optimizers.wrapper_arguments import problem_in_keras2
from mpdoctor.semantics.source.optimizers.wrappers import wrapped, wrappings
from mpdoctor.semantics.source.programs.branches import exclude_each_other
from mpdoctor.semantics.source.programs.running_functions import functions_around
from mpdoctor.semantics.source.texts.written import argument_text
from mpdoctor.semantics.wording import name_of_optimizer, place_of

SEVERITY = Severity.ERROR
KERAS = ("2",)
FIXES = ("unsafe",)
FAILS_IN = ("model", "training")
HELP = "Make one optimizer for each, or compile again with `model.optimizer`, which is not wrapped again."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    used: list[tuple[Call, Call]] = []
    for wrapping, inside in sorted(wrappings(facts), key=lambda pair: pair[0].order):
        inner = _optimizer_made(facts, wrapping, inside)
        if inner is None or not _surely_wraps(wrapping, inner):
            continue
        before = [call for call, other in used if other is inner and _both_happen(facts, call, wrapping)]
        used.append((wrapping, inner))
        in_a_loop = wrapping.context.loops > inner.context.loops and wrapping.context.run == inner.context.run
        if not before and not in_a_loop:
            continue
        here = (wrapping.location, wrapping.context.callers)
        again = not before or (before[0].location, before[0].context.callers) == here
        place = "in the loop's first round" if again else place_of(facts, before[0].location, wrapping.location)
        yield Finding(
            f"A LossScaleOptimizer already wraps this {name_of_optimizer(inner)} ({place}), and Keras 2 refuses to "
            "wrap it twice: this line raises ValueError.",
            HELP,
            wrapping.location,
            fix=_fix(facts, wrapping),
        )


def _fix(facts: SourceFacts, wrapping: Call) -> Fix | None:
    """The edit that gives this model a copy of the optimizer, which starts without what the other one has counted and
    kept."""
    name, position = ("optimizer", 0) if wrapping.method == "compile" else ("inner_optimizer", 0)
    written = argument_text(facts, wrapping.location, name, position) or ""
    if not re.fullmatch(r"[\w.]+", written):
        return None
    copy = f"{written}.from_config({written}.get_config())"
    return unsafe_fix("Make a copy of the optimizer", argument_replaced(facts, wrapping.location, name, position, copy))


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    said = failure.said_by_library
    # TensorFlow 2.4 stumbles over the first wrapper's mark on the optimizer
    marked = failure.inside == "loss scaling" and "_track_trackable() with name='loss_scale'" in said
    if '"inner_optimizer" is already wrapped by a LossScaleOptimizer' in said or marked:
        yield Finding(
            "Two LossScaleOptimizers wrap the same optimizer, which Keras 2 refuses: under mixed_float16 every "
            "compile() makes one.",
            HELP,
            failure.location,
        )


def _optimizer_made(facts: SourceFacts, wrapping: Call, inside: tuple[Value, ...]) -> Call | None:
    """The call that makes the wrapped optimizer, where that is one optimizer; also where it is taken out of another
    wrapper, as `other.inner_optimizer`."""
    made = inside[0] if len(inside) == 1 else None
    if isinstance(made, Attribute) and made.name == "inner_optimizer":
        behind = wrapped(facts, made.of, wrapping)
        made = behind[0] if len(behind) == 1 else None
    return made if isinstance(made, Call) and made.method[:1].isupper() else None


def _surely_wraps(wrapping: Call, inner: Call) -> bool:
    """Whether it wraps for certain: not where the line raises before, which is MP310, and not where the inner optimizer
    is one of several and it is not known which."""
    raises_before = wrapping.method != "compile" and problem_in_keras2(wrapping)
    return not raises_before and inner.context.comprehensions <= wrapping.context.comprehensions


def _both_happen(facts: SourceFacts, one: Call, other: Call) -> bool:
    """Whether the program reaches both calls; two names for one class (by try and except) count as one call, and the
    rounds of a comprehension, `[LossScaleOptimizer(shared) for _ in range(2)]`, as several."""
    if (one.location, one.context.callers) == (other.location, other.context.callers):
        if isinstance(one.callee, Api) and isinstance(other.callee, Api) and one.callee.name == other.callee.name:
            return one.context.run == other.context.run
        return isinstance(other.receiver, Call) and other.receiver.order > one.order  # a model of another round
    if one.context.run != other.context.run or exclude_each_other(one.context, other.context):
        return False
    return not _are_of_one_receiver(facts, one.context, other.context)


def _are_of_one_receiver(facts: SourceFacts, one: Context, other: Context) -> bool:
    """Whether one call leads to both, through methods of one name: its receiver is of one of several classes, and has
    one of these methods."""
    ways = [(*functions_around(facts, context), context.function) for context in (one, other)]
    for depth, (mine, theirs) in enumerate(zip(*ways, strict=False)):
        if one.callers[:depth] != other.callers[:depth]:
            return False
        if mine is not theirs:
            return bool(depth and mine and theirs and mine.name == theirs.name and mine.owner is not theirs.owner)
    return False

"""The program makes a LossScaleOptimizer and drops it or never uses it, so it has no effect.

## Why it matters
`LossScaleOptimizer(optimizer)` and `enable_mixed_precision_graph_rewrite(optimizer)` return a new optimizer and
leave the one that they are given unchanged. If the result is dropped, or gets a name that nothing reads, a loop
goes on with the bare optimizer: there is no loss scaling, and after the graph rewrite the computation is in float16
all the same. `compile()` under mixed_float16 wraps the bare optimizer itself: in Keras 3 only the settings of the
dropped one are lost, in Keras 2 it raises ValueError, because the optimizer is wrapped already (Keras 3.15;
tf_keras 2.21, TensorFlow 2.15, 2.10 and 2.4). The same holds for a function of the program's own that makes
an optimizer, wraps it and returns it, where the call's result is dropped and another optimizer trains.

## Flagged
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
optimizer = tf.keras.optimizers.Adam()
tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer, "mse")
```

## Fixed
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
optimizer = tf.keras.optimizers.Adam()
optimizer = tf.keras.mixed_precision.LossScaleOptimizer(optimizer)
model = tf.keras.Sequential([tf.keras.layers.Dense(8), tf.keras.layers.Dense(1, dtype="float32")])
model.compile(optimizer, "mse")
```

## Versions
All.

## Where users met it
Scripts of TensorFlow 1 that called `tf.train.experimental.enable_mixed_precision_graph_rewrite(opt)` for its
side effect.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.location import Location
from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import Instance
from mpdoctor.program.values import Known, Value, is_api, options
from mpdoctor.semantics.source.edits.expressions import put_before, unsafe_fix
from mpdoctor.semantics.source.optimizers.bare_optimizers import is_bare, is_left_bare
from mpdoctor.semantics.source.optimizers.wrappers import (
    WRAPPER,
    compile_may_wrap,
    inner_argument,
    wrapped,
    wrapper_calls,
)
from mpdoctor.semantics.source.programs.attribute_access import same_object
from mpdoctor.semantics.source.programs.graph_rewrites import REWRITES
from mpdoctor.semantics.source.programs.used_values import is_name_before, returned_to, text_before, used_values
from mpdoctor.semantics.source.texts.written import argument_at, text_of
from mpdoctor.semantics.wording import text_at

SEVERITY = Severity.ERROR
FIXES = ("unsafe",)
EXPLAINS = {"MP106": "model"}
_IN_GRAPHS = tuple(
    f"tensorflow.compat.v1.{place}.MixedPrecisionLossScaleOptimizer"
    for place in ("mixed_precision", "train.experimental")
)


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in _dropped(facts):
        what_follows, severity = _what_follows(facts, call)
        first = call.argument(0)
        given = "" if first is None else text_at(facts, first.location)
        given = given if given.isidentifier() else "optimizer"
        yield Finding(
            f"`{call.method}` returns a new optimizer, and this line drops it: {what_follows}.",
            f"Keep the result: `{given} = {text_at(facts, call.location) or call.method + '(…)'}`.",
            call.location,
            severity=severity,
            fix=_fix(facts, call),
        )
    for call, place in _never_used(facts):
        what_follows, severity = _what_follows(facts, call)
        yield Finding(
            f"`{call.method}` returns a new optimizer, and nothing uses it: {what_follows}.",
            "Train with the new optimizer in the place of the bare one.",
            place,
            severity=severity,
        )


def _dropped(facts: SourceFacts) -> Iterator[Call]:
    """The calls that wrap an optimizer and whose result is dropped, while a bare optimizer trains."""
    for call in facts.calls_of(WRAPPER, *REWRITES, *_IN_GRAPHS):
        if not call.dropped or not _is_meant_to_wrap(facts, call):
            continue
        if not is_api(call.callee, WRAPPER) or _goes_on_bare(facts, call) or _another_trains(facts, call):
            yield call


def _never_used(facts: SourceFacts) -> Iterator[tuple[Call, Location]]:
    """Wrappers that get a name of their own and are never used, or that a function returns which is called for nothing,
    while the bare optimizer trains: with the place of it."""
    made = [call for call in wrapper_calls(facts) if not call.dropped and _is_meant_to_wrap(facts, call)]
    if not made or facts.is_imported or facts.incomplete:
        return
    used = used_values(facts)
    dropped = {call.location for call in facts.calls if call.dropped}
    for call in made:
        place = returned_to(facts, call)
        if id(call) in used:
            continue
        is_lost = place in dropped or is_name_before(text_before(facts, place), may_be_constant=False)
        if (is_lost and _trains_bare(facts, call)) or (place in dropped and _another_trains(facts, call)):
            yield call, place


def _trains_bare(facts: SourceFacts, wrapping: Call) -> bool:
    """Whether the optimizer inside applies gradients or is compiled after this line, not in a method of its own."""
    inner = inner_argument(wrapping)
    if inner is None:
        return False
    later = (call.receiver for call in facts.method_calls(*APPLYING) if call.order > wrapping.order)
    others = (optimizer for optimizer in later if optimizer is not None and not isinstance(optimizer, Instance))
    return any(same_object(other, inner) for other in others) or _is_compiled_later(facts, inner, wrapping)


def _what_follows(facts: SourceFacts, wrapping: Call) -> tuple[str, Severity | None]:
    """What the dropped wrapper means for the training, and the severity where it is not the rule's own."""
    inner = inner_argument(wrapping)
    applied = [call.receiver for call in facts.method_calls(*APPLYING) if call.receiver is not None]
    applies = inner is not None and any(same_object(optimizer, inner) for optimizer in applied)
    if applies or not is_api(wrapping.callee, WRAPPER):
        return "training goes on with the bare optimizer, without loss scaling", None
    if inner is None or not _is_compiled_later(facts, inner, wrapping):
        another = _another_trains(facts, wrapping)
        return ("the optimizer itself stays bare", None) if another is None else _why_unused(another)
    if facts.keras.is_keras3:
        return (
            "under mixed_float16 compile() makes one of its own, and this one has no effect",
            Severity.WARNING,
        )
    return "under mixed_float16 compile() wraps the bare optimizer again, which raises ValueError", None


def _another_trains(facts: SourceFacts, wrapping: Call) -> Call | None:
    """What trains with another, bare optimizer later, where the one inside was made for this wrapper: nothing else
    holds it."""
    if not isinstance(inner_argument(wrapping), (Call, Known)) or not is_bare(inner_argument(wrapping), is_open=True):
        return None
    compiles = (call for call in facts.method_calls("compile") if compile_may_wrap(facts, call))
    bare = [call for call in compiles if is_left_bare(facts, call.argument(0, "optimizer"), call.open)]
    bare += [call for call in facts.method_calls(*APPLYING) if is_left_bare(facts, call.receiver, is_open=True)]
    later = [call for call in bare if call.order > wrapping.order]
    return max(later, key=lambda call: call.method in APPLYING, default=None)


def _why_unused(trains: Call) -> tuple[str, Severity | None]:
    if trains.method in APPLYING:
        return "another optimizer trains, without loss scaling", None
    return "another optimizer is compiled, and this one has no effect", Severity.WARNING


def _is_compiled_later(facts: SourceFacts, optimizer: Value, wrapping: Call) -> bool:
    """Whether a `compile()` that may wrap it gets the optimizer after the wrapper was dropped."""
    later = (call for call in facts.method_calls("compile") if call.order > wrapping.order)
    compiles = (call for call in later if compile_may_wrap(facts, call))
    given = (option for call in compiles for option in options(call.argument(0, "optimizer")))
    return any(same_object(option, optimizer) for option in given)


def _fix(facts: SourceFacts, call: Call) -> Fix | None:
    """The edit that assigns the result to the name of the wrapped optimizer."""
    place = argument_at(facts, call.location, 0, "inner_optimizer", "optimizer", "opt")
    name = text_of(facts, place) if place is not None else None
    if name is None or not all(part.isidentifier() for part in name.split(".")):
        return None
    return unsafe_fix("Keep the result", put_before(facts, call.location, f"{name} = "))


def _goes_on_bare(facts: SourceFacts, wrapping: Call) -> bool:
    """Whether the bare optimizer is used after this line: compiled, called to train, or returned."""
    inner = inner_argument(wrapping)
    if inner is None:
        return False
    users = (call for call in facts.calls if not is_api(call.callee, WRAPPER))
    used = [value for call in users for value in (call.receiver, *call.given) if value is not None]
    function = wrapping.context.function
    if function is not None:
        used += [returned.value for returned in facts.returns_of(function) if returned.order > wrapping.order]
    return any(same_object(value, inner) for value in used)


def _is_meant_to_wrap(facts: SourceFacts, call: Call) -> bool:
    """Whether it is given an optimizer that is not wrapped yet, outside code that only tries whether the call works."""
    function, inner = call.context.function, inner_argument(call)
    if inner is not None and wrapped(facts, inner, call):
        return False  # MP306
    is_a_test = call.context.guarded or (function is not None and function.name.startswith("test"))
    return bool(call.args or call.keywords) and not is_a_test

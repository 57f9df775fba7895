"""enable_check_numerics() is on while the loss scale is dynamic, so the first overflow ends the training.

## Why it matters
A dynamic loss scale finds its value by overflowing: the first steps are skipped because some gradient is inf,
and later about one step in 2000. `tf.debugging.enable_check_numerics()` raises InvalidArgumentError at the
first of them, although nothing is wrong. A small network that trains well at a loss scale of 2048 stopped in
its first step (Keras 3.15, tf_keras 2.21). `tf.debugging.check_numerics` on gradients does the same.

To look for a NaN, set the policy `float32` and let it stop there: a NaN that comes in float32 too is no matter of
mixed precision. One that only float16 gives is named by `mpdoctor check`, with its layer.

## Flagged
```python
import keras
import tensorflow as tf

tf.debugging.enable_check_numerics()
keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
```

## Fixed
```python
import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("float32")
tf.debugging.enable_check_numerics()
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1, dtype="float32")])
model.compile("adam", "mse")
```

## Versions
All.

## Where users met it
Found by measuring; danijar/dreamerv2 checks gradients only without mixed precision, which is right.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations, starmap

from mpdoctor.facts.failure import FailureFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.knowledge.wrapper_api import APPLYING
from mpdoctor.program.context import Context
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import FunctionFacts
from mpdoctor.program.values import known
from mpdoctor.semantics.live.errors.error_texts import found_by_check_numerics
from mpdoctor.semantics.source.edits.expressions import unsafe_fix
from mpdoctor.semantics.source.edits.statements import passed_on, without_statement
from mpdoctor.semantics.source.layers.model_layers import policies_set
from mpdoctor.semantics.source.loops.gradients import is_gradient_call, target, until_gradients
from mpdoctor.semantics.source.loops.scaling import scales, scaling_calls
from mpdoctor.semantics.source.optimizers.wrappers import compile_may_wrap, wrappings
from mpdoctor.semantics.source.programs.branches import exclude_each_other, is_for_float32
from mpdoctor.semantics.source.programs.running_functions import surrounding

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
FAILS_IN = ("training",)
CONFIRMED_LIVE = True
ONLY_IN_HALF = True
ENABLE = "tensorflow.debugging.enable_check_numerics"
DISABLE = "tensorflow.debugging.disable_check_numerics"
CHECKS = ("tensorflow.debugging.check_numerics", "tensorflow.debugging.assert_all_finite", "tensorflow.check_numerics")
BEFORE_TRAINING = ("on_train_begin", "on_epoch_begin", "on_train_batch_begin", "on_batch_begin")
BY_DESIGN = "under a dynamic loss scale some overflow by design: each overflow lowers the scale until it fits"


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    for call in facts.calls_of(ENABLE):
        if _stays_enabled(facts, call) and _scales_dynamically(facts, call.context):
            yield Finding(
                f"This stops the training at the first gradient that overflows, and {BY_DESIGN}.",
                'Look for NaN under the policy "float32", or leave this line out: overflowing steps are skipped.',
                call.location,
                fix=unsafe_fix("Leave the check out", without_statement(facts, call.location)),
            )
    for call in facts.calls_of(*CHECKS):
        if not call.context.guarded and _checks_scaled_gradients(facts, call):
            yield Finding(
                f"`{call.method}` stops the training at the first gradient that overflows, and {BY_DESIGN}.",
                "Leave this to the LossScaleOptimizer, which skips such a step, or check the loss instead.",
                call.location,
                fix=unsafe_fix(
                    "Leave the check out",
                    without_statement(facts, call.location)
                    if call.dropped
                    else passed_on(facts, call.location, 0, "tensor", "x"),
                ),
            )


def in_failure(failure: FailureFacts) -> Iterator[Finding]:
    found = found_by_check_numerics(failure.message) if failure.in_training and failure.computes_in_half else ""
    if found:
        yield Finding(
            f"The training stopped: {found}.",
            'Look for it under the policy "float32": what is finite there overflows in float16 alone.',
            failure.location,
            severity=Severity.ERROR,
            evidence={"exception": failure.exception, "error": failure.message},
        )


def _stays_enabled(facts: SourceFacts, enable: Call) -> bool:
    """Whether the check stays on until the program ends, or at least during a training."""
    ends = sorted(off.order for off in facts.calls_of(DISABLE) if off.order > enable.order)
    method = _method_before_training(facts, enable)
    if method is not None:
        ends = [off.order for off in facts.calls_of(DISABLE) if _method_around(facts, off) is method]
    if enable.context.guarded or not ends:
        return not enable.context.guarded
    trained = (call for call in facts.method_calls("fit", *APPLYING) if call.context.run == enable.context.run)
    return any(enable.order < call.order < ends[0] for call in trained)


def _method_before_training(facts: SourceFacts, enable: Call) -> FunctionFacts | None:
    """The method around the call, if Keras calls it before it trains: `on_train_begin` or the like, of a callback that
    the program makes."""
    method = _method_around(facts, enable)
    owner = None if method is None else method.owner
    if method is None or owner is None or owner.kind != "callback" or not facts.makings_of(owner):
        return None
    return method if method.name in BEFORE_TRAINING else None


def _method_around(facts: SourceFacts, call: Call) -> FunctionFacts | None:
    """The outermost function in which a call stands."""
    return next(reversed([*surrounding(facts, call.context.function)]), None)


def _scales_dynamically(facts: SourceFacts, context: Context) -> bool:
    """Whether a program that gets there may have a LossScaleOptimizer with a dynamic scale, or may set a policy under
    which compile() makes one."""
    if is_for_float32(context):
        return False
    dynamic = (wrapper for wrapper, _ in wrappings(facts) if known(wrapper.argument(1, "dynamic")) is not False)
    compiled = [call for call in facts.method_calls("compile") if compile_may_wrap(facts, call)]
    policies = [call for call in facts.policy_calls if "mixed_float16" in policies_set(call)] if compiled else []
    return any(not exclude_each_other(context, wrapping.context) for wrapping in dynamic) or any(
        not any(starmap(exclude_each_other, combinations((context, policy.context, made.context), 2)))
        for policy in policies
        for made in compiled
    )


def _checks_scaled_gradients(facts: SourceFacts, call: Call) -> bool:
    """Whether the loss may be scaled where this is checked, and not only in the other branch of an `if`."""
    return any(
        scales(facts, scaling) and not exclude_each_other(call.context, scaling.context)
        for part in until_gradients(call.argument(0))
        if isinstance(part, Call) and is_gradient_call(part)
        for scaling in scaling_calls(target(part))
    )

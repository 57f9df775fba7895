"""The program trains on a TPU, and its policy is mixed_float16.

## Why it matters
A TPU multiplies in bfloat16. Its hardware does nothing faster in float16, whose range is small besides: the
loss scaling that float16 needs checks every gradient of every step. mixed_bfloat16 is what TPUs are built for,
and needs no scaling.

## Flagged
```python
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
tf.keras.mixed_precision.set_global_policy("mixed_float16")
```

## Fixed
```python
import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TPUClusterResolver()
tf.tpu.experimental.initialize_tpu_system(resolver)
strategy = tf.distribute.TPUStrategy(resolver)
tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")
```

## Versions
All. A program that also runs without a TPU (behind a `try` or an `if`) is not judged from its source.

## Where users met it
tensorflow/tensorflow#47362, keras-team/keras#18448.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.facts.source import SourceFacts
from mpdoctor.facts.values import Call
from mpdoctor.finding import Finding, Severity
from mpdoctor.rules.policy.building import half_policy_calls, happen_together, policies_set

SEVERITY = Severity.WARNING
STRATEGIES = ("tensorflow.distribute.TPUStrategy", "tensorflow.distribute.experimental.TPUStrategy")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    strategies = [call for call in facts.calls_of(*STRATEGIES) if not call.context.guarded]
    for policy in half_policy_calls(facts):
        if policies_set(policy) != ("mixed_float16",) or policy.context.guarded:
            continue
        if any(_is_certain(strategy, policy) for strategy in strategies):
            yield Finding(
                "This program trains on a TPU, which computes in bfloat16: mixed_float16 brings it no speed, and a "
                "loss scaling that it would not need.",
                'Use "mixed_bfloat16".',
                policy.location,
            )


def _is_certain(strategy: Call, policy: Call) -> bool:
    """Whether the TPU is there wherever this policy is set."""
    arms = {(branch.statement, branch.taken) for branch in policy.context.branches}
    here = all((branch.statement, branch.taken) in arms for branch in strategy.context.branches)
    return here and happen_together(strategy.context, policy.context)

"""The device does not compute in the policy's 16-bit dtype.

## Why it matters
A TPU multiplies in bfloat16. Its hardware does nothing faster in float16, and float16's small range needs loss
scaling, which checks every gradient of every step. mixed_bfloat16 is the policy that TPUs are built for, and it
needs no loss scaling. On GPUs it is the other way round: bfloat16 needs compute capability 8.0 (A100, RTX 30),
and an older GPU converts every number to float32 and back.

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
All. A program that can also run without a TPU (the TPU code is behind a `try` or an `if`) is judged from its source
only where it sets the policy in the same part, behind the strategy. Only a run shows which GPU there is.

## Where users met it
tensorflow/tensorflow#47362, keras-team/keras#18448.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from mpdoctor.facts.model import ModelFacts
from mpdoctor.finding import Finding, Severity
from mpdoctor.program.events import Call
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import literal_replaced, unsafe_fix
from mpdoctor.semantics.source.layers.model_layers import half_policy_calls, policies_set
from mpdoctor.semantics.source.programs.branches import happen_together
from mpdoctor.semantics.source.texts.syntax_trees import tree_of

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
ON_TPU = (
    "This program trains on a TPU, which computes in bfloat16: mixed_float16 makes it no faster, and costs loss "
    "scaling, which bfloat16 does not need."
)
STRATEGIES = ("tensorflow.distribute.TPUStrategy", "tensorflow.distribute.experimental.TPUStrategy")


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    strategies = list(facts.calls_of(*STRATEGIES))
    for policy in half_policy_calls(facts) if strategies else ():
        if policies_set(policy) != ("mixed_float16",):
            continue
        if any(_is_certain(facts, strategy, policy) for strategy in strategies):
            given = policy.argument(0, "policy") or policy.keyword("dtype_policy")
            edit = literal_replaced(facts, given.location, "mixed_bfloat16") if given is not None else None
            fix = unsafe_fix('Write "mixed_bfloat16"', edit)
            yield Finding(ON_TPU, 'Use "mixed_bfloat16".', policy.location, fix=fix)


def in_model(model: ModelFacts) -> Iterator[Finding]:
    dtypes = {layer.compute_dtype for layer in model.layers if layer.floating}
    if not model.is_trained:
        return
    if "float16" in dtypes and (model.strategy.startswith("TPUStrategy") or _has(model, "TPU")):
        yield Finding(ON_TPU, 'Use "mixed_bfloat16".', evidence={"policy": model.global_policy})
    if "bfloat16" in dtypes:
        yield from _without_bfloat16(model)


def _without_bfloat16(model: ModelFacts) -> Iterator[Finding]:
    """The first GPU that is too old for bfloat16."""
    old = next(
        (device for device in model.devices if device.compute_capability and device.compute_capability < (8, 0)), None
    )
    if old is not None and old.compute_capability is not None:
        capability = ".".join(map(str, old.compute_capability))
        yield Finding(
            f"This model computes in bfloat16, but {old.name or 'the GPU'} (compute capability {capability}) does not: "
            "it converts every number to float32 and back.",
            'Use "mixed_float16" on this GPU. bfloat16 needs compute capability 8.0.',
            evidence={"device": old.name, "compute_capability": capability},
        )


def _comes_later_in_one_try(facts: SourceFacts, first: Call, second: Call) -> bool:
    """Whether two calls stand in the body of one `try`, so that the second is made only where the first succeeds."""
    if first.order > second.order or {first.location.path, second.location.path} != {facts.path}:
        return False
    bodies = [node.body for node in ast.walk(tree_of(facts) or ast.Module([], [])) if isinstance(node, ast.Try)]
    lines = first.location.line, second.location.line
    return any(all(body[0].lineno <= line <= (body[-1].end_lineno or 0) for line in lines) for body in bodies)


def _has(model: ModelFacts, kind: str) -> bool:
    return any(device.kind == kind for device in model.devices)


def _is_certain(facts: SourceFacts, strategy: Call, policy: Call) -> bool:
    """Whether the program certainly has a TPU wherever it sets this policy."""
    if (strategy.context.guarded or policy.context.guarded) and not _comes_later_in_one_try(facts, strategy, policy):
        return False
    arms = {(branch.statement, branch.taken) for branch in policy.context.branches}
    here = all((branch.statement, branch.taken) in arms for branch in strategy.context.branches)
    return here and happen_together(strategy.context, policy.context)

"""A Keras policy or LossScaleOptimizer and TensorFlow's graph rewrite are both switched on.

## Why it matters
Both cast to float16, and neither knows of the other: the rewrite casts again what the policy has already cast.
Users met `TensorArray dtype is float but Op is trying to write dtype half`. In Keras 2
`enable_mixed_precision_graph_rewrite` and the policy refuse each other with a ValueError, whichever comes
second. In Keras 3 that function does not notice the policy, and `{"auto_mixed_precision": True}` is refused in
no version (TensorFlow 2.15 and 2.21).

## Flagged
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
tf.config.optimizer.set_experimental_options({"auto_mixed_precision": True})
```

## Fixed
```python
import tensorflow as tf

tf.keras.mixed_precision.set_global_policy("mixed_float16")
```

## Versions
All. A LossScaleOptimizer beside `auto_mixed_precision` alone is right: that option scales no loss.

## Where users met it
tensorflow/tensorflow#34006, NVIDIA/DeepLearningExamples#279, Rayhane-mamah/Tacotron-2#439.
"""

from __future__ import annotations

from collections.abc import Iterator

from mpdoctor.finding import Finding, Fix, Severity
from mpdoctor.program.events import Call, Write
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.expressions import unsafe_fix, without_call
from mpdoctor.semantics.source.edits.statements import without_statement
from mpdoctor.semantics.source.layers.model_layers import half_policy_calls, policies_written
from mpdoctor.semantics.source.optimizers.wrappers import WRAPPER
from mpdoctor.semantics.source.programs.branches import happen_together
from mpdoctor.semantics.source.programs.graph_rewrites import rewrites
from mpdoctor.semantics.wording import place_of

SEVERITY = Severity.WARNING
FIXES = ("unsafe",)
ENABLING = "enable_"
REFUSED = "Keras 2 refuses the two together, and whichever comes second raises ValueError."
CAST_TWICE = "neither mechanism knows of the other, and values are cast twice."


def in_source(facts: SourceFacts) -> Iterator[Finding]:
    on_purpose = [call for call in half_policy_calls(facts) if _is_half_anyway(call)]
    wrappers = list(facts.calls_of(WRAPPER))
    for rewrite, name in rewrites(facts):
        if rewrite.context.guarded:
            continue
        other = _together_with(on_purpose, rewrite)
        if other is None and name.startswith(ENABLING):  # it wraps the optimizer; the others need a wrapper
            other = _together_with(wrappers, rewrite)
        if other is not None:
            kind = "Keras policy" if other in on_purpose else "LossScaleOptimizer"
            is_refused = other in on_purpose and name.startswith(ENABLING) and not facts.keras.is_keras3
            place = place_of(facts, other.location, rewrite.location)
            yield Finding(
                f"`{name}` rewrites the graph to float16, and a {kind} is in force as well ({place}): "
                + (REFUSED if is_refused else CAST_TWICE),
                f"Keep the {kind} and drop `{name}`.",
                rewrite.location,
                fix=_fix(facts, rewrite),
            )


def _fix(facts: SourceFacts, rewrite: Call | Write) -> Fix | None:
    """The edit that removes the statement, or puts the optimizer in the place of the call that wraps it."""
    place = rewrite.location
    if isinstance(rewrite, Write) or rewrite.dropped:
        return unsafe_fix("Drop the graph rewrite", without_statement(facts, place))
    return unsafe_fix("Leave the optimizer as it is", without_call(facts, place, 0, "opt", "optimizer"))


def _is_half_anyway(policy: Call) -> bool:
    """Whether it sets a 16-bit policy whatever the options of the program are: an option may choose one mechanism."""
    return bool(policies_written(policy)) and not {"float32", None} & set(policies_written(policy))


def _together_with(others: list[Call], rewrite: Call | Write) -> Call | None:
    return next((other for other in others if happen_together(other.context, rewrite.context)), None)

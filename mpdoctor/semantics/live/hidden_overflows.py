"""What is told of an overflow that no skipped step shows, and what helps."""

from __future__ import annotations

from mpdoctor.facts.remedies import RemedyFacts, TrialResult
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.finding import Finding
from mpdoctor.semantics.live.broken_operations import broke


def finding_of_hidden_overflow(training: TrainingFacts) -> Finding:
    """Raises AssertionError where there is none."""
    hidden = training.hidden_overflow
    assert hidden is not None
    return Finding(
        f"In layer `{hidden.layer}` ({hidden.class_name}), {broke(hidden.operation)}: inf in float16, which ends at "
        "65504. No step is skipped for it, because later operations make it finite again; but what the layer puts out "
        f"is {hidden.apart:.0%} of its size away from what it gives in float32 on the same input.",
        _remedy(training),
        hidden.operation.location or hidden.location or training.model.call.location,
        model=training.model.id,
        layer=hidden.layer,
        evidence={
            "operation": hidden.operation.name,
            "largest": hidden.operation.largest,
            "in_float32": hidden.operation.in_float32,
            "apart": hidden.apart,
        },
        remedies=_remedies(training),
    )


def _remedy(training: TrainingFacts) -> str:
    hidden = training.hidden_overflow
    assert hidden is not None
    made = "" if hidden.location is None else f" (line {hidden.location.line})"
    give = f'Give `{hidden.layer}`{made} dtype="float32"'
    if hidden.is_healed:
        return f"{give}: then nothing overflows in any layer (tried on the last batch)."
    return (
        f'`{hidden.layer}`{made} with dtype="float32" is not enough (tried on the last batch): then a result of '
        "another layer overflows. Not tried: make what goes into it smaller, or float32 for that layer as well."
    )


def _remedies(training: TrainingFacts) -> tuple[RemedyFacts, ...]:
    hidden = training.hidden_overflow
    assert hidden is not None
    reason = "" if hidden.is_healed else "with it in float32 a result of another layer overflows"
    tried: TrialResult = "failed" if reason else "healed"
    return (RemedyFacts("float32-layers", tried, (hidden.layer,), (hidden.location,), reason=reason, batches=1),)

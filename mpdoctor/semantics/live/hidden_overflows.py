"""The findings about what no skipped step shows, an overflow or a wave without its phase, and their remedies."""

from __future__ import annotations

import math

from mpdoctor.facts.location import Location, line_in_words
from mpdoctor.facts.remedies import RemedyFacts, TrialResult
from mpdoctor.facts.training import TrainingFacts
from mpdoctor.facts.written_numbers import magnitude_text
from mpdoctor.finding import Finding
from mpdoctor.semantics.live.broken_operations import broke
from mpdoctor.semantics.wording import listed

DIGITS = {"float16": 10, "bfloat16": 7}  # bits behind the first one


def finding_of_hidden_overflow(training: TrainingFacts) -> Finding:
    """The finding for a hidden overflow. Raises AssertionError where there is none."""
    hidden = training.hidden_overflow
    assert hidden is not None
    return Finding(
        f"In layer `{hidden.layer}` ({hidden.class_name}), {broke(hidden.operation)}: inf in float16, whose largest "
        "number is 65504. No step is skipped for it, because later operations make the result finite again, but the "
        f"layer's output differs from that in float32 on the same input by {hidden.apart:.0%} of its size.",
        _remedy(training),
        hidden.operation.location or next(iter(hidden.locations), None) or training.model.call.location,
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


def finding_of_lost_wave(training: TrainingFacts) -> Finding:
    """The finding for a sine whose angles 16 bits do not hold. Raises AssertionError where there is none."""
    hidden = training.hidden_overflow
    assert hidden is not None
    wave = hidden.operation
    gap = 2.0 ** (math.floor(math.log2(wave.largest)) - DIGITS[wave.dtype])
    named = listed([_named(path, place) for path, place in zip(hidden.layers, hidden.locations, strict=True)])
    tried = ": then no angle loses its phase in any layer (tried on the last batch)" if hidden.is_healed else ""
    return Finding(
        f"In layer `{hidden.layer}` ({hidden.class_name}), {wave.name.lower()}() is taken of {wave.dtype} angles up to "
        f"{magnitude_text(wave.largest)}, where neighbouring {wave.dtype} numbers lie {gap:g} apart: a whole period is "
        f"6.28. The layer's output differs from that in float32 on the same input by {hidden.apart:.0%} of its size.",
        f'Give {named} dtype="float32"{tried}. A cast to float32 inside `call()` is too late where the layer is given '
        "floats: it casts them to 16 bits before.",
        wave.location or next(iter(hidden.locations), None) or training.model.call.location,
        model=training.model.id,
        layer=hidden.layer,
        evidence={"operation": wave.name, "largest": wave.largest, "gap": gap, "apart": hidden.apart},
        remedies=_remedies(training) if hidden.is_healed else (),
    )


def _remedy(training: TrainingFacts) -> str:
    hidden = training.hidden_overflow
    assert hidden is not None
    named = [_named(path, place) for path, place in zip(hidden.layers, hidden.locations, strict=True)]
    layers = listed(named)
    if hidden.is_healed:
        return f'Give {layers} dtype="float32": then nothing overflows in any layer (tried on the last batch).'
    return (
        f'{layers} with dtype="float32" {"is" if len(named) == 1 else "are"} not enough (tried on the last batch): a '
        "result still overflows. Not tried: make its input smaller."
    )


def _named(path: str, made_at: Location | None) -> str:
    return f"`{path}`" if made_at is None else f"`{path}` ({line_in_words(made_at)})"


def _remedies(training: TrainingFacts) -> tuple[RemedyFacts, ...]:
    hidden = training.hidden_overflow
    assert hidden is not None
    reason = "" if hidden.is_healed else "with these in float32 a result still overflows"
    tried: TrialResult = "failed" if reason else "healed"
    return (RemedyFacts("float32-layers", tried, hidden.layers, hidden.locations, reason=reason, batches=1),)

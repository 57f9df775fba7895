"""Guards in training loops: which of them leave it open whether a loop scales."""

from __future__ import annotations

from mpdoctor.program.context import Context
from mpdoctor.program.source_facts import SourceFacts


def may_not_run(facts: SourceFacts, context: Context) -> bool:
    """Whether a line is guarded by another question than `hasattr(optimizer, "get_scaled_loss")`: what Keras 2 does
    behind that one, it does wherever it scales. Keras 3 never has that method."""
    return context.guarded and (facts.keras.is_keras3 or not context.only_wrapped)

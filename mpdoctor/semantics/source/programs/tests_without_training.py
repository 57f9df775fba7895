"""Whether a line runs in a test in which nothing is trained: what harms training alone is no defect there."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.program.context import Context
from mpdoctor.program.source_facts import SourceFacts

TRAINING = ("fit", "train_on_batch", "apply_gradients", "gradient")


def is_in_test_without_training(facts: SourceFacts, context: Context) -> bool:
    """Whether a test runs this, which is walked by itself, and nothing in that test trains."""
    return is_in_test_without(facts, context, TRAINING)


def is_in_test_without(facts: SourceFacts, context: Context, methods: tuple[str, ...]) -> bool:
    """Whether a test runs this, which is walked by itself, and calls none of these methods."""
    if context.run not in _runs_of_tests(facts):
        return False
    return not any(other.context.run == context.run for other in facts.method_calls(*methods))


@lru_cache(maxsize=1)
def _runs_of_tests(facts: SourceFacts) -> frozenset[int]:
    """The numbers of the runs that a test starts, by the name that unittest and pytest know it by."""
    first = (call.context for call in facts.calls if call.context.run and not call.context.callers)
    return frozenset(context.run for context in first if context.function is not None and context.function.is_test)

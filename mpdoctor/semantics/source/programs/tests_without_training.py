"""Whether a line runs in a test in which nothing is trained: what harms training alone is no defect there."""

from __future__ import annotations

from functools import lru_cache

from mpdoctor.program.context import Context
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts

TRAINING = ("fit", "train_on_batch", "apply_gradients", "gradient")


def is_in_test_without_training(facts: SourceFacts, context: Context) -> bool:
    """Whether a test runs this, which is walked by itself, and nothing in that test trains."""
    if context.run not in _runs_of_tests(facts):
        return False
    return not any(other.context.run == context.run for other in facts.method_calls(*TRAINING))


@lru_cache(maxsize=1)
def _runs_of_tests(facts: SourceFacts) -> frozenset[int]:
    """The numbers of the runs that a test starts, by the name that unittest and pytest know it by."""
    first = (call.context for call in facts.calls if call.context.run and not call.context.callers)
    return frozenset(context.run for context in first if _is_test(context.function))


def _is_test(function: FunctionFacts | None) -> bool:
    """Whether it is a test, or what the tests of a class share."""
    if function is None:
        return False
    return function.name.startswith("test") or _holds_tests(function.owner) or _is_test(function.enclosing)


def _holds_tests(own: ClassFacts | None) -> bool:
    """Whether it is a TestCase, or has tests for those that it is mixed into."""
    if own is None:
        return False
    is_case = any(base.name.endswith("TestCase") for base in own.library_bases())
    return is_case or any(name.startswith("test_") for name in own.methods)

"""Which functions are tests, by the names that unittest and pytest know them by."""

from __future__ import annotations

from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts


def is_test(function: FunctionFacts | None) -> bool:
    """Whether it is a test, or what the tests of a class share. A model's `test_step` is none."""
    if function is None or (function.owner is not None and function.owner.kind is not None):
        return False
    return function.name.startswith("test") or _holds_tests(function.owner) or is_test(function.enclosing)


def _holds_tests(own: ClassFacts | None) -> bool:
    """Whether it is a TestCase, or has tests for those that it is mixed into."""
    if own is None:
        return False
    is_case = any(base.name.endswith("TestCase") for base in own.library_bases())
    return is_case or any(name.startswith("test_") for name in own.methods)

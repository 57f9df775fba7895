"""Which functions are tests, by the names that unittest and pytest know them by."""

from __future__ import annotations

from mpdoctor.program.user_definitions import ClassFacts, FunctionFacts


def is_test(function: FunctionFacts | None) -> bool:
    """Whether it is a test, or what the tests of a class share."""
    if function is None:
        return False
    return function.name.startswith("test") or _holds_tests(function.owner) or is_test(function.enclosing)


def _holds_tests(own: ClassFacts | None) -> bool:
    """Whether it is a TestCase, or has tests for those that it is mixed into."""
    if own is None:
        return False
    is_case = any(base.name.endswith("TestCase") for base in own.library_bases())
    return is_case or any(name.startswith("test_") for name in own.methods)

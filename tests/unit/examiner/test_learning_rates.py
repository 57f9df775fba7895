"""The learning rate that an optimizer was given, read without running the program's own function."""

from __future__ import annotations

import pytest

from mpdoctor.examiner.keras.private_state import given_learning_rate

pytestmark = pytest.mark.fast


def wrong_rate() -> float:
    raise NameError("name 'BASE' is not defined")


class Classic:
    """As OptimizerV2: the attribute calls the function that it was given."""

    def __init__(self, rate: object) -> None:
        self._hyper = {"learning_rate": rate}

    @property
    def learning_rate(self) -> object:
        rate = self._hyper["learning_rate"]
        return rate() if callable(rate) else rate


class Later:
    def __init__(self, rate: object) -> None:
        self._learning_rate = rate


def test_a_function_that_raises_is_not_called() -> None:
    assert given_learning_rate(Classic(wrong_rate)) is wrong_rate


@pytest.mark.parametrize("optimizer", [Classic(0.1), Later(0.1)])
def test_a_number_is_given(optimizer: object) -> None:
    assert given_learning_rate(optimizer) == 0.1


def test_what_has_none_gives_none() -> None:
    assert given_learning_rate(object()) is None

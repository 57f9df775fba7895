"""Calls of a user's loop that are kept to be made again: what they are given, and how many of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from checking import needs_tensorflow

pytestmark = needs_tensorflow


def kinds(*given: Any, **named: Any) -> list[str]:
    import tensorflow as tf

    return [type(part).__name__ for part in tf.nest.flatten((given, named))]


def test_arrays_become_tensors_as_in_a_traced_function() -> None:
    from mpdoctor.examiner.probe.eager_calls import repeated_call

    given: Any = (np.ones(3), np.float32(2), [np.ones(2), True], "text", None)
    tensor = "EagerTensor"
    assert repeated_call(kinds, given, {"y": np.ones(1)}) == [tensor, tensor, tensor, "bool", "str", "NoneType", tensor]
    assert repeated_call(kinds, (np.array([{}, []], dtype=object),), {}) == ["ndarray"]
    untouched = [1.5]
    assert repeated_call(lambda part: part, (untouched,), {}) is untouched


def test_the_last_calls_of_each_optimizer_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    from mpdoctor.examiner.probe import earlier_calls

    first: Any = object()
    second: Any = object()
    kept = earlier_calls.EarlierCalls()
    calls: Any = [lambda number=number: number for number in range(earlier_calls.CALLS + 5)]
    for call in calls:
        kept.note(first, call, (np.ones(8),))
    kept.note(second, None, ())
    assert [call() for call in kept.of(first)] == list(range(earlier_calls.CALLS + 4, 4, -1))
    assert kept.of(second) == []
    monkeypatch.setattr(earlier_calls, "BYTES", 3 * 64)
    kept.note(first, calls[0], (np.ones(16, "float32"),))
    assert len(kept.of(first)) == 3

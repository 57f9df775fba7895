"""What the profiler wrote, read without its protocol buffers' classes; and operations in words."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.examiner.probe.timed.step_profile import NotProfiled, _events, profile_from_events


def varint(number: int) -> bytes:
    text = b""
    while number > 127:
        text, number = text + bytes([number & 127 | 128]), number >> 7
    return text + bytes([number])


def part(field: int, value: int | bytes) -> bytes:
    if isinstance(value, int):
        return varint(field << 3) + varint(value)
    return varint(field << 3 | 2) + varint(len(value)) + value


def space(events: list[tuple[str, int, int]], plane: bytes = b"/host:CPU", start: int = 0) -> bytes:
    """(name, offset, duration), both in picoseconds; in a line that begins at `start` nanoseconds."""
    names = sorted({name for name, _, _ in events})
    metadata = b"".join(
        part(4, part(1, number) + part(2, part(1, number) + part(2, name.encode())))
        for number, name in enumerate(names)
    )
    told = b"".join(
        part(4, part(1, names.index(name)) + part(2, offset) + part(3, duration) + bytes([0x29]) + bytes(8))
        for name, offset, duration in events
    )
    return part(1, part(2, plane) + metadata + part(3, part(3, start) + told)) + part(1, part(2, b"/host:metadata"))


@given(st.lists(st.tuples(st.sampled_from(["a/b:MatMul", "Run"]), st.integers(0, 2**40), st.integers(0, 2**40))))
def test_events_are_read(events: list[tuple[str, int, int]]) -> None:
    read = _events(space(events, start=7))
    assert [(name, round((begin - 7e-9) * 1e12), round((end - begin) * 1e12)) for name, begin, end in read] == [
        (name, pytest.approx(offset, abs=300), pytest.approx(duration, abs=300)) for name, offset, duration in events
    ]


def test_of_the_host_alone() -> None:
    assert _events(space([("a:MatMul", 1, 2)], b"/device:GPU:0")) == []


def test_times_by_type() -> None:
    events = [
        ("dense/MatMul:MatMul", 0.0, 2.0),
        ("dense/Cast:Cast", 1.0, 2.5),
        ("gradient_tape/dense/MatMul:MatMul", 4.0, 5.0),
        ("ExecutorState::Process", 0.0, 9.0),
        ("EagerExecute: __inference_train_function_911", 0.0, 9.0),
        ("TFE_Py_ExecuteCancelable", 0.0, 9.0),
    ]
    profile = profile_from_events(events, 1, 10.0)
    assert (profile.busy, profile.in_operations) == (3.5, 4.5)
    assert [(known.kind, known.number, known.seconds) for known in profile.operations] == [
        ("MatMul", 2, 3.0),
        ("Cast", 1, 1.5),
    ]


def test_a_cast_is_told_however_short() -> None:
    many = [(f"a:Op{number}", 0.0, 9.0) for number in range(70)]
    told = profile_from_events([*many, ("b:Cast", 0.0, 0.1)], 1, 10.0).operations
    assert told[-1].kind == "Cast" and len(told) == 65


@pytest.mark.parametrize("events", [[], [("Run", 0.0, 1.0)], [("cluster:XlaLaunch", 0.0, 1.0)]])
def test_nothing_is_told_of_no_operations(events: list[tuple[str, float, float]]) -> None:
    with pytest.raises(NotProfiled):
        profile_from_events(events, 1, 1.0)

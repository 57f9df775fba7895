"""What the profiler wrote, read without its protocol buffers' classes; and operations in words."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from protocol_buffers import varint

from mpdoctor.examiner.capture.layer_hooks import LayerHooks
from mpdoctor.examiner.probe.timed.layer_scopes import LayerScopes
from mpdoctor.examiner.probe.timed.step_profile import NotProfiled, _events, profile_from_events
from mpdoctor.facts.examination import LayerTime

SCOPES = LayerScopes()  # of no layer


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
        ("PyFunc:PyFunc", 0.0, 9.0),
    ]
    profile = profile_from_events(events, 1, 10.0, SCOPES)
    assert (profile.busy, profile.in_operations) == (3.5, 4.5)
    assert [(known.kind, known.number, known.seconds) for known in profile.operations] == [
        ("MatMul", 2, 3.0),
        ("Cast", 1, 1.5),
    ]


class Layer:
    """Its one operation stands in a scope of its name, in that of the layer around it."""

    def __init__(self, name: str, operation: str, dtype: str = "float16", **inner: Any) -> None:
        self.name, self.operation, self.compute_dtype, self.inner = name, operation, dtype, inner

    def call(self, scopes: LayerScopes) -> None:
        call, _, _ = scopes.enter(self, (), {})
        for layer in self.inner.values():
            layer.call(scopes)
        output = SimpleNamespace(op=SimpleNamespace(name=self.operation), dtype="float16", shape=())
        assert scopes.leave(call, {"out": [output]}) == {"out": [output]}


class Model(Layer):
    """As Keras' is."""


def test_times_by_layer() -> None:
    scopes = LayerScopes()
    scopes.install(LayerHooks(), Model)
    gate = Layer("gate", "net_1/own_1/gate/Sigmoid", "float32")
    Model("net", "net_1/head_2/Add", dense=Layer("dense", "net_1/dense_1/act/Relu"),
          dense_1=Layer("dense_1", "net_1/dense_1_1/Relu"), own=Layer("own", "net_1/own_1/mul", gate=gate),
          elsewhere=Layer("elsewhere", "net_1/Identity")).call(scopes)  # fmt: skip
    names = {
        "StatefulPartitionedCall/net_1/dense_1/MatMul": 1.0,
        "StatefulPartitionedCall/gradient_tape/net_1/dense_1/MatMul/MatMul_1": 2.0,
        "StatefulPartitionedCall/net_1/dense_1_1/MatMul": 4.0,
        "net_1/own_1/while/body/_45/net_1/own_1/while/MatMul": 8.0,
        "net_1/own_1/gate/Sigmoid": 16.0,
        "net_1/Identity": 32.0,
        "net_1/dense_12/MatMul": 64.0,
        "adam/dense_1/MatMul": 128.0,
        "MatMul": 256.0,
    }
    events = [(f"{name}:MatMul", 0.0, took) for name, took in names.items()]
    profile = profile_from_events(events, 1, 1000.0, scopes)
    assert profile.layers == (
        LayerTime("own/gate", "float32", 16.0),
        LayerTime("own", "float16", 8.0),
        LayerTime("dense_1", "float16", 4.0),
        LayerTime("dense", "float16", 3.0),
    )


def test_a_call_that_raises_is_no_longer_open() -> None:
    scopes = LayerScopes()
    outer, _, _ = scopes.enter(Layer("outer", ""), (), {})
    scopes.enter(Layer("inner", ""), (), {})
    scopes.abandon(outer)
    Layer("next", "next/MatMul").call(scopes)
    assert scopes.layer_of("next/Add") == ("next", "float16")


def test_a_cast_is_told_however_short() -> None:
    many = [(f"a:Op{number}", 0.0, 9.0) for number in range(70)]
    told = profile_from_events([*many, ("b:Cast", 0.0, 0.1)], 1, 10.0, SCOPES).operations
    assert told[-1].kind == "Cast" and len(told) == 65


@pytest.mark.parametrize("events", [[], [("Run", 0.0, 1.0)], [("cluster:XlaLaunch", 0.0, 1.0)]])
def test_nothing_is_told_of_no_operations(events: list[tuple[str, float, float]]) -> None:
    with pytest.raises(NotProfiled):
        profile_from_events(events, 1, 1.0, SCOPES)

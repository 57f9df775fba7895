"""A live layer's policy, changed in place and put back: it computes like one made so, and afterwards as before."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from checking import needs_keras

Make = Callable[..., Any]  # (layers, further arguments) -> a layer
LAYERS: dict[str, tuple[tuple[int, ...], Make]] = {
    "Dense": ((6,), lambda layers, **given: layers.Dense(4, activation="relu", **given)),
    "Conv2D": ((8, 8, 3), lambda layers, **given: layers.Conv2D(4, 3, **given)),
    "BatchNormalization": ((6,), lambda layers, **given: layers.BatchNormalization(**given)),
    "LayerNormalization": ((6,), lambda layers, **given: layers.LayerNormalization(**given)),
    "LSTM": ((5, 6), lambda layers, **given: layers.LSTM(4, **given)),
    "GRU": ((5, 6), lambda layers, **given: layers.GRU(4, **given)),
    "Bidirectional": ((5, 6), lambda layers, **given: layers.Bidirectional(layers.LSTM(4, **given), **given)),
    "TimeDistributed": ((5, 6), lambda layers, **given: layers.TimeDistributed(layers.Dense(4, **given), **given)),
    "Softmax": ((6,), lambda layers, **given: layers.Softmax(**given)),
}


class Stack:
    def __init__(self, name: str) -> None:
        self.tf, self.np = importlib.import_module("tensorflow"), importlib.import_module("numpy")
        self.keras = importlib.import_module("keras" if name == "3" else "tf_keras")
        self.adapter = importlib.import_module("mpdoctor.examiner.keras.choose").adapter_for(self.keras)
        self.all_layers = importlib.import_module("mpdoctor.examiner.keras.private_state").all_layers
        self.in_place = importlib.import_module("mpdoctor.examiner.keras.in_place").float32_in_place

    def outputs_and_gradients(self, layer: Any, x: Any) -> list[bytes]:
        """As bytes, with their dtypes."""
        with self.tf.GradientTape() as tape:
            outputs = layer(x)
            loss = self.tf.reduce_sum(self.tf.cast(outputs, self.tf.float32))
        gradients = tape.gradient(loss, self.adapter.trainable_variables(layer))
        return [tensor.dtype.name.encode() + tensor.numpy().tobytes() for tensor in (outputs, *gradients)]


@pytest.fixture(params=[pytest.param(k, marks=needs_keras(k)) for k in ("3", "tf_keras")])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack]:
    found = Stack(request.param)
    before = found.adapter.global_policy()
    found.adapter.set_policy("mixed_float16")
    yield found
    found.adapter.set_policy(before)


@pytest.mark.parametrize("kind", LAYERS)
def test_it_computes_like_one_constructed_so_and_then_as_before(stack: Stack, kind: str) -> None:
    shape, make = LAYERS[kind]
    x = stack.np.random.default_rng(0).random((16, *shape)).astype("float32")
    layer, constructed = make(stack.keras.layers), make(stack.keras.layers, dtype="float32")
    layer(x), constructed(x)
    constructed.set_weights(layer.get_weights())
    before = stack.outputs_and_gradients(layer, x)
    with stack.in_place(stack.adapter, stack.all_layers(layer)):
        in_place = stack.outputs_and_gradients(layer, x)
    assert in_place == stack.outputs_and_gradients(constructed, x)
    assert in_place != before
    assert stack.outputs_and_gradients(layer, x) == before


def test_an_error_puts_everything_back(stack: Stack) -> None:
    layer = stack.keras.layers.Dense(4)
    policy = layer.dtype_policy
    with pytest.raises(RuntimeError), stack.in_place(stack.adapter, [layer]):
        assert layer.compute_dtype == "float32"
        raise RuntimeError
    assert layer.dtype_policy is policy
    assert layer.compute_dtype == "float16"


def test_only_the_given_layers_change(stack: Stack) -> None:
    inner = stack.keras.layers.Dense(4)
    outer = stack.keras.layers.TimeDistributed(inner)
    outer(stack.np.ones((2, 5, 6), "float32"))
    with stack.in_place(stack.adapter, [outer]):
        assert (outer.compute_dtype, inner.compute_dtype) == ("float32", "float16")


def test_a_float32_layer_keeps_its_policy(stack: Stack) -> None:
    layer = stack.keras.layers.Dense(4, dtype="float32")
    policy = layer.dtype_policy
    with stack.in_place(stack.adapter, [layer]):
        assert layer.dtype_policy is policy


@pytest.mark.parametrize("stack", [pytest.param("3", marks=needs_keras("3"))], indirect=True)
def test_a_policy_map_that_layers_share_is_left_alone(stack: Stack) -> None:
    shared = stack.keras.dtype_policies.DTypePolicyMap(default_policy="mixed_float16")
    layer, other = (stack.keras.layers.Dense(4, dtype=shared, name=name) for name in ("a", "b"))
    x = stack.np.ones((2, 6), "float32")
    layer(x), other(x)
    with stack.in_place(stack.adapter, [layer]):
        assert (layer.compute_dtype, other.compute_dtype) == ("float32", "float16")
    assert (layer.compute_dtype, len(shared)) == ("float16", 0)

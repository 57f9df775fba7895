"""Trials of remedies in one process: the layers that are found, against brute force over all sets of them."""

from __future__ import annotations

import importlib
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from checking import needs_keras

BOTH = ("3", "tf_keras")


class Lab:
    """One Keras, its layers watched, and layers that are sick."""

    def __init__(self, name: str) -> None:
        self.tf, self.np = importlib.import_module("tensorflow"), importlib.import_module("numpy")
        self.keras = importlib.import_module("keras" if name == "3" else "tf_keras")
        self.layers = self.keras.layers
        self.adapter = importlib.import_module("mpdoctor.examiner.keras.adapter_choice").adapter_for(self.keras)
        self.layer_hooks = importlib.import_module("mpdoctor.examiner.capture.layer_hooks").LayerHooks()
        self.trials = importlib.import_module("mpdoctor.examiner.trials.remedy_trials")
        self.in_place = importlib.import_module("mpdoctor.examiner.keras.in_place").float32_in_place

        self.scale = 1.0

    def set_scale(self, scale: float) -> None:
        self.scale = scale

    def own(self, call: Callable[[Any], Any], name: str, **given: Any) -> Any:
        return type("Own", (self.layers.Layer,), {"call": lambda layer, x: call(x)})(name=name, **given)

    def times(self, factor: float, name: str, **given: Any) -> Any:
        return self.own(lambda x: x * self.tf.cast(factor, x.dtype), name, **given)

    def dense(self, units: int, name: str, activation: str | None = None) -> Any:
        return self.layers.Dense(units, activation, name=name)

    def gradient_times(self, factor: float, name: str) -> Any:
        @self.tf.custom_gradient
        def passing(x: Any) -> Any:
            return self.tf.identity(x), lambda gradient: gradient * self.tf.cast(factor, gradient.dtype)

        return self.own(passing, name)

    def chain(self, *layers: Any) -> Any:
        return self.keras.Sequential([self.keras.Input((8,)), *layers])

    def batches(self, factor: float) -> list[tuple[Any, Any]]:
        rng = self.np.random.default_rng(0)
        x = (rng.random((48, 8)) * 2).astype("float32")
        y = factor * (x[:, :1] * 2 - 1)
        return [(x[at : at + 16], y[at : at + 16]) for at in (0, 16, 32)]

    def step(self, model: Any, x: Any, y: Any) -> tuple[Any, list[Any]]:
        """(loss, gradients)."""
        tf = self.tf
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.cast(model(x, training=True), tf.float32) - y) ** 2)
            scaled = loss * self.scale
        return loss, tape.gradient(scaled, self.adapter.trainable_variables(model))

    def found(self, model: Any, batches: list[tuple[Any, Any]], scaled: bool = False, **sickness: Any) -> Any:
        """The remedies that the trials bring, as facts."""
        catching = importlib.import_module("mpdoctor.examiner.replay.two_scales").GradientCatcher
        snapshot = importlib.import_module("mpdoctor.examiner.replay.variable_snapshot").snapshot_of_variables
        optimizer = self.keras.optimizers.SGD(0.0)

        def repeat(x: Any, y: Any) -> None:
            gradients = self.step(model, x, y)[1]
            optimizer.apply_gradients(list(zip(gradients, self.adapter.trainable_variables(model), strict=True)))

        model(batches[0][0])
        state = snapshot()
        cases = [self.trials.Case(lambda x=x, y=y: repeat(x, y), state) for x, y in batches]
        with catching(self.adapter, optimizer) as catcher:
            trials = self.trials.RemedyTrials(
                self.adapter, self.layer_hooks, catcher, self.set_scale if scaled else None, cases, 300.0
            )
            return trials.remedies(self.trials.Sickness(**sickness))

    def fewest(self, model: Any, batches: list[tuple[Any, Any]], most: int) -> int | None:
        """The size of the smallest set of layers in float32 with which every batch is finite; None if above `most`."""
        layers = [layer for layer in model.layers if layer.compute_dtype == "float16"]
        for size in range(most + 1):
            for chosen in itertools.combinations(layers, size):
                with self.in_place(self.adapter, chosen):
                    if all(self.is_finite(model, *batch) for batch in batches):
                        return size
        return None

    def fails_without(self, model: Any, batches: list[tuple[Any, Any]], path: str, remedy: Any) -> bool:
        rest = [layer for layer in model.layers if layer.name in remedy.layers and layer.name != path]
        with self.in_place(self.adapter, rest):
            return not all(self.is_finite(model, *batch) for batch in batches)

    def is_finite(self, model: Any, x: Any, y: Any) -> bool:
        loss, gradients = self.step(model, x, y)
        numbers = [loss, *(gradient for gradient in gradients if gradient is not None)]
        return all(bool(self.np.isfinite(self.np.asarray(number, "float32")).all()) for number in numbers)


@pytest.fixture(scope="module", params=[pytest.param(k, marks=needs_keras(k)) for k in BOTH])
def lab(request: pytest.FixtureRequest) -> Iterator[Lab]:
    lab = Lab(request.param)
    layer, policy = lab.adapter.Layer, lab.adapter.global_policy()
    before = layer.__call__, layer.__new__
    lab.layer_hooks.install(layer, lab.adapter.global_policy)
    lab.adapter.set_policy("mixed_float16")
    lab.adapter.set_seed(1)
    yield lab
    lab.adapter.set_policy(policy)
    layer.__call__, layer.__new__ = before


def chain(lab: Lab) -> Any:
    return lab.chain(
        lab.dense(16, "a", "relu"), lab.times(1e6, "b"), lab.dense(8, "c"), norm(lab, "n"), lab.dense(1, "o")
    )


def norm(lab: Lab, name: str) -> Any:
    return lab.layers.LayerNormalization(name=name)


def residual(lab: Lab) -> Any:
    inputs = lab.keras.Input((8,))
    a = lab.dense(8, "a")(inputs)
    b = lab.times(1e6, "s")(lab.dense(8, "b", "relu")(a))
    h = norm(lab, "n")(lab.layers.Add(name="add")([a, b]))
    return lab.keras.Model(inputs, lab.dense(1, "o")(h))


def branches(lab: Lab) -> Any:
    inputs = lab.keras.Input((8,))
    a = lab.dense(8, "a")(inputs)
    p = norm(lab, "n")(lab.times(1e6, "p")(lab.dense(8, "b")(a)))
    h = lab.layers.Add(name="add")([p, lab.dense(8, "c")(a)])
    return lab.keras.Model(inputs, lab.dense(1, "o")(h))


def two(lab: Lab) -> Any:
    first = (lab.dense(8, "a"), lab.times(1e6, "b"), norm(lab, "n1"))
    return lab.chain(*first, lab.dense(8, "c"), lab.times(1e6, "d"), norm(lab, "n2"), lab.dense(1, "o"))


def gradients_alone(lab: Lab) -> Any:
    return lab.chain(
        lab.dense(8, "a", "relu"), lab.dense(8, "b"), lab.gradient_times(1e9, "g"), lab.dense(8, "c"), lab.dense(1, "o")
    )


def gradients_in_the_middle(lab: Lab) -> Any:
    low, high = lab.gradient_times(1e-8, "h"), lab.gradient_times(1e9, "g")
    return lab.chain(lab.dense(8, "a", "relu"), low, lab.dense(8, "b"), high, lab.dense(8, "c"), lab.dense(1, "o"))


def head(lab: Lab) -> Any:
    return lab.chain(lab.dense(8, "a", "relu"), lab.dense(8, "b"), lab.dense(1, "o"), lab.times(1e6, "k"))


MODELS: dict[str, tuple[Callable[[Lab], Any], float, dict[str, Any]]] = {
    "chain": (chain, 1.0, {}),
    "residual": (residual, 1.0, {}),
    "branches": (branches, 1.0, {}),
    "two": (two, 1.0, {}),
    "gradients alone": (gradients_alone, 1.0, {"gradient_layer": "g"}),
    "gradients in the middle": (gradients_in_the_middle, 1.0, {"gradient_layer": "g"}),
    "head": (head, 1.0, {}),
}


@pytest.mark.sampled(6)
@pytest.mark.parametrize("name", MODELS)
def test_the_layers_are_hardly_more_than_the_fewest_there_are(lab: Lab, name: str) -> None:
    make, factor, sickness = MODELS[name]
    model, batches = make(lab), lab.batches(factor)
    before = [lab.np.array(weight) for weight in model.get_weights()]
    dtypes = [layer.compute_dtype for layer in model.layers]
    remedy, *_ = lab.found(model, batches, **sickness)
    fewest = lab.fewest(model, batches, len(remedy.layers))
    assert fewest is not None
    if remedy.tried == "healed":
        assert len(remedy.layers) <= 1.2 * fewest, remedy
        assert remedy.needed == tuple(path for path in remedy.layers if lab.fails_without(model, batches, path, remedy))
    else:
        assert fewest > 3, remedy
    assert [layer.compute_dtype for layer in model.layers] == dtypes
    assert all((old == new).all() for old, new in zip(before, model.get_weights(), strict=True))


def test_what_trains_at_a_loss_scale_of_1_is_not_told_as_needed(lab: Lab) -> None:
    """The bias of `b` sums gradients up: to a third of what float16 holds, and at the trials' scale beyond."""
    batches = lab.batches(1.0)

    def made(factor: float) -> Any:
        lab.adapter.set_seed(1)
        broken = lab.times(1e6, "s"), norm(lab, "n")
        return lab.chain(lab.dense(8, "b"), lab.gradient_times(factor, "g"), *broken, lab.dense(1, "o"))

    with lab.in_place(lab.adapter, (healthy := made(1.0)).layers):
        gradients = lab.step(healthy, *batches[0])[1]
    largest = max(float(abs(lab.np.asarray(gradient)).max()) for gradient in gradients[:2])
    try:
        remedy, *_ = lab.found(made(20000 / largest), batches[:1], scaled=True)
    finally:
        lab.scale = 1.0
    assert remedy.tried == "healed", remedy
    assert {"s"} <= set(remedy.needed) < set(remedy.layers), remedy


def test_fewer_layers_whose_step_is_finite_are_told_by_what_they_reach(lab: Lab) -> None:
    """The product overflows in float16; divided again it does not, and comes near."""
    average = lab.own(lambda x: (x * lab.tf.cast(40_000.0, x.dtype)) / 4, "average")
    model = lab.chain(average, lab.times(1e-4, "less"), lab.dense(1, "o"))
    remedy, *_ = lab.found(model, lab.batches(1.0))
    assert (remedy.tried, remedy.not_enough) == ("healed", ("average",)), remedy
    assert remedy.reason.startswith("`less` stays in 16 bits and reaches "), remedy


def held(lab: Lab, adds_its_input: bool) -> Any:
    """A layer of one's own whose product of two sublayers overflows, and whose third puts out float16 again."""
    tf, dense = lab.tf, lab.dense

    class Held(lab.layers.Layer):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__(name="held")
            self.query, self.key, self.out = dense(8, "query"), dense(8, "key"), dense(8, "out")

        def call(self, x: Any) -> Any:
            query = self.query(x)
            logits = query * tf.cast(self.key(x) * 1e4, query.dtype) * tf.cast(1e3, query.dtype)
            put_out = self.out(tf.nn.softmax(logits))
            return x + put_out if adds_its_input else put_out

    class Adding(lab.keras.Model):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.a, self.held, self.o = dense(8, "a"), Held(), dense(1, "o")

        def call(self, x: Any) -> Any:
            h = self.a(x)
            return self.o(h + self.held(h))

    return Adding()


@pytest.mark.parametrize("adds_its_input", [False, True])
def test_a_layer_that_puts_out_16_bits_because_of_what_it_holds_is_left_out(lab: Lab, adds_its_input: bool) -> None:
    remedy, *_ = lab.found(held(lab, adds_its_input), lab.batches(1.0))
    assert (remedy.tried, remedy.layers, remedy.needed) == ("healed", ("held/query",), ("held/query",)), remedy

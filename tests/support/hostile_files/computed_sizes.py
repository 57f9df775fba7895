"""Small files whose layers hold few weights and compute large tensors, in what they put out or on the way to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostile_files import KERAS2, KERASES, attack
from hostile_files.forms import (
    Config,
    Weights,
    dense,
    functional2,
    functional3,
    given,
    keras_tensor,
    layer,
    op_layer,
    sequential,
    write,
)
from hostile_files.sites import Site

NUMBERS = 2**30  # that one sample comes to, which is 4 GiB
CONVOLVED = {"kernel": [[[0.5]], [[0.5]]], "bias": [0.0]}
COLUMN, SQUARE = ("Reshape", {"target_shape": [4, 1]}), ("Reshape", {"target_shape": [2, 2, 1]})
POOLED, POOLED_2D = ("GlobalAveragePooling1D", {}), ("GlobalAveragePooling2D", {})
LONGER = ("UpSampling1D", {"size": 1024})


def chain(*parts: tuple[str, Config], weights: Weights | None = None) -> Callable[[Site], None]:
    """A Dense layer, what makes more of its four numbers, and one that makes few of that again."""

    def make(site: Site) -> None:
        layers = [layer(site, name, {"name": f"n{number}", "trainable": True, "dtype": "float32", **config})
                  for number, (name, config) in enumerate(parts)]  # fmt: skip
        write(site, sequential(site, dense(site), *layers), dense=1, weights=weights)

    return make


def convolved(class_name: str, name: str, **config: Any) -> Callable[[Site], None]:
    own = {"name": name, "filters": 1, "kernel_size": 2, **config}
    return chain(COLUMN, (class_name, own), POOLED, weights={name: CONVOLVED})


def embedded(site: Site) -> None:
    own = layer(site, "Embedding", {"name": "embedding", "input_dim": 2, "output_dim": NUMBERS >> 14})
    pooled = layer(site, "GlobalAveragePooling1D", {"name": "pooled"})
    weights = {"embedding": {"embeddings": [[0.5] * (NUMBERS >> 14)] * 2}}
    write(site, sequential(site, own, pooled, first=given(site, (2**14,), "int32")), weights=weights)


def given_much(site: Site) -> None:
    """One sample of what the model takes is 4 GiB, and what it makes of it a few numbers."""
    pooled = layer(site, "GlobalAveragePooling1D", {"name": "pooled"})
    write(site, sequential(site, pooled, dense(site), first=given(site, (NUMBERS // 4, 4))), dense=1)


def attended(site: Site) -> None:
    """Each of 2^15 places looks at each: that many scores, for an output of few numbers."""
    size = int(NUMBERS**0.5)
    first = {**given(site, (size,)), "name": "given", "inbound_nodes": []}
    column = layer(site, "Reshape", {"name": "column", "target_shape": [size, 1]})
    own = layer(site, "Dense", {"name": "dense", "units": 1})
    attention = layer(site, "Attention", {"name": "attention"})
    if site.is_keras3:
        made = keras_tensor("dense", (size, 1))
        nodes = [[given_to] for given_to in (keras_tensor(shape=(size,)), keras_tensor("column", (size, 1)))]
        calls: list[Any] = [{"args": args, "kwargs": {}} for args in (*nodes, [[made, made]])]
    else:
        ends = [["given", 0, 0, {}]], [["column", 0, 0, {}]], [["dense", 0, 0, {}]] * 2
        calls = list(ends)
    layers = [first] + [{**part, "name": part["config"]["name"], "inbound_nodes": [call]}
                        for part, call in zip((column, own, attention), calls, strict=True)]  # fmt: skip
    config = {"name": "model", "trainable": True, "layers": layers, "input_layers": [["given", 0, 0]],
              "output_layers": [["attention", 0, 0]]}  # fmt: skip
    module = "keras.src.models.functional" if site.is_keras3 else "keras.src.engine.functional"
    weights = {"dense": {"kernel": [[0.5]], "bias": [0.0]}}
    write(site, layer(site, "Functional", config, module=module), weights=weights)


SIZES: dict[str, Callable[[Site], None]] = {
    "repeated": chain(("RepeatVector", {"n": NUMBERS // 4}), POOLED),
    "upsampled": chain(COLUMN, LONGER, LONGER, ("UpSampling1D", {"size": NUMBERS >> 22}), POOLED),
    "upsampled-2d": chain(SQUARE, ("UpSampling2D", {"size": [2**14, 2**14]}), POOLED_2D),
    "padded": chain(COLUMN, ("ZeroPadding1D", {"padding": [NUMBERS, 0]}), POOLED),
    "resized": chain(SQUARE, ("Resizing", {"height": 2**15, "width": 2**15}), POOLED_2D),
    "causal": convolved("Conv1D", "conv1d", padding="causal", dilation_rate=NUMBERS),
    "dilated": convolved("Conv1D", "conv1d", padding="same", dilation_rate=NUMBERS),
    "transposed": convolved("Conv1DTranspose", "conv1d_transpose", strides=NUMBERS // 4),
    "embedded": embedded,
    "given": given_much,
    "attended": attended,
}  # fmt: skip
for name, make in SIZES.items():
    # Keras 2 makes a tensor for each place of UpSampling1D, and does so for minutes: --timeout ends it
    attack(f"computes-{name}", make, "grow", kerases=("3",) if name == "upsampled" else KERASES)


# --- while the file is loaded ---------------------------------------------------------------------------------------
def metric(class_name: str, **config: Any) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        metrics = [layer(site, class_name, {"name": "m", **config}, module="keras.metrics")]
        compiled = {"optimizer": "sgd", "loss": "mse", "metrics": metrics}
        write(site, sequential(site, dense(site)), compiled=compiled, dense=1)

    return make


def constant(function: str, first: Any) -> Callable[[Site], None]:
    """A function that is given no tensor of the model, and so is called as soon as it is read."""

    def make(site: Site) -> None:
        called = op_layer(site, "TFOpLambda", {"function": function})
        write(site, functional2(site, [(called, [["_CONSTANT_VALUE", -1, first, {}]])]))

    return make


def operation(class_name: str, config: Config, *args: Any) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        called = layer(site, class_name, {"name": "op", **config}, module="keras.src.ops.numpy")
        write(site, functional3(site, [(called, list(args), {})]))

    return make


def preprocessing(class_name: str, dtype: str, **config: Any) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        own = layer(site, class_name, {"name": "l", "dtype": dtype, "max_tokens": None, **config})
        write(site, sequential(site, own, first=given(site, (1,), dtype)))

    return make


def array(dtype: str) -> Callable[[Site], None]:
    """Ten letters as an array, each of which takes what the dtype says."""

    def make(site: Site) -> None:
        letters = {"class_name": "__numpy__", "config": {"value": ["a"] * 10, "dtype": dtype}}
        write(site, functional3(site, [(layer(site, "Add", {"name": "sum"}), [[keras_tensor(), letters]], {})]))

    return make


attack("loads-unknown-words", preprocessing("StringLookup", "string", num_oov_indices=10**9, vocabulary=["a"]), "grow")
attack("loads-unknown-numbers", preprocessing("IntegerLookup", "int64", num_oov_indices=10**9, vocabulary=[1]), "grow")
attack("loads-ngrams", preprocessing("TextVectorization", "string", ngrams=10**9, vocabulary=["a"]), "grow")
attack("loads-letters", array("S2000000000"), "grow", kerases=("3",))
attack("loads-letters-of-unicode", array("U500000000"), "grow", kerases=("3",))
attack("loads-thresholds", metric("AUC", num_thresholds=NUMBERS), "grow")
attack("loads-classes", metric("MeanIoU", num_classes=2**15), "grow")
attack("loads-zeros", constant("zeros", [NUMBERS]), "grow", kerases=KERAS2)
attack("loads-range", constant("range", NUMBERS), "grow", kerases=KERAS2)
attack("loads-arange", operation("Arange", {"dtype": "float32"}, 0, NUMBERS, 1), "grow", kerases=("3",))

"""Python bytecode in a file: Lambda layers in every shape that a Keras reads, and lambdas in any other place."""

from __future__ import annotations

from typing import Any

from hostile_files import KERAS2, attack
from hostile_files.forms import dense, given, lambda_code, layer, sequential, write
from hostile_files.sites import Site

EVERY = " ".join(KERAS2)
Config = dict[str, Any]


def lambda2(site: Site, **config: Any) -> Config:
    """A Lambda layer as Keras 2 writes it: its function is the identity if nothing else is said."""
    usual = {"name": "l", "trainable": True, "dtype": "float32", "function": "linear", "function_type": "function",
             "module": "keras.activations", "output_shape": None, "output_shape_type": "raw",
             "output_shape_module": None, "arguments": {}}  # fmt: skip
    return layer(site, "Lambda", {**usual, **config})


def code(site: Site, source: str | None = None) -> list[Any]:
    return [site.bytecode(source), None, None]


def bytecode(site: Site) -> None:
    if site.is_keras3 and site.form == "keras":
        config = {"name": "l", "trainable": True, "dtype": "float32", "function": lambda_code(site), "arguments": {}}
        write(site, sequential(site, layer(site, "Lambda", config)))
    else:
        write(site, sequential(site, lambda2(site, function=code(site), function_type="lambda")))


def output_shape(site: Site) -> None:
    """Innocent but for the function that tells the shape of its output."""
    shape = code(site, f"lambda s: (open({site.marker!r}, 'w').close(), s)[1]")
    write(site, sequential(site, lambda2(site, function=code(site, "lambda x: x"), function_type="lambda",
                                         output_shape=shape, output_shape_type="lambda")))  # fmt: skip


def mask(site: Site) -> None:
    hidden = code(site, f"lambda x, m: (open({site.marker!r}, 'w').close(), None)[1]")
    write(site, sequential(site, lambda2(site, function=code(site, "lambda x: x"), function_type="lambda",
                                         mask=hidden, mask_type="lambda", mask_module="m")))  # fmt: skip


def nested(class_name: str) -> Any:
    """Inside of a wrapper."""

    def make(site: Site) -> None:
        inner = lambda2(site, function=code(site), function_type="lambda")
        write(site, sequential(site, layer(site, class_name, {"name": "w", "layer": inner}), first=given(site, (3, 4))))

    return make


def default_argument(site: Site) -> None:
    """The function is harmless; the code of its defaults is not: Keras keeps them as a list beside the bytecode."""
    write(site, sequential(site, lambda2(site, function=[site.bytecode("lambda x, f=0: x"), [lambda_code(site)], None],
                                         function_type="lambda")))  # fmt: skip


attack("lambda-bytecode", bytecode, runs_in={"hdf5": EVERY})
attack("lambda-output-shape", output_shape, kerases=KERAS2)
attack("lambda-mask", mask, kerases=KERAS2, runs_in={"hdf5": EVERY})
for wrapper in ("TimeDistributed", "Bidirectional"):
    attack(f"lambda-in-{wrapper}", nested(wrapper), runs_in={"hdf5": EVERY} if wrapper == "TimeDistributed" else "")
attack("lambda-default", default_argument)


# --- lambdas in any place -------------------------------------------------------------------------------------------
PLACES = ("activation", "kernel_initializer", "kernel_regularizer", "kernel_constraint", "activity_regularizer")


def in_place(place: str) -> Any:
    def make(site: Site) -> None:
        source = f"lambda *a, **k: (open({site.marker!r}, 'w').close(), 0.0)[1]"
        write(site, sequential(site, dense(site, **{place: lambda_code(site, source)})), dense=1)

    return make


for place in PLACES:
    attack(f"lambda-as-{place}", in_place(place))

COMPILED = ("loss", "metrics", "weighted_metrics", "optimizer")


def in_compiled(key: str) -> Any:
    def make(site: Site) -> None:
        source = f"lambda *a, **k: (open({site.marker!r}, 'w').close(), 0.0)[1]"
        hidden = lambda_code(site, source)
        compiled: Config = {"loss": "mse", "metrics": None, "weighted_metrics": None, "loss_weights": None}
        if key == "optimizer":
            rate = {"name": "sgd", "learning_rate": hidden}
            optimizer = layer(site, "SGD", rate, module="keras.optimizers")
            compiled["optimizer_config" if site.form == "hdf5" else "optimizer"] = optimizer
        else:
            compiled[key] = hidden if key == "loss" else [hidden]
            named: Any = layer(site, "SGD", {"name": "sgd"}, module="keras.optimizers")
            compiled["optimizer_config" if site.form == "hdf5" else "optimizer"] = named
        write(site, sequential(site, dense(site)), compiled=compiled, dense=1)

    return make


for key in COMPILED:
    attack(f"lambda-in-{key}", in_compiled(key))

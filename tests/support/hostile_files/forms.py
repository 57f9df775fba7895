"""Writes the files of every Keras by hand: configurations in its dialect, HDF5 and archives around them."""

from __future__ import annotations

import io
import json
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from hostile_files.sites import Site

Config = dict[str, Any]
Weights = Mapping[str, Mapping[str, Any]]  # layer -> weight -> its numbers; named as the archive names them, too
CONSTANT = "_CONSTANT_VALUE"  # how a node of Keras 2 says that it is given one
KERNEL, BIAS = [[0.5] * 4] * 4, [0.25] * 4


# --- configurations -------------------------------------------------------------------------------------------------
def layer(site: Site, class_name: str, config: Config, *, module: str = "keras.layers", **beside: Any) -> Config:
    """A layer, or anything else that has a class and a configuration."""
    if site.form == "hdf5":
        return {"class_name": class_name, "config": config, **beside}
    return {"module": module, "class_name": class_name, "config": config, "registered_name": None, **beside}


def given(site: Site, shape: tuple[int, ...] = (4,), dtype: str = "float32", name: str = "given") -> Config:
    key = "batch_shape" if site.is_keras3 else "batch_input_shape"
    config = {key: [None, *shape], "dtype": dtype, "sparse": False, "name": name}
    return layer(site, "InputLayer", config if site.is_keras3 else {**config, "ragged": False})


def dense(site: Site, name: str = "dense", **config: Any) -> Config:
    return layer(site, "Dense", {"name": name, "trainable": True, "dtype": "float32", "units": 4, **config},
                 build_config={"input_shape": [None, 4]})  # fmt: skip


def sequential(site: Site, *layers: Config, first: Config | None = None) -> Config:
    config = {"name": "model", "layers": [first or given(site), *layers]}
    return layer(site, "Sequential", config, module="keras")


def functional2(site: Site, nodes: Iterable[tuple[Config, list[Any]]]) -> Config:
    """A functional model of Keras 2: layers and their inbound nodes, after `given`; the last is its output."""
    layers = [{**given(site), "name": "given", "inbound_nodes": []}]
    layers += [{**config, "name": config["config"]["name"], "inbound_nodes": inbound} for config, inbound in nodes]
    ends = {"input_layers": [["given", 0, 0]], "output_layers": [[layers[-1]["name"], 0, 0]]}
    return layer(
        site,
        "Functional",
        {"name": "model", "trainable": True, "layers": layers, **ends},
        module="keras.src.engine.functional",
    )


def op_layer(site: Site, class_name: str, config: Config) -> Config:
    """A layer of Keras 2 that stands for a call of a function."""
    base = {"name": "op", "trainable": True, "dtype": "float32"}
    return layer(site, class_name, {**base, **config}, module="keras.src.layers.core.tf_op_layer")


def functional3(site: Site, nodes: Iterable[tuple[Config, list[Any], Config]]) -> Config:
    """A functional model of Keras 3: layers with the arguments of their call, after the input `given`; the model's
    output is its input, so that what a layer gives does not matter."""
    layers = [{**given(site), "name": "given", "inbound_nodes": []}]
    layers += [{**config, "name": config["config"]["name"], "inbound_nodes": [{"args": args, "kwargs": kwargs}]}
               for config, args, kwargs in nodes]  # fmt: skip
    ends = {"input_layers": [["given", 0, 0]], "output_layers": [["given", 0, 0]]}
    return layer(site, "Functional", {"name": "model", "trainable": True, "layers": layers, **ends},
                 module="keras.src.models.functional")  # fmt: skip


def keras_tensor(name: str = "given", shape: tuple[int, ...] = (4,)) -> Config:
    return {"class_name": "__keras_tensor__",
            "config": {"shape": [None, *shape], "dtype": "float32", "keras_history": [name, 0, 0]}}  # fmt: skip


def function(name: str, module: str = "builtins", registered: str | None = None) -> Config:
    """A function by its name, as newer Kerases write it."""
    return {"module": module, "class_name": "function", "config": name, "registered_name": registered or name}


def lambda_code(site: Site, source: str | None = None) -> Config:
    """A lambda as newer Kerases write it inside other objects."""
    code = site.bytecode(source)
    config = {"code": code, "defaults": None, "closure": None} if site.is_keras3 else {}
    return {"class_name": "__lambda__", "config": {**config, "value": [code, None, None]}}


# --- files ----------------------------------------------------------------------------------------------------------
def write(
    site: Site,
    config: Config,
    *,
    compiled: Config | None = None,
    dense: int = 0,
    weights: Weights | None = None,
    path: Path | None = None,
) -> None:
    """The file of the site's form. `compiled` is a loss, metrics and an optimizer; `dense` how many Dense layers,
    called dense, dense_1, …, there are weights for; `weights` those of other layers."""
    path = path or site.path
    if site.form == "hdf5":
        path.write_bytes(hdf5_bytes(site, config, compiled, dense, weights=weights))
    else:
        path.write_bytes(zipped(members(site, config, compiled, dense, weights)))


def hdf5_bytes(
    site: Site,
    config: Config | str,
    compiled: Config | None = None,
    dense: int = 0,
    block: int = 0,
    weights: Weights | None = None,
) -> bytes:
    """`block` is the size of a user block in front."""
    import h5py

    text = str.encode if site.keras == "2.4" else str  # as the h5py of each wrote it
    target = io.BytesIO()
    with h5py.File(target, "w", **({"userblock_size": block} if block else {})) as file:
        file.attrs["keras_version"], file.attrs["backend"] = text(site.version), text("tensorflow")
        file.attrs["model_config"] = text(config if isinstance(config, str) else json.dumps(config))
        if compiled is not None:
            file.attrs["training_config"] = text(json.dumps(compiled))
        group = file.create_group("model_weights")
        held = {**dense_weights(dense), **(weights or {})}
        group.attrs["layer_names"] = [name.encode() for name in held]
        group.attrs["backend"], group.attrs["keras_version"] = b"tensorflow", site.version.encode()
        group.create_group("top_level_model_weights").attrs["weight_names"] = []
        for name, arrays in held.items():
            own = group.create_group(name)
            own.attrs["weight_names"] = [f"{name}/{weight}:0".encode() for weight in arrays]
            for weight, array in arrays.items():
                own.create_dataset(f"{name}/{weight}:0", data=array, dtype="float32")
    return target.getvalue()


def dense_weights(count: int) -> Weights:
    names = [f"dense_{number}" if number else "dense" for number in range(count)]
    return {name: {"kernel": KERNEL, "bias": BIAS} for name in names}


def weights_bytes(dense: int = 0, weights: Weights | None = None) -> bytes:
    import h5py

    target = io.BytesIO()
    with h5py.File(target, "w") as file:
        file.create_group("layers")
        file.create_group("vars")
        for name, arrays in {**dense_weights(dense), **(weights or {})}.items():
            group = file.create_group(f"layers/{name}/vars")
            for number, array in enumerate(arrays.values()):
                group.create_dataset(str(number), data=array, dtype="float32")
    return target.getvalue()


def members(
    site: Site, config: Config, compiled: Config | None = None, dense: int = 0, weights: Weights | None = None
) -> dict[str, bytes]:
    """What lies in a .keras archive."""
    whole = {**config, "compile_config": compiled} if compiled is not None else config
    metadata = {"keras_version": site.version, "date_saved": "2026-01-01@00:00:00"}
    return {
        "metadata.json": json.dumps(metadata).encode(),
        "config.json": json.dumps(whole).encode(),
        "model.weights.h5": weights_bytes(dense, weights),
    }


def zipped(files: Mapping[str, bytes] | Iterable[tuple[str, bytes]], compression: int = zipfile.ZIP_STORED) -> bytes:
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", compression) as archive:
        for name, content in files.items() if isinstance(files, Mapping) else files:
            archive.writestr(name, content)
    return target.getvalue()


def archive_bytes(site: Site, config: Config, compiled: Config | None = None, dense: int = 0) -> bytes:
    return zipped(members(site, config, compiled, dense))

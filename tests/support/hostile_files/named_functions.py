"""Lambda layers and activations that only name a function: one that lies inside of Keras, or is reached through it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostile_files import ZIP2, attack
from hostile_files.forms import CONSTANT, dense, function, functional2, functional3, layer, sequential, write
from hostile_files.sites import Site

Config = dict[str, Any]
Arguments = Callable[[Site], tuple[Any, Config]]
LIVE2 = " ".join(ZIP2)
UTILITIES = "keras.src.utils.generic_utils"  # imports os


def calls(module: str, name: str, arguments: Arguments, registered: str | None = None) -> Callable[[Site], None]:
    """A Lambda layer that names a function, which is given a constant and keywords while the file is loaded."""

    def make(site: Site) -> None:
        first, keywords = arguments(site)
        named = function(name, module, registered)
        base: Config = {"name": "l", "trainable": True, "dtype": "float32", "function": named, "arguments": keywords}
        if site.is_keras3:
            write(site, functional3(site, [(layer(site, "Lambda", base), [], {"inputs": first})]))
            return
        old = {"function_type": "function", "module": "m", "output_shape": None, "output_shape_type": "raw",
               "output_shape_module": None}  # fmt: skip
        write(site, functional2(site, [(layer(site, "Lambda", {**base, **old}), [[CONSTANT, -1, first, {}]])]))

    return make


# A function's module, its name, its arguments, what it tries, and where the plain loader lets it happen.
FUNCTIONS: list[tuple[str, str, Arguments, str, str]] = [
    # through Keras' own modules to those that they import
    (UTILITIES, "os.mkdir", lambda s: (s.marker, {}), "change", LIVE2),
    (UTILITIES, "os.system", lambda s: (f"touch {s.marker}", {}), "change", LIVE2),
    (UTILITIES, "os.remove", lambda s: (str(s.keepsake), {}), "change", LIVE2),
    ("keras.src.utils.data_utils", "shutil.copy", lambda s: (str(s.canary), {"dst": s.marker}), "change", LIVE2),
    ("keras.src.utils.data_utils", "shutil.rmtree", lambda s: (str(s.outside), {}), "change", LIVE2),
    ("tf_keras.src.utils.generic_utils", "os.mkdir", lambda s: (s.marker, {}), "change", "tf_keras"),
    # what Keras itself offers
    ("keras.utils", "get_file", lambda s: ("got", {"origin": s.url, "cache_dir": str(s.outside)}), "change", LIVE2),
    ("keras.utils", "legacy.deserialize_keras_object", lambda s: ("x", {"module_objects": {}}), "change", ""),
    ("keras.models", "load_model", lambda s: (str(s.canary), {}), "read", LIVE2),
    ("keras.saving", "load_model", lambda s: (str(s.canary), {}), "read", LIVE2),
    ("keras.preprocessing.image", "load_img", lambda s: (str(s.canary), {}), "read", ""),
    ("keras.callbacks", "TensorBoard", lambda s: (s.marker, {}), "change", ""),
    ("keras.saving", "KerasFileEditor", lambda s: (str(s.canary), {}), "read", "3"),
    ("keras.applications.mobilenet_v3", "MobileNetV3Small",
     lambda s: ([32, 32, 3], {"include_top": False, "weights": str(s.canary)}), "read", ""),
    ("keras.applications", "MobileNetV3Small",
     lambda s: ([32, 32, 3], {"include_top": False, "weights": str(s.canary)}), "read", f"3 {LIVE2}"),
    # where Python itself would look
    ("os", "mkdir", lambda s: (s.marker, {}), "change", LIVE2),
    ("subprocess", "call", lambda s: (["touch", s.marker], {}), "change", LIVE2),
    ("shutil", "copy", lambda s: (str(s.canary), {"dst": s.marker}), "change", LIVE2),
    ("builtins", "open", lambda s: (s.marker, {"mode": "w"}), "change", LIVE2),
    ("builtins", "exec", lambda s: (f"open({s.marker!r}, 'w')", {}), "change", LIVE2),
    ("importlib", "import_module", lambda s: ("antigravity", {}), "change", ""),
    ("tensorflow", "io.write_file", lambda s: (s.marker, {"contents": "x"}), "change", LIVE2),
    ("tensorflow.io.gfile", "makedirs", lambda s: (s.marker, {}), "change", LIVE2),
    ("numpy", "savetxt", lambda s: (s.marker, {"X": [1.0]}), "change", ""),
    ("h5py", "File", lambda s: (s.marker, {"mode": "w"}), "change", LIVE2),
    ("os ", "mkdir", lambda s: (s.marker, {}), "change", ""),
    ("OS", "mkdir", lambda s: (s.marker, {}), "change", ""),
    ("\uff4fs", "mkdir", lambda s: (s.marker, {}), "change", ""),  # Python itself would read this as os in a source
    (".os", "mkdir", lambda s: (s.marker, {}), "change", ""),
    ("keras.", "mkdir", lambda s: (s.marker, {}), "change", ""),
    ("kerasos", "mkdir", lambda s: (s.marker, {}), "change", ""),
]  # fmt: skip

for module, name, arguments, tries, live in FUNCTIONS:
    attack(f"function-{module}.{name}", calls(module, name, arguments), tries, kerases=("3", *ZIP2),
           runs_in={"keras": live, "hdf5": "3" if live.startswith("3") else ""})  # fmt: skip

# The name that is looked at is not the one that is looked up: newer Kerases fall back on the registered name.
attack("function-by-registered-name", calls("os", "relu", lambda s: (s.marker, {}), "mkdir"), kerases=("3", *ZIP2),
       runs_in={"keras": LIVE2})  # fmt: skip


def module_beside(site: Site) -> None:
    """A module that lies beside the file, where a user runs the check."""
    (site.folder / "neighbour.py").write_text(f"open({site.marker!r}, 'w').close()\ndef same(x): return x\n")
    write(site, sequential(site, dense(site, activation=function("same", "neighbour"))), dense=1)


attack("function-in-a-module-beside", module_beside, kerases=("3", *ZIP2))


# --- objects that are no class of a layer's -------------------------------------------------------------------------
def as_class(module: str, name: str, config: Callable[[Site], Config]) -> Callable[[Site], None]:
    """An object where a layer is expected."""

    def make(site: Site) -> None:
        write(site, sequential(site, layer(site, name, config(site), module=module), dense(site)), dense=1)

    return make


def rate(module: str, name: str, config: Callable[[Site], Config]) -> Callable[[Site], None]:
    """An object where a learning rate's schedule is expected."""

    def make(site: Site) -> None:
        odd = layer(site, name, config(site), module=module)
        optimizer = layer(site, "SGD", {"name": "sgd", "learning_rate": odd}, module="keras.optimizers")
        key = "optimizer_config" if site.form == "hdf5" else "optimizer"
        write(site, sequential(site, dense(site)), compiled={"loss": "mse", key: optimizer}, dense=1)

    return make


CLASSES: list[tuple[str, str, Callable[[Site], Config]]] = [
    ("keras.utils", "get_file", lambda s: {"fname": "got", "origin": s.url, "cache_dir": str(s.outside)}),
    ("keras.config", "enable_unsafe_deserialization", lambda s: {}),
    ("keras.saving", "KerasFileEditor", lambda s: {"filepath": str(s.canary)}),
    ("keras.callbacks", "CSVLogger", lambda s: {"filename": s.marker}),
    (UTILITIES, "os.mkdir", lambda s: {"path": s.marker}),
    ("tensorflow.io", "TFRecordWriter", lambda s: {"path": s.marker}),
    ("pathlib", "Path", lambda s: {"path": s.marker}),
]
for module, name, config in CLASSES:
    attack(f"class-{module}.{name}", as_class(module, name, config))
    attack(f"schedule-{module}.{name}", rate(module, name, config))

GLOBALS = (
    "sys",
    "get",
    "serialize",
    "deserialize",
    "tf",
    "keras_export",
    "__builtins__",
    "__import__",
    "os.system",
    "eval",
)


def by_global_name(place: str, name: str) -> Callable[[Site], None]:
    """The name of something that merely lies in the module where Keras looks functions up."""

    def make(site: Site) -> None:
        write(site, sequential(site, dense(site, **{place: name})), dense=1)

    return make


for name in GLOBALS:
    attack(f"activation-{name}", by_global_name("activation", name))
for place in ("kernel_initializer", "kernel_regularizer", "kernel_constraint"):
    attack(f"{place}-deserialize", by_global_name(place, "deserialize"))

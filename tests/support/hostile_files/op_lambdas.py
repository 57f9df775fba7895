"""Layers of Keras 2 that call any public symbol of TensorFlow or Keras by its name, already while a file is loaded."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from hostile_files import KERAS2, attack
from hostile_files.forms import CONSTANT, functional2, given, hdf5_bytes, layer, op_layer, sequential, write
from hostile_files.sites import Site

EVERY = " ".join(KERAS2)
Arguments = Callable[[Site], tuple[Any, dict[str, Any]]]


def called(class_name: str, config: dict[str, Any], arguments: Arguments) -> Callable[[Site], None]:
    """A file with such a layer, which is given a constant and keywords."""

    def make(site: Site) -> None:
        first, keywords = arguments(site)
        write(site, functional2(site, [(op_layer(site, class_name, config), [[CONSTANT, -1, first, keywords]])]))

    return make


def lambda_in_json(site: Site) -> str:
    """A whole model as a text, as model_from_json takes it."""
    config = {"name": "x", "function": [site.bytecode(), None, None], "function_type": "lambda", "arguments": {},
              "output_shape": None, "output_shape_type": "raw", "module": "m", "output_shape_module": None}  # fmt: skip
    inner = Site(site.folder, site.outside, site.keras, "hdf5", ".h5", site.port, site.python)
    return json.dumps(sequential(inner, layer(inner, "Lambda", config)))


def second_file(site: Site) -> tuple[Any, dict[str, Any]]:
    """Another file beside the first, which nobody searched."""
    second = site.folder / "second.h5"
    second.write_bytes(hdf5_bytes(site, lambda_in_json(site)))
    return str(second), {}


# What is called, how, and what it tries; all of it at once while loading.
CALLS: list[tuple[str, Arguments, str, str]] = [
    ("io.write_file", lambda s: (s.marker, {"contents": "x"}), "change", EVERY),
    ("io.gfile.makedirs", lambda s: (s.marker, {}), "change", EVERY),
    ("io.gfile.mkdir", lambda s: (s.marker, {}), "change", EVERY),
    ("io.gfile.copy", lambda s: (str(s.canary), {"dst": s.marker}), "change", EVERY),
    ("io.gfile.rename", lambda s: (str(s.keepsake), {"dst": s.marker}), "change", EVERY),
    ("io.gfile.remove", lambda s: (str(s.keepsake), {}), "change", EVERY),
    ("io.gfile.rmtree", lambda s: (str(s.outside), {}), "change", EVERY),
    ("io.TFRecordWriter", lambda s: (s.marker, {}), "change", EVERY),
    ("io.read_file", lambda s: (str(s.canary), {}), "read", EVERY),
    ("print", lambda s: ("x", {"output_stream": f"file://{s.marker}"}), "change", EVERY),
    ("summary.create_file_writer", lambda s: (s.marker, {}), "change", EVERY),
    ("debugging.experimental.enable_dump_debug_info", lambda s: (s.marker, {}), "change", EVERY),
    ("compat.v1.gfile.MakeDirs", lambda s: (s.marker, {}), "change", EVERY),
    ("compat.v1.gfile.Copy", lambda s: (str(s.canary), {"newpath": s.marker}), "change", EVERY),
    ("load_library", lambda s: (str(s.canary), {}), "read", EVERY),
    ("load_op_library", lambda s: (str(s.canary), {}), "read", EVERY),
    ("lite.Interpreter", lambda s: (str(s.canary), {}), "read", EVERY),
    ("feature_column.categorical_column_with_vocabulary_file",
     lambda s: ("key", {"vocabulary_file": str(s.canary)}), "read", EVERY),
    ("keras.utils.data_utils.get_file", lambda s: ("got", {"origin": s.url}), "connect", ""),
    ("keras.utils.get_file", lambda s: ("got", {"origin": s.url, "cache_dir": str(s.outside)}), "change", EVERY),
    ("saved_model.load", lambda s: (str(s.outside), {}), "change", ""),
    ("raw_ops.WriteFile", lambda s: (s.marker, {"contents": "x"}), "change", ""),
    ("os.mkdir", lambda s: (s.marker, {}), "change", ""),
]  # fmt: skip

for symbol, arguments, tries, live in CALLS:
    attack(f"op-lambda-{symbol}", called("TFOpLambda", {"function": symbol}, arguments), tries, kerases=KERAS2,
           runs_in=live)  # fmt: skip

attack("slicing-op-lambda", called("SlicingOpLambda", {"function": "io.write_file"},
       lambda s: (s.marker, {"contents": "x"})), kerases=KERAS2, runs_in=EVERY)  # fmt: skip
attack("op-lambda-model-in-a-text", called("TFOpLambda", {"function": "keras.models.model_from_json"},
       lambda s: (lambda_in_json(s), {})), kerases=KERAS2, runs_in={"hdf5": EVERY})  # fmt: skip
attack("op-lambda-second-file", called("TFOpLambda", {"function": "keras.models.load_model"}, second_file),
       kerases=KERAS2, runs_in={"hdf5": EVERY})  # fmt: skip
attack("op-lambda-connects", called("TFOpLambda", {"function": "keras.utils.get_file"},
       lambda s: ("got", {"origin": s.url, "cache_dir": str(s.folder)})), "connect", kerases=KERAS2,
       runs_in=EVERY)  # fmt: skip
attack("class-method-call", called("ClassMethod", {"cls_symbol": "io.write_file", "method_name": "__call__"},
       lambda s: ([s.marker, "x"], {"kwargs": {}})), kerases=KERAS2, runs_in=EVERY)  # fmt: skip
attack(
    "class-method-from-config",
    called(
        "ClassMethod",
        {"cls_symbol": "keras.Sequential", "method_name": "from_config"},
        lambda s: ([json.loads(lambda_in_json(s))["config"]], {"kwargs": {}}),
    ),
    kerases=KERAS2,
    runs_in={"hdf5": EVERY},
)
attack(
    "instance-method",
    called("InstanceMethod", {"method_name": "format", "attr_name": "format"}, lambda s: ("{0.__class__}", {"x": 1})),
    kerases=KERAS2,
)
attack("instance-property", called("InstanceProperty", {"attr_name": "__globals__"},
       lambda s: ("x", {})), kerases=KERAS2)  # fmt: skip


def read_in_training(site: Site) -> None:
    """The canary is read at every step of the training, and not while loading: its path is made of the input."""
    steps: list[tuple[str, dict[str, Any]]] = [
        ("strings.as_string", {}),
        ("strings.reduce_join", {}),
        ("strings.regex_replace", {"pattern": "^.*$", "rewrite": str(site.canary), "replace_global": False}),
        ("io.read_file", {}),
        ("strings.length", {}),
        ("cast", {"dtype": "float32"}),
        ("math.add", {"y": ["given", 0, 0]}),
    ]
    nodes, before = [], "given"
    for symbol, keywords in steps:
        name = symbol.replace(".", "_")
        nodes.append((op_layer(site, "TFOpLambda", {"name": name, "function": symbol}), [[before, 0, 0, keywords]]))
        before = name
    write(site, functional2(site, nodes))


attack("op-lambda-of-an-input", read_in_training, "read", kerases=KERAS2, runs_in=EVERY)


def in_a_nested_model(site: Site) -> None:
    inner = functional2(site, [(op_layer(site, "TFOpLambda", {"function": "io.write_file"}),
                                [[CONSTANT, -1, site.marker, {"contents": "x"}]])])  # fmt: skip
    wrapped = layer(site, "TimeDistributed", {"name": "each", "layer": inner})
    write(site, sequential(site, wrapped, first=given(site, (3, 4))))


attack("op-lambda-in-a-wrapped-model", in_a_nested_model, kerases=KERAS2, runs_in=EVERY)

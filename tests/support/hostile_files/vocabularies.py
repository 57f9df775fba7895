"""Layers that read another file: a vocabulary by its path, a graph, a module of another library."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hostile_files import KERAS2, attack
from hostile_files.forms import function, functional3, given, lambda_code, layer, sequential, write
from hostile_files.sites import Site

Config = dict[str, Any]


def lookup(class_name: str, dtype: str, **more: Any) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        config = {"name": "look", "trainable": True, "vocabulary": str(site.canary), **more}
        if site.is_keras3 and class_name == "IntegerLookup":
            config["dtype"] = "int64"
        write(site, sequential(site, layer(site, class_name, config), first=given(site, (1,), dtype)))

    return make


LIVE = " ".join(KERAS2)
attack("vocabulary-StringLookup", lookup("StringLookup", "string"), "read", runs_in=LIVE)
attack("vocabulary-IntegerLookup", lookup("IntegerLookup", "int64"), "read", runs_in=LIVE)
attack("vocabulary-TextVectorization", lookup("TextVectorization", "string", standardize=None, split=None), "read",
       runs_in=LIVE)  # fmt: skip
attack("vocabulary-idf", lookup("StringLookup", "string", output_mode="tf_idf", idf_weights="x"), "read", runs_in="2.4")


def in_a_wrapper(site: Site) -> None:
    inner = layer(site, "StringLookup", {"name": "look", "vocabulary": str(site.canary)})
    wrapped = layer(site, "TimeDistributed", {"name": "each", "layer": inner})
    write(site, sequential(site, wrapped, first=given(site, (3, 1), "string")))


attack("vocabulary-in-a-wrapper", in_a_wrapper, "read", runs_in=LIVE)


def only(class_name: str, config: Callable[[Site], Config], module: str = "keras.layers") -> Callable[[Site], None]:
    def make(site: Site) -> None:
        write(site, sequential(site, layer(site, class_name, {"name": "l", **config(site)}, module=module)))

    return make


attack("graph-TFSMLayer", only("TFSMLayer", lambda s: {"filepath": str(s.outside)}))
attack("module-TorchModuleWrapper", only("TorchModuleWrapper", lambda s: {"module": "gASVAAAA"}))
attack("module-JaxLayer", only("JaxLayer", lambda s: {"call_fn": lambda_code(s), "init_fn": lambda_code(s)}))
attack("module-FlaxLayer", only("FlaxLayer", lambda s: {"module": lambda_code(s)}))
attack(
    "tokenizer-of-keras-hub",
    only(
        "BytePairTokenizer",
        lambda s: {"vocabulary": str(s.canary), "merges": str(s.canary)},
        "keras_hub.src.tokenizers.byte_pair_tokenizer",
    ),
    "read",
)
attack("tokenizer-of-keras-nlp", only("WordPieceTokenizer", lambda s: {"vocabulary": str(s.canary)},
       "keras_nlp.tokenizers"), "read")  # fmt: skip


def class_as_function(
    class_name: str, arguments: Callable[[Site], Config], first: Callable[[Site], Any]
) -> Callable[[Site], None]:
    """A Lambda layer that names a class: its constructor asks for no safe mode where from_config does."""

    def make(site: Site) -> None:
        hostile_layer = layer(site, "Lambda", {"name": "l", "function": function(class_name, "keras.layers"),
                                     "arguments": arguments(site)})  # fmt: skip
        write(site, functional3(site, [(hostile_layer, [], {"inputs": first(site)})]))

    return make


attack("class-as-function-StringLookup", class_as_function("StringLookup", lambda s: {"vocabulary": str(s.canary)},
       lambda s: 100), "read", kerases=("3",))  # fmt: skip
attack("class-as-function-TFSMLayer", class_as_function("TFSMLayer", lambda s: {"call_endpoint": "serve"},
       lambda s: str(s.outside)), kerases=("3",))  # fmt: skip

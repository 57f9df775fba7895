"""Small files that ask for more memory or time than any model needs. The parts are made as texts, because the makers
must be quick, too."""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable
from typing import Any

from hostile_files import attack
from hostile_files.forms import (
    dense,
    functional2,
    functional3,
    given,
    hdf5_bytes,
    keras_tensor,
    layer,
    members,
    sequential,
    write,
    zipped,
)
from hostile_files.sites import Site

MILLION = 10**6


def compressed(name: str, start: bytes, middle: bytes, times: int, end: bytes) -> Callable[[Site], None]:
    """An innocent model with a member that unfolds to this."""

    def make(site: Site) -> None:
        files = members(site, sequential(site, dense(site)), dense=1)
        site.path.write_bytes(zipped({**files, name: start + middle * times + end}, zipfile.ZIP_DEFLATED))

    return make


def padded_configuration(site: Site) -> None:
    """750 kB that unfold to 153 MB of small objects."""
    files = members(site, sequential(site, dense(site)), dense=1)
    small = b'{"class_name": "Dense", "config": {}}, '
    filler = b'"filler": [' + small * (153 * MILLION // len(small)) + b"0], "
    files["config.json"] = b"{" + filler + files["config.json"][1:]
    site.path.write_bytes(zipped(files, zipfile.ZIP_DEFLATED))


def deep(opening: str, closing: str, depth: int) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        whole = json.dumps(sequential(site, dense(site, name="deep")))
        text = whole.replace('"deep"', opening * depth + "1" + closing * depth)
        if site.form == "keras":
            site.path.write_bytes(zipped({**members(site, {}, dense=1), "config.json": text.encode()}))
        else:
            _write_text(site, text)

    return make


def _write_text(site: Site, text: str) -> None:
    site.path.write_bytes(hdf5_bytes(site, text, dense=1))


def units(number: int) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        write(site, sequential(site, dense(site, units=number)), dense=1)

    return make


def wide_input(site: Site) -> None:
    write(site, sequential(site, layer(site, "Flatten", {"name": "f"}), dense(site), first=given(site, (10**6, 10**6))))


def many_layers(site: Site) -> None:
    written = json.dumps(layer(site, "ReLU", {"name": "r"}))
    layers = ", ".join(written.replace('"r"', f'"r{number}"') for number in range(MILLION))
    text = json.dumps(sequential(site, layer(site, "ReLU", {"name": "r"}))).replace(written, layers)
    if site.form == "keras":
        site.path.write_bytes(zipped({**members(site, {}), "config.json": text.encode()}, zipfile.ZIP_DEFLATED))
    else:
        _write_text(site, text)


def many_nodes(site: Site) -> None:
    add = layer(site, "Add", {"name": "sum"})
    if site.is_keras3:
        write(site, functional3(site, [(add, [[keras_tensor()] * 100_000], {})]))
    else:
        write(site, functional2(site, [(add, [["given", 0, 0, {}]] * MILLION)]))


def repeated(site: Site) -> None:
    """Layers that repeat what they wrap: each doubles the work."""
    inner: Any = dense(site)
    for number in range(150):
        inner = layer(site, "TimeDistributed", {"name": f"t{number}", "layer": inner})
    write(site, sequential(site, inner))


def number_of_digits(site: Site) -> None:
    text = json.dumps(sequential(site, dense(site, units=123456789))).replace("123456789", "9" * 4_000_000)
    if site.form == "keras":
        site.path.write_bytes(zipped({**members(site, {}), "config.json": text.encode()}, zipfile.ZIP_DEFLATED))
    else:
        _write_text(site, text)


def policy_by_pattern(site: Site) -> None:
    """A path of 40 letters takes this pattern years."""
    policy = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "float32"}, "registered_name": None}
    by_path = {"default_policy": "mixed_float16", "policy_map": {"(a+)+$": policy}}
    dtype = {"module": "keras", "class_name": "DTypePolicyMap", "config": by_path, "registered_name": None}
    write(site, sequential(site, dense(site, name="a" * 40 + "b", dtype=dtype)), dense=1)


attack("blow-up-configuration", padded_configuration, "grow", forms=("keras",))
attack(
    "blow-up-metadata", compressed("metadata.json", b'{"a": [', b"[], ", 75 * MILLION, b"0]}"), "grow", forms=("keras",)
)
attack("blow-up-member", compressed("assets/x", b"", b"\0", 10**8, b""), "grow", forms=("keras",))
attack("blow-up-deep-lists", deep("[", "]", 100_000), "grow")
attack("blow-up-deep-objects", deep('{"config": ', "}", 900), "grow")
attack("blow-up-pattern", policy_by_pattern, "grow", kerases=("3",))
attack("blow-up-units", units(10**12), "grow")
attack("blow-up-negative-units", units(-1), "grow")
attack("blow-up-digits", number_of_digits, "grow")
attack("blow-up-input", wide_input, "grow")
attack("blow-up-layers", many_layers, "grow")
attack("blow-up-nodes", many_nodes, "grow")
attack("blow-up-wrappers", repeated, "grow")

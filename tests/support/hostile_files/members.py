"""Names in an archive that lead out of it, and members that are no plain files."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Callable

from hostile_files import attack
from hostile_files.forms import dense, layer, members, sequential, weights_bytes, zipped
from hostile_files.sites import Site


def with_member(
    name: Callable[[Site], str], mode: int = 0o100644, content: Callable[[Site], bytes] = lambda s: b"x"
) -> Callable[[Site], None]:
    """An innocent model with more than three members, which Keras therefore unpacks into a folder."""

    def make(site: Site) -> None:
        with zipfile.ZipFile(site.path, "w") as archive:
            for key, value in members(site, sequential(site, dense(site)), dense=1).items():
                archive.writestr(key, value)
            entry = zipfile.ZipInfo(name(site))
            entry.external_attr = mode << 16
            archive.writestr(entry, content(site))

    return make


UP = "../" * 12
for key, name in {
    "absolute": lambda s: s.marker,
    "upwards": lambda s: UP + s.marker[1:],
    "upwards-in-assets": lambda s: "assets/" + UP + s.marker[1:],
    "backslashes": lambda s: ("assets/" + UP + s.marker[1:]).replace("/", "\\"),
    "beside": lambda s: "../../marker",
    "a-folder": lambda s: UP + s.marker[1:] + "/",
}.items():
    attack(f"member-{key}", with_member(name), forms=("keras",))  # type: ignore[arg-type]


def link_to_follow(site: Site) -> None:
    """A link out of the folder, and a member that is written through it."""
    with zipfile.ZipFile(site.path, "w") as archive:
        for key, value in members(site, sequential(site, dense(site)), dense=1).items():
            archive.writestr(key, value)
        link = zipfile.ZipInfo("assets/link")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(site.outside))
        archive.writestr("assets/link/marker", "x")


attack("member-link", link_to_follow, forms=("keras",))


def configuration_is_a_link(site: Site) -> None:
    with zipfile.ZipFile(site.path, "w") as archive:
        link = zipfile.ZipInfo("config.json")
        link.external_attr = 0o120777 << 16
        archive.writestr(link, str(site.canary))
        archive.writestr("metadata.json", json.dumps({"keras_version": site.version}))
        archive.writestr("model.weights.h5", weights_bytes())


attack("member-configuration-is-a-link", configuration_is_a_link, "read", forms=("keras",))


def weights_elsewhere(site: Site) -> None:
    """A list of shards, as newer Kerases keep weights, that names another file."""
    files = members(site, sequential(site, dense(site)))
    del files["model.weights.h5"]
    files["model.weights.json"] = json.dumps(
        {"metadata": {"total_size": 1}, "weight_map": {"/layers/dense/vars": str(site.canary)}}
    ).encode()
    site.path.write_bytes(zipped(files))


attack("member-shards-elsewhere", weights_elsewhere, "read", forms=("keras",))


def pickled_weights(site: Site) -> None:
    """NumPy's own format can hold a pickle."""
    import io
    import pickle

    import numpy as np

    class Touch:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (site.marker,)

    array = io.BytesIO()
    np.lib.format.write_array_header_1_0(array, {"descr": "|O", "fortran_order": False, "shape": ()})
    array.write(pickle.dumps(Touch()))
    files = members(site, sequential(site, dense(site)))
    del files["model.weights.h5"]
    files["model.weights.npz"] = zipped({"layers/dense/vars.npy": array.getvalue(), "__root__.npy": array.getvalue()})
    site.path.write_bytes(zipped(files))


attack("member-pickled-weights", pickled_weights, forms=("keras",), runs_in="2.15")


def pickle_before_arrays(holds_array: bool) -> Callable[[Site], None]:
    """An archive of arrays with a pickle in front of it: zipfile looks for its end, NumPy at the first bytes."""
    import pickle

    class Touch:
        def __init__(self, marker: str) -> None:
            self.marker = marker

        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (self.marker,)

    def make(site: Site) -> None:
        files = members(site, sequential(site, dense(site)))
        del files["model.weights.h5"]
        arrays = zipped({"__root__.npy": array_bytes()} if holds_array else {})
        files["model.weights.npz"] = pickle.dumps(Touch(site.marker)) + arrays
        site.path.write_bytes(zipped(files))

    return make


def array_bytes() -> bytes:
    import io

    import numpy as np

    array = io.BytesIO()
    np.save(array, np.zeros((4, 4), "float32"))
    return array.getvalue()


attack("member-pickle-before-arrays", pickle_before_arrays(True), forms=("keras",), runs_in="2.15")
attack("member-pickle-before-no-arrays", pickle_before_arrays(False), forms=("keras",), runs_in="2.15")


def asset_instead_of_vocabulary(site: Site) -> None:
    """A vocabulary that lies in the archive, whose layer is named so that its path leads out."""
    lookup = layer(site, "StringLookup", {"name": "../../../canary", "dtype": "string", "max_tokens": None,
                                          "vocabulary": None, "output_mode": "int"})  # fmt: skip
    site.path.write_bytes(zipped({**members(site, sequential(site, lookup)), "assets/layers/x": b"x"}))


attack("member-named-upwards", asset_instead_of_vocabulary, "read", forms=("keras",))

"""Weights that lie elsewhere, or claim to be larger than any machine."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from hostile_files import attack
from hostile_files.forms import dense, hdf5_bytes, members, sequential, weights_bytes, zipped
from hostile_files.sites import Site

OLD_KERNEL, NEW_KERNEL = "model_weights/dense/dense/kernel:0", "layers/dense/vars/0"


def changed(change: Callable[[Any, str, Site], None]) -> Callable[[Site], None]:
    """A file with one Dense layer, and its kernel replaced."""

    def make(site: Site) -> None:
        import h5py

        model = sequential(site, dense(site))
        is_hdf5 = site.form == "hdf5"
        target = io.BytesIO(hdf5_bytes(site, model, dense=1) if is_hdf5 else weights_bytes(1))
        with h5py.File(target, "r+") as file:
            change(file, OLD_KERNEL if is_hdf5 else NEW_KERNEL, site)
        if is_hdf5:
            site.path.write_bytes(target.getvalue())
        else:
            site.path.write_bytes(zipped({**members(site, model), "model.weights.h5": target.getvalue()}))

    return make


def external_storage(file: Any, kernel: str, site: Site) -> None:
    del file[kernel]
    file.create_dataset(kernel, (4, 4), "float32", external=[(str(site.canary), 0, 64)])


def external_storage_relative(file: Any, kernel: str, site: Site) -> None:
    del file[kernel]
    file.create_dataset(kernel, (4, 4), "float32", external=[(f"../outside/{site.canary.name}", 0, 64)])


def external_link(file: Any, kernel: str, site: Site) -> None:
    import h5py

    del file[kernel]
    file[kernel] = h5py.ExternalLink(str(site.canary), "/kernel")


def external_group(file: Any, kernel: str, site: Site) -> None:
    import h5py

    group = kernel.rsplit("/", 1)[0]
    del file[group]
    file[group] = h5py.ExternalLink(str(site.canary), "/")


def whole_weights_elsewhere(file: Any, kernel: str, site: Site) -> None:
    import h5py

    top = kernel.split("/", 1)[0]
    del file[top]
    file[top] = h5py.ExternalLink(str(site.canary), "/")


def virtual(file: Any, kernel: str, site: Site) -> None:
    import h5py

    del file[kernel]
    layout = h5py.VirtualLayout((4, 4), "float32")
    layout[:] = h5py.VirtualSource(str(site.canary), "kernel", (4, 4))
    file.create_virtual_dataset(kernel, layout)


def soft_loop(file: Any, kernel: str, site: Site) -> None:
    import h5py

    del file[kernel]
    file[kernel] = h5py.SoftLink("/" + kernel)


def objects(file: Any, kernel: str, site: Site) -> None:
    import h5py

    del file[kernel]
    file.create_dataset(kernel, data=["x"] * 4, dtype=h5py.string_dtype())


def huge(file: Any, kernel: str, site: Site) -> None:
    del file[kernel]
    file.create_dataset(kernel, (2**40, 4), "float32", chunks=(1024, 4), compression="gzip", fillvalue=1.0)


def many_names(file: Any, kernel: str, site: Site) -> None:
    """A million of attributes' worth of names."""
    group = file.get("model_weights", file)
    for number in range(200):
        group.attrs[f"layer_names{number}"] = [b"x" * 50] * 1000
    if "layer_names" in group.attrs:
        del group.attrs["layer_names"]


LIVE = "tf_keras 2.15 2.10 2.4"
# Newer Keras 2 opens the file through TensorFlow; HDF5 then looks for every file that a link names in the one at hand.
for name, change, tries, live in [
    ("external-storage", external_storage, "read", {"hdf5": LIVE, "keras": LIVE}),
    ("external-storage-relative", external_storage_relative, "read", {"hdf5": LIVE, "keras": LIVE}),
    ("external-link", external_link, "read", {"hdf5": "2.4"}),
    ("external-group", external_group, "read", {"hdf5": "2.4"}),
    ("external-everything", whole_weights_elsewhere, "read", {"hdf5": "2.4"}),
    ("virtual", virtual, "read", {"hdf5": "2.4"}),
    ("soft-loop", soft_loop, "grow", {}),
    ("objects", objects, "grow", {}),
    ("huge", huge, "grow", {}),
    ("many-names", many_names, "grow", {}),
]:
    attack(f"weights-{name}", changed(change), tries, runs_in=live)

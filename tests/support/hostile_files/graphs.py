"""SavedModels whose graphs do what no graph of a model needs to do: in a layer, in a branch, while a resource is made;
and those of which there is more than one reading."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

from protocol_buffers import varint

from hostile_files import KERAS2, attack
from hostile_files.bases import ASSET
from hostile_files.sites import Site

EVERY = " ".join(KERAS2)


def as_saved(name: str) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        shutil.copytree(site.bases / name, site.path)

    return make


def saved(name: str, base: str, tries: str = "change", live: str = EVERY) -> None:
    attack(f"graph-{name}", as_saved(base), tries, forms=("saved-model",), kerases=KERAS2, runs_in=live)


saved("writes", "Writes")
saved("reads", "Reads", "read")
saved("prints", "Prints")
saved("writes-in-branch", "WritesInBranch")
saved("writes-in-loop", "WritesInLoop")
saved("writes-in-dataset", "WritesInDataset")
saved("reads-lines", "ReadsLines", "read")
saved("lists", "Lists", "read", "")
saved("checkpoints", "Checkpoints", live="")
saved("creates-resource", "CreatesResource")
saved("initialises-resource", "InitialisesResource")
saved("lambda", "Lambda")
# Classes of Keras' own that a bare name finds, whose configuration holds code or the path of a file.
saved("wrapper", "Wrapper", live="tf_keras 2.4")
saved("columns", "Columns", "read", "tf_keras 2.4")


def other(name: str, make: Callable[[Site], None], tries: str = "change", live: str = EVERY) -> None:
    attack(f"graph-{name}", make, tries, forms=("saved-model",), kerases=KERAS2, runs_in=live)


def two_graphs(first: str, second: str) -> Callable[[Site], None]:
    """Two meta graphs in one file: protocol buffers one behind the other are one with the lists of both."""

    def make(site: Site) -> None:
        shutil.copytree(site.bases / first, site.path)
        added = (site.bases / second / "saved_model.pb").read_bytes()
        with (site.path / "saved_model.pb").open("ab") as file:
            file.write(added)

    return make


other("second-of-two", two_graphs("Innocent", "InitialisesResource"), live="")
other("first-of-two", two_graphs("InitialisesResource", "Innocent"), live="")


def asset_outside(site: Site) -> None:
    """The table's file is not among the assets."""
    shutil.copytree(site.bases / "Table", site.path)
    file = site.path / "saved_model.pb"
    end = f"../../../outside/{site.canary.name}"
    path = end.replace(
        "outside/", "outside/" + "./" * ((len(ASSET) - len(end)) // 2) + "/" * ((len(ASSET) - len(end)) % 2)
    )
    assert len(path) == len(ASSET)
    file.write_bytes(file.read_bytes().replace(ASSET.encode(), path.encode()))


def linked_asset(site: Site) -> None:
    shutil.copytree(site.bases / "Table", site.path)
    (site.path / "assets" / ASSET).unlink()
    (site.path / "assets" / ASSET).symlink_to(site.canary)


def linked_folder(name: str) -> Callable[[Site], None]:
    """The folder is a link to one that somebody else can change."""

    def make(site: Site) -> None:
        shutil.copytree(site.bases / "Writes", site.path)
        (site.path / name).rename(site.folder / "elsewhere")
        (site.path / name).symlink_to("../elsewhere")

    return make


other("asset-outside", asset_outside, "read")
other("asset-is-a-link", linked_asset, "read")
other("variables-are-a-link", linked_folder("variables"))
other("graph-is-a-link", linked_folder("saved_model.pb"))


def linked_file(name: str) -> Callable[[Site], None]:
    """One of the files that mpdoctor itself reads is a link to the canary."""

    def make(site: Site) -> None:
        shutil.copytree(site.bases / "Innocent", site.path)
        (site.path / name).unlink(missing_ok=True)
        (site.path / name).symlink_to(site.canary)

    return make


other("graph-is-the-canary", linked_file("saved_model.pb"), "read")
other("metadata-is-the-canary", linked_file("keras_metadata.pb"), "read", "tf_keras 2.15 2.10")


def metadata_beside(site: Site) -> None:
    """TensorFlow 2.4 reads what lies in the graph, and not the file that later ones keep beside it."""
    shutil.copytree(site.bases / "Lambda", site.path)
    (site.path / "keras_metadata.pb").write_bytes(b"")


other("innocent-metadata-beside", metadata_beside, live="2.4")


# --- damage -----------------------------------------------------------------------------------------------------------
def field(number: int, value: bytes) -> bytes:
    """One field of a protocol buffer."""
    return varint(number << 3 | 2) + varint(len(value)) + value


def damaged(content: bytes) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        Path(site.path).mkdir()
        (site.path / "saved_model.pb").write_bytes(content)

    return make


def damaged_metadata(site: Site) -> None:
    shutil.copytree(site.bases / "Innocent", site.path)
    (site.path / "keras_metadata.pb").write_bytes(b"\xff" * 1000)


other("metadata-damaged", damaged_metadata, "grow", live="")
attack("graph-of-nested-messages", damaged(field(2, field(2, field(2, b"\x0a\x00" * 100_000)))), "grow",
       forms=("saved-model",))  # fmt: skip

"""Two files in one: what is searched for is not what is loaded, because one program looks at the first bytes, another
at the suffix, another at the last bytes."""

from __future__ import annotations

import struct
import zipfile
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from hostile_files import attack
from hostile_files.forms import (
    CONSTANT,
    dense,
    function,
    functional2,
    functional3,
    hdf5_bytes,
    layer,
    members,
    op_layer,
    sequential,
    zipped,
)
from hostile_files.sites import Site

Config = dict[str, Any]


def hostile(site: Site, form: str) -> Config:
    """It runs: Keras 2 writes the marker, Keras 3 reads the canary."""
    site = replace(site, form=form)
    if site.is_keras3:
        named = function("KerasFileEditor", "keras.saving")
        hostile_layer = layer(site, "Lambda", {"name": "l", "function": named, "arguments": {}})
        return functional3(site, [(hostile_layer, [], {"inputs": str(site.canary)})])
    hostile_layer = op_layer(site, "TFOpLambda", {"function": "io.write_file"})
    return functional2(site, [(hostile_layer, [[CONSTANT, -1, site.marker, {"contents": "x"}]])])


def innocent(site: Site, form: str) -> Config:
    return sequential(replace(site, form=form), dense(replace(site, form=form)))


def both(site: Site, hostile_form: str, block: int, hdf5_first: bool) -> bytes:
    hdf5 = hdf5_bytes(site, (hostile if hostile_form == "hdf5" else innocent)(site, "hdf5"), dense=1, block=block)
    archive = zipped(members(site, (hostile if hostile_form == "keras" else innocent)(site, "keras"), dense=1))
    if hdf5_first:
        return hdf5 + archive
    # The archive lies in the user block; its directory is found from the end, so it must be near there.
    assert len(archive) <= block
    return archive + b"\0" * (block - len(archive)) + hdf5[block:]


def combined(hostile_form: str, block: int, hdf5_first: bool) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        site.path.write_bytes(both(site, hostile_form, block, hdf5_first))

    return make


def live(form: str, suffix: str, in_block: bool) -> str:
    """Who loads which half: Keras 3 goes by the suffix, Keras 2 by the content, an archive called .keras first."""
    if form == "keras":
        return "3 tf_keras 2.15" if suffix == ".keras" and not in_block else ""
    if suffix == ".h5":
        return "3 tf_keras 2.15 2.10 2.4"
    return "2.10 2.4" if suffix == ".keras" and not in_block else "tf_keras 2.15 2.10 2.4"


for hostile_form in ("hdf5", "keras"):
    for suffix in (".keras", ".h5", ""):
        for block in (0, 512):
            attack(
                f"polyglot-{hostile_form}-runs-block{block}-suffix{suffix}",
                combined(hostile_form, block, hdf5_first=True),
                forms=(hostile_form,),
                runs_in=live(hostile_form, suffix, in_block=False),
                suffix=suffix,
            )
        attack(
            f"polyglot-{hostile_form}-runs-zip-in-block-suffix{suffix}",
            combined(hostile_form, 2**16, hdf5_first=False),
            forms=(hostile_form,),
            runs_in=live(hostile_form, suffix, in_block=True),
            suffix=suffix,
        )


# --- archives of which there is more than one reading -----------------------------------------------------------------
def two_entries(first: Callable[[Site, str], Config], second: Callable[[Site, str], Config],
                name: str = "config.json") -> Callable[[Site], None]:  # fmt: skip
    """Two members of one name."""

    def make(site: Site) -> None:
        old, new = members(site, first(site, "keras"), dense=1), members(site, second(site, "keras"), dense=1)
        site.path.write_bytes(zipped([*old.items(), (name, new["config.json"])]))

    return make


def two_archives(site: Site) -> None:
    """One archive behind the other."""
    site.path.write_bytes(zipped(members(site, innocent(site, "keras"), dense=1))
                          + zipped(members(site, hostile(site, "keras"))))  # fmt: skip


def in_a_comment(site: Site) -> None:
    """An innocent archive in the comment of a hostile one: readers differ in which end they take for the end."""
    inner = zipped(members(site, innocent(site, "keras"), dense=1))
    outer = zipped(members(site, hostile(site, "keras")))
    site.path.write_bytes(outer[:-2] + struct.pack("<H", len(inner)) + inner)


def other_local_name(site: Site) -> None:
    """The directory calls config.json what the member itself calls other.json, and the other way round."""
    files = members(site, innocent(site, "keras"), dense=1)
    files["other1.json"] = members(site, hostile(site, "keras"))["config.json"]
    whole = zipped(files)
    start = whole.index(b"PK\x01\x02")
    directory = whole[start:].replace(b"config.json", b"????.json__").replace(b"other1.json", b"config.json")
    site.path.write_bytes(whole[:start] + directory.replace(b"????.json__", b"other1.json"))


def prepended(site: Site) -> None:
    site.path.write_bytes(b"#!/bin/sh\n" + zipped(members(site, hostile(site, "keras"))))


def behind_hdf5_magic(site: Site) -> None:
    """Only the first eight bytes say HDF5."""
    site.path.write_bytes(b"\x89HDF\r\n\x1a\n" + zipped(members(site, hostile(site, "keras"))))


def encrypted(site: Site) -> None:
    whole = bytearray(zipped(members(site, hostile(site, "keras"))))
    start = bytes(whole).index(b"PK\x01\x02")
    whole[start + 8] |= 1
    site.path.write_bytes(bytes(whole))


def encoded(encoding: str) -> Callable[[Site], None]:
    """The configuration in another encoding, which json.loads finds out by itself."""

    def make(site: Site) -> None:
        files = members(site, hostile(site, "keras"))
        files["config.json"] = files["config.json"].decode().encode(encoding)
        site.path.write_bytes(zipped(files))

    return make


def twice_in_json(
    first: Callable[[Site, str], Config], second: Callable[[Site, str], Config]
) -> Callable[[Site], None]:
    """The same key twice in one object; Python takes the last."""

    def make(site: Site) -> None:
        files = members(site, second(site, "keras"), dense=1)
        before = members(site, first(site, "keras"))["config.json"]
        files["config.json"] = before[:-1] + b", " + files["config.json"][1:]
        site.path.write_bytes(zipped(files))

    return make


def compressed(method: int) -> Callable[[Site], None]:
    def make(site: Site) -> None:
        site.path.write_bytes(zipped(members(site, hostile(site, "keras")), method))

    return make


LIVE = "3 tf_keras 2.15"
for name, make, runs_in in [
    ("zip-two-configurations", two_entries(innocent, hostile), LIVE),
    ("zip-two-configurations-first", two_entries(hostile, innocent), ""),
    ("zip-name-with-a-zero", two_entries(innocent, hostile, "config.json\0.txt"), LIVE),
    ("zip-other-case", two_entries(innocent, hostile, "CONFIG.JSON"), ""),
    ("zip-with-a-dot", two_entries(innocent, hostile, "./config.json"), ""),
    ("zip-two-archives", two_archives, LIVE),
    ("zip-in-a-comment", in_a_comment, ""),
    ("zip-other-local-name", other_local_name, ""),
    ("zip-prepended", prepended, LIVE),
    ("zip-behind-hdf5-magic", behind_hdf5_magic, LIVE),
    ("zip-encrypted-metadata", encrypted, LIVE),
    ("json-utf-16", encoded("utf-16"), LIVE),
    ("json-utf-8-sig", encoded("utf-8-sig"), LIVE),
    ("json-utf-32-le", encoded("utf-32-le"), LIVE),
    ("json-twice", twice_in_json(innocent, hostile), LIVE),
    ("json-twice-first", twice_in_json(hostile, innocent), ""),
    ("zip-bzip2", compressed(zipfile.ZIP_BZIP2), LIVE),
    ("zip-lzma", compressed(zipfile.ZIP_LZMA), LIVE),
]:
    attack(name, make, forms=("keras",), runs_in=runs_in)

"""HDF5 as a container: where its signature may stand, the attributes that hold a Keras model, and whether its data lie
in the file itself.

HDF5 can keep the numbers of a dataset in other files (external storage, external links, virtual datasets), so that
loading weights would read any file of the user's into a model (CVE-2026-1669). Keras writes none of these.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Iterator

from mpdoctor.examiner.saved.hdf5_growth import HARMLESS, LARGEST_GROWTH, Parts, declared_bytes, problems_of_growth

SIGNATURE = b"\x89HDF\r\n\x1a\n"
MOST_MEMBERS = 50_000  # groups and datasets; a model of a thousand layers has 10,000, its optimizer's among them
MOST_LEVELS = 100  # of groups in groups; each model in a model takes four
FIRST_USER_BLOCK = 512  # bytes; a user block is this long, or this times a power of two
# Filters that HDF5 and h5py bring along: deflate, shuffle, fletcher32, szip, nbit, scale-offset, lzf. Any other is a
# library that HDF5 would look for on the machine.
OWN_FILTERS = frozenset([1, 2, 3, 4, 5, 6, 32000])
# What h5py raises of a damaged file, by what is damaged in it.
DAMAGE = (OSError, RuntimeError, ValueError, KeyError, TypeError, OverflowError)


def signatures_of_hdf5(file: BinaryIO) -> list[int]:
    """The offsets at which a reader of HDF5 would find a signature: 0, 512, 1024, 2048 …"""
    place, size, signatures = 0, file.seek(0, os.SEEK_END), []
    while place < size:
        file.seek(place)
        if file.read(len(SIGNATURE)) == SIGNATURE:
            signatures.append(place)
        place = place * 2 or FIRST_USER_BLOCK
    file.seek(0)
    return signatures


def attributes_of_model(opened: Any, largest: int) -> dict[str, str]:
    """The attributes of an open h5py.File that are texts; those of other kinds are "".

    Raises ValueError for a text of more than `largest` characters."""
    import h5py

    attributes = {}
    for key in opened.attrs:
        stored = opened.attrs.get_id(key)
        is_text = stored.shape == () and h5py.check_string_dtype(stored.dtype) is not None
        if is_text and stored.dtype.itemsize > largest:
            raise ValueError(f"{key} is too long")
        value = opened.attrs[key] if is_text else ""
        attributes[key] = value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        if len(attributes[key]) > largest:
            raise ValueError(f"{key} is too long")
    return attributes


def problems_of_storage(group: Any, size: int, file: BinaryIO) -> Iterator[str]:
    """What in an open h5py.File is not plain data of the file itself, in words that follow "it holds". `size` is the
    saved file's, which may be an archive around it, and `file` what HDF5 reads."""
    import h5py

    parts = Parts([], [], size, file)
    left, seen, links = [(group, 0)], set(), 0
    while left:
        holder, level = left.pop()
        parts.groups.append(holder)
        links += len(holder)
        if links > MOST_MEMBERS:
            yield f"more than {MOST_MEMBERS:,} groups and datasets, which is as many as mpdoctor reads"
            return
        if level > MOST_LEVELS:
            yield f"groups in groups of more than {MOST_LEVELS} levels, which is as deep as mpdoctor reads"
            return
        for name in holder:
            if not _is_hard_link(holder, name):
                link = holder.get(name, getlink=True)
                yield f"{name!r}, a link to another place" + (
                    f" ({link.filename})" if isinstance(link, h5py.ExternalLink) else ""
                )
                continue
            member = holder[name]
            place = h5py.h5o.get_info(member.id)
            if (place.fileno, place.addr) in seen:
                continue
            seen.add((place.fileno, place.addr))
            if isinstance(member, h5py.Group):
                left.append((member, level + 1))
            elif isinstance(member, h5py.Dataset):
                parts.datasets.append(member)
                yield from _problems_of_dataset(member)
    yield from problems_of_growth(parts)


def _is_hard_link(holder: Any, name: str) -> bool:
    import h5py

    return bool(holder.id.links.get_info(os.fsencode(name)).type == h5py.h5l.TYPE_HARD)


def _problems_of_dataset(dataset: Any) -> Iterator[str]:
    import h5py

    created, dtype = dataset.id.get_create_plist(), dataset.dtype
    if created.get_external_count():
        yield f"{dataset.name!r}, whose numbers lie in another file ({os.fsdecode(created.get_external(0)[0])})"
    elif created.get_layout() == h5py.h5d.VIRTUAL:
        yield f"{dataset.name!r}, whose numbers lie in other files"
    elif h5py.check_string_dtype(dtype) is None and dtype.hasobject:
        yield f"{dataset.name!r}, which holds references and no numbers"
    elif any(created.get_filter(number)[0] not in OWN_FILTERS for number in range(created.get_nfilters())):
        yield f"{dataset.name!r}, which needs a filter that does not come with HDF5"
    elif dataset.shape is not None:
        declared, stored = declared_bytes(dataset), int(dataset.id.get_storage_size())
        if declared > HARMLESS and declared > LARGEST_GROWTH * max(stored, 1):
            yield f"{dataset.name!r}, which declares {declared / 2**30:.0f} GiB and stores {stored} bytes"

"""What an HDF5 file unpacks to: datasets that declare more than the file stores, texts that share one place in it, and
names that lead to one dataset a thousand times.

Of each of these a file may hold what its size allows, and no more.
"""

from __future__ import annotations

import os
from typing import Any, BinaryIO, Iterator, NamedTuple

LAYERS = "layer_names"
NAMES = "weight_names"  # the attribute by which Keras finds a layer's weights; of many it makes weight_names0 …
LARGEST_GROWTH = 200  # times what is stored that is declared, where that is more than:
HARMLESS = 2**30  # bytes
MOST_ATTRIBUTES = 50_000  # of all groups and datasets; each layer has one or two
MOST_NAMES = 100_000  # in such attributes
MOST_TEXTS = 1_000_000  # of variable length, in one dataset; the words of a vocabulary
COLLECTION = b"GCOL\x01\0\0\0"  # how what holds such texts begins; its size follows
AT_ONCE = 2**24  # bytes


class Parts(NamedTuple):
    """The groups and datasets of an open h5py.File, the size of the saved file, which may be an archive around it, and
    what HDF5 reads. No link in them leads to another place."""

    groups: list[Any]
    datasets: list[Any]
    size: int
    file: BinaryIO

    @property
    def most(self) -> int:
        return max(HARMLESS, LARGEST_GROWTH * self.size)


def problems_of_growth(parts: Parts) -> Iterator[str]:
    """What makes the file too large to read, in words that follow "it holds"."""
    yield from _too_much("datasets that together declare", sum(map(declared_bytes, parts.datasets)), parts)
    holders = [holder for holder in (*parts.groups, *parts.datasets) if len(holder.attrs)]
    if sum(len(holder.attrs) for holder in holders) > MOST_ATTRIBUTES:
        yield f"more than {MOST_ATTRIBUTES:,} attributes, which is as many as mpdoctor reads"
        return
    yield from _texts_of_attributes(holders, parts)
    yield from _texts_of_datasets(parts)
    if sum(_number_of_names(group) for group in parts.groups) > MOST_NAMES:
        yield f"more than {MOST_NAMES:,} names in its {NAMES} and {LAYERS}, which is as many as mpdoctor reads"
        return
    named = sum(declared_bytes(dataset) for group in parts.groups for dataset in _named_datasets(group))
    yield from _too_much(f"{NAMES} that lead to datasets that together declare", named, parts)


def declared_bytes(dataset: Any) -> int:
    return int(dataset.dtype.itemsize) * _product(dataset.shape or ())


def _product(shape: Any) -> int:
    size = 1
    for dimension in shape:
        size *= int(dimension)
    return size


def _too_much(what: str, declared: int, parts: Parts) -> Iterator[str]:
    if declared > parts.most:
        yield (
            f"{what} {declared / 2**30:,.1f} GiB, and of a file of {parts.size:,} bytes mpdoctor reads at most "
            f"{parts.most / 2**30:,.1f} GiB"
        )


# --- texts of variable length: each is a reference to a place that others may refer to, too -----------------------
def _texts_of_attributes(holders: list[Any], parts: Parts) -> Iterator[str]:
    """An attribute is read as a whole, so that its number of texts tells before how long they may be together."""
    longest = None
    for holder in holders:
        for name in holder.attrs:
            stored = holder.attrs.get_id(name)
            if stored.dtype.hasobject:
                count = _product(stored.shape or ())
                most = count * parts.size
                if most > parts.most:
                    longest = longest_text(parts.file) if longest is None else longest
                    most = count * longest
                yield from _too_much(f"the attribute {name!r}, whose texts may have", most, parts)


def longest_text(file: BinaryIO) -> int:
    """How many bytes a text of variable length has at most: as many as the largest collection of such texts."""
    size, place, longest, tail = file.seek(0, os.SEEK_END), 0, 0, len(COLLECTION) + 8
    while place < size:
        file.seek(place)
        piece = file.read(AT_ONCE + tail)
        start = piece.find(COLLECTION)
        while start >= 0:
            told = int.from_bytes(piece[start + len(COLLECTION) : start + tail], "little")
            longest = max(longest, min(told, size))
            start = piece.find(COLLECTION, start + 1)
        place += AT_ONCE
    return longest


def _texts_of_datasets(parts: Parts) -> Iterator[str]:
    length = 0
    for dataset in parts.datasets:
        if not (dataset.dtype.hasobject and dataset.shape):
            continue  # one text is no longer than the file
        count = _product(dataset.shape)
        if count > MOST_TEXTS:
            yield f"{count:,} texts in {dataset.name!r}, and mpdoctor reads at most {MOST_TEXTS:,}"
        row = count // max(int(dataset.shape[0]), 1)
        yield from _too_much(f"rows in {dataset.name!r} whose texts may have", row * parts.size, parts)
        for piece in _pieces(dataset, max(1, HARMLESS // max(parts.size * row, 1))):
            length += sum(map(len, piece.flat))
            yield from _too_much("texts of more than", length, parts)


def _pieces(dataset: Any, rows: int) -> Iterator[Any]:
    """The texts of a dataset, as many rows at a time as are harmless even if each text was as long as the file."""
    for start in range(0, int(dataset.shape[0]), rows):
        yield dataset[start : start + rows]


# --- names ----------------------------------------------------------------------------------------------------------
def _number_of_names(group: Any) -> int:
    """How many names the lists hold by which Keras finds layers and weights."""
    keys = [key for key in group.attrs if key.startswith((LAYERS, NAMES))] if len(group.attrs) else []
    return sum(_product(group.attrs.get_id(key).shape or ()) for key in keys)


def _named_datasets(group: Any) -> Iterator[Any]:
    """What a group's lists of weights lead to, as often as they name it."""
    import h5py

    for key in group.attrs if len(group.attrs) else ():
        if key.startswith(NAMES):
            for name in group.attrs[key]:
                member = group.get(name)
                if isinstance(member, h5py.Dataset):
                    yield member

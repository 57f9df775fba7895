"""The files of a SavedModel's directory, opened such that what is read is its own: no link leads out of it, not even
one that takes a file's place in the meantime."""

from __future__ import annotations

import os
import stat
from typing import BinaryIO

from mpdoctor.examiner.exceptions import Unusable


def opened_own_file(path: str, directory: str, advice: str) -> BinaryIO:
    """The open file at a path below the directory. `advice` is what to do where it is no regular file.

    Raises Unusable for a file that lies elsewhere or is no regular one, OSError where it can't be opened."""
    name = os.path.basename(os.path.normpath(directory))
    shown_as = f"{name}/{os.path.relpath(path, directory)}"
    if not is_within(path, directory):  # to open what lies elsewhere may already do something: a device
        raise Unusable(leads_out(shown_as, name))
    # a FIFO would wait for its writer
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    try:
        if not is_within(_place(descriptor, path), directory):
            raise Unusable(leads_out(shown_as, name))
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unusable(f"{shown_as} is no regular file. {advice}")
    except Unusable:
        os.close(descriptor)
        raise
    return os.fdopen(descriptor, "rb")


def is_within(place: str, directory: str) -> bool:
    root = os.path.realpath(directory)
    return os.path.commonpath([os.path.realpath(place), root]) == root


def leads_out(shown_as: str, name: str) -> str:
    return (
        f"{shown_as} is a link that leads out of {name}. Copy the directory together with what its links name: "
        f"cp -rL {name} COPY"
    )


def _place(descriptor: int, path: str) -> str:
    """Where an open file lies: as the kernel says, or else as its path does now."""
    try:
        return os.readlink(f"/proc/self/fd/{descriptor}")
    except OSError:
        return path

"""The user's cache directory, which keeps results of earlier runs, and the file of the key that signs them."""

from __future__ import annotations

import os
import re
import stat
import sys
import time
from functools import cache
from hashlib import blake2b
from operator import itemgetter
from pathlib import Path
from typing import NamedTuple

from mpdoctor import __version__

MOST_FILES = 50  # of one kind that are remembered
LONGEST_WRITING = 24 * 3600.0  # seconds: a new file that is older was left by a run that was killed
# What earlier releases and killed runs have left, named by mpdoctor, and may be removed.
_LEFT_BEHIND = r"[0-9a-f]{32}\.(?:[0-9a-f]{16}\.new|pickle|[0-9]{1,10})"


class CachePlace(NamedTuple):
    directory: Path
    key_file: Path


def users_cache_place() -> CachePlace | None:
    """The directory for what programs can make again, and the file of the key, among the user's data. None for a user
    without a home."""
    from platformdirs import user_cache_path, user_data_path

    try:
        place, data = user_cache_path("mpdoctor", appauthor=False), user_data_path("mpdoctor", appauthor=False)
    except RuntimeError:  # platformdirs 4.14; of 4.0 it is a "~" in the working directory
        return None
    if not (place.is_absolute() and data.is_absolute()) or _holds(place, data):
        return None
    return CachePlace(place, data / "cache.key")


@cache
def made_by() -> str:
    """A text that names this mpdoctor, file by file, and this Python: findings depend on both."""
    folders, files = [str(Path(__file__).parents[1])], []
    for folder in folders:  # which grows; without Path.rglob, which takes three times as long in each run
        for entry in os.scandir(folder):
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.path)
            elif entry.name.endswith(".py"):
                files.append((entry.path, entry.stat()))
    versions = (f"{status.st_size} {status.st_mtime_ns}" for _, status in sorted(files, key=itemgetter(0)))
    return name_from_texts(__version__, sys.version, *versions)


def remove_oldest(directory: Path, suffix: str) -> None:
    """Remove the files with this suffix that were not written for longest, and what killed runs have left.

    Raises OSError."""
    files = [(entry.name, Path(entry.path), entry.stat(follow_symlinks=False)) for entry in os.scandir(directory)]
    regular = [(name, path, status.st_mtime) for name, path, status in files if stat.S_ISREG(status.st_mode)]
    kept = sorted((at, path) for name, path, at in regular if re.fullmatch(rf"[0-9a-f]{{32}}{re.escape(suffix)}", name))
    old = [path for _, path in kept[:-MOST_FILES]]
    before = time.time() - LONGEST_WRITING
    old += [path for name, path, at in regular if re.fullmatch(_LEFT_BEHIND, name) and at < before]
    for path in old:
        path.unlink(missing_ok=True)


def name_from_texts(*texts: str) -> str:
    """A name of 32 hexadecimal digits, the same for the same texts."""
    digest = blake2b(digest_size=16)
    for text in texts:
        digest.update(text.encode(errors="surrogatepass") + b"\0")
    return digest.hexdigest()


def _holds(directory: Path, place: Path) -> bool:
    return Path(os.path.realpath(place)).is_relative_to(os.path.realpath(directory))

"""The memory that this process and its device have used, and a watch that ends what uses too much."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Callable

INTERVAL = 0.05  # seconds between looks


def resident() -> int | None:
    """Bytes that are in memory now; None where the system does not tell."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * os.sysconf("SC_PAGE_SIZE")


def resident_peak() -> int | None:
    """The most bytes that were in memory at once since the process began."""
    try:
        import resource
    except ImportError:  # Windows
        return None
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def left_on_machine() -> int | None:
    """Bytes that this machine can still give to processes, its swap space among them; None where the system does not
    tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            fields = dict(line.split(":", 1) for line in file)
        return sum(1024 * int(fields[name].split()[0]) for name in ("MemAvailable", "SwapFree"))
    except (OSError, ValueError, KeyError, IndexError):
        return None


def device_peak() -> int | None:
    """The most bytes that tensors took on the first GPU; None without one, or before TensorFlow 2.5."""
    import tensorflow as tf

    tell = getattr(tf.config.experimental, "get_memory_info", None)
    if tell is None or not tf.config.list_logical_devices("GPU"):
        return None
    return int(tell("GPU:0")["peak"])


def watch_memory(most: int, end: Callable[[], None]) -> None:
    """From now on a thread calls `end` once this process holds more than `most` bytes."""

    def look() -> None:
        while (resident() or resident_peak() or 0) <= most:
            time.sleep(INTERVAL)
        end()

    threading.Thread(target=look, daemon=True).start()

"""The memory that the weights of a loaded model take: a configuration of a few bytes may ask for a terabyte, and the
file holds the values."""

from __future__ import annotations

import functools
import inspect
import math
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Iterator

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import SAVE_AGAIN, SavedFile
from mpdoctor.examiner.saved.hdf5_growth import HARMLESS

if TYPE_CHECKING:
    from mpdoctor.examiner.keras.adapter import KerasAdapter

LARGEST_GROWTH = 16  # times the file's size, where that is more than HARMLESS: files of 8-bit weights hold a quarter
BYTES = 4  # of a number


@contextmanager
def weights_within_limit(keras: KerasAdapter, saved: SavedFile) -> Iterator[None]:
    """While the file is loaded its layers and metrics add weights as far as its size allows.

    Raises Unusable as soon as they ask for more, whatever Keras makes of that."""
    size = size_on_disk(saved.path)
    most, asked = max(HARMLESS, LARGEST_GROWTH * size), 0
    makers = list(_makers_of_weights(keras))

    def count(shape: Any) -> None:
        nonlocal asked
        asked += BYTES * _numbers(shape)
        if asked > most:
            raise _too_much(saved.name, asked, most, size)

    for owner, name, make in makers:
        setattr(owner, name, _counted(make, count))
    try:
        yield
    except Exception:
        if asked > most:
            raise _too_much(saved.name, asked, most, size) from None
        raise
    finally:
        for owner, name, make in makers:
            setattr(owner, name, make)


def _makers_of_weights(keras: KerasAdapter) -> Iterator[tuple[Any, str, Callable[..., Any]]]:
    """(class, name of its method, the method). A metric of Keras 2 is a layer."""
    layer: Any = keras.Layer
    metric: Any = keras.module.metrics.Metric
    yield layer, "add_weight", layer.add_weight
    if not issubclass(metric, layer):
        yield metric, "add_variable", metric.add_variable


def _counted(make: Callable[..., Any], count: Callable[[Any], None]) -> Callable[..., Any]:
    signature = inspect.signature(make)

    @functools.wraps(make)
    def make_within_limit(*args: Any, **options: Any) -> Any:
        count(signature.bind_partial(*args, **options).arguments.get("shape"))
        return make(*args, **options)

    return make_within_limit


def _too_much(name: str, asked: int, most: int, size: int) -> Unusable:
    return Unusable(
        f"{name} was not loaded: its layers and metrics ask for weights of {asked / 2**30:,.1f} GiB, and of a file of "
        f"{size:,} bytes mpdoctor makes at most {most / 2**30:,.1f} GiB. {SAVE_AGAIN}"
    )


def _numbers(shape: Any) -> int:
    """How many numbers a weight of this shape holds; 0 for a shape that Keras will refuse."""
    sizes = (shape,) if isinstance(shape, int) else tuple(shape or ())
    return math.prod(sizes) if all(isinstance(size, int) for size in sizes) else 0


def size_on_disk(path: str) -> int:
    """The bytes of a file, or of all files in a directory."""
    if not os.path.isdir(path):
        return os.path.getsize(path)
    return sum(os.path.getsize(os.path.join(folder, name)) for folder, _, names in os.walk(path) for name in names)

"""Files of the data sets that come with Keras, made up: the formats, shapes and ranges of the real ones, so that Keras'
own code reads them, and does with labels and rare words what that release does. The same numbers every time."""

from __future__ import annotations

import gzip
import json
import os
import pickle
from typing import Callable

import numpy as np

IMDB_WORDS, REUTERS_WORDS = 88584, 30979
# Lowest and highest value of each column of the real tables, the target last.
BOSTON = (
    (0.006, 89.0), (0.0, 100.0), (0.46, 27.74), (0.0, 1.0), (0.385, 0.871), (3.56, 8.78), (2.9, 100.0), (1.13, 12.13),
    (1.0, 24.0), (187.0, 711.0), (12.6, 22.0), (0.32, 396.9), (1.73, 37.97), (5.0, 50.0),
)  # fmt: skip
CALIFORNIA = (
    (0.5, 15.0), (1.0, 52.0), (0.85, 142.0), (0.33, 34.0), (3.0, 35682.0), (0.7, 1243.0), (32.5, 42.0),
    (-124.4, -114.3), (14999.0, 500001.0),
)  # fmt: skip


def make_mnist(path: str) -> None:
    draw = np.random.default_rng(0)
    np.savez(
        path,
        x_train=_images(draw, 60000, 28, 28),
        y_train=_labels(draw, 60000, 10),
        x_test=_images(draw, 10000, 28, 28),
        y_test=_labels(draw, 10000, 10),
    )


def make_idx(path: str) -> None:
    """Make one of Fashion-MNIST's four files; its name says which one."""
    name = os.path.basename(path)
    draw = np.random.default_rng(len(name))
    count = 60000 if name.startswith("train") else 10000
    head, content = (8, _labels(draw, count, 10)) if "labels" in name else (16, _images(draw, count, 28, 28))
    with gzip.open(path, "wb", compresslevel=0) as file:
        file.write(b"\0" * head + content.tobytes())


def make_cifar10(path: str) -> None:
    draw = np.random.default_rng(10)
    for name in (*(f"data_batch_{n}" for n in range(1, 6)), "test_batch"):
        _write_cifar(path, name, draw, 10000, {b"labels": 10})


def make_cifar100(path: str) -> None:
    draw = np.random.default_rng(100)
    for name, count in (("train", 50000), ("test", 10000)):
        _write_cifar(path, name, draw, count, {b"fine_labels": 100, b"coarse_labels": 20})


def make_imdb(path: str) -> None:
    draw = np.random.default_rng(1)
    np.savez(
        path,
        x_train=_texts(draw, 25000, IMDB_WORDS),
        y_train=_labels(draw, 25000, 2).astype("int64"),
        x_test=_texts(draw, 25000, IMDB_WORDS),
        y_test=_labels(draw, 25000, 2).astype("int64"),
    )


def make_reuters(path: str) -> None:
    draw = np.random.default_rng(2)
    np.savez(path, x=_texts(draw, 11228, REUTERS_WORDS), y=_labels(draw, 11228, 46).astype("int64"))


def make_boston(path: str) -> None:
    _write_table(path, 506, BOSTON)


def make_california(path: str) -> None:
    _write_table(path, 20640, CALIFORNIA)


def make_words(path: str) -> None:
    count = IMDB_WORDS if "imdb" in os.path.basename(path) else REUTERS_WORDS
    _write_json(path, {f"word{number}": number for number in range(1, count + 1)})


def make_imagenet_classes(path: str) -> None:
    _write_json(path, {str(n): [f"n{n:08}", f"class_{n}"] for n in range(1000)})


# What it stands for, and how it is made, by the last part of its address.
DATA: dict[str, tuple[str, Callable[[str], None]]] = {
    "mnist.npz": ("keras.datasets.mnist", make_mnist),
    "train-labels-idx1-ubyte.gz": ("keras.datasets.fashion_mnist", make_idx),
    "train-images-idx3-ubyte.gz": ("keras.datasets.fashion_mnist", make_idx),
    "t10k-labels-idx1-ubyte.gz": ("keras.datasets.fashion_mnist", make_idx),
    "t10k-images-idx3-ubyte.gz": ("keras.datasets.fashion_mnist", make_idx),
    "cifar-10-python.tar.gz": ("keras.datasets.cifar10", make_cifar10),
    "cifar-100-python.tar.gz": ("keras.datasets.cifar100", make_cifar100),
    "imdb.npz": ("keras.datasets.imdb", make_imdb),
    "imdb_word_index.json": ("keras.datasets.imdb", make_words),
    "reuters.npz": ("keras.datasets.reuters", make_reuters),
    "reuters_word_index.json": ("keras.datasets.reuters", make_words),
    "boston_housing.npz": ("keras.datasets.boston_housing", make_boston),
    "california_housing.npz": ("keras.datasets.california_housing", make_california),
    "imagenet_class_index.json": ("names of the ImageNet classes", make_imagenet_classes),
}
# Releases differ in whether they ask for the directory inside an archive or for the one around it.
ARCHIVES = {"cifar-10-python.tar.gz": "cifar-10-batches-py", "cifar-100-python.tar.gz": "cifar-100-python"}


def file_from_address(address: str, folder: str) -> tuple[str, str] | None:
    """(what it stands for, path) of a stand-in, made in `folder` if it is not there yet; None where there is none."""
    name = address.rpartition("/")[2]
    if name not in DATA:
        return None
    title, make = DATA[name]
    path = os.path.join(folder, ARCHIVES.get(name, name))
    if not os.path.exists(path):
        os.makedirs(folder, exist_ok=True)
        if name in ARCHIVES:
            os.mkdir(path)
            os.symlink(".", os.path.join(path, ARCHIVES[name]), target_is_directory=True)
        make(path)
    return title, path


def _images(draw: np.random.Generator, count: int, *shape: int) -> np.ndarray:
    """uint8, and about half of the pixels 0, as in the real ones."""
    size = int(np.prod(shape))
    pixels = np.frombuffer(draw.bytes(count * size), np.uint8).reshape(count, *shape)
    return np.where(pixels < 128, 0, (pixels - 128) * 2 + 1).astype("uint8")


def _labels(draw: np.random.Generator, count: int, classes: int) -> np.ndarray:
    return draw.integers(0, classes, count).astype("uint8")


def _texts(draw: np.random.Generator, count: int, words: int) -> np.ndarray:
    """Ragged lists of word numbers from 1 on, the frequent words the lower ones. Few lists, used again and again: that
    many Python integers would take long to make."""
    lists = []
    for length in draw.integers(12, 160, 500):
        ranks = np.exp(draw.uniform(0, np.log(words), length)).astype("int64")
        lists.append([int(rank) for rank in ranks])
    texts = np.empty(count, dtype=object)
    for number, chosen in enumerate(draw.integers(0, len(lists), count)):
        texts[number] = lists[chosen]
    return texts


def _write_cifar(folder: str, name: str, draw: np.random.Generator, count: int, labels: dict[bytes, int]) -> None:
    content: dict[bytes, object] = {b"data": _images(draw, count, 3072)}
    for key, classes in labels.items():
        content[key] = [int(label) for label in _labels(draw, count, classes)]
    with open(os.path.join(folder, name), "wb") as file:
        pickle.dump(content, file, protocol=3)  # an older one spells bytes in a way that Keras 3 refuses


def _write_table(path: str, rows: int, columns: tuple[tuple[float, float], ...]) -> None:
    draw = np.random.default_rng(rows)
    drawn = np.stack([draw.uniform(low, high, rows) for low, high in columns], axis=1)
    np.savez(path, x=drawn[:, :-1], y=drawn[:, -1])


def _write_json(path: str, content: object) -> None:
    with open(path, "w", encoding="utf-8") as file:
        json.dump(content, file)

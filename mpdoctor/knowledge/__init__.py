"""The behaviour of TensorFlow and Keras by version, as data, and idioms of Python. Standard library, Python 3.8."""

from __future__ import annotations


def words(text: str) -> frozenset[str]:
    """The words of a text, as tables of names are written here."""
    return frozenset(text.split())

"""Dotted names as a program spells them → canonical names of the library."""

from __future__ import annotations

import builtins
import sys
from functools import cache

from mpdoctor.facts.location import Location
from mpdoctor.program.values import Api

# Longest first: what stands for `keras`, and what for `tensorflow`.
_KERAS = (
    "tensorflow.compat.v1.keras",
    "tensorflow.compat.v2.keras",
    "tensorflow._api.v2.keras",
    "tensorflow.python.keras",
    "tensorflow.keras",
    "tf_keras.api._v2.keras",
    "tf_keras.api.keras",
    "tf_keras.api",
    "tf_keras.src",
    "tf_keras",
    "keras.api._v2.keras",
    "keras._tf_keras.keras",
    "keras.api",
    "keras.src",
    "keras_core.src",
    "keras_core",
    "keras",
)
FRAMEWORKS = ("tensorflow", "keras", "tf_keras", "horovod")  # how the roots begin of the names that rules ask for
# packages whose names rules know: never taken for a package of the user's project of the same name
LIBRARIES = frozenset(
    (
        *("horovod", "keras", "keras_core", "mpdoctor", "tensorflow", "tf_keras"),
        *(f"tensorflow_{name}" for name in ("addons", "core", "datasets", "hub", "models", "probability", "text")),
    )
)
_TENSORFLOW = ("tensorflow.compat.v2", "tensorflow._api.v2")
_BUILTINS = frozenset(dir(builtins))


@cache
def canonical_name(spelled: str) -> str:
    """ "tensorflow.keras.layers.Dense" → "keras.layers.Dense"; "tensorflow.compat.v2.cast" →
    "tensorflow.cast"."""
    for prefix in _KERAS:
        if spelled == prefix:
            return "keras"
        if spelled.startswith(prefix) and spelled[len(prefix)] == ".":
            return "keras" + spelled[len(prefix) :]
    for prefix in _TENSORFLOW:
        if spelled == prefix or spelled.startswith(prefix + "."):
            return "tensorflow" + spelled[len(prefix) :]
    return spelled


def api_from_name(spelled: str, location: Location) -> Api:
    spelled = sys.intern(spelled)  # the 160,000 of a large project are 1,800 different ones
    return Api(location, canonical_name(spelled), _root(spelled), spelled)


@cache
def _root(spelled: str) -> str:
    """The part before the first dot, interned: the same few names occur very often."""
    return sys.intern(spelled.partition(".")[0])


def is_builtin(name: str) -> bool:
    return name in _BUILTINS

"""The names of mixed precision in TensorFlow and Keras: which ever existed, since when, until when.

Read off by importing TensorFlow 2.4.4, 2.10.1, 2.15.1 and 2.21.0 (with Keras 3.15 and tf_keras 2.21); the
versions in between as the catalogue of TensorFlow 2.1 to 2.12 wheels had them.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Iterable

from mpdoctor.knowledge.api_names import LIBRARIES

# Everything that `keras.mixed_precision` ever held in public, in any Keras.
IN_MIXED_PRECISION = frozenset(
    [
        "Policy",
        "DTypePolicy",
        "LossScaleOptimizer",
        "global_policy",
        "set_global_policy",
        "dtype_policy",
        "set_dtype_policy",
        "experimental",
    ]
)
IN_EXPERIMENTAL = frozenset(["Policy", "LossScaleOptimizer", "global_policy", "set_policy", "get_layer_policy"])
# Folders of the private implementation that standalone Keras 2 let users reach: never public, but not invented.
MODULES_INSIDE = frozenset(
    [
        "policy",
        "loss_scale",
        "loss_scale_optimizer",
        "autocast_variable",
        "device_compatibility_check",
        "get_layer_policy",
        "test_util",
    ]
)

# Those of these that Keras 2.6 to 2.12 had in `keras.mixed_precision`, and its last releases only in `keras.src`.
FIRST_WITHOUT_MODULES = (2, 13)
GONE_WITH_EXPERIMENTAL, FIRST_WITHOUT_EXPERIMENTAL = ("loss_scale", "get_layer_policy"), (2, 9)
ROOMS = ("keras.mixed_precision.", "tf_keras.mixed_precision.", "tensorflow.keras.mixed_precision.")

# What people write instead of the real name, and what to write. A name ending in "." stands for all below it.
NEVER_EXISTED: dict[str, str] = {
    "tensorflow.mixed_precision.LossScaleOptimizer": "tf.keras.mixed_precision.LossScaleOptimizer",
    "tensorflow.mixed_precision.Policy": "tf.keras.mixed_precision.Policy",
    "tensorflow.mixed_precision.set_global_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.mixed_precision.set_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.mixed_precision.global_policy": "tf.keras.mixed_precision.global_policy",
    "tensorflow.mixed_precision.experimental.set_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.mixed_precision.experimental.Policy": "tf.keras.mixed_precision.Policy",
    "tensorflow.mixed_precision.experimental.LossScaleOptimizer": "tf.keras.mixed_precision.LossScaleOptimizer",
    "tensorflow.train.LossScaleOptimizer": "tf.keras.mixed_precision.LossScaleOptimizer",
    "tensorflow.train.experimental.LossScaleOptimizer": "tf.keras.mixed_precision.LossScaleOptimizer",
    "tensorflow.train.experimental.set_global_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.config.set_global_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.config.mixed_precision.": "tf.keras.mixed_precision",
    "tensorflow.config.experimental.set_global_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.config.experimental.mixed_precision.": "tf.keras.mixed_precision",
    "tensorflow.set_global_policy": "tf.keras.mixed_precision.set_global_policy",
    "tensorflow.LossScaleOptimizer": "tf.keras.mixed_precision.LossScaleOptimizer",
    "tensorflow.amp.": "tf.keras.mixed_precision",
    "tensorflow.cuda.amp.": "tf.keras.mixed_precision",
    "keras.amp.": "keras.mixed_precision",
    "keras.set_global_policy": "keras.mixed_precision.set_global_policy",
    "keras.LossScaleOptimizer": "keras.mixed_precision.LossScaleOptimizer",
    "keras.config.set_global_policy": "keras.mixed_precision.set_global_policy",
    "keras.config.set_policy": "keras.mixed_precision.set_global_policy",
    "keras.config.mixed_precision.": "keras.mixed_precision",
    "keras.backend.set_global_policy": "keras.mixed_precision.set_global_policy",
    "keras.backend.mixed_precision.": "keras.mixed_precision",
    "keras.optimizers.mixed_precision.": "keras.mixed_precision",
    "keras.layers.mixed_precision.": "keras.mixed_precision",
}

# Places where people look for it, and names that say that it is meant; the real ones of these places are left out.
LOOKED_FOR_IN = (
    *("keras", "keras.config", "keras.backend", "keras.utils", "keras.optimizers"),
    *("tensorflow", "tensorflow.config", "tensorflow.config.experimental", "tensorflow.config.optimizer"),
)
SAYS_MIXED_PRECISION = re.compile(
    r"\w+_mixed_precision\w*|mixed_precision_\w+|\w*(?:dtype|global)_policy|\w*loss_scal\w*"
)
REAL_THERE = frozenset(("keras.config.dtype_policy", "keras.config.set_dtype_policy"))

# Gone: (name, or what is below it if it ends in "."; the TensorFlow release that no longer had it; what to write).
# (3,) stands for "gone with Keras 3, still there in every Keras 2".
KERAS3_ONLY = (3,)
REMOVED: tuple[tuple[str, tuple[int, ...], str], ...] = (
    ("keras.mixed_precision.experimental.set_policy", (2, 9), "mixed_precision.set_global_policy"),
    ("keras.mixed_precision.experimental.get_layer_policy", (2, 9), "layer.dtype_policy"),
    ("keras.mixed_precision.experimental.", (2, 9), "mixed_precision.{last}"),
    ("tensorflow.mixed_precision.experimental.", (2, 9), "tf.keras.mixed_precision.LossScaleOptimizer"),
    ("tensorflow.train.experimental.LossScale", (2, 9), "tf.keras.mixed_precision.LossScaleOptimizer"),
    ("tensorflow.train.experimental.FixedLossScale", (2, 9), "tf.keras.mixed_precision.LossScaleOptimizer"),
    ("tensorflow.train.experimental.DynamicLossScale", (2, 9), "tf.keras.mixed_precision.LossScaleOptimizer"),
    (
        "tensorflow.train.experimental.enable_mixed_precision_graph_rewrite",
        (2, 8),
        'tf.keras.mixed_precision.set_global_policy("mixed_float16")',
    ),
    (
        "tensorflow.train.experimental.disable_mixed_precision_graph_rewrite",
        (2, 8),
        'tf.keras.mixed_precision.set_global_policy("float32")',
    ),
    ("tensorflow.contrib.mixed_precision.", (2, 0), "tf.keras.mixed_precision.LossScaleOptimizer"),
    ("keras.optimizers.legacy.", KERAS3_ONLY, "keras.optimizers.{last}"),
)

# What came with Keras 3, and what Keras 2 has instead (by the packages of TensorFlow 2.4, 2.10 and 2.15 and of tf_keras
# 2.21): modules with all that is in them, and single names.
CAME_WITH_KERAS3: dict[str, str] = {
    "keras.config.set_dtype_policy": "mixed_precision.set_global_policy",
    "keras.config.dtype_policy": "mixed_precision.global_policy",
    "keras.mixed_precision.set_dtype_policy": "mixed_precision.set_global_policy",
    "keras.mixed_precision.dtype_policy": "mixed_precision.global_policy",
    "keras.mixed_precision.DTypePolicy": "mixed_precision.Policy",
    "keras.dtype_policies.DTypePolicy": "mixed_precision.Policy",
    "keras.dtype_policies.get": "mixed_precision.Policy",
    "keras.optimizers.LossScaleOptimizer": "mixed_precision.LossScaleOptimizer",
}

# Private names: (place, name; first TensorFlow release that has it, first that has not; what serves instead).
# () stands for "always had" and "still has"; measured in TensorFlow 2.4, 2.10, 2.15 and 2.21.
REGISTRATION = "nothing has to replace it, Keras registers its own LossScaleOptimizer when it is imported"
PRIVATE: tuple[tuple[str, tuple[int, ...], tuple[int, ...], str], ...] = (
    ("training.experimental.mixed_precision._register_wrapper_optimizer_cls", (), (2, 8), REGISTRATION),
    ("training.experimental.mixed_precision.register_loss_scale_wrapper", (2, 8), (), REGISTRATION),
    (
        "training.experimental.mixed_precision.enable_mixed_precision_graph_rewrite",
        (),
        (2, 8),
        'tf.keras.mixed_precision.set_global_policy("mixed_float16")',
    ),
    ("keras.mixed_precision.policy.set_policy", (), (2, 8), "tf.keras.mixed_precision.set_global_policy"),
    (
        "keras.mixed_precision.policy.set_global_policy",
        (2, 8),
        (),
        "tf.keras.mixed_precision.set_global_policy",
    ),
    ("keras.mixed_precision.experimental.", (), (2, 4), "tf.keras.mixed_precision"),
)


def is_invented(name: str) -> bool:
    """Whether a name says mixed precision and stands where no TensorFlow or Keras ever had such a name: TensorFlow 2.4,
    2.10, 2.15 and 2.21 and Keras 3.15 have been searched."""
    place, _, last = name.rpartition(".")
    return place in LOOKED_FOR_IN and name not in REAL_THERE and SAYS_MIXED_PRECISION.fullmatch(last) is not None


def module_inside(spelled: str) -> str:
    """The private module in a public `mixed_precision` that a dotted name goes through, or is; "" for others."""
    for room in ROOMS:
        first = spelled[len(room) :].partition(".")[0] if spelled.startswith(room) else ""
        if first in MODULES_INSIDE:
            return room + first
    return ""


def below(name: str, entry: str) -> bool:
    """Whether a name is this entry, or stands below an entry that ends in a dot."""
    return name.startswith(entry) if entry.endswith(".") else name == entry


def is_at_or_below(name: str, places: Iterable[str]) -> bool:
    """Whether a dotted name is one of these, or stands below one."""
    return any(name == place or name.startswith(place + ".") for place in places)


@lru_cache(maxsize=None)
def is_private(spelled: str) -> bool:
    """Whether a dotted name as the program spells it goes through a private part of TensorFlow or Keras."""
    parts = spelled.split(".")
    return parts[0] in LIBRARIES and any(part in ("python", "src", "_api", "_tf_keras") for part in parts[1:-1])

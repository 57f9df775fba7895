"""Canonical names: a library's function has one name, however a program imports and spells it."""

from __future__ import annotations

import pytest

from mpdoctor.knowledge.api_names import kind_of_class, public_name
from mpdoctor.source import facts_from_text
from mpdoctor.source.names import canonical_name

pytestmark = pytest.mark.fast

SPELLINGS = [
    ("tensorflow.keras.layers.Dense", "keras.layers.Dense"),
    ("tf_keras.layers.Dense", "keras.layers.Dense"),
    ("keras.layers.Dense", "keras.layers.Dense"),
    ("keras.api._v2.keras.layers.Dense", "keras.layers.Dense"),
    ("keras.src.layers.core.dense.Dense", "keras.layers.core.dense.Dense"),
    ("tf_keras.src.layers.Dense", "keras.layers.Dense"),
    ("tensorflow.python.keras.layers.Dense", "keras.layers.Dense"),
    ("tensorflow.compat.v2.keras.layers.Dense", "keras.layers.Dense"),
    ("tensorflow.compat.v2.cast", "tensorflow.cast"),
    ("tensorflow.compat.v1.train.AdamOptimizer", "tensorflow.compat.v1.train.AdamOptimizer"),
    ("tensorflow.kerasify", "tensorflow.kerasify"),
    ("keras_cv.layers.CutMix", "keras_cv.layers.CutMix"),
    ("keras", "keras"),
    ("keras_core.ops.cast", "keras.ops.cast"),
    ("numpy.float16", "numpy.float16"),
]


@pytest.mark.parametrize(("spelled", "canonical"), SPELLINGS)
def test_every_way_to_import_keras_becomes_one_root(spelled: str, canonical: str) -> None:
    assert canonical_name(spelled) == canonical


SYNONYMS = [
    ("keras.mixed_precision.experimental.LossScaleOptimizer", "keras.mixed_precision.LossScaleOptimizer"),
    ("keras.optimizers.LossScaleOptimizer", "keras.mixed_precision.LossScaleOptimizer"),
    (
        "keras.mixed_precision.loss_scale_optimizer.LossScaleOptimizer",
        "keras.mixed_precision.LossScaleOptimizer",
    ),
    ("keras.mixed_precision.LossScaleOptimizerV3", "keras.mixed_precision.LossScaleOptimizer"),
    ("keras.mixed_precision.experimental.set_policy", "keras.mixed_precision.set_global_policy"),
    ("keras.config.set_dtype_policy", "keras.mixed_precision.set_global_policy"),
    ("keras.DTypePolicy", "keras.mixed_precision.Policy"),
    ("keras.layers.core.dense.Dense", "keras.layers.Dense"),
    ("keras.layers.Input", "keras.Input"),
    ("keras.models.Model", "keras.Model"),
    ("keras.optimizers.legacy.Adam", "keras.optimizers.Adam"),
    ("keras.optimizers.schedules.ExponentialDecay", "keras.optimizers.schedules.ExponentialDecay"),
    ("keras.layers.experimental.preprocessing.Rescaling", "keras.layers.Rescaling"),
    (
        "keras.mixed_precision.LossScaleOptimizer.from_config",
        "keras.mixed_precision.LossScaleOptimizer.from_config",
    ),
    ("tensorflow.math.multiply", "tensorflow.multiply"),
    ("tensorflow.dtypes.cast", "tensorflow.cast"),
    ("tensorflow.half", "tensorflow.float16"),
    ("tensorflow.optimizers.Adam", "keras.optimizers.Adam"),
    ("tensorflow.mixed_precision.LossScaleOptimizer", "tensorflow.mixed_precision.LossScaleOptimizer"),
]


@pytest.mark.parametrize(("name", "public"), SYNONYMS)
def test_synonyms_become_one(name: str, public: str) -> None:
    assert public_name(name) == public
    assert public_name(public) == public


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("keras.layers.Dense", "layer"),
        ("keras.layers.Layer", "layer"),
        ("keras.engine.base_layer.Layer", "layer"),
        ("keras.layers.add", None),
        ("keras.layers.InputSpec", None),
        ("keras.Model", "model"),
        ("keras.models.Sequential", "model"),
        ("keras.optimizers.Adam", "optimizer"),
        ("keras.optimizers.schedules.CosineDecay", None),
        ("keras.mixed_precision.LossScaleOptimizer", "optimizer"),
        ("keras.losses.Loss", "loss"),
        ("keras.metrics.Mean", "metric"),
        ("keras.callbacks.Callback", "callback"),
        ("tensorflow_addons.optimizers.AdamW", "optimizer"),
        ("keras_cv.layers.CutMix", "layer"),
        ("tensorflow.Module", None),
        ("builtins.object", None),
    ],
)
def test_kinds_of_classes(name: str, kind: str | None) -> None:
    assert kind_of_class(name) == kind


USES = [
    ("import tensorflow as tf\ntf.keras.layers.Dense(1)", "keras.layers.Dense", (2, 1, 22)),
    ("import tensorflow.keras.layers as kl\nkl.Dense(1)", "keras.layers.Dense", (2, 1, 9)),
    ("from tensorflow import keras as k\nk.Model", "keras.Model", (2, 1, 8)),
    ("from tensorflow.keras.layers import Dense", "keras.layers.Dense", (1, 37, 42)),
    ("from tensorflow.keras.layers import Dense as D\nD(2)", "keras.layers.Dense", (2, 1, 2)),
    ("from tensorflow.keras.layers import *\nDense(2)", "keras.layers.Dense", (2, 1, 6)),
    (
        "import tensorflow as tf\nm = tf.keras.mixed_precision\nm.Policy",
        "keras.mixed_precision.Policy",
        (3, 1, 9),
    ),
    ("import keras\nöä = keras.ops.cast(1)", "keras.ops.cast", (2, 6, 20)),
    ("import keras\n'ö𝔘é', keras.Input", "keras.Input", (2, 8, 19)),
    ("import keras\nx = (keras\n  .Input)", "keras.Input", (2, 6, 9)),
    ("def f():\n    import tf_keras\n    tf_keras.Model()", "keras.Model", (3, 5, 19)),
    ("import os.path\nos.environ['A']", "os.environ", (2, 1, 11)),
    (
        "try:\n    import keras\nexcept ImportError:\n    import tf_keras as keras\nkeras.Model",
        "keras.Model",
        (5, 1, 12),
    ),
    ("import keras\nclass L(keras.layers.Layer): pass", "keras.layers.Layer", (2, 9, 27)),
    ("import keras\n@keras.saving.register()\ndef f(): pass", "keras.saving.register", (2, 2, 23)),
]


@pytest.mark.parametrize(("text", "name", "place"), USES)
def test_uses_know_name_and_place(text: str, name: str, place: tuple[int, int, int]) -> None:
    use = [use for use in facts_from_text(text, "a.py").uses if use.api.name == name][-1]
    assert (use.location.line, use.location.column, use.location.end_column) == place


def test_one_dotted_name_is_one_use() -> None:
    facts = facts_from_text("import tensorflow as tf\nx = tf.keras.layers.Dense(tf.float16)", "a.py")
    assert [use.api.spelled for use in facts.uses] == [
        "tensorflow",
        "tensorflow.keras.layers.Dense",
        "tensorflow.float16",
    ]
    assert [use.is_import for use in facts.uses] == [True, False, False]
    assert facts.reads == ()


def test_private_paths_stay_visible() -> None:
    text = "from tensorflow.python.keras.mixed_precision.policy import set_policy"
    (use,) = facts_from_text(text, "a.py").uses
    assert use.api.spelled == "tensorflow.python.keras.mixed_precision.policy.set_policy"
    assert use.api.is_("keras.config.set_dtype_policy")

"""16-bit data, beside a real TensorFlow: a finding where the user cast them, none where a preprocessing layer made
them."""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import check, needs_keras

SCRIPT = """\
import numpy as np
import tensorflow as tf

K, L = tf.keras, tf.keras.layers
K.mixed_precision.set_global_policy("mixed_float16")
x, y = np.random.rand(32, 4).astype("float32"), np.random.rand(32, 1).astype("float32")
{data}
model = K.Sequential([L.Input((4,)), L.Dense(3), L.Dense(1, dtype="float32")])
model.compile("sgd", "mse")
{fit}
"""
PIPELINE = "data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8).map({map})"
DATA = {
    "a layer in a pipeline": (PIPELINE.format(map="lambda a, b: (L.Rescaling(1 / 2)(a), b)"), "model.fit(data)"),
    "layers in a pipeline": (
        "prepare = K.Sequential([L.Rescaling(1 / 2), L.Normalization(mean=0.0, variance=1.0)])\n"
        + PIPELINE.format(map="lambda a, b: (prepare(a), b)"),
        "model.fit(data)",
    ),
    "a layer by itself": ("x = L.Rescaling(1 / 2)(x)", "model.fit(x, y)"),
    "a cast in a pipeline": (
        PIPELINE.format(map="lambda a, b: (getattr(tf, 'ca' + 'st')(a, 'float16'), b)"),  # unknown to the source stage
        "model.fit(data)",
    ),
    "a cast": ("x = x.astype(np.dtype('f2'))", "model.fit(x, y)"),
}


@pytest.mark.parametrize(
    ("keras", "data"),
    [
        pytest.param(
            keras, data, marks=[needs_keras(keras), *([] if (keras, data) in (
                ("3", "a layer in a pipeline"), ("tf_keras", "a cast in a pipeline")
            ) else [pytest.mark.slow])]
        )
        for keras in ("3", "tf_keras") for data in DATA
    ],
)  # fmt: skip
def test_data_in_16_bits(tmp_path: Path, keras: str, data: str) -> None:
    made, fit = DATA[data]
    (tmp_path / "train.py").write_text(SCRIPT.format(data=made, fit=fit))
    done = check("train.py", directory=tmp_path, keras=keras)
    assert ("MP603" in done.codes()) == data.startswith("a cast"), done
    assert set(done.codes()) <= {"MP603", "MP210"}, done

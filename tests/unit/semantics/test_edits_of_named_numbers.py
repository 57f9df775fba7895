"""Where another number is written for one that stands behind a name: where nothing else reads the name."""

from __future__ import annotations

import pytest
from judging import facts_of, findings_in

from mpdoctor.fixes.texts import edited

pytestmark = pytest.mark.fast

LAYER = """
import keras
from keras import ops

keras.config.set_dtype_policy("mixed_float16")
{above}

class Norm(keras.layers.Layer):
    def __init__(self, {parameter}**kwargs):
        super().__init__(**kwargs)
        {line}

    def call(self, x):
        square = ops.mean(ops.square(x), axis=-1, keepdims=True)
        return x / ops.sqrt(square + {epsilon})

{below}
model = keras.Sequential([keras.Input((4,)), Norm(), keras.layers.Dense(1, dtype="float32")])
"""


def mended(**parts: str) -> str:
    text = LAYER.format(**{"above": "", "parameter": "", "line": "", "below": "", **parts})
    (finding,) = (finding for finding in findings_in(facts_of(text, "3")) if finding.code == "MP502")
    return edited(text, finding.fix.edits) if finding.fix is not None else ""


@pytest.mark.parametrize(
    ("parts", "written"),
    [
        ({"epsilon": "1e-9"}, "square + 1e-4)"),
        ({"above": "EPS = 1e-9", "epsilon": "EPS"}, "\nEPS = 1e-4\n"),
        ({"above": "EPS: float = 1e-9", "epsilon": "EPS"}, "\nEPS: float = 1e-4\n"),
        ({"line": "self.eps = 1e-9", "epsilon": "self.eps"}, "self.eps = 1e-4\n"),
        ({"parameter": "eps=1e-9, ", "line": "self.eps = eps", "epsilon": "self.eps"}, "eps=1e-4, **"),
        ({"parameter": "*, eps=1e-9, ", "line": "self.eps = eps", "epsilon": "self.eps"}, "*, eps=1e-4, **"),
        ({"above": "EPS = 1e-9", "line": "self.eps = EPS", "epsilon": "self.eps"}, "\nEPS = 1e-4\n"),
        (
            {
                "line": "self.eps = 1e-9\n\n    def get_config(self):\n        return {'eps': self.eps}",
                "epsilon": "self.eps",
            },
            "self.eps = 1e-4\n",
        ),
    ],
)
def test_a_name_that_nothing_else_reads(parts: dict[str, str], written: str) -> None:
    assert written in mended(**parts)


@pytest.mark.parametrize(
    "parts",
    [
        {"above": "EPS = 1e-9", "epsilon": "EPS", "below": "print(EPS)"},
        {"line": "self.eps = 1e-9; print(self.eps)", "epsilon": "self.eps"},
        {"parameter": "eps=1e-9, ", "line": "self.eps = eps; assert eps > 0", "epsilon": "self.eps"},
        {"above": "EPS = 1e-9", "line": "self.eps = EPS", "epsilon": "self.eps", "below": "print(EPS)"},
    ],
)
def test_a_name_that_something_else_reads(parts: dict[str, str]) -> None:
    assert mended(**parts) == ""

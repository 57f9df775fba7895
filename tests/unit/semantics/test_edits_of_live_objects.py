"""Edits at lines that a running program was seen to make layers and optimizers on, and of the global policy."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.facts.versions import Keras
from mpdoctor.fixes.texts import edited
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.made.layers import MadeLayer, NoPlace, given_dtype
from mpdoctor.semantics.source.edits.made.optimizers import usual_scale, with_scale
from mpdoctor.semantics.source.edits.policies import switching_edits
from mpdoctor.source import facts_from_text

pytestmark = pytest.mark.fast

OWN = """class Boost(Layer):
    def __init__(self, factor{takes}):
        super().__init__({hands})
        self.factor = factor

boost = Boost(3)
"""


def with_dtype(text: str, line: int, kind: str, path: str = "net/layer", with_parts: bool = False) -> str:
    facts = SourceFacts("a.py", text)
    layer = MadeLayer(path, kind, Location("a.py", line), None, with_parts)
    edits = given_dtype(layer, lambda path: facts if path == "a.py" else None)
    return edited(text, edits)


@pytest.mark.parametrize(
    ("text", "line", "kind", "after"),
    [
        ("a = L.Dense(3)(x)", 1, "Dense", 'a = L.Dense(3, dtype="float32")(x)'),
        ("a = Flatten()(x)", 1, "Flatten", 'a = Flatten(dtype="float32")(x)'),
        ("a = D(3)", 1, "Dense", 'a = D(3, dtype="float32")'),  # imported under another name
        ("a = Dense(3, dtype='float16')", 1, "Dense", 'a = Dense(3, dtype="float32")'),
        ("a = Dense(3, **more)", 1, "Dense", 'a = Dense(3, **more, dtype="float32")'),
        ("ä = [Dense(3), Conv(2)]", 1, "Conv", 'ä = [Dense(3), Conv(2, dtype="float32")]'),
        ("a = Dense(\n    3,  # units\n)", 1, "Dense", 'a = Dense(\n    3, dtype="float32",  # units\n)'),
        ("a = [\n    Dense(1),\n    Dense(2),\n]", 3, "Dense",
         'a = [\n    Dense(1),\n    Dense(2, dtype="float32"),\n]'),
        ("a = Dense(1, name='u')(Dense(2, name='layer')(x))", 1, "Dense",
         "a = Dense(1, name='u')(Dense(2, name='layer', dtype=\"float32\")(x))"),
        ("a = KINDS[kind](3, name=str(i))(x)", 1, "Dense", 'a = KINDS[kind](3, name=str(i), dtype="float32")(x)'),
        ("a = getattr(L, kind)(**more)(x)", 1, "Dense", 'a = getattr(L, kind)(**more, dtype="float32")(x)'),
        ("made.append(kind(max(3, n)))", 1, "Dense", 'made.append(kind(max(3, n), dtype="float32"))'),
        ("def f(x): ...\na = f(kind(3)(x))", 2, "Dense", 'def f(x): ...\na = f(kind(3, dtype="float32")(x))'),
    ],
)  # fmt: skip
def test_a_layer_gets_its_dtype_where_it_is_made(text: str, line: int, kind: str, after: str) -> None:
    assert with_dtype(text, line, kind) == after


def test_a_layer_that_is_given_one_hands_it_its_dtype() -> None:
    text = 'a = Bidirectional(LSTM(4, activation="tanh"), name="both")'
    after = 'a = Bidirectional(LSTM(4, activation="tanh", dtype="float32"), name="both", dtype="float32")'
    assert with_dtype(text, 1, "Bidirectional", with_parts=True) == after


@pytest.mark.parametrize(
    ("takes", "hands", "in_class"),
    [
        ("", "", '__init__(dtype="float32")'),
        ("", 'name="b"', '__init__(name="b", dtype="float32")'),
        (", **kwargs", "", '__init__(dtype="float32")'),
        (", **kwargs", "**kwargs", ""),
        (", **kwargs", '**{"name": 1, **kwargs}', ""),
        (", dtype=None", "dtype=dtype", ""),
    ],
)
def test_a_class_that_hands_no_dtype_on_gets_it_itself(takes: str, hands: str, in_class: str) -> None:
    after = with_dtype(OWN.format(takes=takes, hands=hands), 6, "Boost")
    assert ('Boost(3, dtype="float32")' in after) is not bool(in_class)
    assert in_class in after


def test_the_class_above_gets_it_where_that_hands_none_on() -> None:
    text = OWN.format(takes="", hands="") + "class More(Boost):\n    pass\n\nmore = More(3)\n"
    assert 'super().__init__(dtype="float32")' in with_dtype(text, 10, "More")


@pytest.mark.parametrize("call", ["KINDS[0](3)", "Other(3)", "kind(3)"])
def test_a_class_that_hands_no_dtype_on_gets_it_itself_by_whichever_name_it_is_called(call: str) -> None:
    facts = SourceFacts("a.py", OWN.format(takes="", hands="") + f"more = {call}\n")
    layer = MadeLayer("net/boost", "Boost", Location("a.py", 7), Location("a.py", 1))
    after = edited(facts.text, given_dtype(layer, lambda path: facts))
    assert 'super().__init__(dtype="float32")' in after and f"more = {call}\n" in after


@pytest.mark.parametrize("beside_others", [False, True])
def test_of_a_line_that_makes_layers_of_several_classes_one_class_gets_it(beside_others: bool) -> None:
    facts = SourceFacts("a.py", OWN.format(takes=", **kwargs", hands="**kwargs") + "more = KINDS[kind](3)\n")
    layer = MadeLayer("net/boost", "Boost", Location("a.py", 7), Location("a.py", 1), beside_others=beside_others)
    after = edited(facts.text, given_dtype(layer, lambda path: facts))
    assert ('super().__init__(**{"dtype": "float32", **kwargs})' in after) is beside_others
    assert ('KINDS[kind](3, dtype="float32")' in after) is not beside_others
    named = dataclasses.replace(layer, made_at=Location("a.py", 6))
    assert 'Boost(3, dtype="float32")' in edited(facts.text, given_dtype(named, lambda path: facts))


@pytest.mark.parametrize(
    ("layer", "why"),
    [
        (MadeLayer("net/a", "Dense", None), "no line of the program's makes `net/a`"),
        (MadeLayer("net/a", "Dense", Location("b.py", 1)), "the source of b.py, which makes `net/a`, is not at hand"),
        (MadeLayer("net/a", "Dense", Location("a.py", 2)), "line 2 of a.py shows no call that makes `net/a`"),
    ],
)
def test_why_a_layer_gets_none(layer: MadeLayer, why: str) -> None:
    facts = SourceFacts("a.py", "a = Dense(1)\nb = x + layers[0]\n")
    with pytest.raises(NoPlace, match=why):
        given_dtype(layer, lambda path: facts if path == "a.py" else None)


@pytest.mark.parametrize(
    ("text", "after"),
    [
        ("o = W(Adam(), dynamic=False, initial_scale=2.0**24)", "o = W(Adam())"),
        ("o = W(Adam(), dynamic_growth_steps=2)", "o = W(Adam())"),
        ("o = Adam(1e-3, loss_scale_factor=2.0**22)", "o = Adam(1e-3, loss_scale_factor=1024.0)"),
        ("o = W(Adam(1e-3))", "o = W(Adam(1e-3))"),
    ],
)
def test_a_loss_scale_is_left_to_keras(text: str, after: str) -> None:
    assert edited(text, [edit for _, edit in usual_scale(SourceFacts("a.py", text), Location("a.py", 1))]) == after


@pytest.mark.parametrize(
    ("text", "scale", "after"),
    [
        ("o = W(Adam(), initial_scale=1.0)", "2.0**20", "o = W(Adam(), initial_scale=2.0**20)"),
        ("o = W(Adam(), initial_scale=1.0)", None, "o = W(Adam())"),
        ("o = W(Adam())", "2.0**-3", "o = W(Adam(), initial_scale=2.0**-3)"),
        ("o = W(Adam(), False, initial_scale=1.0)", "2.0**2", "o = W(Adam(), False, initial_scale=2.0**2)"),
        ("o = W(Adam(), False)", "2.0**2", None),  # Keras 2's `dynamic`
        ("o = W(Adam(), 1.0)", "2.0**2", None),  # Keras 3's `initial_scale`
        ("o = W(Adam(), **given)", "2.0**2", None),
        ("o = W(Adam(), loss_scale=Fixed(1.0))", "2.0**2", None),
        ("o = W(Adam(), W(b))", "2.0**2", None),
        ("o = make(Adam())", "2.0**2", None),
    ],
)
@pytest.mark.parametrize("class_name", ["W", "WV3"])
def test_a_loss_scale_is_written(text: str, scale: str | None, after: str | None, class_name: str) -> None:
    found = with_scale(SourceFacts("a.py", text), Location("a.py", 1), class_name, "initial_scale", scale)
    assert (found and edited(text, list(found[1]))) == after


def test_the_experimental_wrapper_is_told_its_loss_scale() -> None:
    text = "o = LossScaleOptimizer(Adam(), loss_scale=1.0)"
    place = SourceFacts("a.py", text), Location("a.py", 1), "LossScaleOptimizerV1"
    found = with_scale(*place, "loss_scale", "2.0**10")
    assert found is not None and edited(text, list(found[1])) == text.replace("=1.0", "=2.0**10")


def switched(text: str, policy: str = "mixed_float16", keras: str = "keras") -> str | None:
    facts = dataclasses.replace(facts_from_text(text, "a.py", Path()), keras=Keras(keras))  # type: ignore[arg-type]
    edits = switching_edits(facts, policy, lambda path: None)
    return None if edits is None else edited(text, edits)


SET = 'mixed_precision.set_global_policy("mixed_float16")'
MODEL = "\nmodel = keras.Sequential([keras.layers.Dense(1)])\n"


@pytest.mark.parametrize(
    ("text", "after"),
    [
        (f"import keras\n{MODEL}", f"import keras\n\nkeras.{SET}\n{MODEL}"),
        (f'"""A."""\nimport os\nfrom tensorflow import keras\nimport numpy as np  # data\n{MODEL}',
         f'"""A."""\nimport os\nfrom tensorflow import keras\nimport numpy as np  # data\n\nkeras.{SET}\n{MODEL}'),
        ("from keras.layers import (\n    Dense,\n)\n\nDense(1)\n",
         f"from keras.layers import (\n    Dense,\n)\nimport keras\n\nkeras.{SET}\n\nDense(1)\n"),
        (f'import keras\nkeras.mixed_precision.set_global_policy("float32"){MODEL}',
         f"import keras\nkeras.{SET}{MODEL}"),
        ('import keras\npolicy = keras.mixed_precision.Policy("mixed_bfloat16")\n'
         f"keras.mixed_precision.set_global_policy(policy){MODEL}",
         f'import keras\npolicy = keras.mixed_precision.Policy("mixed_bfloat16")\nkeras.{SET}{MODEL}'),
        ('import keras\nkeras.config.set_dtype_policy("float32")\n',
         'import keras\nkeras.config.set_dtype_policy("mixed_float16")\n'),
        ('import sys\nimport keras\nif sys.argv[1:]:\n    keras.mixed_precision.set_global_policy("float16")\n',
         f"import sys\nimport keras\n\nkeras.{SET}\nif sys.argv[1:]:\n    keras.{SET}\n"),
        ("x = 1\n", None),
    ],
)  # fmt: skip
def test_a_program_is_switched_in_its_own_names(text: str, after: str | None) -> None:
    assert switched(text) == after


def test_a_program_of_keras_2_is_switched_in_its_own_names() -> None:
    text = "from tensorflow.keras.layers import Dense\n\nDense(1)\n"
    before, behind = text.split("\n", 1)
    line = 'tf.keras.mixed_precision.set_global_policy("mixed_float16")'
    assert switched(text, keras="tf.keras") == f"{before}\nimport tensorflow as tf\n\n{line}\n{behind}"

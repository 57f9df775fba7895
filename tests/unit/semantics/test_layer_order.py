"""In which order a model has its layers, by the text of the program: as Keras 3.15 and tf_keras 2.21 have it."""

from __future__ import annotations

import pytest
from judging import facts_of

from mpdoctor.program.events import Call
from mpdoctor.program.values import known
from mpdoctor.semantics.source.layers.layer_order import orders_of

pytestmark = pytest.mark.fast

EACH = "for _ in range(n):\n    "
HEAD = "import keras\nfrom keras.layers import Add, Concatenate, Dense as D, Dropout\ni = keras.Input((4,))\n"
ROW = "h = D(1, name='a')(i)\nh = D(2, name='b')(h)\n"
ORDERS = {
    "one after the other": (
        ROW + "keras.Model(i, D(3, name='c')(h))",
        "i a b c",
        [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]],
    ),
    "by keywords, with a way around": (
        "a = D(4, name='a')(i)\nb = D(4, name='b')(a)\nkeras.Model(outputs=Concatenate(name='x')([a, b]), inputs=i)",
        "i a b x",
        [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]],
    ),
    "a late input": (
        "j = keras.Input((4,))\na = D(4, name='a')(i)\nkeras.Model([i, j], Add(name='x')([a, j]))",
        "i a i x",
        [[0], [0, 1], [2], [0, 1, 2, 3]],
    ),
    "two outputs": (ROW + "keras.Model(i, [h, D(1, name='o')(h)])", "i a b o", [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]]),
    "a model inside": ("n = keras.Sequential([D(4)], name='n')\nkeras.Model(i, n(i))", "i n", [[0], [0, 1]]),
    "Sequential": (
        "m = keras.Sequential([i, D(4, name='a'), Dropout(0.1, name='d')])\nm.add(D(1, name='o'))",
        "a d o",
        [[0], [0, 1], [0, 1, 2]],
    ),
    "side by side": ("keras.Model(i, Add()([D(4)(i), D(4)(i)]))", None, None),
    "called twice": ("a = D(4)\nkeras.Model(i, a(a(i)))", None, None),
    "by no layer": ("keras.Model(i, i * 2.0)", None, None),
    "added in a loop": ("m = keras.Sequential()\nfor name in 'ab':\n    m.add(D(4, name=name))", None, None),
    "popped": ("m = keras.Sequential([D(4), D(1)])\nm.pop()", None, None),
    "listed elsewhere": ("m = keras.Sequential(layers_of(i))", None, None),
}


@pytest.mark.parametrize(("text", "names", "below"), ORDERS.values(), ids=ORDERS)
def test_the_order_of_layers(text: str, names: str | None, below: list[list[int]] | None) -> None:
    facts = facts_of(f"{HEAD}{text}\n", "3")
    order = next(
        iter(orders_of(facts, [call for call in facts.calls if call.method in ("Model", "Sequential")][-1])), None
    )
    assert (order and " ".join(_name(layer) for layer in order.layers)) == names
    assert (order and [sorted(positions) for positions in order.below]) == below


LOOPS = {
    "over what is known": (
        "h = i\nfor n in (8, 4):\n    h = D(n, name='a')(h)\nkeras.Model(i, D(1, name='o')(h))",
        "i a a o",
    ),
    "perhaps never": (
        "h = i\nfor _ in range(n):\n    h = D(8, name='a')(h)\nkeras.Model(i, D(1, name='o')(h))",
        "i a a o",
    ),
    "of several layers": (
        f"h = D(8, name='a')(i)\n{EACH}b = D(8, name='b')(h)\n    h = Add(name='x')([h, b])\nkeras.Model(i, h)",
        "i a b x b x",
    ),
    "two": (
        f"h = i\n{EACH}h = D(8, name='a')(h)\n{EACH}h = D(4, name='b')(h)\nkeras.Model(i, h)",
        "i a a b b",
    ),
    "a layer from outside": ("a = D(4)\nh = i\nfor _ in range(n):\n    h = a(h)\nkeras.Model(i, h)", None),
    "in each other": (
        "h = i\nfor _ in range(n):\n    for _ in range(n):\n        h = D(4)(h)\nkeras.Model(i, h)",
        None,
    ),
    "by the way": ("h = i\nfor n in sizes:\n    if n:\n        h = D(4)(h)\nkeras.Model(i, h)", None),
}


@pytest.mark.parametrize(("text", "names"), LOOPS.values(), ids=LOOPS)
def test_the_order_of_layers_that_a_loop_makes(text: str, names: str | None) -> None:
    facts = facts_of(f"{HEAD}{text}\n", "3")
    orders = orders_of(facts, [call for call in facts.calls if call.method == "Model"][-1])
    assert [" ".join(_name(layer) for layer in order.layers) for order in orders][1:2] == ([names] if names else [])


def _name(layer: Call | None) -> str:
    return "i" if layer is None else str(known(layer.keyword("name")))

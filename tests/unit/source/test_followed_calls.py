"""Values that come through functions which call functions, decorators, generators, `match`, registries and trees of
settings."""

from __future__ import annotations

import textwrap

import pytest
from described import described, shown

pytestmark = pytest.mark.fast

PRELUDE = """\
import functools, importlib, types
from omegaconf import OmegaConf

def add(a, b): return a + b
def same(f): return f
def twice(f):
    @functools.wraps(f)
    def inner(x): return 2 * f(x)
    return inner
def named(name):
    def keep(f):
        TABLE[name] = f
        return f
    return keep
TABLE = {}
class Registry(dict):
    def keep(self, name):
        def decorator(f):
            self[name] = f
            return f
        return decorator
"""
VALUES = [
    # functions that call the function they are given
    ("x = functools.reduce(add, [1, 2, 3])", "6"),
    ("x = functools.reduce(lambda a, b: a * b, (2, 3), 4)", "24"),
    ("x = functools.reduce(add, [], 5)", "5"),
    ("x = list(map(lambda v: v + 1, [1, 2]))", "list[2, 3]"),
    ("x = list(map(add, [1, 2], (3, 4)))", "list[4, 6]"),
    ("x = tf.nest.map_structure(lambda v: v + 1, (1, 2))", "tuple[2, 3]"),
    ("x = tf.nest.map_structure(add, {'a': 1, 'b': [2]}, {'a': 3, 'b': [4]})", "dict['a': 4, 'b': list[6]]"),
    ("x = tf.nest.map_structure(lambda v: 7, f())", "list[7, …]"),
    ("_, x = tf.while_loop(lambda i, v: i < 3, lambda i, v: (i, v), (0, 5))", "5"),
    # decorators of one's own
    ("@same\ndef f(v): return v + 1\nx = f(1)", "2"),
    ("@twice\ndef f(v): return v + 1\nx = f(1)", "4"),
    ("@named('a')\ndef f(v): return v + 1\nx = TABLE['a'](1)", "2"),
    ("r = Registry()\n@r.keep('a')\ndef f(v): return v + 1\nx = r['a'](1)", "2"),
    ("r = Registry()\nr['a'] = 3\nx = r['a']", "3"),
    ("@unheard_of\ndef f(v): return v + 1\nx = f.__class__", "?(f).__class__"),
    ("def f(): pass\nx = f.__name__", "'f'"),
    # generators
    ("def g():\n  yield 1\n  yield 2\nx = list(g())", "list[1, 2]"),
    ("def g():\n  yield 1\n  yield from (2, 3)\nx = [*g()]", "list[1, 2, 3]"),
    ("def g(n):\n  for _ in range(n): yield 1\n  yield 2\nx = list(g(3))", "list[1, 2, …]"),
    ("def g(n):\n  for _ in range(n): yield 1, 2\nfor x, y in g(3): pass", "1"),
    # match
    ("m = 'a'\nmatch m:\n  case 'a': x = 1\n  case _: x = 2", "1"),
    ("m = 'c'\nmatch m:\n  case 'a' | 'b': x = 1\n  case _: x = 2", "2"),
    ("m = 'c'\nx = 0\nmatch m:\n  case 'a': x = 1", "0"),
    ("match f():\n  case 'a': x = 1\n  case _: x = 2", "1 | 2"),
    # trees of settings
    ("c = OmegaConf.create({'a': {'b': 1}})\nx = c.a.b", "1"),
    ("c = OmegaConf.create({'a': {'b': 1}})\nx = c['a'].b", "1"),
    ("c = types.SimpleNamespace(a=1)\nx = c.a", "1"),
    ("c = types.SimpleNamespace(a=1)\nc.a = f()\nx = c.a", "?()"),
    # a module by its name
    ("x = importlib.import_module('tensorflow.keras').layers", "layers"),
]


@pytest.mark.parametrize(("snippet", "value"), VALUES)
def test_value_of_a_variable(snippet: str, value: str) -> None:
    assert described(shown(f"{textwrap.dedent(PRELUDE)}{snippet}\nprint(x)")) == value


OPTIONAL = """\
OPT = None
def setup():
    global OPT
    OPT = mp.LossScaleOptimizer(keras.optimizers.Adam())
setup()
def show(): print(OPT.inner_optimizer)
show()
"""


def test_none_has_no_attribute_that_is_read() -> None:
    assert described(shown(OPTIONAL)).endswith(".inner_optimizer") and "None" not in described(shown(OPTIONAL))

"""Symbolic values of names: assignments, calls, branches, loops, classes and imports."""

from __future__ import annotations

import textwrap

import pytest
from described import described, facts_of, shown

from mpdoctor.program.events import Call
from mpdoctor.program.instances import is_instance_of
from mpdoctor.program.values import known, walk

pytestmark = pytest.mark.fast

VALUES = [
    # constants
    ("x = 2**15", "32768"),
    ("x = -1e9", "-1000000000.0"),
    ("x = 1 / 0", "(1 / 0)"),
    ("x = 10**10**10", "(10 ** 10000000000)"),
    ("x = 'mixed_' + 'float16'", "'mixed_float16'"),
    ("b = 16; x = f'mixed_float{b}'", "'mixed_float16'"),
    ("x = not True", "False"),
    ("x = float('-inf')", "-inf"),
    ("x = -np.inf", "-inf"),
    ("x = 1 < 2", "True"),
    ("x = 'a' * 10**9", "('a' * 1000000000)"),
    # assignment
    ("a, x = 1, 2", "2"),
    ("a, (b, x) = 1, (2, 3)", "3"),
    ("a, *x = f()", "list[?()[], …]"),
    ("x, y = f()", "?()[0]"),
    ("x = y = 3", "3"),
    ("x = 1; x += 2", "3"),
    ("x = f(); x *= 2", "(?() * 2)"),
    ("(x := 4)", "4"),
    ("x: int = 5", "5"),
    ("x = 1; del x", "?"),
    ("x = [1, 2][1]", "2"),
    ("x = {'a': 1}['a']", "1"),
    ("x = {'a': 1, **{'b': 2}}['b']", "2"),
    ("d = {}; d['k'] = 1; x = d['k']", "1"),
    ("x = dict(a=1)", "dict['a': 1]"),
    ("x = {'a': 1}.get('b', 2)", "2"),
    ("x = [1, *f(), 2]", "list[1, 2, …]"),
    ("x = [1] + [2]", "list[1, 2]"),
    ("x = []; x.append(1); x.append(2)", "list[1, 2]"),
    ("x = []\nfor i in f(): x.append(i)", "list[?()[], …] | list[]"),
    ("a = []\nfor i in f(): a.append(g(i))\nfor x in a: pass", "?(?()[])"),
    ("a = []\nfor i in f(): a.append(g(i))\nx = a[0]", "?(?()[])"),
    ("a = []\nfor i in f(): a.append(g(i))\nfor x, _ in zip(a, f()): pass", "?(?()[])"),
    ("a = []\nfor i in f(): a.append(1 if g(i) else 'a')\nx = a[0]", "'a' | 1"),
    ("a = []\nfor i in f(): a.append(1)\na.append(h())\nx = a", "list[1, ?(), …] | list[?()]"),
    ("x = [1]; x.pop()", "list[]"),
    # paths
    ("x = 1\nif f(): x = 2", "1 | 2"),
    ("if f(): x = 1\nelse: x = 2", "1 | 2"),
    ("if f(): x = 1\nelif g(): x = 2\nelse: x = 3", "1 | 2 | 3"),
    ("x = 1\nif False: x = 2", "1"),
    ("USE = True\nif USE: x = 1\nelse: x = 2", "1"),
    ("if __name__ == '__main__': x = 1\nelse: x = 2", "1"),
    ("x = 1 if f() else 2", "1 | 2"),
    ("x = 1 if 0 else 2", "2"),
    ("x = f() or 3", "3 | ?()"),
    ("x = None or 3", "3"),
    ("x = 1\nfor i in f(): x = 2", "1 | 2"),
    ("x = 1\nfor i in f():\n  if g(): x = 2; break", "1 | 2"),
    ("x = 0\nwhile True:\n  x = 1\n  break", "1"),
    ("for x in (1, 2): pass", "1 | 2"),
    ("for i, x in enumerate((1, 2)): pass", "1 | 2"),
    ("for x, y in zip((1, 2), f()): pass", "1 | 2"),
    ("for k, x in {'a': 1}.items(): pass", "1"),
    ("for x, y in ds: pass", "?[][0]"),
    # what a loop binds that goes round at least once
    ("x = 1\nfor _ in range(2): x = 2", "2"),
    ("x = 1\nfor _ in range(0): x = 2", "1 | 2"),
    ("x = 1\nfor _ in range(3, 0): x = 2", "1 | 2"),
    ("x = 1\nfor _ in range(int(input())): x = 2", "1 | 2"),
    ("x = 1\nfor i, _ in enumerate(zip((1, 2), [3, 4])): x = 2", "2"),
    ("x = 1\nfor _ in [v for v in f()]: x = 2", "1 | 2"),
    ("x = 1\nfor _ in (1, 2):\n  if f(): continue\n  x = 2", "1 | 2"),
    ("x = 1\ntry: x = 2\nexcept E: x = 3", "2 | 3"),
    ("x = 1\ntry: x = f()\nexcept E: pass", "1 | ?()"),
    ("try: x = 1\nfinally: x = 2", "2"),
    ("with tf.GradientTape() as x: pass", "GradientTape()"),
    ("match f():\n  case 1: x = 1\n  case _: x = 2", "1 | 2"),
    ("x = [i for i in (1, 2)]", "list[1, 2]"),
    ("x = {k: 1 for k in 'ab'}", "dict['ab'[]: 1, …]"),
    ("x = 1\nglobal_names = [x for x in (7,)]", "1"),
    # functions
    ("def g(a, b=2): return a + b\nx = g(1)", "3"),
    ("def g(a, b=2): return a + b\nx = g(b=1, a=1)", "2"),
    ("def g(*a): return a\nx = g(1, 2)", "tuple[1, 2]"),
    ("def g(**k): return k\nx = g(a=1)", "dict['a': 1]"),
    ("x = {'a': 1, 'b': 2}[f()]", "1 | 2"),
    ("d = {}\nfor i in f(): d[i] = 1\nx = d['a']", "1 | ?"),
    ("d = {'a': 1, 'b': 2}; d.pop('a'); x = d", "dict['b': 2]"),
    ("d = {'a': 1}; x = d.pop('a'), d", "tuple[1, dict[]]"),
    ("d = {'a': 1}; d.setdefault('b', 2); x = d", "dict['a': 1, 'b': 2]"),
    ("d = {'a': {'b': 1}}; d['a']['b'] = 2; x = d", "dict['a': dict['b': 2]]"),
    ("x = [1, 2, 3][1:]", "list[2, 3]"),
    ("first, *x = 1, 2, 3", "list[2, 3]"),
    ("x = 'a' if f() else 'b'\nif x == 'a': x += '1'\nelse: x += '2'", "'a1' | 'b2'"),
    ("x = 'a' if f() else 'b'\nif x != 'a': x = 'c'", "'a' | 'c'"),
    ("def g(d):\n  if d == 'a': return 1\n  return d\nx = g('a' if f() else 'b')", "'b' | 1"),
    ("_, x = zip(*[(1, v) for v in f()])", "tuple[?()[], …]"),
    ("x, _ = zip(*list(zip(f(), f())))", "tuple[?()[], …]"),
    ("x = list(zip(*[(1, 2), (3, 4)]))", "list[tuple[1, 3], tuple[2, 4]]"),
    ("x = [1]; x.insert(0, 2); x.reverse()", "list[1, 2]"),
    ("x = [None] * 2; x[1] = 3", "list[None, 3]"),
    ("import collections\nP = collections.namedtuple('P', 'a b')\nx = P(1, b=2)._replace(a=3).a", "3"),
    ("x = (1, 2)._replace(a=3)", "tuple[1, 2]._replace(a=3)"),
    ("x = (1, 2)._asdict()", "tuple[1, 2]._asdict()"),
    ("import tensorflow as tf\nx = tf.float16 == tf.half", "True"),
    ("import tensorflow as tf, numpy as np\nx = np.float32 != tf.float32", "False"),
    ("import tensorflow as tf\nx = 'bfloat16' == tf.bfloat16", "True"),
    ("import tensorflow as tf\nx = tf.float32 in (tf.float16, tf.bfloat16)", "False"),
    ("import tensorflow as tf\nx = tf.half not in [f(), tf.bfloat16]", "(float16 not in list[?(), bfloat16])"),
    ("import tensorflow as tf\nx = 1\nif tf.float32 == tf.float16: x = 2", "1"),
    ("class C:\n  def __iter__(self): yield 1\n[x] = C()", "C()[0]"),
    ("class C:\n  def __getitem__(self, i): return 5\nx = C()[f()]", "5"),
    ("def g(n): return 1 if f() else g(n - 1)\nx = g(3)", "1"),
    ("def g(a, *, b): return b\nx = g(1, b=2)", "2"),
    ("def g(a): return a\nx = g(*f())", "?()[0]"),
    ("def g(a, b, c): return b, c\nx = g(*f(), 7)", "tuple[?()[1], 7]"),
    ("def g(a, b, c=3): return a, b, c\nx = g(1, *f())", "tuple[1, ?()[0], $c]"),
    ("def g(a, b, *c): return a\nx = g(*f(), 7)", "$a"),
    ("def g(a, b): return b\nx = g(*f(), b=5)", "5"),
    ("class C:\n  def m(self, a, b): return b\nx = C().m(*f())", "?()[1]"),
    ("def g():\n  if f(): return 1\n  return 2\nx = g()", "1 | 2"),
    ("def g(on):\n  if on: return 1\n  return 2\nx = g(True)", "1"),
    ("def g(): pass\nx = g()", "None"),
    ("def g(): return 1, 2\na, x = g()", "2"),
    ("def g(n): return g(n - 1)\nx = g(3)", "g(2)"),
    ("def g(): yield 1\nx = g()", "g()"),
    ("g = lambda a: a * 2\nx = g(4)", "8"),
    ("def outer():\n  k = 5\n  def inner(): return k\n  return inner\nx = outer()()", "5"),
    ("k = 1\ndef g(): return k\nk = 2\nx = g()", "2"),
    ("k = 1\ndef g():\n  global k\n  k = 2\ng()\nx = k", "1 | 2 | ?"),
    (
        "def g(o): return mp.LossScaleOptimizer(o)\nx = g(keras.optimizers.Adam(1))",
        "LossScaleOptimizer(Adam(1))",
    ),
    ("@tf.function\ndef g(a): return a\nx = g(1)", "1"),
    ("@tf.function(jit_compile=True)\ndef g(a): return a\nx = g(1)", "1"),
    ("def g(a): return a\nx = tf.function(g)(1)", "1"),
    ("def g(a): return a\nx = tf.function(jit_compile=True)(g)(1)", "1"),
    ("from functools import partial\ndef g(a, b): return b\nx = partial(g, b=3)(1)", "3"),
    ("from functools import partial\nD = partial(layers.Dense, 4)\nx = D(name='a')", "Dense(4, name='a')"),
    ("import functools\nD = functools.partial(layers.Dense, units=4)\nx = D(units=8)", "Dense(units=8)"),
    ("@unheard_of\ndef g(): return 1\nx = g()", "?(g)()"),
    ("def a(v): return v\ndef b(v): return a(v)\ndef c(v): return b(v)\nx = c(1)", "1"),
    # classes
    ("class C:\n  k = 3\nx = C.k", "3"),
    ("class C:\n  k = 3\nx = C().k", "3"),
    ("class C:\n  def __init__(self, a): self.a = a\nx = C(4).a", "4"),
    ("class C:\n  def __init__(self, a): self.a = a\nC(4)\nx = C(5).a", "5"),
    ("class C:\n  def __init__(self): self.a = 1\n  def m(self): return self.a\nx = C().m()", "1"),
    ("class C:\n  @property\n  def p(self): return 6\nx = C().p", "6"),
    ("class C:\n  @staticmethod\n  def s(a): return a\nx = C.s(7)", "7"),
    ("class C:\n  @classmethod\n  def s(cls, a): return a\nx = C.s(7)", "7"),
    (
        "class B:\n  def __init__(self): self.a = 1\nclass C(B):\n  def __init__(self): super().__init__()\nx = C().a",
        "1",
    ),
    ("class B:\n  def m(self): return 1\nclass C(B): pass\nx = C().m()", "1"),
    ("class C:\n  def __call__(self, a): return a\nx = C()(8)", "8"),
    ("from dataclasses import dataclass\n@dataclass\nclass C:\n  a: int = 1\n  b: int = 2\nx = C(5).a", "5"),
    ("class C: pass\nc = C()\nc.a = 9\nx = c.a", "9"),
    ("class C: pass\nx = C().nope", "C().nope"),
    ("o = keras.optimizers.Adam()\nx = o.lr", "Adam().lr"),
    ("x = getattr(keras.optimizers, 'Adam')()", "Adam()"),
    ("x = keras.Sequential([layers.Dense(1)]).layers[-1]", "Sequential(list[Dense(1)]).layers[-1]"),
]


@pytest.mark.parametrize(("snippet", "value"), VALUES)
def test_value_of_a_variable(snippet: str, value: str) -> None:
    assert described(shown(snippet + "\nprint(x)")) == value


WRAPPED = [
    "mp.LossScaleOptimizer(keras.optimizers.Adam())",
    "mp.experimental.LossScaleOptimizer(keras.optimizers.Adam(), 'dynamic')",
    "keras.optimizers.LossScaleOptimizer(keras.optimizers.Adam())",
    "wrap(keras.optimizers.Adam())",
    "Wrapper(keras.optimizers.Adam())",
    "Deeper(keras.optimizers.Adam())",
    "mp.LossScaleOptimizer(a) if cond() else mp.LossScaleOptimizer(b)",
]


@pytest.mark.parametrize("expression", WRAPPED)
def test_instances_of_the_wrapper(expression: str) -> None:
    prelude = """
        def wrap(o): return mp.LossScaleOptimizer(o)
        class Wrapper(mp.LossScaleOptimizer): pass
        class Deeper(Wrapper): pass
        """
    value = shown(textwrap.dedent(prelude) + f"print({expression})")
    assert is_instance_of(value, "keras.mixed_precision.LossScaleOptimizer")


@pytest.mark.parametrize(
    "expression", ["keras.optimizers.Adam()", "mp.LossScaleOptimizer", "unknown()", "1", "a.inner_optimizer"]
)
def test_other_things_are_no_wrapper(expression: str) -> None:
    value = shown(f"a = mp.LossScaleOptimizer(b)\nprint({expression})")
    assert not is_instance_of(value, "keras.mixed_precision.LossScaleOptimizer")


def test_one_of_two_is_not_certain() -> None:
    value = shown("o = keras.optimizers.Adam()\nif amp(): o = mp.LossScaleOptimizer(o)\nprint(o)")
    assert not is_instance_of(value, "keras.mixed_precision.LossScaleOptimizer")


def test_arguments_by_position_and_name() -> None:
    call = shown("print(mp.LossScaleOptimizer(o, False, initial_scale=8, **more))")
    assert isinstance(call, Call)
    assert known(call.argument(1, "dynamic")) is False
    assert known(call.argument(2, "initial_scale")) == 8
    assert call.argument(3, "dynamic_growth_steps") is None
    assert call.open


def test_walking_a_value_that_doubles_is_linear() -> None:
    value = shown("x = f()\n" + "x = x + x\n" * 300 + "print(x)")
    assert sum(1 for _ in walk(value)) == 302


def test_a_list_that_is_shared_is_changed_for_one_name_only() -> None:
    """In doubt less is known, never something false: `b` keeps the list as it was written."""
    assert described(shown("a = [1]\nb = a\na.append(2)\nprint(a)")) == "list[1, 2]"


@pytest.mark.parametrize("made", ("dict(kwargs, dtype='float32')", "record(kwargs, dtype='float32')"))
def test_a_dict_is_known_by_what_its_name_holds(made: str) -> None:
    facts = facts_of(
        f"""
        record = dict
        class Residual(layers.Layer):
            def __init__(self, **kwargs):
                super().__init__(**{made})
        Residual()
        """
    )
    (residual,) = facts.classes
    assert described(residual.base_arguments["dtype"]) == "'float32'"


def test_methods_of_a_layer_see_what_init_and_build_assigned() -> None:
    facts = facts_of(
        """
        class Scale(layers.Layer):
            def __init__(self, units, **kwargs):
                super().__init__(dtype="float32", **kwargs)
                self.units = units
                self.w = None
            def build(self, shape):
                self.w = self.add_weight(shape=(self.units,))
            def call(self, x):
                return x * self.w
        Scale(4)
        Scale(8)
        """
    )
    (scale,) = facts.classes
    assert scale.kind == "layer"
    assert described(scale.attributes["units"]) == "4 | 8"
    assert described(scale.attributes["w"]) == "self:Scale.add_weight(shape=tuple[4 | 8])"
    assert described(scale.base_arguments["dtype"]) == "'float32'"
    (product,) = [operation for operation in facts.operations if operation.operator == "*"]
    assert [described(operand) for operand in product.operands] == [
        "$x",
        "self:Scale.add_weight(shape=tuple[4 | 8])",
    ]
    assert product.context.reached


@pytest.mark.parametrize(
    ("bases", "kind"),
    [
        ("layers.Layer", "layer"),
        ("keras.Model", "model"),
        ("keras.optimizers.Adam", "optimizer"),
        ("Mixin, keras.Model", "model"),
        ("A", "layer"),
        ("tf.Module", None),
        ("unheard_of()", None),
        ("C", None),
    ],
)
def test_kind_of_an_own_class(bases: str, kind: str | None) -> None:
    facts = facts_of(f"class A(layers.Dense): pass\nclass Mixin: pass\nclass C({bases}): pass")
    assert facts.classes[-1].kind == kind

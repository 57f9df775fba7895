"""Values that come through the command line, dataclasses, enumerations, context managers and short comprehensions."""

from __future__ import annotations

import textwrap

import pytest
from described import described, shown

from mpdoctor.program.values import Collection, Known, options

pytestmark = pytest.mark.fast

PRELUDE = """\
import argparse, collections, contextlib, dataclasses, enum, functools
from absl import flags

class Size(enum.Enum):
    SMALL = "s"
    LARGE = "l"

@dataclasses.dataclass
class Base:
    name: str = "n"

@dataclasses.dataclass
class Run(Base):
    size: Size = Size.SMALL
    rates: list = dataclasses.field(default_factory=lambda: [1, 2])
    steps: int = dataclasses.field(default=3)

@contextlib.contextmanager
def held(value):
    STATE["a"] = value
    try:
        yield value
    finally:
        STATE["a"] = 0

@contextlib.contextmanager
def either(asked):
    if asked:
        yield 1
    else:
        yield 2

class Opened:
    def __enter__(self):
        self.depth = 4
        return self

    def __exit__(self, *error):
        self.depth = 5

STATE = {"a": -1}
parser = argparse.ArgumentParser()
"""
VALUES = [
    # the command line: the default, or what nobody knows
    ("parser.add_argument('--a-b', default='d')\nx = parser.parse_args().a_b", "'d' | …"),
    ("parser.add_argument('-a', '--all', default='d')\nargs, _ = parser.parse_known_args()\nx = args.all", "'d' | …"),
    ("parser.add_argument_group('g').add_argument('--a', default='d')\nx = parser.parse_args().a", "'d' | …"),
    ("parser.add_argument('--a', dest='b', default='d')\nx = parser.parse_args().b", "'d' | …"),
    ("parser.add_argument('--a', default='d')\nparser.set_defaults(a='e')\nx = parser.parse_args().a", "'e' | …"),
    ("parser.add_argument('--a', default='d', required=True)\nx = parser.parse_args().a", "…"),
    ("parser.add_argument('--a', default=3)\nx = parser.parse_args().a", "3 | …"),
    ("parser.add_argument('--a', default=True)\nx = parser.parse_args().a", "True | …"),
    ("parser.add_argument('--a', action='store_true')\nx = parser.parse_args().a", "False | …"),
    ("parser.add_argument('--a', action='store_false')\nx = parser.parse_args().a", "True | …"),
    ("parser.add_argument('--a', action='store_true', default=None)\nx = parser.parse_args().a", "…"),
    ("parser.add_argument('--a', action='count')\nx = parser.parse_args().a", "…"),
    ("parser.add_argument('--a', default='3', type=str)\nx = parser.parse_args().a", "'3' | …"),
    ("parser.add_argument('--a', default='3', type=int)\nx = parser.parse_args().a", "…"),
    ("flags.DEFINE_string('a', 'd', 'help')\nx = flags.FLAGS.a", "'d' | …"),
    ("flags.DEFINE_integer('a', 4, 'help')\nx = flags.FLAGS.a", "4 | …"),
    ("flags.DEFINE_bool('a', True, 'help')\nx = flags.FLAGS.a", "True | …"),
    ("parser.add_argument('--a', default='d')\nx = vars(parser.parse_args())['a']", "'d' | …"),
    ("parser.add_argument('--a', default='d')\nargs = vars(parser.parse_args())\nx = args['b']", "…"),
    ("parser.add_argument('--a', default='d')\nx = {'d': 1, 'e': 2}[parser.parse_args().a]", "1 | …"),
    ("parser.add_argument('--a', default='d')\nx = f'c{parser.parse_args().a}'", "'cd' | …"),
    ("parser.add_argument('--a', default='d')\nx = 'c' + parser.parse_args().a", "'cd' | …"),
    ("parser.add_argument('--a', default='d')\nx = parser.parse_args().a.upper()", "'D' | …"),
    # a container that a property reads
    (
        "class C:\n    def __init__(self):\n        self._kept = {}\n    @property\n    def kept(self):\n"
        "        return self._kept\nc = C()\nc.kept.update(a=1)\nx = c._kept['a']",
        "1",
    ),
    # settings that are given one by one
    ("s = argparse.Namespace()\ns.a = 1\ns.a = 2\nx = s.a", "2"),
    ("s = argparse.Namespace()\ns.a = 1\nif f(): s.a = 2\nx = s.a", "1 | 2"),
    ("s = argparse.Namespace()\ns.b = argparse.Namespace()\ns.b.a = 1\nx = s.b.a", "1"),
    ("s = argparse.Namespace()\nx = s.a", "…"),
    ("F = flags.DEFINE_enum('a', 'd', ['d', 'e'], 'help')\nx = F.value", "'d' | …"),
    ("x = flags.FLAGS.a", "…"),
    # dicts of the program's own whose items are attributes as well, and attributes from keywords
    ("class D(dict):\n  __getattr__ = dict.__getitem__\nx = D(a=1, b=D(c=2)).b.c", "2"),
    ("class D(dict):\n  def __getattr__(self, name): return self[name]\nx = D({'a': 1}).a", "1"),
    (
        "class D(dict):\n  def __init__(self, *a, **k):\n    super().__init__(*a, **k)\n    self.__dict__ = self\n"
        "x = D(a=1).a",
        "1",
    ),
    ("class D(dict):\n  __getattr__ = dict.__getitem__\nx = D(a=1).b", "…"),
    *(
        (f"import collections\nclass D({base}): pass\nd = D()\nd['a'] = 1\nx = d['a']", "1")
        for base in ("dict", "collections.UserDict", "collections.OrderedDict")
    ),
    ("class D(dict):\n  def __getattr__(self, name): return 'other'\nx = D(a=1).a", "'other'"),
    ("class D:\n  def __init__(self, **k): self.__dict__.update(k)\nx = D(a=1).a", "1"),
    ("class D:\n  def __init__(self, **k):\n    for n, v in k.items(): setattr(self, n, v)\nx = D(a=1).a", "1"),
    ("class D:\n  def __init__(self, **k):\n    for n, v in k.items(): setattr(self, n, v)\nx = D(a=1, b=2).a", "1"),
    ("class D: pass\nd, k = D(), {'a': 1, 'b': 2}\nfor n in k: setattr(d, n, k[n])\nx = d.b", "2"),
    ("class D: pass\nd = D()\nfor n, v in {'a': 1, 'b': 2}.items():\n  if v: setattr(d, n, v)\nx = d.b", "2"),
    ("class D: pass\nd, k = D(), f()\nfor n, v in k.items(): setattr(d, n, v)\nx = d.b", "…"),
    # dicts that fill themselves
    ("d = collections.defaultdict(list)\nx = d['a']", "list[]"),
    ("d = collections.defaultdict(int, a=2)\nx = d['a']", "2"),
    ("d = collections.defaultdict(int)\nx = d.get('a', 3)", "3"),
    ("d = collections.defaultdict(int)\nd.update(f())\nx = d['a']", "0 | …"),
    ("d = collections.defaultdict(f)\nx = d['a']", "…"),
    # the order of what is known
    ("x = sorted(['b', 'a'])[0]", "'a'"),
    ("x = sorted({'b': 1, 'a': 2})[-1]", "'b'"),
    ("x = sorted(['b', 'a'], reverse=True)[0]", "'b' | 'a'"),
    ("x = ['a', 'b'].index('b')", "1"),
    ("x = ['a', f()].index('b')", "…"),
    # dicts of a class
    (
        "class F:\n  held = {}\n  @classmethod\n  def put(cls, n, v): cls.held[n] = v\nF.put('a', 1)\nx = F.held['a']",
        "1",
    ),
    ("class F:\n  held = {}\nclass G(F): pass\nG.held['a'] = 1\nx = F.held['a']", "1"),
    ("class F:\n  held = {}\nF.held[f()] = 1\nF.held['a'] = 2\nx = F.held['a']", "2"),
    ("class F:\n  held = {'a': 1}\nx = F.held['b']", "…"),
    # enumerations and dataclasses
    ("x = Size.LARGE.value", "'l'"),
    ("x = Size('l').value", "'l'"),
    ("x = Size['LARGE'].value", "'l'"),
    ("x = Size[f()].value", "…"),
    ("x = Run().size.value", "'s'"),
    ("x = Run().steps", "3"),
    ("x = Run().rates[1]", "2"),
    ("x = Run('m').name", "'m'"),
    ("x = Run('m', Size.LARGE).size.value", "'l'"),
    ("x = dataclasses.replace(Run('m'), steps=4).name", "'m'"),
    ("x = dataclasses.replace(Run('m'), steps=4).steps", "4"),
    ("x = dataclasses.asdict(Run('m'))['name']", "'m'"),
    ("x = vars(Run(steps=5))['steps']", "5"),
    # texts
    ("x = 'a-{}'.format(1)", "'a-1'"),
    ("x = '{a}-{b}'.format(a='c', b=2)", "'c-2'"),
    ("x = 'Adam'.lower()", "'adam'"),
    ("x = 'mixed_float16'.startswith('mixed')", "True"),
    ("mixed = 'float32'.startswith('mixed')\nif mixed:\n    x = 1\nelse:\n    x = 2", "2"),
    ("x = '{:>9}'.format(1)", "…"),
    ("x = 'a%s-%d' % ('b', 2)", "'ab-2'"),
    ("x = 'a%d' % 2", "'a2'"),
    ("x = '%9d' % 2", "…"),
    ("x = '%s' % (1, 2)", "…"),
    ("p = ['a']\np.append('b')\nx = '_'.join(p)", "'a_b'"),
    ("x = '_'.join(['a', f()])", "…"),
    ("x = 'a:b'.split(':')[-1]", "'b'"),
    ("x = 'a:b:c'.rpartition(':')[0]", "'a:b'"),
    ("x = 'a b'.split(f())[0]", "…"),
    ("x = 'mixed_float16'[len('mixed_'):]", "'float16'"),
    ("x = 'mixed_float16'[f():]", "…"),
    # context managers
    ("with held(7): x = STATE['a']", "7"),
    ("with held(7): pass\nx = STATE['a']", "0"),
    ("with held(7) as x: pass", "7"),
    ("with held(6), held(7) as x: pass", "7"),
    ("def f():\n  with held(7): return STATE['a']\nx = f()", "7"),
    ("with either(f()) as x: pass", "1 | 2"),
    ("with either(True) as x: pass", "1"),
    ("with Opened() as o: x = o.depth", "4"),
    # short comprehensions and rows
    ("x = [int(n) for n in ('1', '2')][1]", "2"),
    ("x = {n: int(n) for n in ('1', '2')}['2']", "2"),
    ("x = {k: v for k, v in {'a': 1, 'b': 2}.items() if k != 'a'}['b']", "2"),
    ("x = dict(**{k: v for k, v in {'a': 1, 'b': 2}.items() if k != 'a'}).get('a', 3)", "3"),
    ("x = {k: v for k, v in {'a': 1, 'b': 2}.items() if f(k)}['b']", "1 | 2"),
    ("x = [[int(a) + b for a in ('1', '2')] for b in range(2)][1][0]", "2"),
    ("a, x = zip(*[(1, 2), (3, 4)])", "tuple[2, 4]"),
    ("x = {'a': 1, 'b': 2}['a' if f() else 'b']", "1 | 2"),
    ("flags.DEFINE_enum('p', 'a', ['a', 'b'], '')\nx = {'a': 1, 'b': 2}[flags.FLAGS.p]", "1 | …"),
    # what a checkpoint keeps by name, and a function that a class keeps as it is
    ("import tensorflow as tf\nx = tf.train.Checkpoint(step=7).step", "7"),
    ("import tensorflow as tf\nx = tf.train.Checkpoint(step=7).net", "…"),
    ("def f(a): return a\nclass C:\n  g = staticmethod(f)\nx = C().g(5)", "5"),
    ("import math\nx = 2 * math.pi < 6.3", "True"),
    # a hook that is a parameter's default
    ("def f(v, hook=lambda w: w + 1): return hook(v)\nx = f(1)", "2"),
]


@pytest.mark.parametrize(("snippet", "value"), VALUES)
def test_value_of_a_variable(snippet: str, value: str) -> None:
    assert _told(snippet) == value


def _told(snippet: str) -> str:
    """What is certain of it, "…" for each thing that nobody knows."""
    found = shown(f"{textwrap.dedent(PRELUDE)}{snippet}\nprint(x)")
    known = [choice for choice in options(found) if isinstance(choice, (Known, Collection))]
    unknown = [] if len(known) == len(options(found)) else ["…"]
    return " | ".join([*map(described, known), *unknown])


def test_deep_nests_of_managers_and_comprehensions_end() -> None:
    body, inside = "", "1"
    for number in range(12):
        body += f"{'  ' * number}with either(f{number}()):\n"
        inside = f"[{inside} + int('{number}') for _ in range(4)]"
    assert _told(f"{body}{'  ' * 12}x = {inside}").startswith("list[")

"""Whatever bytes a file holds, the source stage gives facts or says in words why it cannot read them."""

from __future__ import annotations

import ast
import json
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from mpdoctor import source
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.program.source_record import Problem
from mpdoctor.program.values import walk
from mpdoctor.rules.examination import mp001_source_not_readable
from mpdoctor.source import facts_from_file, facts_from_text
from mpdoctor.source.interpreter.state.events import MOST_EVENTS
from mpdoctor.source.notebooks import source_from_notebook
from mpdoctor.source.reading import Source, source_from_text

UNREADABLE = [
    ("def f(:\n  pass", "cannot read it: invalid syntax", (1, 7)),
    ("f(a b)", "cannot read it: invalid syntax", (1, 3)),
    ("x = 1\n\tif x:\n", "unexpected indent", (2, 0)),
    ("print 'hello'\n", "Python 2", (1, 1)),
    ("x = (1,\n", "'(' was never closed", (1, 5)),
    ("é = $\n", "invalid syntax", (1, 5)),
    ("x = 1\0", "null bytes", (1, 6)),
    ("x = 1\n".encode("utf-16"), "It is written in UTF-16, which Python does not read.", (1, 0)),
    ("é = 1\n".encode("utf-16"), "It is written in UTF-16", (1, 0)),
    ("# 中\nx = '中'\n".encode("utf-16-le"), "It is written in UTF-16", (1, 0)),
    ("x = 1\n".encode("utf-16-be"), "It is written in UTF-16", (1, 0)),
    ("x = 1\n".encode("utf-32"), "It is written in UTF-32", (1, 0)),
    ("x = 1\n".encode("utf-32-be"), "It is written in UTF-32", (1, 0)),
    (b"\xff\xfe\0\0\xff\xff\xff\xff", "null bytes", (1, 0)),
    (b"x\0y\0\0\xd8", "null bytes", (1, 0)),
    (b"\0\0\0\0", "null bytes", (1, 1)),
    (b"x = 1\n\xff\xfe = 2\n", "Byte 6 is not valid utf-8", (2, 0)),
    (b"# -*- coding: no-such-code -*-\n", "encoding", (1, 0)),
    (b"# coding: punycode\nx = 1\n", "punycode is none that source code is written in.", (1, 0)),
    (b"# coding: unicode_escape\nx = 1\n", "unicode_escape is none that", (1, 0)),
    (b"# coding: rot13\nk = 1\n", "rot13 is none that", (1, 0)),
    (b"x = '\xe9'\n", "Byte 5 is not valid utf-8.", (1, 0)),
    (b"#!/bin/python\n# caf\xe9\n", "Byte 19 is not valid utf-8.", (2, 0)),
    (b"\x89PNG\r\n\x1a\n\0\0", "", (1, 0)),
    ("\ud800", "cannot read it", (1, 0)),
    ("x = " + "9" * 5000, "cannot read it", (1, 0)),
    ("(" * 5000, "", (1, None)),
    ("-" * 100_000 + "1", "too deeply", (1, 0)),
    ("x = [" + "1," * 600_000 + "]", "more than 1,000,000 names, numbers and signs", (1, 0)),
    ("a;" * 600_000, "more than 1,000,000 names, numbers and signs", (1, 0)),
    ("not " * 100_000 + "1", "too deeply", (1, 0)),
]


@pytest.mark.parametrize(("text", "words", "place"), UNREADABLE, ids=range(len(UNREADABLE)))
def test_why_a_text_is_not_readable(text: str | bytes, words: str, place: tuple[int, int | None]) -> None:
    facts = facts_from_text(text, "a.py")
    assert facts.unreadable is not None
    assert words in facts.unreadable.message
    assert facts.unreadable.message.endswith((".", "?")) and "?." not in facts.unreadable.message
    found = facts.unreadable.location
    assert (found.path, found.line) == ("a.py", place[0])
    assert place[1] in (found.column, None, 0)
    assert facts.calls == facts.uses == ()


REMEDIES = [
    ("a.py", b"x = (1,\n", "Fix the line, then check again"),
    ("a.py", b"x = '\xe9'\n", "Save the file as UTF-8, or name its encoding in the first line"),
    ("a.py", b"# coding: no-such-code\n", "Save the file as UTF-8, or name its encoding in the first line"),
    ("a.py", b"x = 1\0", "Restore its text"),
    ("a.py", "x = 1\n".encode("utf-16"), "Save the file as UTF-8, then check again"),
    ("a.py", b"print 'hello'\n", "Port it to Python 3, then check again"),
    ("a.ipynb", b'{"cells": [', "Save it again as a notebook, then check again"),
    ("a.ipynb", b"", "Save it again as a notebook, then check again"),
]


@pytest.mark.parametrize(("name", "text", "remedy"), REMEDIES, ids=range(len(REMEDIES)))
def test_what_to_do_about_an_unreadable_file(tmp_path: Path, name: str, text: bytes, remedy: str) -> None:
    path = tmp_path / name
    path.write_bytes(text)
    (finding,) = mp001_source_not_readable.in_source(facts_from_file(path, name))
    assert finding.help.startswith(remedy)


READABLE = [
    b"\xef\xbb\xbfimport keras\n",
    "\ufeffimport keras\n",
    b"# -*- coding: latin-1 -*-\nimport keras; x = '\xe9'\n",
    b"import keras\r\nx = 1\r\n",
    b"import keras\rx = 1\r",
    "import keras\n\f\nx = '\u2028'\n",
    "import keras\nx = '\\d'\n",
    "import keras",
    "import keras\nx = '" + "1" * 2_000_000 + "'\n",
]


@pytest.mark.parametrize("text", READABLE, ids=range(len(READABLE)))
def test_odd_but_readable(text: str | bytes) -> None:
    facts = facts_from_text(text, "a.py")
    assert facts.unreadable is None
    assert [use.api.name for use in facts.uses] == ["keras"]


@pytest.mark.parametrize("source", ["x = [" + "1," * 30_000 + "]", "a;" * 30_000])
def test_the_cells_of_a_notebook_are_counted_together(source: str) -> None:
    cells = [{"cell_type": "code", "source": source}] * 20
    problem = source_from_notebook(json.dumps({"cells": cells, "metadata": {}}), "a.ipynb")
    assert isinstance(problem, Problem) and "more than 1,000,000 names" in problem.message


def test_a_notebook_of_empty_lists_is_not_unfolded() -> None:
    problem = source_from_notebook('{"cells": [' + "[]," * 2_100_000 + "[]]}", "a.ipynb")
    assert isinstance(problem, Problem) and "more than 2,000,000 lists" in problem.message


def test_a_declared_encoding_costs_no_more_than_its_bytes() -> None:
    """Of two million letters Python's punycode makes a text in minutes."""
    text = b"# coding: punycode\n#" + b"a" * 10**6 + b"-" + b"b9" * 10**6
    started = time.monotonic()
    assert facts_from_text(text, "a.py").unreadable is not None
    assert time.monotonic() - started < 5


@pytest.mark.parametrize("codec", ["cp1252", "euc_kr", "gb18030", "koi8-r", "mac-roman", "shift_jis", "utf-7"])
def test_encodings_of_source_code(codec: str) -> None:
    assert facts_from_text(f"# coding: {codec}\nimport keras\n".encode(), "a.py").unreadable is None


def test_lines_are_pythons_lines() -> None:
    """A form feed or a Unicode line separator ends no line for Python, nor for us."""
    facts = facts_from_text("s = '\u2028\x0b'; é = 'ü'; import keras\n\x0cimport numpy\n", "a.py")
    assert [(use.location.line, use.location.column) for use in facts.uses] == [(1, 27), (2, 9)]


def test_missing_and_forbidden_files(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere.py", tmp_path):
        facts = facts_from_file(path, "shown.py")
        assert facts.unreadable is not None
        assert facts.unreadable.message.startswith("It cannot be read: ")
        assert facts.unreadable.location.path == "shown.py"


def depth_bomb(levels: int) -> str:
    lines = ["import keras", "def f0(x): return keras.Input(x)"]
    for level in range(1, levels):
        lines.append(f"def f{level}(x): return " + " + ".join([f"f{level - 1}(x)"] * 10))
    return "\n".join([*lines, f"print(f{levels - 1}(1))"])


BOMBS = {
    "calls of calls": depth_bomb(12),
    "long sum": "x = " + " + ".join(["f(1)"] * 800),
    "doubling": "x = f()\n" + "x = (x, x)\n" * 5_000,
    "long elif": "if a: x = 0\n" + "".join(f"elif a == {i}: x = {i}\n" for i in range(800)),
    "many branches": "".join(f"if a: x{i % 50} = {i}\n" for i in range(5_000)),
    "nested loops": "".join(" " * i + f"for i{i} in range(9):\n" for i in range(90)) + " " * 90 + "f()",
    "nested functions": "".join(" " * i + f"def f{i}():\n" for i in range(90)) + " " * 90 + "f0()",
    "mutual recursion": "def a(): return b() + b()\ndef b(): return a() + a()\na()\n",
    "class of itself": "class A(A): pass\nclass A(A):\n  def f(self): return self.f()\nA().f().f()\n",
    "lambdas": "f = lambda: 1\n" + "f = (lambda g: lambda: g() + g())(f)\n" * 200 + "f()",
    "growing list": "x = [1]\n" + "x = x + x\n" * 200,
    "growing list in place": "x = []\n" + "x.append(x)\n" * 3_000,
    "growing text": "x = 'ab'\n" + "x = x + x\n" * 200,
    "growing number": "x = 9\n" + "x = x ** x\n" * 50,
    "shifted number": "x = 1 << (1 << 60)",
    "subscripts": "x = f()" + "[0]" * 2_000,
    "attributes": "x = f()" + ".a" * 2_000,
    "names of a library": "import keras\nx = keras" + ".a" * 2_000,
    "calls in a row": "x = f()" + "()" * 2_000,
    "many arguments": "f(" + ", ".join(f"g(a{i}=i)" for i in range(5_000)) + ")",
    "nested comprehension": "x = " + "[" * 80 + "y" + " for a in b]" * 80,
    "self growing": "class C:\n  def m(self):\n" + "    self.x = (self.x, self.x)\n" * 2_000 + "C().m()",
    "either of either": "def f(x):\n" + "  x = x if a else g(x)\n" * 1_000 + "  return x\nf(1)",
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_program_blows_up(name: str) -> None:
    facts = facts_from_text(BOMBS[name], "bomb.py")
    assert facts.unreadable is None
    events = (facts.calls, facts.uses, facts.reads, facts.writes, facts.operations, facts.returns)
    assert sum(map(len, events)) <= MOST_EVENTS
    for call in facts.calls[-3:]:
        assert sum(1 for _ in walk(call)) <= MOST_EVENTS


def ask_everything(facts: SourceFacts) -> None:
    """What rules ask, of every event."""
    assert isinstance(facts.shows_mixed_precision, bool)
    for call in facts.calls[:200]:
        facts.policies_at(call)
        facts.dtype_of(call)
        assert repr(call)
        assert call.method is not None
    for operation in facts.operations[:200]:
        facts.dtype_of(operation)
    for own in facts.classes:
        list(own.library_bases())


PIECES = [
    "import tensorflow as tf\n",
    "from tensorflow.keras import mixed_precision as mp, layers\n",
    "from keras.layers import *\n",
    "from . import sibling\n",
    "from .. import *\n",
    "mp.set_global_policy('mixed_float16')\n",
    "opt = mp.LossScaleOptimizer(tf.keras.optimizers.Adam(1e-3), initial_scale=2**15)\n",
    "opt.lr, opt.epsilon = 1, 2\n",
    "x += opt.lr\n",
    "class A(layers.Layer):\n    def __init__(self, **k): super().__init__(**k); self.d = Dense(1)\n"
    "    def call(self, x): return self.d(x) * tf.cast(x, self.dtype)\n",
    "class A(A): pass\n",
    "def f(a, *b, c=A(), **d): return f(*b, **d) if a else g(c)\n",
    "def g(x):\n    global opt\n    for i in x: yield i\n    opt = A(dtype='float16')(x)\n",
    "f = tf.function(f)\n",
    "x = [f(i) for i in range(3) if hasattr(i, 'lr')]\n",
    "with tf.GradientTape() as tape: loss = f(x)\n",
    "try:\n    import keras\nexcept (ImportError, A) as e:\n    keras = None\nelse:\n    x = 1\nfinally:\n    del x\n",
    "while x:\n    if x.lr: break\n    else: continue\n",
    "match x:\n    case [1, *rest]: x = rest\n    case {'a': A(d=q), **r} if q: pass\n    case _: x = 3\n",
    "x = {**x, 'a': [*x], 'b': x['a'][0]}\n",
    "@property\n@A\nasync def h(self):\n    async with self as s: await s\n    return (yield)\n",
    "lambda x=1, *, y: (x := y)\n",
    "x = f'{x!r:>{y}}' 'a'\n",
    "a, (b, *c), d.e, f[0] = x = opt\n",
    "if __name__ == '__main__':\n    f(opt)\n",
    "    return x\n",
    "  \t",
    "\\\n",
    "(",
    ")",
    "'''",
    "é𝔘\u2028",
    "nonlocal x\n",
]


@settings(max_examples=150)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join))
def test_no_mixture_of_code_makes_it_raise(text: str) -> None:
    ask_everything(facts_from_text(text, "a.py", Path(__file__).parent))


@settings(max_examples=100)
@given(st.one_of(st.text(max_size=300), st.binary(max_size=300)))
def test_no_text_and_no_bytes_make_it_raise(text: str | bytes) -> None:
    ask_everything(facts_from_text(text, "a.py"))


OWN_SOURCES = sorted(Path(source.__file__).parent.glob("*.py"))


@settings(max_examples=60)
@given(st.sampled_from(OWN_SOURCES), st.data())
def test_no_damage_to_real_code_makes_it_raise(path: Path, data: st.DataObject) -> None:
    lines = path.read_text().splitlines(keepends=True)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(lines) - 1))
        kind = data.draw(st.sampled_from(["drop", "double", "swap", "cut", "dedent", "character"]))
        if kind == "drop":
            del lines[at]
        elif kind == "double":
            lines.insert(at, lines[at])
        elif kind == "swap":
            other = data.draw(st.integers(0, len(lines) - 1))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind == "cut":
            lines[at] = lines[at][: data.draw(st.integers(0, len(lines[at])))] + "\n"
        elif kind == "dedent":
            lines[at] = lines[at].removeprefix("    ")
        else:
            place = data.draw(st.integers(0, len(lines[at])))
            lines[at] = lines[at][:place] + data.draw(st.characters()) + lines[at][place:]
    ask_everything(facts_from_text("".join(lines), "a.py"))


@pytest.mark.skipif(sys.version_info >= (3, 12), reason="it reads them")
@pytest.mark.parametrize(
    ("text", "is_new"),
    [
        ("class Box[T]:\n    pass\n", True),
        ("async def first[T](many: list[T]) -> T:\n    return many[0]\n", True),
        ("type Number = int | float\n", True),
        ("type Pair[T] = tuple[T, T]\n", True),
        ("class Box[:\n    pass\n", False),
        ('print(f"{row["name"]}: {row[\'size\']}")\n', True),
        ('print(f"slide {path.split("\\\\")[-1]}")\n', True),
        ("print(f\"{'\\\\n'.join(rows)}\")\n", True),
        ('print(f"{row" + name)\n', False),
        ('print(f"{row}" + f"{name" if)\n', False),
        ("def first(many:\n    return many[0]\n", False),
        ("type Number int\n", False),
        ("for i in range(50)\n", False),
    ],
)
def test_what_python_3_12_brought_is_called_so(text: str, is_new: bool) -> None:
    problem = source_from_text(text, "new.py")
    assert isinstance(problem, Problem)
    assert ("It is written for Python 3.12" in problem.message) is is_new


@pytest.mark.parametrize(
    ("text", "called"),
    [
        ("def f(x):\n    return g(f(1))\n", {"f", "g"}),
        ("def f(x):\n    return x\n", set()),
        ("x" * 1_000_000, set()),
        ("def " * 200_000 + "x" * 200_000, set()),
    ],
    ids=["calls", "only-defined", "one-long-word", "many-words"],
)
def test_the_names_that_a_text_calls_are_read_once(text: str, called: set[str]) -> None:
    began = time.process_time()
    assert Source("train.py", text, ast.parse("")).names_called == called
    assert time.process_time() - began < 3

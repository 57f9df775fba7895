"""Attributes that a module sets once: what counts as that."""

from __future__ import annotations

import ast

import pytest

from mpdoctor.source.fixed_attributes import AttributesSet

IN_INIT = "class A:\n def __init__(self):\n  self.on = False\n"
IN_BODY = "class A:\n on = False\n"

ONCE = [
    IN_INIT,
    IN_BODY,
    "class A(Layer):\n def __init__(this, n):\n  super().__init__()\n  this.on = 'mean'\n",
    IN_INIT + IN_BODY.replace("A", "B"),
    "class A:\n on: bool = False\n",
    "class A(Layer):\n def __init__(self):\n  self.on: bool = False\n",
    IN_INIT + " def call(self, x):\n  return x if self.on else -x\n",
    IN_BODY + "if A.on: print(A.on, A.off)\n",
]
NOT_ONCE = [
    "",
    "class A(Layer):\n on = False\n",  # a base of a library's may set it
    "@dataclass\nclass A:\n on = False\n",
    "class A(metaclass=M):\n on = False\n",
    "class A:\n def __init__(self, on=False):\n  self.on = on\n",
    "class A:\n def __init__(self, n):\n  if n:\n   self.on = False\n",
    "class A:\n def build(self):\n  self.on = False\n",
    "class A:\n def __init__(self):\n  other.on = False\n",
    IN_INIT + " def start(self):\n  self.on = True\n",
    IN_INIT + "a = A()\na.on = 3 > 2\n",
    IN_INIT + "a = A()\na.on |= True\n",
    IN_INIT + "a = A()\na.on: bool = True\n",
    IN_INIT + "a = A()\na.on, b = True, 1\n",
    IN_INIT + "for a.on in (True, False):\n run(a)\n",
    IN_INIT + "class B(A):\n on = True\n",
    IN_INIT + "class B(A):\n def __init__(self):\n  self.on = True\n",
    IN_INIT + "a = A()\nsetattr(a, name, True)\n",
    IN_INIT + "a = A()\na.__dict__.update(settings)\n",
    IN_BODY + "apply(A, {'on': True})\n",
    IN_BODY + 'parser.add("on")\n',
]


@pytest.mark.parametrize(("text", "once"), [*((text, True) for text in ONCE), *((text, False) for text in NOT_ONCE)])
def test_attributes_that_are_set_once(text: str, once: bool) -> None:
    assert AttributesSet(ast.parse(text), text).sets_once("on") is once


@pytest.mark.parametrize("text", [text for text in NOT_ONCE if "on" in text])
def test_what_is_not_set_once_may_be_set(text: str) -> None:
    assert AttributesSet(ast.parse(text), text).may_set("on")


@pytest.mark.parametrize("text", ["", "if A.on: print(A.on, 3)\n", "x = {A.on: 1}\n", "a.one = 1\n"])
def test_reading_sets_nothing(text: str) -> None:
    assert not AttributesSet(ast.parse(text), text).may_set("on")

"""The call in which a step of an eager loop is taken: found again where it can be made once more, and only there."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest
from checking import needs_keras

pytestmark = needs_keras("3")


@pytest.fixture
def call() -> Callable[[], Any]:
    found: Callable[[], Any] = importlib.import_module("mpdoctor.examiner.replay.eager_step").call_of_running_step
    return found


SCRIPT = """
import functools
import tensorflow as tf

taken = []

def keep(function):
    @functools.wraps(function)
    def around(*args, **kwargs):
        return function(*args, **kwargs)
    return around

def apply():
    taken.append(call())

def plain(x, y=2, *more, key=3, **named):
    with tf.GradientTape() as tape:
        seen.append((x, y, more, key, named))
    apply()

@keep
def decorated(x):
    with tf.GradientTape() as tape:
        seen.append(x)
    apply()

def helper(tape):
    apply()

def helped(x):
    with tf.GradientTape() as tape:
        seen.append(x)
    helper(tape)

class Loop:
    def step(self, x):
        with tf.GradientTape() as tape:
            seen.append(x)
        apply()

    @staticmethod
    def still(x):
        with tf.GradientTape() as tape:
            seen.append(x)
        apply()

def around():
    kept = 5
    def inner(x):
        with tf.GradientTape() as tape:
            seen.append((x, kept))
        apply()
    inner(1)

def bound_anew(x):
    x = x + 1
    with tf.GradientTape() as tape:
        seen.append(x)
    apply()

def bound_inside(x):
    def more():
        nonlocal x
        x += 1
    with tf.GradientTape() as tape:
        seen.append(x)
    apply()

def epoch(batches):
    for x in batches:
        with tf.GradientTape() as tape:
            seen.append(x)
        apply()

def added_up(batches):
    for x in batches:
        with tf.GradientTape() as tape:
            seen.append(x)
    apply()

def caught(batches):
    for x in batches:
        try:
            raise ValueError
        except ValueError:
            with tf.GradientTape() as tape:
                seen.append(x)
            apply()

def after_caught(x):
    try:
        raise ValueError
    except ValueError:
        pass
    with tf.GradientTape() as tape:
        seen.append(x)
    apply()

def given_iterator(batches):
    with tf.GradientTape() as tape:
        seen.append(next(batches))
    apply()

def waits(x):
    with tf.GradientTape() as tape:
        seen.append(x)
    apply()
    yield x
"""


@pytest.mark.parametrize(
    ("line", "again"),
    [
        ("plain(1)", True),
        ("plain(1, 4, 5, 6, key=7, other=8)", True),
        ("decorated(x=1)", True),
        ("helped(1)", True),
        ("Loop().step(1)", True),
        ("around()", True),
        ("added_up([1, 2])", True),
        ("after_caught(1)", True),
        ("caught([1, 2])", False),
        ("Loop.still(1)", False),  # nobody's first argument tells its class
        ("bound_anew(1)", False),
        ("bound_inside(1)", False),
        ("epoch([1, 2])", False),
        ("given_iterator(iter([1, 2]))", False),
        ("list(waits(1))", False),
        ("with tf.GradientTape() as tape: apply()", False),
    ],
)
def test_the_call_that_took_a_step_can_be_repeated(
    line: str, again: bool, call: Callable[[], Any], tmp_path: Any
) -> None:
    seen: list[Any] = []
    space: dict[str, Any] = {"call": call, "seen": seen}
    exec(compile(SCRIPT, str(tmp_path / "train.py"), "exec"), space)
    exec(compile(line, str(tmp_path / "train.py"), "exec"), space)
    repeats = [repeat for repeat in space["taken"] if repeat is not None]
    assert bool(repeats) is again
    if again:
        before = list(seen)
        repeats[0]()
        assert seen == before * 2

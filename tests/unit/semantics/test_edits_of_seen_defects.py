"""Edits of training code by the line at which the running program showed a defect."""

from __future__ import annotations

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.fixes.texts import edited
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.loops.seen_defects import cast_where_they_met, wrapped_once

pytestmark = pytest.mark.fast

IMPORT = "import tensorflow as tf\n"


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("loss = loss + penalty", "loss = tf.cast(loss, tf.float32) + penalty"),
        ("loss += penalty", "loss = tf.cast(loss, tf.float32) + penalty"),
        ("loss -= 5e-4 * tf.nn.l2_loss(w)", "loss = tf.cast(loss, tf.float32) - 5e-4 * tf.nn.l2_loss(w)"),
        ("loss -= a + b  # both", "loss = tf.cast(loss, tf.float32) - (a + b)  # both"),
        ("loss *= 2 * weight", None),
        ("loss = loss * loss + penalty", None),
    ],
)
def test_what_is_16_bit_is_cast_where_it_met_float32(line: str, after: str | None) -> None:
    text = f"{IMPORT}{line}\n"
    found = cast_where_they_met(SourceFacts("a.py", text), Location("a.py", 2), {"loss": "float16", "w": "float32"})
    assert (None if found is None else edited(text, found[1])) == (None if after is None else f"{IMPORT}{after}\n")


@pytest.mark.parametrize(
    ("line", "after"),
    [
        ("if mixed:\n    opt = LossScaleOptimizer(opt)\n", "if mixed:\n    pass\n"),
        ("opt = 1\nopt = LossScaleOptimizer(made(), initial_scale=8)\n", "opt = 1\nopt = made()\n"),
        ("opt = 1\nopt = LossScaleOptimizer(inner_optimizer=LossScaleOptimizer(made()))\n", None),
    ],
)
def test_the_outer_wrapper_is_taken_off_where_it_was_made(line: str, after: str | None) -> None:
    found = wrapped_once(SourceFacts("a.py", line), Location("a.py", 2))
    assert (None if found is None else edited(line, found[1])) == after

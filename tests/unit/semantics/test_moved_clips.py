"""A statement that clips gradients, moved behind the branch that unscales them: where nothing else hangs on it."""

from __future__ import annotations

import pytest

from mpdoctor.facts.location import Location
from mpdoctor.fixes.texts import edited
from mpdoctor.program.source_facts import SourceFacts
from mpdoctor.semantics.source.edits.loops.moved_clips import clipped_behind_branch

pytestmark = pytest.mark.fast

STEP = """def step(tape):
    grads = tape.gradient()
    {clip}
    if mixed:
        {branch}
    apply(grads)
"""
CLIP = "grads, norm = tf.clip_by_global_norm(grads, 1.0)"
UNSCALE = "grads = opt.get_unscaled_gradients(grads)"


def moved(text: str) -> str | None:
    edits = clipped_behind_branch(SourceFacts("a.py", text), Location("a.py", 3, 5))
    return edited(text, edits) if edits else None


def test_it_stands_behind_the_branch_and_its_comment() -> None:
    text = STEP.format(clip=CLIP, branch=f"{UNSCALE}  # in their own size")
    lines = text.splitlines(keepends=True)
    assert moved(text) == "".join([*lines[:2], *lines[3:5], lines[2], *lines[5:]])


@pytest.mark.parametrize(
    ("clip", "branch"),
    [
        (CLIP, f"{UNSCALE}\n        log(norm)"),
        (CLIP, f"{UNSCALE}\n    else:\n        grads = other(grads)"),
        (CLIP, "other = opt.get_unscaled_gradients(grads)"),
        (CLIP, "grads = opt.get_unscaled_gradients(kept)"),
        (CLIP, "grads = other(grads)"),
        ("clipped, norm = tf.clip_by_global_norm(grads, 1.0)", UNSCALE),
        (f"{CLIP}\n    log(norm)", UNSCALE),
    ],
)
def test_it_stays_where_something_else_may_hang_on_it(clip: str, branch: str) -> None:
    assert moved(STEP.format(clip=clip, branch=branch)) is None

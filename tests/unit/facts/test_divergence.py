"""Losses of a training in 16 bits held against those in float32, of any lengths: a crafted file may lack some."""

from __future__ import annotations

import itertools

import pytest

from mpdoctor.facts.divergence import DivergenceFacts

pytestmark = pytest.mark.fast

LENGTHS = (0, 1, 20, 39, 40, 41, 60)


@pytest.mark.parametrize(("half", "single", "rounded"), list(itertools.product(LENGTHS, repeat=3)))
def test_losses_of_any_length_are_compared_or_not(half: int, single: int, rounded: int) -> None:
    divergence = DivergenceFacts(
        "float16",
        steps=tuple(range(60)),
        half=(2.0,) * half,
        single=tuple(1.0 / (step + 1) for step in range(single)),
        rounded=tuple(1.0 / (step + 1) for step in range(rounded)),
        rounded_throughout=tuple(1.0 / (step + 1) for step in range(rounded)),
    )
    reaches_the_last_third = min(half, single, rounded) > 40
    assert divergence.diverges is reaches_the_last_third

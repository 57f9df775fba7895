"""Generated scripts that `mend` mends by float32 layers alone: no smaller set of its layers trains in plain Keras.

pytest -m slow tests/truth/test_smallest.py --whole-tables
"""

from __future__ import annotations

from pathlib import Path

import pytest
from checking import needs_keras

from .generator import script_from_seed
from .mends import mends
from .smallest import smallest

# (seed, number) of those in docs/measurements.md with at most four layers: their smaller sets take under a minute.
MENDED_BY_LAYERS = [(9, 12), (9, 17), (9, 19), (9, 23), (9, 28), (9, 34), (11, 21)]


@pytest.mark.slow
@pytest.mark.sampled(1)
@needs_keras("3")
@needs_keras("tf_keras")
@pytest.mark.parametrize(("seed", "number"), MENDED_BY_LAYERS)
def test_no_smaller_set_of_layers_does(seed: int, number: int, tmp_path: Path) -> None:
    (mended,) = mends([script_from_seed(seed, number)], tmp_path / "scripts", tmp_path / "mended.jsonl")
    assert mended.mended and mended.trains, mended
    (row,) = smallest([mended], tmp_path / "scripts", tmp_path / "smallest.jsonl")
    assert len(row.layers) <= 4 and row.written, row
    assert not row.smaller, row

"""Weights that layers add while a file is loaded: as many as its size allows, whatever Keras makes of a refusal."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved.archives import SavedFile
from mpdoctor.examiner.saved.hdf5_growth import HARMLESS
from mpdoctor.examiner.saved.weight_growth import weights_within_limit

pytestmark = pytest.mark.fast


def keras() -> Any:
    class Layer:
        def add_weight(self, shape: Any = None, name: str = "") -> Any:
            return shape

    return SimpleNamespace(Layer=Layer)


def loaded(folder: Path, shapes: list[Any], hides: bool = False) -> list[Any]:
    """What the layers of a loaded file get that ask for these shapes. `hides`: Keras raises its own error instead."""
    (folder / "model.keras").write_bytes(b"1234")
    held, library = SavedFile(str(folder / "model.keras"), "keras", {}), keras()
    plain = library.Layer.add_weight
    try:
        with weights_within_limit(library, held):
            try:
                return [library.Layer().add_weight(shape, name="kernel") for shape in shapes]
            except Unusable:
                if hides:
                    raise TypeError("could not be deserialized") from None
                raise
    finally:
        assert library.Layer.add_weight is plain


@pytest.mark.parametrize("shapes", [[(HARMLESS // 4,)], [None, 7, (), (3, 4)], [(None, 4), ("four",)]])
def test_what_the_size_allows_is_made(shapes: list[Any], tmp_path: Path) -> None:
    assert loaded(tmp_path, shapes) == shapes


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("shapes", [[(HARMLESS // 4 + 1,)], [(2**20, 200), (2**20, 200)], [2**40], [[2**20, 2**20]]])
def test_more_is_refused(shapes: list[Any], hides: bool, tmp_path: Path) -> None:
    with pytest.raises(
        Unusable, match=r"^model.keras was not loaded: its layers ask for weights of [\d,.]+ GiB, .* 4 "
    ):
        loaded(tmp_path, shapes, hides)

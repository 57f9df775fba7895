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


def keras(is_metric_a_layer: bool) -> Any:
    class Layer:
        def add_weight(self, shape: Any = None, name: str = "") -> Any:
            return shape

    class MetricOfItsOwn:
        def add_variable(self, shape: Any, name: str = "") -> Any:
            return shape

    class MetricLayer(Layer):
        def add_variable(self, shape: Any, name: str = "") -> Any:
            return self.add_weight(shape, name=name)

    metric = MetricLayer if is_metric_a_layer else MetricOfItsOwn
    return SimpleNamespace(Layer=Layer, module=SimpleNamespace(metrics=SimpleNamespace(Metric=metric)))


def loaded(folder: Path, shapes: list[Any], hides: bool = False, metric: str = "") -> list[Any]:
    """What the layers of a loaded file get that ask for these shapes, or its metrics. `hides`: Keras raises its own
    error instead."""
    (folder / "model.keras").write_bytes(b"1234")
    held, library = SavedFile(str(folder / "model.keras"), "keras", {}), keras(metric == "layer")
    plain, variables = library.Layer.add_weight, library.module.metrics.Metric.add_variable
    try:
        with weights_within_limit(library, held):
            try:
                if metric:
                    return [library.module.metrics.Metric().add_variable(shape, name="total") for shape in shapes]
                return [library.Layer().add_weight(shape, name="kernel") for shape in shapes]
            except Unusable:
                if hides:
                    raise TypeError("could not be deserialized") from None
                raise
    finally:
        assert library.Layer.add_weight is plain and library.module.metrics.Metric.add_variable is variables


@pytest.mark.parametrize("shapes", [[(HARMLESS // 4,)], [None, 7, (), (3, 4)], [(None, 4), ("four",)]])
def test_what_the_size_allows_is_made(shapes: list[Any], tmp_path: Path) -> None:
    assert loaded(tmp_path, shapes) == shapes


@pytest.mark.parametrize("hides", [False, True])
@pytest.mark.parametrize("shapes", [[(HARMLESS // 4 + 1,)], [(2**20, 200), (2**20, 200)], [2**40], [[2**20, 2**20]]])
def test_more_is_refused(shapes: list[Any], hides: bool, tmp_path: Path) -> None:
    with pytest.raises(
        Unusable, match=r"^model.keras was not loaded: its layers and metrics ask for weights of [\d,.]+ GiB, .* 4 "
    ):
        loaded(tmp_path, shapes, hides)


@pytest.mark.parametrize("metric", ["layer", "of its own"])
def test_metrics_count_once(tmp_path: Path, metric: str) -> None:
    assert loaded(tmp_path, [(HARMLESS // 4,)], metric=metric) == [(HARMLESS // 4,)]
    with pytest.raises(Unusable, match="layers and metrics ask for weights"):
        loaded(tmp_path, [(HARMLESS // 8,), (HARMLESS // 8 + 1,)], metric=metric)

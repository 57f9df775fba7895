"""Ends of the rooms that `check --reference` recommends, tried in plain Keras; and how that is judged."""

from __future__ import annotations

import json
from dataclasses import asdict
from itertools import count
from pathlib import Path

import pytest
from checking import needs_keras

from .results import rows_from_files
from .rooms import Room, _judged, of_battery, of_generator, of_precision, room_of, told

GENERATED = [(9, 0), (9, 1), (9, 3), (3, 0), (3, 1), (3, 3)]  # (seed, which of its healthy scripts)
FITS = Room("a", "3", "", 2.0**-4, 2.0**14, (0.01, 0.0), (0, 0), 0.08, 50, 0)


@pytest.mark.slow
@pytest.mark.sampled(1)
@needs_keras("3")
@needs_keras("tf_keras")
@pytest.mark.parametrize(("seed", "place"), GENERATED)
def test_a_room_holds_at_both_ends(seed: int, place: int, tmp_path: Path) -> None:
    models = of_generator(seed, count(), tmp_path)
    model = next(model for number, model in enumerate(models) if number == place)
    row = room_of(model, tmp_path)
    assert row.holds, row


@pytest.mark.slow
@pytest.mark.sampled(1)
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("3", "tf_keras")])
@pytest.mark.parametrize("seed", range(4))
def test_a_room_of_a_healthy_training_holds(seed: int, keras: str, tmp_path: Path) -> None:
    (model,) = (model for model in of_precision([seed], tmp_path) if model.keras == keras)
    row = room_of(model, tmp_path)
    assert row.holds is not False, row


@pytest.mark.parametrize(
    ("room", "holds"),
    [
        (FITS, True),
        (Room("a", "3", "no loss scale fits"), None),
        (Room("a", "3", "", 1.0, 4.0, (0.05, 0.0)), False),
        (Room("a", "3", "", 1.0, 4.0, (0.0, 0.0), (0, 1)), False),
        (Room("a", "3", "", 1.0, 4.0, trained=50, skipped=1), False),
    ],
)
def test_a_room_holds_where_nothing_is_lost(room: Room, holds: bool | None) -> None:
    assert room.holds is holds
    assert ("does not hold" in told([room])) is (holds is False)


def test_what_is_lost_is_counted_among_variables_that_matter() -> None:
    np = pytest.importorskip("numpy")
    single = [np.ones(10), np.full(4, 1e-6), np.array([3.0, 0.0])]
    half = [np.array([0.0] + [1.0] * 9), np.zeros(4), np.array([np.inf, 0.0])]
    assert _judged(half, single) == (0.1, 1)


def test_counts_are_read_back(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(asdict(FITS)) + "\n", encoding="utf-8")
    (row,) = rows_from_files(Room, [path])
    assert row.holds
    text = told([row])
    assert "| a | 3 | 2^-4 to 2^14 | 1.0% and 0.0% | 0 and 0 | 0 of 50 |  |" in text
    assert "1 of 1 hold (1 in 3, 0 in tf_keras); 0 have none, or were not tried" in text
    assert "more than said in 1" in text


def test_healthy_trainings_are_written_in_both_kerases(tmp_path: Path) -> None:
    models = list(of_precision([0, 1], tmp_path))
    assert [model.keras for model in models] == ["3", "tf_keras"] * 2
    assert all("mixed_float16" in model.path.read_text(encoding="utf-8") for model in models)


def test_the_batterys_healthy_scripts_are_tried_in_each_keras_of_theirs() -> None:
    models = of_battery()
    assert {"3", "tf_keras"} == {model.keras for model in models}
    assert any(model.arguments for model in models)

"""Measured steps of a run file: what is read of them, whatever the lines hold, and how they are shown."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_schemas import assert_fits

from mpdoctor.judging.recorded_runs import diagnosis_from_series
from mpdoctor.recorded.run_facts import MeasuredPart, RunSeries
from mpdoctor.recorded.run_reader import series_from_bytes
from mpdoctor.reporters.json import render
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.reporters.rendering import DISARMED, report_from_diagnosis

ROOT = Path(__file__).parents[3]
START = {"mpdoctor_run": 1, "series": 0, "step": 0, "initial_scale": 32768, "model": "m"}
ROW = ["dense", "float16", 24, 0, 0.5, 0]
GRADIENT = ["dense/kernel", "float16", 3.5, 0, 0.25, 0.125]


def measured(step: int, layers: object, gradients: object = ()) -> dict[str, object]:
    return {"event": "measured", "series": 0, "step": step, "layers": layers, "gradients": list(gradients)}  # type: ignore[call-overload]


def series_of(*lines: object) -> RunSeries:
    content = "".join(json.dumps(line) + "\n" for line in (START, [0, 3000, 0, 32768], *lines))
    (series,) = series_from_bytes(content.encode(), "run.mpdoctor")
    return series


SHOWN = (
    measured(1000, [["first", "float16", 10, 0, 0, 0], ["last", "float32", 9e4, 0, 0, 0]], [GRADIENT]),
    measured(2000, [["first", "float16", 6e4, 0, 0.5, 0], ["last", "float32", 1, 0, 0, 0]], [GRADIENT]),
    measured(3000, [["first", "float16", 200, 0.25, 0, 0], ["last", "float32", 2, 1, 0, 0]], [GRADIENT]),
)


def test_steps_are_put_together_by_layer_and_gradient() -> None:
    series = series_of(*SHOWN)
    assert (series.measured_steps, series.passed_over) == (3, 0)
    assert series.measured == (
        MeasuredPart("first", "layer", "float16", 10, 200, 6e4, 2000, 0.5, 0, 0.25, 3000),
        MeasuredPart("last", "layer", "float32", 9e4, 2, 9e4, 1000, 0, 0, 1, 3000),
        MeasuredPart("dense/kernel", "gradient", "float16", 3.5, 3.5, 3.5, 1000, 0.25, 0.125),
    )


@pytest.mark.parametrize(
    "line",
    [
        measured(1000, "dense"),
        measured(1000, [ROW[:5]]),
        measured(1000, [[*ROW, 0]]),
        measured(1000, [["dense", 16, 24, 0, 0, 0]]),
        measured(1000, [["dense", "float16", -1, 0, 0, 0]]),
        measured(1000, [["dense", "float16", "inf", 0, 0, 0]]),
        measured(1000, [["dense", "float16", 1, 1.5, 0, 0]]),
        measured(1000, [["dense", "float16", True, 0, 0, 0]]),
        measured(1000, [ROW] * 257),
        {key: value for key, value in measured(1000, [ROW]).items() if key != "gradients"},
        {**measured(1000, [ROW]), "series": 7},
        {**measured(1000, [ROW]), "step": -1},
    ],
)
def test_a_line_that_no_training_wrote_is_passed_over(line: object) -> None:
    series = series_of(line, measured(2000, [ROW]))
    assert (series.measured_steps, series.passed_over) == (1, 1)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.just([])


@given(st.lists(st.lists(VALUES, min_size=5, max_size=7) | VALUES, max_size=4))
@settings(max_examples=100, deadline=None)
def test_whatever_stands_in_a_line_is_shown(rows: list[Any]) -> None:
    series = series_of(measured(1000, rows, [GRADIENT]))
    report = report_from_diagnosis(diagnosis_from_series(Path("run"), (series,), ""), "terminal")
    assert "\x1b" not in report
    assert render(diagnosis_from_json(render(diagnosis_from_series(Path("run"), (series,), ""))))


def test_of_very_many_layers_no_more_are_kept() -> None:
    lines = [measured(at, [[f"{at}_{n}", "float16", 1, 0, 0, 0] for n in range(200)]) for at in range(1, 20)]
    assert len(series_of(*lines).measured) == 1024


def test_the_terminal_shows_the_largest_and_what_underflows() -> None:
    shown = report_from_diagnosis(diagnosis_from_series(Path("run"), (series_of(*SHOWN),), ""), "terminal")
    told = " ".join(shown.split())
    for said in (
        "measured 3 steps of this training",
        "inf or NaN output of first: up to 25% of it, in step 3,000 first output of last: up to 100% of it",
        "largest output of first: 60,000 in step 2,000, 0.92 of float16's largest (10 → 200)",
        "underflow gradient of dense/kernel: up to 12% subnormal in float16, 25% 0",
    ):
        assert said in told, told
    assert "measured" not in report_from_diagnosis(diagnosis_from_series(Path("r"), (series_of(),), ""), "terminal")


@pytest.mark.parametrize("form", [form for form in DISARMED if form != "json"])
def test_every_format_takes_names_as_they_are(form: str) -> None:
    series = series_of(measured(1000, [["<b>\x1b[31m", "float16", 1, 0, 0, 0]]))
    report = report_from_diagnosis(diagnosis_from_series(Path("run"), (series,), ""), form)
    assert "\x1b[31m" not in report
    assert "<b>" not in report or form not in ("html", "svg", "junit")


def test_json_of_measured_steps_is_read_back_as_it_was() -> None:
    text = render(diagnosis_from_series(Path("run"), (series_of(*SHOWN),), "mpdoctor show"))
    assert render(diagnosis_from_json(text)) == text
    told = json.loads(text)
    assert told["runs"][0]["series"]["measured"][0] == {
        **dataclasses.asdict(series_of(*SHOWN).measured[0]),
        "name": "first",
    }
    assert_fits(told)


def test_a_training_that_cannot_be_measured_says_why() -> None:
    series = series_of({"event": "not_measured", "text": "runs eagerly", "series": 0, "step": 3000})
    shown = report_from_diagnosis(diagnosis_from_series(Path("run"), (series,), ""), "terminal")
    assert "no step is measured any more: the step runs eagerly" in shown

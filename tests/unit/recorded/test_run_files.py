"""Run files: what the monitor appends, what the tool reads of it, whatever the file holds, and the verdict on it."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from own_schemas import assert_fits

from mpdoctor.cli import main
from mpdoctor.finding import Verdict
from mpdoctor.judging.recorded_runs import diagnosis_from_series, judged, thinned, verdict_from_series
from mpdoctor.loss_scale import LossScale, keras2, keras3
from mpdoctor.project.regular_files import bytes_from_file
from mpdoctor.recorded.run_facts import RunSeries, StepsRow
from mpdoctor.recorded.run_reader import NotARunFile, series_from_bytes, series_from_files
from mpdoctor.reporters.json import render
from mpdoctor.reporters.json.saved_diagnosis import diagnosis_from_json
from mpdoctor.reporters.rendering import DISARMED, report_from_diagnosis

ROOT = Path(__file__).parents[3]
START = {"initial_scale": 32768, "scale": 32768, "model": "m", "optimizer": ["LossScaleOptimizer", "Adam"]}
MEGABYTE = 1 << 20


def alone(name: str) -> ModuleType:
    """A module of the training room without its package, which imports TensorFlow."""
    path = ROOT / "mpdoctor" / "training" / "monitoring" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(f"alone_{name}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


run_file = alone("run_file")


def rows_of(machine: LossScale, finite: Iterable[bool], every: int) -> Iterator[tuple[int, int, float, float, float]]:
    """What readings every so many steps of this machine tell."""
    state, steps, skipped, before = machine.start(), 0, 0, machine.initial_scale
    for is_finite in finite:
        state = machine.step(state, is_finite).state
        steps, skipped = steps + 1, skipped + (not is_finite)
        if steps == every:
            yield steps, skipped, state.scale, min(before, state.scale), max(before, state.scale)
            steps, skipped, before = 0, 0, state.scale


def written(path: Path, rows: Iterable[tuple[int, int, float, float, float]], **start: object) -> RunSeries:
    file = run_file.RunFile(path)
    file.start(0, {**START, **start})
    for row in rows:
        file.steps(0, run_file.Row(*row))
    file.write_all()
    (series,) = series_from_files(path, bytes_from_file)
    return series


# --- what is written is read --------------------------------------------------------------------------------------
@given(st.lists(st.integers(0, 5), max_size=60), st.integers(0, 2**32))
@settings(max_examples=60, deadline=None)
def test_steps_skips_and_scales_are_read_as_they_were(tmp_path_factory, kinds, seed) -> None:
    finite = [value for kind in kinds for value in ([True] * 7, [False] * 7, [True, False] * 4)[kind % 3]]
    path = tmp_path_factory.mktemp("run") / "run.mpdoctor"
    rows = list(rows_of(keras3(32768.0, 20), finite, 1 + seed % 5))
    series = written(path, rows)
    assert series.steps == sum(row[0] for row in rows)
    assert series.skipped == sum(row[1] for row in rows)
    if rows:
        assert series.rows[-1].scale == rows[-1][2]
        assert min(row.low for row in series.rows) == min(row[3] for row in rows)


def test_steps_without_events_are_one_line(tmp_path: Path) -> None:
    path = tmp_path / "run.mpdoctor"
    written(path, [(20, 0, 32768.0, 32768.0, 32768.0)] * 100)
    assert path.read_text().splitlines()[1:] == ["[0,2000,0,32768]"]


def growing() -> Iterator[tuple[int, int, float, float, float]]:
    """The scale grows every 2000 steps, and the next one is skipped."""
    for _ in range(4950):
        yield from [(20, 0, 32768.0, 32768.0, 32768.0)] * 100
        yield 20, 1, 32768.0, 32768.0, 65536.0


def random_rows() -> Iterator[tuple[int, int, float, float, float]]:
    """Another scale in each reading: no training does so."""
    draw = random.Random(0)
    for _ in range(500_000):
        scale = 2.0 ** draw.randrange(-30, 30)
        yield 20, draw.randrange(21), scale, scale / 2, scale * 2


@pytest.mark.slow
@pytest.mark.parametrize("rows", [growing, random_rows])
def test_ten_million_steps_take_less_than_five_megabytes(rows, tmp_path: Path) -> None:
    series = written(tmp_path / "run.mpdoctor", rows())
    assert series.steps >= 9_999_000
    assert (tmp_path / "run.mpdoctor").stat().st_size < 5 * MEGABYTE


def test_rows_get_coarser_as_there_are_more(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_file, "ROWS_BEFORE_COARSER", 50)
    rows = [(1, at % 2, float(1 + at % 3), 1.0, 3.0) for at in range(5000)]
    series = written(tmp_path / "run.mpdoctor", rows)
    assert (series.steps, series.skipped) == (5000, 2500)
    assert len(series.rows) < 300


# --- a job that ended anywhere --------------------------------------------------------------------------------------
def test_a_file_cut_anywhere_is_read_up_to_there(tmp_path: Path) -> None:
    path = tmp_path / "run.mpdoctor"
    whole = written(path, [(5, at % 3, 2.0**at, 2.0**at, 2.0**at) for at in range(1, 9)])
    content = path.read_bytes()
    for length in range(content.index(b"\n") + 1, len(content)):
        (series,) = series_from_bytes(content[:length], "run")
        assert series.rows == whole.rows[: len(series.rows)]
        assert series.passed_over == (content[length - 1 : length] != b"\n")


def test_a_training_that_starts_again_goes_on_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "run.mpdoctor"
    written(path, [(20, 1, 16384.0, 16384.0, 32768.0)])
    with path.open("ab") as file:
        file.write(b"[0,4")  # killed within a line
    series = written(path, [(30, 0, 16384.0, 16384.0, 16384.0)], scale=16384)
    assert (series.steps, series.skipped, series.passed_over) == (50, 1, 1)
    assert [event.kind for event in series.events] == ["started"]
    assert path.read_text().splitlines()[-1] == "[0,50,0,16384]"


def test_another_file_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("mine\n")
    with pytest.raises(ValueError, match="is no run file"):
        run_file.RunFile(path)
    assert path.read_text() == "mine\n"


def test_what_is_no_file_is_refused_at_once(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    for path in (tmp_path, pipe):
        with pytest.raises(ValueError, match="no file: give LossScaleMonitor another path"):
            run_file.RunFile(path)


def test_folders_on_the_way_are_made(tmp_path: Path) -> None:
    assert written(tmp_path / "runs" / "first" / "run.mpdoctor", [(20, 0, 4.0, 4.0, 4.0)]).steps == 20


def test_a_file_that_cannot_be_written_is_told_once_and_ends_nothing(tmp_path: Path) -> None:
    (tmp_path / "taken").write_text("")
    with pytest.warns(UserWarning, match="goes on without it") as told:
        file = run_file.RunFile(tmp_path / "taken" / "run.mpdoctor")
        file.start(0, START)
        file.steps(0, run_file.Row(1, 0, 1.0, 1.0, 1.0))
        file.write_all()
    assert len(told) == 1


@pytest.mark.parametrize(
    ("config", "worker"),
    [
        ("", 0),
        ("{", 0),
        ('{"task": {"type": "worker", "index": 2}, "cluster": {"worker": []}}', 2),
        ('{"task": {"type": "worker", "index": 0}, "cluster": {"chief": [], "worker": []}}', 1),
        ('{"task": {"type": "chief", "index": 0}, "cluster": {"chief": []}}', 0),
    ],
)
def test_each_worker_has_a_file(config: str, worker: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TF_CONFIG", config)
    assert run_file.worker_number() == worker
    assert run_file.path_of_worker("a/run.mpdoctor", 2) == Path("a/run.worker2.mpdoctor")


def test_the_home_directory_may_be_meant(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert run_file.path_of_worker("~/runs/run.mpdoctor", 0) == tmp_path / "runs" / "run.mpdoctor"


def test_files_of_workers_are_shown_together(tmp_path: Path) -> None:
    row = [(20, 0, 1024.0, 1024.0, 1024.0)]
    written(tmp_path / "run.mpdoctor", row)
    for worker in (10, 2):
        path = run_file.path_of_worker(tmp_path / "run.mpdoctor", worker)
        file = run_file.RunFile(path)
        file.start(0, {**START, "worker": worker})
    (tmp_path / "run.worker3.mpdoctor").write_text("something else")
    (tmp_path / "other.worker1.mpdoctor").write_text("something else")
    assert [series.worker for series in series_from_files(tmp_path / "run.mpdoctor", bytes_from_file)] == [0, 2, 10]


# --- whatever a file holds ------------------------------------------------------------------------------------------
HEAD = json.dumps({"mpdoctor_run": 1, "series": 0, "step": 0, **START}, separators=(",", ":")).encode()
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.sampled_from(["inf", "nan"]),
    lambda inner: st.lists(inner, max_size=6) | st.dictionaries(st.text(max_size=6), inner, max_size=4),
    max_leaves=8,
)
ROWS = st.lists(st.integers(-2, 9) | st.floats() | st.sampled_from(["inf", True, None]), min_size=3, max_size=7)
EVENTS = st.fixed_dictionaries(
    {"event": st.sampled_from(["stuck", "epoch", "end", "of nothing"]), "series": st.integers(-1, 1)},
    optional={"step": st.integers(-1, 99), "text": JSON, "layer": JSON, "line": JSON, "file": JSON, "since": JSON},
)
LINES = st.one_of(
    st.binary(max_size=20), *(kind.map(lambda value: json.dumps(value).encode()) for kind in (JSON, ROWS, EVENTS))
)


@given(st.lists(LINES, max_size=12))
@settings(max_examples=150, deadline=None)
def test_any_lines_are_read_as_a_run_that_every_format_shows(lines: list[bytes]) -> None:
    series = series_from_bytes(b"\n".join([HEAD, *lines, b""]), "run")
    for of_one in series:
        assert 0 <= of_one.skipped <= of_one.steps
        assert all(row.low <= row.scale <= row.high for row in of_one.rows)
    diagnosis = diagnosis_from_series(Path("run.mpdoctor"), series, "mpdoctor show run.mpdoctor")
    for form in ("terminal", "json", "concise"):
        report_from_diagnosis(diagnosis, form)


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "is no run file"),
        (b"\x80\x04pickle", "is no run file"),
        (b'{"mpdoctor_run":2,"series":0,"step":0,"initial_scale":1}\n', "version 2"),
        (b'{"mpdoctor_run":1,"series":0,"step":0}\n', "none of its lines"),
        (b'{"mpdoctor_run":' + b"[" * 60_000 + b"\n", "none of its lines"),
    ],
)
def test_what_is_no_run_file_is_refused(content: bytes, said: str) -> None:
    with pytest.raises(NotARunFile, match=said):
        series_from_bytes(content, "run")


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "run.mpdoctor"
    with path.open("wb") as file:
        file.write(HEAD + b"\n")
        file.truncate(1 << 40)  # with a hole
    with pytest.raises(NotARunFile, match="is larger than"):
        series_from_files(path, bytes_from_file)


# --- the verdict ------------------------------------------------------------------------------------------------------
def recorded(machine: LossScale, finite: Iterable[bool], tmp_path: Path, every: int = 20) -> RunSeries:
    return written(tmp_path / "run.mpdoctor", rows_of(machine, finite, every), floor=machine.floor)


@pytest.mark.parametrize(
    ("machine", "finite", "verdict"),
    [
        (keras3(32768.0, 2000), [True] * 400, Verdict.HEALTHY),
        (keras3(32768.0, 2000), [False] * 12 + [True] * 388, Verdict.HEALTHY),  # it settles
        (keras3(32768.0, 100), ([True] * 100 + [False]) * 40, Verdict.HEALTHY),  # it grows, and a step is skipped
        (keras3(32768.0, 2000), [True] * 300 + [False] * 60, Verdict.COLLAPSING),
        (keras2(32768.0, 2000), [True] * 300 + [False] * 60, Verdict.STUCK),
        (keras2(32768.0, 2000), [True] * 300 + [False] * 60 + [True] * 140, Verdict.OVERFLOWING),  # it has recovered
        (keras3(32768.0, 3), [True] * 4000, Verdict.COLLAPSING),  # it grows to inf
        (keras3(32768.0, 2000), [True, True, False] * 200, Verdict.COLLAPSING),
        (keras2(32768.0, 2000), [True, True, False] * 200, Verdict.OVERFLOWING),
        (keras3(32768.0, 2000), [True] * 5, Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict_is_on_how_the_run_ends(machine, finite, verdict, tmp_path: Path) -> None:
    for every in (1, 20) if len(finite) > 20 else (1,):
        path = tmp_path / str(every)
        path.mkdir()
        assert verdict_from_series(recorded(machine, finite, path, every))[0] is verdict


def test_thinned_rows_have_the_same_steps_and_extremes() -> None:
    rows = [StepsRow(at, 1, at % 2, float(at), float(at) / 2, float(at) * 2) for at in range(1, 2346)]
    fewer = thinned(rows, 100)
    assert len(fewer) == 100
    assert sum(row.steps for row in fewer) == 2345
    assert sum(row.skipped for row in fewer) == sum(row.skipped for row in rows)
    assert (fewer[-1].last, fewer[-1].scale, fewer[0].low, fewer[-1].high) == (2345, 2345.0, 0.5, 4690.0)


# --- show -------------------------------------------------------------------------------------------------------------
def stuck_run(tmp_path: Path) -> Path:
    path = tmp_path / "run.mpdoctor"
    written(path, rows_of(keras2(32768.0, 2000), [True] * 300 + [False] * 60, 20), floor=1.0, keras="tf_keras 2.21.0")
    with path.open("a") as file:
        for event in (
            {"event": "epoch", "epoch": 0, "series": 0, "step": 360},
            {
                "event": "stuck", "series": 0, "step": 320, "since": 301, "epoch": 0, "layer": "first <b>",
                "layer_class": "Dense", "kept": "run.batch.npz",
                "text": "Nothing is trained. In the replayed batch the output of layer 'first <b>' is the first.",
            },
        ):  # fmt: skip
            file.write(json.dumps(event) + "\n")
    return path


@pytest.mark.parametrize("form", [form for form in DISARMED if form != "json"])
def test_every_format_names_the_layer(form: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["show", str(stuck_run(tmp_path)), "--output-format", form])
    shown = capsys.readouterr().out
    assert ended.value.code == 1
    assert "first" in shown and "MP902" in shown
    assert "<b>" not in shown or form not in ("html", "svg", "junit")


def test_json_of_a_run_is_read_back_as_it_was(tmp_path: Path) -> None:
    path = stuck_run(tmp_path)
    text = render(diagnosis_from_series(path, series_from_files(path, bytes_from_file), "mpdoctor show"))
    assert render(diagnosis_from_json(text)) == text
    (run,) = json.loads(text)["runs"]
    assert (run["verdict"], run["series"]["rows"][-1]["last"]) == ("stuck", 360)
    assert_fits(json.loads(text))


def test_the_terminal_shows_course_events_and_that_it_has_no_end(tmp_path: Path) -> None:
    path = stuck_run(tmp_path)
    shown = report_from_diagnosis(
        diagnosis_from_series(path, series_from_files(path, bytes_from_file), "mpdoctor show"), "terminal"
    )
    for said in ("32768 → 1", "step 301, epoch 1", "no end recorded", "60 of 360 steps", "✗", "tf_keras 2.21.0"):
        assert said in shown


def test_a_scale_that_ends_where_it_began_is_told_with_its_extremes(tmp_path: Path) -> None:
    path = tmp_path / "run.mpdoctor"
    rows = [(20, 0, 32768.0, 32768.0, 32768.0), (20, 1, 32768.0, 16384.0, 65536.0)]
    series = written(path, rows, keras="keras 3.15.1", tensorflow="2.21.0")
    diagnosis = diagnosis_from_series(path, [series], "mpdoctor show")
    shown = report_from_diagnosis(diagnosis, "terminal")
    assert "loss scale  32768 → 32768, from 16384 to 65536 on the way" in shown
    keras = diagnosis.targets[0].keras
    assert (keras.version, keras.tensorflow) == ("3.15.1", "2.21.0") and "recorded training" in keras.because


def test_a_healthy_run_has_no_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded(keras3(32768.0, 2000), [True] * 400, tmp_path)
    with pytest.raises(SystemExit) as ended:
        main(["show", str(tmp_path / "run.mpdoctor")])
    assert ended.value.code == 0
    assert "nothing wrong: 400 steps, none skipped" in capsys.readouterr().out


def test_a_saved_diagnosis_with_impossible_rows_is_refused(tmp_path: Path) -> None:
    path = stuck_run(tmp_path)
    told = json.loads(render(diagnosis_from_series(path, series_from_files(path, bytes_from_file), "")))
    told["runs"][0]["series"]["rows"][0]["steps"] = 0
    with pytest.raises(Exception, match="damaged"):
        diagnosis_from_json(json.dumps(told))


def test_columns_hold_every_step_once(tmp_path: Path) -> None:
    from mpdoctor.reporters.terminal.recorded_runs import columns_from_rows

    series = judged(recorded(keras3(32768.0, 100), ([True] * 100 + [False]) * 40, tmp_path, 7)).series
    columns = columns_from_rows(series.rows, 60)
    assert sum(column.steps for column in columns) == series.steps
    assert columns[-1].last == series.rows[-1].last
    assert abs(sum(column.skipped for column in columns) - series.skipped) <= 30


def test_a_row_of_skipped_steps_falls_column_by_column_from_where_it_began() -> None:
    from mpdoctor.reporters.terminal.recorded_runs import columns_from_rows

    fell, mixed = StepsRow(4, 4, 4, 2048, 2048, 32768), StepsRow(8, 4, 1, 1024, 1024, 2048)
    scales = [column.scale for column in columns_from_rows((fell, mixed), 60)]
    assert scales == [16384, 8192, 4096, 2048, 1024, 1024, 1024, 1024]
    floor = StepsRow(6, 6, 6, 8192, 8192, 32768)
    assert [column.scale for column in columns_from_rows((floor,), 3)] == [8192, 8192, 8192]

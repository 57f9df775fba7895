"""Files in groups, each walked, judged and given back before the next: what is said is the same as of all at once."""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path

import pytest
from test_source_stage import BY_TRYING, GONE, LAYER, POLICY, PROGRAMS, TWO_VERSIONS, written

from mpdoctor import source_stage
from mpdoctor.diagnosis import diagnose
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings
from mpdoctor.source.import_graph import Outline, Outlines
from mpdoctor.source.prefilter import outlines_from_files
from mpdoctor.source_stage.worker import Worker

TREES = {
    **{f"program{number}": texts for number, texts in enumerate(list(PROGRAMS.values())[::3])},
    "by_version": TWO_VERSIONS | {"pkg/__init__": BY_TRYING},
    "older": {"old": GONE},
    "broken": {"broken": "def f(:\n"},
    "a_layer_alone": {"layer": LAYER},
    "answered": {
        "main": POLICY.replace("keras.mixed", "keras.no_such.mixed", 1) + "x = 1  # mpdoctor: ignore[MP202]\n"
    },
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name, texts in TREES.items():
        written(tmp_path / name, texts)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source_stage, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(source_stage, "most_processes", lambda: 1)
    return tmp_path


def diagnosed(monkeypatch: pytest.MonkeyPatch, size: int, *targets: str, keras: Keras | None = None) -> Diagnosis:
    monkeypatch.setattr(source_stage, "GROUP", size)
    settings = Settings(tuple(map(target_from_text, targets)), static=True, cache=False, keras=keras)
    return diagnose(settings, SilentProgress())


@pytest.mark.parametrize(
    ("processes", "targets", "keras"),
    [
        pytest.param(1, ["."], None, id="a directory, a guessed Keras"),
        pytest.param(3, ["."], Keras("keras"), id="a directory, Keras 3, three processes"),
        pytest.param(3, ["program0", "older", "program1", "broken/broken.py"], None, id="several targets"),
    ],
)
def test_groups_change_nothing(
    directory: Path, monkeypatch: pytest.MonkeyPatch, processes: int, targets: list[str], keras: Keras | None
) -> None:
    monkeypatch.setattr(source_stage, "most_processes", lambda: processes)
    at_once = diagnosed(monkeypatch, 10**9, *targets, keras=keras)
    assert diagnosed(monkeypatch, 1, *targets, keras=keras) == at_once
    assert len({finding.location.path for finding in at_once.findings if finding.location}) >= 3


def test_what_we_break_on_is_told_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*given: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("mpdoctor.source.project.facts_from_module", broken)
    at_once = diagnosed(monkeypatch, 10**9, ".")
    assert len(at_once.crashed) > 3
    assert diagnosed(monkeypatch, 1, ".") == at_once


def test_nothing_is_walked_twice_and_a_worker_holds_one_group(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    walked: Counter[Path] = Counter()
    held: list[set[Path]] = []
    walk, made = Worker.walk, Worker.__init__

    def counting(worker: Worker, paths: list[Path]) -> object:
        walked.update(paths)
        held[-1].update(paths)
        return walk(worker, paths)

    def starting(worker: Worker, *given: object) -> None:
        held.append(set())
        made(worker, *given)

    monkeypatch.setattr(Worker, "walk", counting)
    monkeypatch.setattr(Worker, "__init__", starting)
    diagnosed(monkeypatch, 1, ".")
    assert set(walked.values()) == {1}
    assert all(len({path.relative_to(directory).parts[0] for path in paths}) <= 1 for paths in held)
    assert len(held) >= len(PROGRAMS)


def test_another_keras_than_was_foreseen_is_judged_again(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path: path.relative_to(directory).as_posix() for path in sorted(directory.rglob("*.py"))}
    codes = frozenset({"MP101", "MP202", "MP310"})
    monkeypatch.setattr(source_stage, "GROUP", 1)

    def ahead(stage: source_stage.SourceStage, own: list[Path]) -> None:
        stage.judge(lambda path: Keras("tf.keras", "2.10"), codes, [files[path] for path in own])

    found = [
        stage.judge(lambda path: Keras(), codes, list(files.values()))
        for stage in (source_stage.SourceOfFiles(files, judge_ahead=ahead), source_stage.SourceOfFiles(files))
    ]
    assert found[0] == found[1] != []


def test_groups_import_nothing_of_one_another(directory: Path) -> None:
    outlines = outlines_from_files(sorted(directory.rglob("*.py")), Path.read_bytes)
    for size, most in ((1, len(TREES)), (10**9, 1)):
        groups = outlines.groups(size)
        assert sorted(path for group in groups for path in group) == sorted(outlines)
        assert all(outlines[path].imports <= set(group) for group in groups for path in group)
        assert len(groups) == most
    outlines.whole = False
    assert outlines.groups(1) == [list(outlines)]


def test_a_long_chain_is_one_group() -> None:
    paths = [Path(f"/{number}.py") for number in range(2_000)]
    outlines = Outlines()
    blank = Outline(False, False, False, frozenset(), 10, b"")
    for path, imported in zip(paths, [*paths[1:], None], strict=True):
        outlines[path] = dataclasses.replace(blank, imports=frozenset({imported} if imported else ()))
    (group,) = outlines.groups(1)
    assert sorted(group) == sorted(paths)


def test_a_groups_files_keep_their_order(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What two files import takes its Keras from the last of them, in a group as among all files."""
    ring = {**{f"a{number}": "import y\n" for number in range(3)}, "m": "import shared\n", "y": "import shared\n"}
    written(directory / "ring", {**ring, "shared": LAYER})
    monkeypatch.setattr(source_stage, "GROUP", 1)
    files = {path: str(path) for path in sorted(directory.rglob("*.py")) if path.parent.name in ("ring", "older")}
    seen: list[list[Path]] = []
    source_stage.SourceOfFiles(files, judge_ahead=lambda stage, own: seen.append(own))
    assert seen == [sorted(own) for own in seen] != []
    assert seen != outlines_from_files(files, Path.read_bytes).groups(1)

"""End to end: `mpdoctor check` on every project under fixtures/projects gives exactly what its marks say.

What a project is to show besides is written below as functions for the projects they name.
"""

from __future__ import annotations

import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from checking import Check, check, contents, needs_keras
from marks import Marks, marks_from_source

PROJECTS = Path(__file__).parents[2] / "fixtures" / "projects"
SAMPLED, SAMPLED_AGAIN = 16, 8  # of the projects that are not DEFAULT; six seconds of a processor each
# In every run, each for another part of mpdoctor.
DEFAULT = (
    "healthy_mlp-3",
    "overflow_sequential-tf_keras",
    "factory_uncompiled-3",
    "healthy_loop_keras3-3",
    "float32_script-3",
    "wrong_width-3",
    "loop_unscaled-3",
    "tf_keras_by_environment-tf_keras",
)


@dataclass(frozen=True)
class Project:
    """One file under fixtures/projects that is examined on its own, in one Keras."""

    path: Path
    marks: Marks
    keras: str

    @property
    def name(self) -> str:
        return f"{self.path.relative_to(PROJECTS).with_suffix('').as_posix()}-{self.keras}"

    @property
    def directory(self) -> Path:
        return PROJECTS / self.marks.setting("directory")

    @property
    def target(self) -> str:
        factory = self.marks.setting("target")
        if ":" in factory:
            return factory
        script = self.path.relative_to(self.directory).as_posix()
        return f"{script}:{factory}" if factory else script

    def check(self) -> Check:
        arguments = shlex.split(self.marks.setting("args"))
        return check(
            self.target,
            *shlex.split(self.marks.setting("options")),
            *(["--", *arguments] if arguments else []),
            directory=self.directory,
            keras=None if self.marks.setting("environment") else self.keras,
        )


def projects() -> list[Project]:
    """Every Python file that says where it applies; the others are parts of a project."""
    found = []
    for path in sorted(PROJECTS.rglob("*.py")):
        marks = marks_from_source(path.read_text(encoding="utf-8"))
        if marks.setting("keras"):
            found += [Project(path, marks, keras) for keras in marks.keras]
    return found


ALL = projects()
BY_NAME = {project.name: project for project in ALL}
assert set(DEFAULT) <= set(BY_NAME)


def marked(project: Project) -> pytest.param:
    """Two samples: of the projects in Keras 3 or unlike it in tf_keras; and of those that go alike in tf_keras."""
    again = project.keras == "tf_keras" and "3" in project.marks.keras and not project.marks.differ
    sample = pytest.mark.sampled(SAMPLED_AGAIN, "projects again") if again else pytest.mark.sampled(SAMPLED, "projects")
    marks = [] if project.name in DEFAULT else [pytest.mark.slow, sample]
    return pytest.param(project, id=project.name, marks=[needs_keras(project.keras), *marks])


@pytest.fixture(scope="module", autouse=True)
def unchanged() -> Iterator[None]:
    before = contents(PROJECTS)
    yield
    assert contents(PROJECTS) == before, "a check changed a file of the user's"


Shows = Callable[[Project, Check], None]
BESIDES: dict[str, list[Shows]] = defaultdict(list)


def shown_by(*names: str) -> Callable[[Shows], Shows]:
    """What the diagnoses of these projects are to show besides."""
    assert set(names) <= set(BY_NAME)

    def added(shows: Shows) -> Shows:
        for name in names:
            BESIDES[name].append(shows)
        return shows

    return added


@pytest.mark.parametrize("project", [marked(project) for project in ALL])
def test_a_project_gets_exactly_what_its_marks_say(project: Project) -> None:
    diagnosis = project.check()
    report = diagnosis.report
    path = project.path.relative_to(project.directory).as_posix()
    found = sorted(
        (finding["code"], finding["path"] or "", finding["line"] or 0, finding["what_if"])
        for finding in report["findings"]
    )
    expected = sorted(
        (mark.code, path if mark.line else "", mark.line or 0, mark.what_if)
        for mark in project.marks.findings(project.keras)
    )
    assert found == expected, str(diagnosis)
    assert not report["crashed"]
    assert diagnosis.exit_code == report["summary"]["exit_code"]
    assert diagnosis.exit_code == int(project.marks.setting("exit", project.keras)), str(diagnosis)
    verdicts = [probe["verdict"] for probe in report["probes"]]
    verdict = project.marks.setting("verdict", project.keras)
    assert verdicts == (verdict.split(", ") if verdict else []), str(diagnosis)
    assert "Traceback" not in diagnosis.stderr
    for shows in BESIDES[project.name]:
        shows(project, diagnosis)


OVERFLOWING = [f"overflow_{kind}-{keras}" for kind in ("sequential", "subclassed") for keras in ("3", "tf_keras")]


@shown_by(*OVERFLOWING)
def an_overflow_names_the_layer_and_shows_the_scale_falling(project: Project, diagnosis: Check) -> None:
    layer = {"overflow_sequential": "gather", "overflow_subclassed": "energy"}[project.path.stem]
    overflow = diagnosis.finding("MP904")
    assert layer in overflow["layer"]
    assert layer in overflow["message"]
    (probe,) = diagnosis.report["probes"]
    assert probe["steps"] == 50
    assert probe["skipped_steps"] == list(range(50))
    floor = 0.0 if project.keras == "3" else 1.0
    assert probe["loss_scale"] == [max(2.0 ** (15 - step), floor) for step in range(50)]


@shown_by("loop_unscaled-3", "loop_unscaled-tf_keras", "train_step_unscaled-3", "train_step_unscaled-tf_keras")
def a_loss_that_is_not_scaled_is_seen_live_as_well(project: Project, diagnosis: Check) -> None:
    seen = diagnosis.finding("MP401")["also_seen"]
    assert "training" in {sight["stage"] for sight in seen}, seen
    # In Keras 2 such a loop scales and unscales nothing, so that nothing depends on the scale.
    assert ("MP912" in {sight["code"] for sight in seen}) == (project.keras == "3"), seen


@shown_by("scaled_in_two_helpers-3", "scaled_in_two_helpers-tf_keras")
def a_loss_that_is_scaled_twice_names_both_lines_and_is_shown_unscaled(project: Project, diagnosis: Check) -> None:
    assert "in line 17 and again in line 22" in diagnosis.finding("MP912")["help"]
    (probe,) = diagnosis.report["probes"]
    assert probe["loss"][0] < 64


@shown_by("halves_everywhere-3", "halves_everywhere-tf_keras")
def what_comes_of_a_16_bit_output_is_told_with_it(project: Project, diagnosis: Check) -> None:
    seen = {sight["code"] for sight in diagnosis.finding("MP201")["also_seen"] if sight["stage"] == "model"}
    # Keras 2 takes the loss from the logits behind the softmax, Keras 3 computes it in float32.
    assert seen & {"MP504", "MP507"} == ({"MP504"} if project.keras == "tf_keras" else {"MP507"})


@shown_by("loop_without_unscale-tf_keras")
def gradients_that_are_not_unscaled_are_seen_live_as_well(project: Project, diagnosis: Check) -> None:
    seen = diagnosis.finding("MP402")["also_seen"]
    assert "MP912" in {sight["code"] for sight in seen}, seen


@shown_by("epsilon_written-3", "epsilon_written-tf_keras")
def a_lost_epsilon_is_shown_beside_the_one_that_trains(project: Project, diagnosis: Check) -> None:
    evidence = str(diagnosis.finding("MP302")["evidence"])
    assert "0.0001" in evidence
    assert "1e-07" in evidence


@shown_by("reshaping_layer-3", "reshaping_layer-tf_keras")
def a_layer_that_reshapes_names_itself_and_the_shapes(project: Project, diagnosis: Check) -> None:
    finding = diagnosis.finding("MP605")
    assert "ToPicture" in finding["message"] or "to_picture" in finding["message"]
    assert "100" in finding["message"]
    assert "28" in finding["message"]


@shown_by("wrong_width-3", "wrong_width-tf_keras")
def data_that_does_not_fit_is_told_with_both_shapes(project: Project, diagnosis: Check) -> None:
    message = diagnosis.finding("MP605")["message"]
    assert "20" in message
    assert "24" in message


@shown_by("factory_compiled-3", "factory_uncompiled-3", "library/zoo/factories-3")
def a_factory_is_trained_on_made_up_data(project: Project, diagnosis: Check) -> None:
    (probe,) = diagnosis.report["probes"]
    assert probe["data"] == "synthetic"
    assert probe["call"]["kind"] == "none"


@shown_by("healthy_mlp-3", "healthy_mlp-tf_keras", "healthy_loop_keras3-3", "healthy_train_on_batch-3")
def a_script_is_trained_on_its_own_data(project: Project, diagnosis: Check) -> None:
    (probe,) = diagnosis.report["probes"]
    kinds = {"healthy_loop_keras3": "loop", "healthy_train_on_batch": "train_on_batch"}
    assert probe["data"] == "real"
    assert probe["call"]["kind"] == kinds.get(project.path.stem, "fit")
    assert probe["steps"] == 50
    assert probe["loss"][-1] < probe["loss"][0]


SAVED = [("healthy", [], 0), ("half_output", ["MP201"], 1), ("uncompiled", [], 0)]


@pytest.mark.parametrize(
    ("name", "codes", "exit_code", "keras"),
    [
        pytest.param(
            *row,
            keras,
            marks=[needs_keras(keras), *([] if (row[0], keras) == ("half_output", "3") else [pytest.mark.slow])],
        )
        for row in SAVED
        for keras in ("3", "tf_keras")
    ],
)
def test_a_saved_model_is_examined(saved_models, keras: str, name: str, codes: list[str], exit_code: int) -> None:
    directory = saved_models(keras)
    before = contents(directory)
    diagnosis = check(f"{name}.keras", directory=directory, keras=keras)
    assert diagnosis.codes() == codes, str(diagnosis)
    assert diagnosis.exit_code == exit_code, str(diagnosis)
    (probe,) = diagnosis.report["probes"]
    assert probe["data"] == "synthetic"
    assert probe["verdict"] == "healthy"
    assert contents(directory) == before

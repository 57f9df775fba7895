"""The pipeline, over sources on disk and examinations written by hand: exit status, selection, what-if, fingerprint."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from samples import good_steps, layer, model, steps_from_finiteness, training

from mpdoctor.diagnosis import diagnose
from mpdoctor.examination.examination_facts import ExaminerCrashed
from mpdoctor.facts.examination import ExaminationFacts
from mpdoctor.facts.failure import FailureFacts
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Diagnosis, Severity
from mpdoctor.loss_scale import LossScale
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.settings.options import Settings

KERAS = Keras("keras", "3.15.1", "2.21.0")
HALF_OUTPUT = layer("dense", is_output=True, made_at=Location("train.py", 4))  # MP201, a warning
RIGHT_OUTPUT = layer("dense", policy="float32", is_output=True)
PLAIN = "import tensorflow as tf\n\n\nmodel = tf.keras.Sequential()\n"
SCOPE = "import tensorflow as tf\n\nscope = tf.keras.mixed_precision.PolicyScope('mixed_float16')\n"  # MP101, an error
SCOPE_LINE = Location("train.py", 3)


def mixed(*layers: Any) -> ModelFacts:
    hidden = layer("hidden")
    return dataclasses.replace(model(hidden, *layers), call=CallFacts("fit", Location("train.py", 4)))


def float32_model() -> ModelFacts:
    plain = model(layer("hidden", policy="float32"), RIGHT_OUTPUT)
    return dataclasses.replace(
        plain, optimizer=plain.optimizer[1:], policy_set=False, global_policy="float32", policy="float32"
    )


def run(*models: ModelFacts, **more: Any) -> ExaminationFacts:
    status = ("done", "") if models else ("failed", "no model was seen")
    return ExaminationFacts(**{"python": "3.11.9", "keras": KERAS, "models": models, "model_status": status, **more})


def failed(kind: str = "raised", during: str = "script", **more: Any) -> FailureFacts:
    known = {"exception": "KeyError", "message": "'width'", "location": Location("train.py", 4)}
    return FailureFacts(kind, during, **{**known, **more})


HEALTHY, WARNED = run(mixed(RIGHT_OUTPUT)), run(mixed(HALF_OUTPUT))
FALLING = tuple(dataclasses.replace(step, loss=0.5) for step in steps_from_finiteness([False] * 50, LossScale()))
COLLAPSED = run(mixed(RIGHT_OUTPUT), trainings=(training(FALLING, model=mixed(RIGHT_OUTPUT)),))
Run = ExaminationFacts | Exception
Check = Callable[..., Diagnosis]


@pytest.fixture
def check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Check:
    """check(FILES, *RUNS, **SETTINGS) diagnoses train.py, or `targets`; `check.policies` are those of the runs."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("TF_USE_LEGACY_KERAS", raising=False)
    policies: list[str] = []

    def checked(
        files: dict[str, str] | str, *runs: Run, targets: tuple[str, ...] = ("train.py",), **options: Any
    ) -> Diagnosis:
        for name, text in ({"train.py": files} if isinstance(files, str) else files).items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text, encoding="utf-8")
        coming = list(runs)

        def examine(target: Any, settings: Settings, progress: Any, policy: str) -> ExaminationFacts:
            policies.append(policy)
            facts = coming.pop(0)
            if isinstance(facts, Exception):
                raise facts
            return dataclasses.replace(facts, forced_policy=None if policy == "auto" else policy)

        monkeypatch.setattr("mpdoctor.examination.run.examine", examine)
        policies.clear()
        done = diagnose(Settings(tuple(map(target_from_text, targets)), **options), SilentProgress())
        assert coming == [], "every run that was prepared took place"
        return done

    checked.policies = policies  # type: ignore[attr-defined]
    return checked


def codes(done: Diagnosis) -> list[str]:
    return [finding.code for finding in done.findings]


# --- exit status ------------------------------------------------------------------------------------------------
BROKEN = "model = (\n"
UNUSABLE = run(failure=failed("unusable", "start", location=None, message="No TensorFlow."))
NOT_LOADED, TIMED_OUT = run(failure=failed()), run(failure=failed("timed-out", location=None))
DIED = run(failure=failed("died", location=None, signal=9))
ENDED = run(failure=failed("exited", location=None, exit_code=0, exception="", message="The script ended."))
GAVE_UP = run(failure=failed("exited", location=None, exit_code=3, exception="", message="3"))
CRASH = ExaminerCrashed("Traceback: ours")
BENT = run(mixed(None))  # no rule over layers can read this: each breaks
TABLE: list[tuple[str, str, tuple[Run, ...], dict[str, Any], int, list[str]]] = [
    ("healthy", PLAIN, (HEALTHY,), {}, 0, []),
    ("a-warning", PLAIN, (WARNED,), {}, 1, ["MP201"]),
    ("a-warning-below-fail-on", PLAIN, (WARNED,), {"fail_on": Severity.ERROR}, 0, ["MP201"]),
    ("a-warning-above-fail-on", PLAIN, (WARNED,), {"fail_on": Severity.INFO}, 1, ["MP201"]),
    ("an-error", PLAIN, (COLLAPSED,), {"fail_on": Severity.ERROR}, 1, ["MP903"]),
    ("exit-zero-of-1", PLAIN, (WARNED,), {"exit_zero": True}, 0, ["MP201"]),
    ("ignored", PLAIN, (WARNED,), {"ignore": ("MP2",)}, 0, []),
    ("ignored-by-name", PLAIN, (WARNED,), {"ignore": ("half-precision-output",)}, 0, []),
    ("not-selected", PLAIN, (WARNED,), {"select": ("MP3", "MP501")}, 0, []),
    ("selected", PLAIN, (WARNED,), {"select": ("MP20",)}, 1, ["MP201"]),
    ("selected-and-ignored", PLAIN, (WARNED,), {"select": ("MP2",), "ignore": ("MP201",)}, 0, []),
    ("unusable", PLAIN, (UNUSABLE,), {}, 2, ["MP002"]),
    ("not-loaded", PLAIN, (NOT_LOADED,), {}, 2, ["MP002"]),
    ("not-loaded-exit-zero", PLAIN, (NOT_LOADED,), {"exit_zero": True}, 2, ["MP002"]),
    ("not-loaded-not-selected", PLAIN, (NOT_LOADED,), {"select": ("MP3",)}, 2, []),
    ("not-loaded-ignored", PLAIN, (NOT_LOADED,), {"ignore": ("MP002",)}, 2, []),
    ("timed-out", PLAIN, (TIMED_OUT,), {}, 2, ["MP003"]),
    ("died", PLAIN, (DIED,), {}, 2, ["MP004"]),
    ("died-and-an-error-elsewhere", SCOPE, (DIED,), {}, 2, ["MP101", "MP004"]),
    ("not-loaded-after-a-model", PLAIN, (dataclasses.replace(HEALTHY, failure=failed()),), {}, 1, ["MP002"]),
    ("timed-out-after-a-model", PLAIN, (dataclasses.replace(HEALTHY, failure=failed("timed-out")),), {}, 1, ["MP003"]),
    ("stopped-where-a-rule-found-an-error", SCOPE, (run(failure=failed(location=SCOPE_LINE)),), {}, 1, ["MP101"]),
    (
        "the-same-with-only-that-rule",
        SCOPE,
        (run(failure=failed(location=SCOPE_LINE)),),
        {"select": ("MP101",)},
        1,
        ["MP101"],
    ),
    (
        "the-same-without-that-rule",
        SCOPE,
        (run(failure=failed(location=SCOPE_LINE)),),
        {"ignore": ("MP101",)},
        2,
        ["MP002"],
    ),
    ("ended-and-an-error-in-the-source", SCOPE, (ENDED,), {}, 1, ["MP101"]),
    ("ended-and-an-error-that-is-ignored", f"{SCOPE}# mpdoctor: ignore-file[MP101]\n", (ENDED,), {}, 0, []),
    ("ended-and-nothing-was-found", PLAIN, (ENDED,), {}, 2, ["MP002"]),
    ("gave-up-and-an-error-in-the-source", SCOPE, (GAVE_UP,), {}, 2, ["MP101", "MP002"]),
    ("stopped-elsewhere", SCOPE, (run(failure=failed()),), {}, 2, ["MP101", "MP002"]),
    ("unreadable", BROKEN, (), {}, 2, ["MP001"]),
    ("unreadable-exit-zero", BROKEN, (), {"exit_zero": True}, 2, ["MP001"]),
    ("unreadable-not-selected", BROKEN, (), {"select": ("MP3",)}, 2, []),
    ("static", SCOPE, (), {"static": True}, 1, ["MP101"]),
    ("static-and-right", PLAIN, (), {"static": True}, 0, []),
    ("static-and-unreadable", BROKEN, (), {"static": True}, 2, ["MP001"]),
    ("the-examiner-broke", SCOPE, (CRASH,), {}, 3, ["MP101"]),
    ("the-examiner-broke-exit-zero", PLAIN, (CRASH,), {"exit_zero": True}, 3, []),
    ("a-rule-broke", SCOPE, (BENT,), {"select": ("MP2", "MP101"), "policy": "mixed_float16"}, 3, ["MP101"]),
]


@pytest.mark.parametrize(
    ("text", "runs", "options", "exit_code", "found"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_the_exit_status(
    check: Check, text: str, runs: tuple[Run, ...], options: dict[str, Any], exit_code: int, found: list[str]
) -> None:
    done = check(text, *runs, **options)
    assert (done.exit_code, codes(done)) == (exit_code, found)
    assert bool(done.crashed) == (exit_code == 3)


def test_the_worst_target_decides(check: Check) -> None:
    both = {"a.py": SCOPE, "b.py": BROKEN}
    assert check(both, targets=("a.py", "b.py")).exit_code == 2
    assert check(both, targets=("a.py", "a.py")).exit_code == 1


# --- what is examined -------------------------------------------------------------------------------------------
def test_a_directory_is_read_and_not_run(check: Check) -> None:
    files = {"src/one.py": SCOPE, "src/deep/two.py": PLAIN, "src/broken.py": BROKEN, "src/.hidden/three.py": SCOPE}
    done = check(files, targets=("src",))
    told = {(finding.code, finding.location.path) for finding in done.findings if finding.location}
    assert told == {("MP101", "src/one.py"), ("MP001", "src/broken.py")}
    assert done.exit_code == 1, "a file below a named directory is no target of its own"
    assert {name: stage.status for name, stage in done.targets[0].stages.items()} == {
        "source": "done", "model": "skipped", "training": "skipped",
    }  # fmt: skip


HALF_OUTPUT_TEXT = """import keras

keras.mixed_precision.set_global_policy("mixed_float16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(10, activation="softmax")])
model.compile(optimizer="adam", loss="sparse_categorical_crossentropy")
"""
LOSS_TEXT = """import keras
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(8), keras.layers.Dense(1)])
optimizer = keras.optimizers.Adam()


def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(keras.losses.mean_squared_error(y, model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
"""


def told_and_explained(done: Diagnosis) -> list[tuple[str, str, list[str]]]:
    return [
        (finding.code, finding.location.path, [also.code for also in finding.also_seen])
        for finding in done.findings
        if finding.location
    ]


@pytest.mark.parametrize("ignored", [False, True])
def test_files_of_a_directory_that_no_import_ties_explain_nothing_of_each_other(check: Check, ignored: bool) -> None:
    output = HALF_OUTPUT_TEXT
    if ignored:
        output = output.replace('"softmax")])', '"softmax")])  # mpdoctor: ignore[MP201]')
    codes_of = ("MP201", "MP504")
    alone = [check({name: text}, targets=(name,), static=True, select=codes_of)
             for name, text in (("src/a.py", output), ("src/b.py", LOSS_TEXT))]  # fmt: skip
    told = [row for done in alone for row in told_and_explained(done)]
    assert told_and_explained(check({}, targets=("src",), static=True, select=codes_of)) == told
    assert ("src/b.py" in {path for _, path, _ in told}) and len(told) == (1 if ignored else 2)


def test_files_of_a_directory_that_an_import_ties_may_be_about_one_model(check: Check) -> None:
    files = {"src/a.py": HALF_OUTPUT_TEXT + "import b\n", "src/b.py": LOSS_TEXT}
    done = check(files, targets=("src",), static=True, select=("MP201", "MP504"))
    assert told_and_explained(done) == [("MP201", "src/a.py", ["MP504"])]


def test_what_was_seen_before_the_examiner_broke_is_told(check: Check) -> None:
    until_then = dataclasses.replace(WARNED, training_status=("failed", "mpdoctor itself broke"))
    done = check(PLAIN, ExaminerCrashed("Traceback: ours", until_then))
    assert (done.exit_code, codes(done), len(done.crashed)) == (3, ["MP201"], 1)
    assert done.targets[0].stages["training"].reason == "mpdoctor itself broke"


def test_several_scripts_are_read_and_not_run(check: Check) -> None:
    done = check({"a.py": SCOPE, "b.py": PLAIN}, targets=("a.py", "b.py"))
    assert [(finding.code, finding.target) for finding in done.findings] == [("MP101", "a.py")]
    assert {target.stages["model"].reason for target in done.targets} == {"more than one target: source only"}


def test_an_import_that_may_fail_does_not_keep_the_script_from_running(check: Check) -> None:
    guarded = "try:\n    import legacy\nexcept SyntaxError:\n    legacy = None\n" + PLAIN
    done = check({"train.py": guarded, "legacy.py": "print 'Python 2'\n"}, HEALTHY)
    assert {name: stage.status for name, stage in done.targets[0].stages.items()}["source"] == "done"
    assert (done.exit_code, codes(done)) == (0, [])


def test_what_ran_is_judged_by_the_keras_that_ran(check: Check) -> None:
    done = check(PLAIN, COLLAPSED, keras=Keras("tf.keras", "2.15", "2.15"))
    assert codes(done) == ["MP903"], "a rule about Keras 3 alone, which is what ran"
    assert done.targets[0].keras.package == "tf.keras"


SAYS_TF_KERAS = """import os
os.environ["TF_USE_LEGACY_KERAS"] = "1"
import tensorflow as tf
import pkg.used
tf.keras.mixed_precision.set_global_policy("mixed_float16")
"""
SAYS_KERAS3 = "import keras\nimport pkg.used\nkeras.ops.ones(1)\n"
OF_KERAS2 = """import tensorflow as tf
def scaled(loss):
    optimizer = tf.keras.mixed_precision.LossScaleOptimizer(tf.keras.optimizers.Adam())
    return optimizer.get_scaled_loss(loss)
"""


@pytest.mark.parametrize(
    "files, reported",
    [
        ({"train.py": SAYS_TF_KERAS}, []),
        ({"train.py": SAYS_TF_KERAS, "again.py": SAYS_TF_KERAS}, []),
        ({"train.py": PLAIN}, ["pkg/other.py"]),
        ({"train.py": SAYS_TF_KERAS, "pkg/third.py": OF_KERAS2, "pkg/fourth.py": OF_KERAS2}, ["pkg/fourth.py"]),
        ({"train.py": SAYS_TF_KERAS, "pkg/used.py": SAYS_KERAS3.replace("import pkg.used\n", "")}, ["pkg/other.py"]),
    ],
    ids=["script", "two-scripts", "nothing-says-one", "most-files-unknown", "two-kerases"],
)
def test_the_rest_of_a_package_is_judged_by_the_keras_of_most_of_its_files(
    check: Check, files: dict[str, str], reported: list[str]
) -> None:
    package = {"pkg/__init__.py": "", "pkg/used.py": PLAIN, "pkg/other.py": OF_KERAS2}
    done = check({**package, **files}, targets=(".",), static=True)
    assert [(finding.code, finding.location.path) for finding in done.findings if finding.location] == [
        ("MP407", str(Path(path))) for path in reported
    ]


# --- what if ----------------------------------------------------------------------------------------------------
def test_a_program_without_mixed_precision_is_run_again_under_a_forced_policy(check: Check) -> None:
    done = check(PLAIN, run(float32_model()), WARNED)
    assert check.policies == ["auto", "mixed_float16"]  # type: ignore[attr-defined]
    assert [(finding.code, finding.what_if) for finding in done.findings] == [("MP201", True)]
    assert done.exit_code == 0
    assert done.models[0][1].layers == WARNED.models[0].layers


@pytest.mark.parametrize(
    "first",
    [
        WARNED,
        run(dataclasses.replace(float32_model(), policy_set=True)),
        run(dataclasses.replace(float32_model(), optimizer=model().optimizer)),
        run(float32_model(), failure=failed()),
        run(float32_model(), trainings=(training(good_steps(3), failure=failed(during="training")),)),
        NOT_LOADED,
    ],
    ids=["mixed", "policy-set", "wrapper", "failed", "step-failed", "no-model"],
)
def test_it_is_not_run_again(check: Check, first: ExaminationFacts) -> None:
    check(PLAIN, first)
    assert check.policies == ["auto"]  # type: ignore[attr-defined]


def test_what_was_asked_for_is_no_what_if(check: Check) -> None:
    done = check(PLAIN, WARNED, policy="mixed_float16")
    assert [(finding.code, finding.what_if) for finding in done.findings] == [("MP201", False)]
    assert (done.exit_code, check.policies) == (1, ["mixed_float16"])  # type: ignore[attr-defined]


def test_what_the_first_run_shows_too_is_real(check: Check) -> None:
    unchanged = training(good_steps(), weights_changed=False, model=float32_model(), initial_scale=None)
    done = check(PLAIN, run(float32_model(), trainings=(unchanged,)), run(mixed(RIGHT_OUTPUT), trainings=(unchanged,)))
    assert [(finding.code, finding.what_if) for finding in done.findings] == [("MP909", False)]
    assert done.exit_code == 1


def test_without_a_line_too_it_is_told_once(check: Check) -> None:
    nowhere = dataclasses.replace(float32_model(), call=CallFacts("none"))
    before = training(good_steps(), weights_changed=False, model=nowhere, initial_scale=None)
    forced = dataclasses.replace(
        before, model=dataclasses.replace(mixed(RIGHT_OUTPUT), call=CallFacts("none")), initial_scale=1.0
    )
    done = check(PLAIN, run(nowhere, trainings=(before,)), run(forced.model, trainings=(forced,)))
    assert [(finding.code, finding.what_if) for finding in done.findings] == [("MP909", False)]


@pytest.mark.parametrize("forced", [NOT_LOADED, DIED, TIMED_OUT], ids=["raised", "died", "timed-out"])
def test_a_program_that_only_fails_when_forced_does_not_fail(check: Check, forced: ExaminationFacts) -> None:
    first = run(float32_model(), trainings=(training(good_steps(), model=float32_model()),))
    done = check(PLAIN, first, forced)
    assert [finding.what_if for finding in done.findings] == [True]
    assert done.exit_code == 0
    assert [probe.training.model.name for probe in done.probes] == [first.models[0].name]
    assert done.targets[0].stages["model"].status == "done"


def test_a_crash_in_the_forced_run_leaves_the_first_one(check: Check) -> None:
    done = check(PLAIN, run(float32_model()), CRASH)
    assert done.exit_code == 3
    assert len(done.models) == 1


# --- fingerprints -----------------------------------------------------------------------------------------------
def fingerprint(check: Check, text: str, name: str = "train.py") -> str:
    (finding,) = check({name: text}, targets=(name,), static=True).findings
    assert finding.code == "MP101"
    assert finding.excerpt is not None
    return finding.fingerprint


def test_a_fingerprint_stays_when_lines_move(check: Check) -> None:
    known = fingerprint(check, SCOPE)
    assert len(known) == 16
    assert fingerprint(check, "# a comment\n\n" + SCOPE) == known
    assert fingerprint(check, SCOPE + "\nprint('more')\n") == known
    indented = SCOPE.replace("\nscope", "\nif True:\n    scope")
    assert fingerprint(check, indented) == known


@pytest.mark.parametrize(
    ("text", "name"),
    [(SCOPE.replace("scope =", "other ="), "train.py"), (SCOPE, "other.py")],
    ids=["another-line", "another-file"],
)
def test_a_fingerprint_changes_with_its_line_and_file(check: Check, text: str, name: str) -> None:
    assert fingerprint(check, text, name) != fingerprint(check, SCOPE)


@pytest.mark.parametrize("above", [0, 1, 50])
def test_the_excerpt_follows_the_line(check: Check, above: int) -> None:
    (finding,) = check("#\n" * above + SCOPE, static=True).findings
    assert finding.location is not None
    assert finding.excerpt is not None
    assert "PolicyScope" in finding.excerpt.lines[finding.location.line - finding.excerpt.first_line]

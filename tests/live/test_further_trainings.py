"""Several trainings in one program: which were examined and which were not, by line; with --all-fits, each of them."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

from mpdoctor.examination.target_runs import runs_of_target
from mpdoctor.facts.location import Location
from mpdoctor.facts.model import CallFacts, ModelFacts
from mpdoctor.facts.training import PredictionFacts, TrainingFacts
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Verdict
from mpdoctor.progress import SilentProgress
from mpdoctor.project.targets import target_from_text
from mpdoctor.semantics.live.verdict import verdict_from_training
from mpdoctor.semantics.source.programs.further_trainings import mixed_precision_follows, not_examined
from mpdoctor.settings.options import Settings
from mpdoctor.source import facts_with_imports

BEGIN = """\
import tensorflow as tf
from sklearn.preprocessing import StandardScaler
tf.keras.mixed_precision.set_global_policy("mixed_float16")
def build():
    return tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1, dtype="float32")])
def train(model):
    model.compile("adam", "mse")
    model.fit(x, y)
model = build()
model.compile("adam", "mse")
"""  # ten lines
MORE = "; --all-fits looks at each fit()"


def told(tmp_path: Path, text: str, *done: int, kind: str = "fit", all_fits: bool = False) -> str:
    path = tmp_path / "train.py"
    path.write_text(BEGIN + textwrap.dedent(text), encoding="utf-8")
    sources = tuple(facts_with_imports(path, "train.py", {}).values())
    return not_examined(sources, [training(line, kind) for line in done], all_fits)


def training(line: int, kind: str) -> TrainingFacts:
    call = CallFacts(kind, Location("train.py", line))
    model = ModelFacts("m", "m", "Sequential", "mixed_float16", Keras("keras", "3.15"), call=call)
    seen = PredictionFacts("predict", 1, 64) if kind == "predict" else None
    return TrainingFacts(model, "real", "CPU", 50, prediction=seen)


@pytest.mark.parametrize(
    ("text", "done", "says"),
    [
        ("model.fit(x, y)\n", 11, ""),
        ("model.fit(x, y)\nmodel.fit(x, y)\n", 11, f"the training at train.py:12: only that at train.py:11 was{MORE}"),
        (
            "model.fit(x, y)\nmodel.compile('sgd', 'mse')\nmodel.fit(x, y)\nbuild().fit(x, y)\n",
            11,
            f"the trainings at train.py:13 and 14: only that at train.py:11 was{MORE}",
        ),
        ("model.fit(x, y)\ntrain(build())\n", 11, f"the training at train.py:8: only that at train.py:11 was{MORE}"),
        (
            "for fold in range(5):\n    model = build()\n    model.compile()\n    model.fit(x, y)\n",
            14,
            f"what train.py:14 trains when it is run again: only that at train.py:14 was{MORE}",
        ),
        ("for step in range(100):\n    model.train_on_batch(x, y)\n", 12, ""),
        ("model.fit(x, y)\nStandardScaler().fit(x)\n", 11, ""),
        ("scaler = StandardScaler()\nscaler.fit(x)\nmodel.fit(x, y)\n", 13, ""),
        ("model.fit(x, y)\nclusters = load()\nclusters.fit(x)\n", 11, ""),
        ("if short:\n    model.fit(x, y)\nelse:\n    model.fit(x, y, epochs=9)\n", 12, ""),
        ("def other():\n    build().fit(x, y)\nmodel.fit(x, y)\n", 13, ""),
        ("if short:\n    model.fit(x, y)\nmodel.fit(x, y)\n", 13, ""),
    ],
    ids=[
        "one",
        "two",
        "compiled-again",
        "in-a-function",
        "folds",
        "batches-of-one",
        "not-a-model",
        "not-a-model-before",
        "unknown",
        "other-arm",
        "nobody-calls-it",
        "passed-by",
    ],
)
def test_what_was_not_looked_at_is_told_by_line(text: str, done: int, says: str, tmp_path: Path) -> None:
    assert told(tmp_path, text, done) == says


def test_what_every_fit_was_looked_at_leaves_nothing_to_tell(tmp_path: Path) -> None:
    text = "model.fit(x, y)\nmodel.fit(x, y)\n"
    assert told(tmp_path, text, 11, 12, all_fits=True) == ""
    assert told(tmp_path, text, 11, kind="predict") == ""
    left = told(tmp_path, text + "model.train_on_batch(x, y)\n", 11, 12, all_fits=True)
    assert left == "the training at train.py:13: only those at train.py:11 and 12 were"


FLOAT32 = """\
import tensorflow as tf
mp = tf.keras.mixed_precision
def build(dtype=None):
    return tf.keras.Sequential([tf.keras.Input((8,)), tf.keras.layers.Dense(1, dtype=dtype)])
def train(model):
    model.compile("adam", "mse")
    model.fit(x, y)
first = build()
first.compile("adam", "mse")
first.fit(x, y)
"""  # ten lines


@pytest.mark.parametrize(
    ("text", "done", "follows"),
    [
        ("", 10, False),
        ("build().fit(x, y)\n", 10, False),
        ("mp.set_global_policy('mixed_float16')\nbuild().fit(x, y)\n", 10, True),
        ("mp.set_global_policy('mixed_float16')\ntrain(build())\n", 10, True),
        ("build(dtype='mixed_float16').fit(x, y)\n", 10, True),
        (
            "student = tf.keras.layers.Dense(1, dtype='mixed_float16')\ntrain(tf.keras.Sequential([student]))\n",
            10,
            True,
        ),
        ("mp.set_global_policy('mixed_float16')\nbuild().predict(x)\n", 10, False),
        ("train(build())\nmp.set_global_policy('mixed_float16')\n", 10, False),
        ("mp.set_global_policy('float32')\ntrain(build())\n", 10, False),
        ("def other():\n    mp.set_global_policy('mixed_float16')\ntrain(build())\n", 10, False),
    ],
)
def test_whether_mixed_precision_is_turned_on_after_the_first_fit(
    text: str, done: int, follows: bool, tmp_path: Path
) -> None:
    path = tmp_path / "train.py"
    path.write_text(FLOAT32 + text, encoding="utf-8")
    sources = tuple(facts_with_imports(path, "train.py", {}).values())
    assert mixed_precision_follows(sources, [training(done, "fit")]) is follows
    assert not mixed_precision_follows(sources, [training(done, "loop")])


def test_what_follows_the_first_fit_in_mixed_precision_is_told(tmp_path: Path) -> None:
    text = "model.fit(x, y)\nmodel.fit(x, y)\nmodel.fit(x, y)\n"
    assert told(tmp_path, text, 11, 12) == f"the training at train.py:13: only those at train.py:11 and 12 were{MORE}"
    assert told(tmp_path, text, 11, 12, 13) == ""


TEACHER = """\
    K.mixed_precision.set_global_policy("float32")
    teacher = dense_model()
    teacher.compile("adam", "mse")
    teacher.fit(x, y, batch_size=16, epochs=9)
    {between}
    K.mixed_precision.set_global_policy("mixed_float16")
    student = dense_model()
    student.compile("adam", "mse")
    student.fit(x, teacher.predict(x), batch_size=16, epochs=9)
    student.fit(x, y, batch_size=16)
    """


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")])
@pytest.mark.parametrize("gets_on", [True, False])
def test_the_first_fit_in_mixed_precision_is_the_one_looked_at(
    keras: str, gets_on: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = TEACHER.format(between="" if gets_on else "raise SystemExit")
    target = target_from_text(str(script_from_text(tmp_path / "train.py", text)))
    monkeypatch.setenv("TF_USE_LEGACY_KERAS", "1" if keras == "tf_keras" else "0")
    settings = Settings((target,), steps=12, timeout=200)
    runs, _ = runs_of_target(target, settings, SilentProgress())
    seen = [(training.policy, len(training.steps)) for training in runs[0].trainings]
    assert seen == ([("float32", 10), ("mixed_float16", 12)] if gets_on else [("float32", 10)])
    assert len(runs) == 1  # the program sets a policy of its own, and none is forced


SCRIPT = """\
    import sys

    model = dense_model()
    for number, rate in enumerate([1e-3, 1e-4]):
        model.compile(K.optimizers.SGD(rate), "mse")
        history = model.fit(x, y, batch_size=16, epochs=2)
        assert len(history.history["loss"])
    model.predict(x)
    late = dense_model()
    late.compile("adam", lambda true, seen: tf.reduce_mean(tf.square(70000.0 * tf.cast(seen, tf.float16))))
    late.fit(x, y, batch_size=16)
    print(history.history["loss"][40])
    """


@pytest.mark.slow
@pytest.mark.parametrize("keras", [pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")])
def test_each_fit_is_looked_at_if_asked(keras: str, tmp_path: Path) -> None:
    facts = examined(script_from_text(tmp_path / "train.py", SCRIPT), keras, steps=12, all_fits=True)
    assert [len(seen.steps) for seen in facts.trainings] == [12, 12, 12]
    assert [re.sub(r"\\d+$", "", seen.name.rpartition(" ")[0]) for seen in facts.trainings] == [
        f"{seen.model.id} at line" for seen in facts.trainings
    ]
    verdicts = [verdict_from_training(seen)[0] for seen in facts.trainings]
    assert verdicts[:2] == [Verdict.HEALTHY] * 2 and verdicts[2] not in (Verdict.HEALTHY, Verdict.SETTLING)
    assert facts.stopped_after_training.startswith("IndexError")
    assert facts.training_status == ("done", "")


LOOP = """\
    model = dense_model()
    optimizer = K.optimizers.SGD(0.01)
    for start in range(0, 64, 16):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x[start:start + 16]) - 1.0) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    {end}import no_such_module
    """


NOISE = """\
    class Noise(K.layers.Layer):
        def call(self, inputs):
            return inputs + tf.random.normal((1, 8))
"""


@pytest.mark.parametrize("last", ["Noise()(x)", "model.layers[0](x) + tf.ones((96, 16))"])
@needs_keras("3")
def test_what_has_to_do_with_16_bits_is_told_behind_a_loop_as_well(last: str, tmp_path: Path) -> None:
    text = NOISE + LOOP.format(end="").replace("import no_such_module", last)
    target = target_from_text(str(script_from_text(tmp_path / "train.py", text)))
    (facts, *_), _ = runs_of_target(target, Settings((target,), steps=12, timeout=200), SilentProgress())
    assert [seen.ended for seen in facts.trainings] == ["script"]
    assert facts.failure is not None and facts.failure.during == "behind"
    assert bool(facts.failure.layer) is (last == "Noise()(x)")


@pytest.mark.parametrize(("end", "ended"), [("", "script"), ("    if start == 32: ", "failed")])
@needs_keras("3")
def test_what_raises_behind_a_loop_is_none_of_its_steps(end: str, ended: str, tmp_path: Path) -> None:
    facts = examined(script_from_text(tmp_path / "train.py", LOOP.format(end=end)), "3", steps=12)
    assert [seen.ended for seen in facts.trainings] == [ended]
    assert facts.stopped_after_training.startswith("ModuleNotFoundError") is (ended == "script")

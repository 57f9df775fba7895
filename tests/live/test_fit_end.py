"""The end of fit(): the end of an epoch and of the training run once, write nothing, and an error names its
callback."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from checking import needs_keras
from live import examined, script_from_text

from mpdoctor.examiner.probe.short_fit import blocked_file_writes
from mpdoctor.semantics.live.verdict import verdict_from_training

STEPS = 12
KERASES = [pytest.param(keras, marks=needs_keras(keras)) for keras in ("tf_keras", "3")]
SCRIPT = """\
    import sys
    import time

    C = K.callbacks


    class Best(C.Callback):
        def on_train_end(self, logs=None):
            self.model.load_weights("best.weights.h5")


    class Saves(C.Callback):
        def on_train_end(self, logs=None):
            self.model.save_weights("mine.weights.h5")


    class Writes(C.Callback):
        def on_epoch_end(self, epoch, logs=None):
            pass

        def on_train_end(self, logs=None):
            with open("mine.txt", "w") as file:
                file.write("done")


    class Tenth(C.Callback):
        def on_train_end(self, logs=None):
            print(self.model.history.history["loss"][9])


    class Wrong(C.Callback):
        def on_train_end(self, logs=None):
            print(self.model.no_such_thing)


    class Early(C.Callback):
        def on_epoch_end(self, epoch, logs=None):
            print(self.model.no_such_thing)


    class Slow(C.Callback):
        def on_train_end(self, logs=None):
            time.sleep(120)


    validated = C.LambdaCallback(on_epoch_end=lambda epoch, logs: print(logs["val_loss"]))
    saving = C.ModelCheckpoint("best.weights.h5", save_weights_only=True)
    model = dense_model()
    model.compile("adam", "mse")
    more = [globals()[name]() for name in sys.argv[1:]]
    model.fit(
        x, y, batch_size=12, epochs=3, validation_data=(x, y),
        callbacks=[validated, saving, Best(), Saves(), Writes(), Tenth(), *more],
    )
    open("after.txt", "w")
    """
WHOLE = {
    "Best.on_train_end": "the files of ModelCheckpoint are left out here",
    "Saves.on_train_end": "which would write mine.weights.h5: nothing is written here at the end of fit()",
    "Writes.on_train_end": "mine.txt: nothing is written here at the end of fit()",
    "Tenth.on_train_end": "fit() was cut short, and what it looks for may come later",
}


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own").mkdir()
    monkeypatch.chdir(tmp_path / "own")
    return tmp_path / "own"


@pytest.mark.slow
@pytest.mark.parametrize("keras", KERASES)
def test_a_callback_without_its_files_is_not_looked_at_and_nothing_is_written(keras: str, directory: Path) -> None:
    (training,) = examined(script_from_text(directory / "train.py", SCRIPT), keras, steps=STEPS).trainings
    assert training.failure is None and len(training.steps) == STEPS
    told = {reason.split("`")[1]: reason for measurement, reason in training.not_looked if measurement == "fit"}
    assert told.keys() == WHOLE.keys()
    assert all(why in told[name] for name, why in WHOLE.items()), told
    assert [path.name for path in directory.iterdir()] == ["train.py"]


@pytest.mark.slow
@pytest.mark.parametrize("keras", KERASES)
@pytest.mark.parametrize(("name", "hook", "steps"), [("Wrong", "on_train_end", 12), ("Early", "on_epoch_end", 8)])
def test_an_error_in_a_callback_names_the_callback(
    keras: str, name: str, hook: str, steps: int, directory: Path
) -> None:
    path = script_from_text(directory / "train.py", SCRIPT)
    (training,) = examined(path, keras, name, steps=STEPS).trainings
    assert training.failure is not None and training.failure.callback == f"{name}.{hook}"
    line = 1 + next(n for n, text in enumerate(path.read_text().split("\n")) if f"class {name}" in text)
    assert training.failure.location is not None and training.failure.location.line == line + 2
    why = f"{name}.{hook}() after step {steps} raised AttributeError"
    assert verdict_from_training(training)[1] == why


@pytest.mark.slow
@needs_keras("3")
def test_an_end_that_takes_long_is_cut_short(directory: Path) -> None:
    path = script_from_text(directory / "train.py", SCRIPT)
    (training,) = examined(path, "3", "Slow", steps=STEPS).trainings
    assert training.failure is None
    assert "the end of fit(), which took longer than 10 seconds" in training.not_looked[-1][1]


# --- without TensorFlow -------------------------------------------------------------------------------------------
@pytest.fixture
def closed() -> Iterator[None]:
    blocked_file_writes._state["closed"] = True
    yield
    blocked_file_writes._state["closed"] = False


@pytest.mark.parametrize(
    ("event", "arguments", "refused"),
    [
        ("open", ("/home/me/log.csv", "w", 0), True),
        ("open", ("/home/me/log.csv", "a", 0), True),
        ("open", ("/home/me/log.csv", "r+b", 0), True),
        ("open", ("/home/me/log.csv", None, os.O_WRONLY), True),
        ("open", ("/home/me/log.csv", "r", 0), False),
        ("open", ("/home/me/log.csv", None, os.O_RDONLY), False),
        ("open", ("/dev/null", "w", 0), False),
        ("open", ("/dev/shm/log.csv", "w", 0), True),
        ("open", (3, "w", 0), False),
        ("open", ("/tmp/log.csv", "w", os.O_CREAT), True),
        ("open", ("/tmp/tmp1x2y", None, os.O_CREAT | os.O_EXCL | os.O_RDWR), False),
        ("open", ("/tmp/__autograph_generated_file1x.py", None, os.O_CREAT | os.O_EXCL | os.O_RDWR), False),
        ("os.remove", ("/home/me/best.keras", -1), True),
        ("os.rename", ("/tmp/tmp1x", "/home/me/best.keras", -1, -1), True),
        ("os.mkdir", ("/home/me/logs", 511, -1), True),
        ("os.mkdir", ("/tmp/tmp1x2y", 511, -1), False),
        ("os.listdir", ("/home/me",), False),
    ],
)
def test_what_changes_the_disk_is_refused(
    event: str, arguments: tuple[object, ...], refused: bool, closed: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", "/tmp")
    if not refused:
        blocked_file_writes._audit(event, arguments)
        return
    with pytest.raises(PermissionError, match="lets nothing be written"):
        blocked_file_writes._audit(event, arguments)


def test_elsewhere_everything_may_be_written() -> None:
    blocked_file_writes._audit("open", ("/home/me/log.csv", "w", 0))

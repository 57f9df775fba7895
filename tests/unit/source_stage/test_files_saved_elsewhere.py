"""A model file that one script of a project writes and another loads: which policy its layers have is known from the
script that writes it. Each text carries the marks of what is expected of it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from marks import marks_from_source
from test_cache import cache_in, found_in

from mpdoctor import source_stage
from mpdoctor.facts.versions import Keras
from mpdoctor.finding import Finding
from mpdoctor.source_stage import SourceOfFiles, SourceStage

CODES = frozenset(("MP701", "MP702", "MP704"))
MIXED = 'keras.mixed_precision.set_global_policy("mixed_float16")\n'
BUILD = """
def build(size=8):
    inputs = keras.Input((4,))
    hidden = keras.layers.Dense(size, activation="relu")(inputs)
    return keras.Model(inputs, keras.layers.Dense(1, dtype="float32")(hidden))

"""
KERAS = "from tensorflow import keras\n"
MODELS = KERAS + BUILD
DATA = "x, y = keras.ops.ones((8, 4)), keras.ops.ones((8, 1))\n"
TRAIN = 'model.compile("adam", "mse")\nmodel.fit(x, y)\n'
FIRST = KERAS + "from models import build\n" + DATA + "model = build()\n" + TRAIN
FIRST_MIXED = FIRST.replace("model = ", MIXED + "model = ")
SAVE = 'model.save("runs/base.keras")\n'
CHECKPOINT = 'model.fit(x, y, callbacks=[keras.callbacks.ModelCheckpoint("runs/base.keras")])\n'
LIBRARY = f"{KERAS}from models import build\ndef first():\n    model = build()\n    {SAVE}"
LOAD = 'model = keras.models.load_model("runs/base.keras")'
SECOND = KERAS + DATA + LOAD + "\n" + TRAIN
SECOND_MIXED = KERAS + DATA + MIXED + LOAD + "  # expect: MP702\n" + TRAIN
UNSCALED = SECOND.replace(LOAD, LOAD + "  # expect: MP701")
ASKED = "import sys\n" + FIRST.replace("model = ", "keras.mixed_precision.set_global_policy(sys.argv[1])\nmodel = ")
BY_MODULE = """
from pathlib import Path
from tensorflow import keras
from models import build
BASE = Path("runs", "base.keras")
def main(x, y):
    model = build()
    model.compile("adam", "mse")
    model.fit(x, y)
    keras.models.save_model(model, BASE)
if __name__ == "__main__":
    main(keras.ops.ones((8, 4)), keras.ops.ones((8, 1)))
"""
SECOND_BY_MODULE = """
from tensorflow import keras
from first import BASE
keras.mixed_precision.set_global_policy("mixed_float16")
def tune(path, x, y):
    model = keras.models.load_model(path, compile=False)  # expect: MP702
    model.compile(keras.optimizers.SGD(0.1), "mse")
    model.fit(x, y)
tune(BASE, keras.ops.ones((8, 4)), keras.ops.ones((8, 1)))
"""

FLAGGED: dict[str, dict[str, str]] = {
    "float32, then mixed": {"first.py": FIRST + SAVE, "second.py": SECOND_MIXED},
    "a checkpoint": {"first.py": FIRST + CHECKPOINT, "second.py": SECOND_MIXED},
    "the second comes first in the alphabet": {"train.py": FIRST + SAVE, "finetune.py": SECOND_MIXED},
    "a constant of the first": {"first.py": BY_MODULE, "second.py": SECOND_BY_MODULE},
    "a constant of the first, from another directory": {
        "lab/__init__.py": "",
        "lab/first.py": BY_MODULE.replace("from models", "from lab.models"),
        "lab/models.py": MODELS,
        "second.py": SECOND_BY_MODULE.replace("from first", "from lab.first"),
    },
    "a constant of a file with settings": {
        "settings.py": 'BASE = "runs/base.keras"\n',
        "first.py": BY_MODULE.replace('BASE = Path("runs", "base.keras")', "from settings import BASE"),
        "second.py": SECOND_BY_MODULE.replace("from first", "from settings"),
    },
    "joined": {
        "first.py": FIRST + SAVE,
        "second.py": "import os\n" + SECOND_MIXED.replace('"runs/base.keras"', 'os.path.join("runs", "base.keras")'),
    },
    "saved by a function of a library": {
        "library.py": LIBRARY + "    return model\n",
        "first.py": KERAS + DATA + "from library import first\nmodel = first()\nmodel.fit(x, y)\n",
        "second.py": SECOND_MIXED,
    },
    "mixed, then float32": {"first.py": FIRST_MIXED + SAVE, "second.py": UNSCALED},
    "mixed, then a step at a time": {
        "first.py": FIRST_MIXED + SAVE,
        "second.py": UNSCALED.replace(".fit(", ".train_on_batch("),
    },
    "mixed, then with its own optimizer": {
        "first.py": FIRST_MIXED + SAVE,
        "second.py": UNSCALED.replace('model.compile("adam", "mse")\n', ""),
    },
    "mixed, then converted": {
        "first.py": FIRST_MIXED + 'model.export("runs/base")\n',
        "second.py": 'import tensorflow as tf\ntf.lite.TFLiteConverter.from_saved_model("runs/base").convert()'
        "  # expect: MP704\n",
    },
    "two that agree": {"first.py": FIRST + SAVE, "other.py": FIRST + CHECKPOINT, "second.py": SECOND_MIXED},
    "saved again as it was loaded": {
        "first.py": FIRST + SAVE,
        "longer.py": SECOND + SAVE,
        "second.py": SECOND_MIXED,
    },
}


def no_more(text: str) -> str:
    """Without its marks."""
    return text.replace("  # expect: MP701", "").replace("  # expect: MP702", "")


SECOND_CLEAN = no_more(SECOND_MIXED)
CLEAN: dict[str, dict[str, str]] = {
    "both mixed": {"first.py": FIRST_MIXED + SAVE, "second.py": SECOND_CLEAN},
    "both float32": {"first.py": FIRST + SAVE, "second.py": SECOND},
    "another file": {"first.py": FIRST + SAVE.replace("base", "best"), "second.py": SECOND_CLEAN},
    "weights": {
        "first.py": FIRST + 'model.save_weights("base.weights.h5")\n',
        "second.py": f"{KERAS}from models import build\n{DATA}{MIXED}model = build()\n"
        f'model.load_weights("base.weights.h5")\n{TRAIN}',
    },
    "a policy that is asked for": {"first.py": ASKED + SAVE, "second.py": SECOND_CLEAN},
    "one of two is asked for": {"first.py": ASKED + SAVE, "other.py": FIRST + SAVE, "second.py": SECOND_CLEAN},
    "two that differ": {"first.py": FIRST + SAVE, "other.py": FIRST_MIXED + SAVE, "second.py": SECOND_CLEAN},
    "two that differ, then float32": {"a.py": FIRST + SAVE, "b.py": FIRST_MIXED + SAVE, "second.py": SECOND},
    "one of two differs, and trains nothing": {
        "first.py": FIRST_MIXED + SAVE,
        "other.py": f"{KERAS}from models import build\nmodel = build()\n{SAVE}",
        "second.py": SECOND,
    },
    "a model that is not known": {
        "first.py": FIRST.replace("from models", "from somewhere") + SAVE,
        "second.py": SECOND_CLEAN,
    },
    "a path that is asked for": {
        "first.py": "import sys\n" + FIRST + "model.save(sys.argv[1])\n",
        "second.py": "import sys\n" + SECOND_CLEAN.replace('"runs/base.keras"', "sys.argv[1]"),
    },
    "a path that hangs on the day": {
        "first.py": "import time\n" + FIRST + SAVE.replace('"runs', 'f"{time.time()}'),
        "second.py": SECOND_CLEAN,
    },
    "each in its own directory": {
        "mnist/models.py": MODELS,
        "mnist/first.py": FIRST + SAVE,
        "cifar/second.py": SECOND_CLEAN,
    },
    "it saves to the path itself": {
        "first.py": FIRST + SAVE,
        "second.py": f"from models import build\n{KERAS}{DATA}{MIXED}model = build()\n{SAVE}{LOAD}\n{TRAIN}",
    },
    "it saves to the path, written in another way": {
        "first.py": FIRST + SAVE,
        "second.py": f"import os\nfrom models import build\n{KERAS}{DATA}{MIXED}model = build()\n"
        f'model.save(os.path.join("runs", "base.keras"))\n{LOAD}\n{TRAIN}',
    },
    "it saves before, nobody knows where": {
        "first.py": FIRST + SAVE,
        "second.py": f"import sys\nfrom models import build\n{KERAS}{DATA}{MIXED}model = build()\n"
        f"model.save(sys.argv[1])\n{LOAD}\n{TRAIN}",
    },
    "it saves to the path when it is asked to": {
        "first.py": FIRST + SAVE,
        "second.py": SECOND_CLEAN + f"def first():\n    model = asked()\n    {SAVE}",
    },
    "it is loaded to predict": {
        "first.py": FIRST_MIXED + SAVE,
        "second.py": f"{KERAS}{DATA}{LOAD}\nprint(model.predict(x))\n",
    },
    "it is loaded to predict, under the policy": {
        "first.py": FIRST + SAVE,
        "second.py": f"{KERAS}{DATA}{MIXED}{LOAD}\nprint(model.predict(x))\n",
    },
    "wrapped by hand when it is loaded": {
        "first.py": FIRST_MIXED + SAVE,
        "second.py": SECOND.replace('"adam"', "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())"),
    },
    "wrapped by hand when it is saved": {
        "first.py": FIRST_MIXED.replace('"adam"', "keras.mixed_precision.LossScaleOptimizer(keras.optimizers.Adam())")
        + SAVE,
        "second.py": SECOND.replace('model.compile("adam", "mse")\n', ""),
    },
    "the importer's policy is in force when the first is imported": {
        "first.py": 'BASE = "runs/base.keras"\n' + FIRST + SAVE.replace('"runs/base.keras"', "BASE"),
        "second.py": KERAS + MIXED + SECOND_BY_MODULE.replace("  # expect: MP702", ""),
    },
    "saved by a function that nobody calls": {
        "library.py": LIBRARY,
        "second.py": SECOND_CLEAN,
    },
    "a function of a library, called under two policies": {
        "library.py": LIBRARY,
        "plain.py": KERAS + DATA + "from library import first\nfirst()\nkeras.Sequential().fit(x, y)\n",
        "mixed.py": f"{KERAS}from library import first\n{MIXED}first()\n",
        "second.py": SECOND_CLEAN,
    },
}


def written(directory: Path, texts: Mapping[str, str]) -> dict[Path, str]:
    files = {"models.py": MODELS} | dict(texts)
    for name, text in files.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)
    return {directory / name: name for name in files}


def expected(texts: Mapping[str, str]) -> set[tuple[str, int | None, str]]:
    marks = ((name, mark) for name, text in texts.items() for mark in marks_from_source(text).findings("3"))
    return {(name, mark.line, mark.code) for name, mark in marks}


def told(files: dict[Path, str], cache: Path | None = None) -> set[tuple[str, int | None, str]]:
    said = found_in(files, None if cache is None else cache_in(cache), Keras(), CODES)
    assert all(isinstance(item, Finding) for item in said), said
    found = (item for item in said if isinstance(item, Finding) and item.location is not None)
    return {(item.location.path, item.location.line, item.code) for item in found if item.location}


@pytest.mark.parametrize("name", FLAGGED)
def test_a_file_of_another_script(tmp_path: Path, name: str) -> None:
    assert told(written(tmp_path, FLAGGED[name])) == expected(FLAGGED[name]) != set()


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_said_where_it_is_right_or_not_known(tmp_path: Path, name: str) -> None:
    assert expected(CLEAN[name]) == set() == told(written(tmp_path, CLEAN[name]))


def test_nothing_is_reported_where_the_script_that_writes_the_file_is_not_read(tmp_path: Path) -> None:
    files = written(tmp_path, FLAGGED["float32, then mixed"])
    assert told({tmp_path / "second.py": "second.py"}) == set() != told(files)


def test_groups_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each script is judged before the next one is read, and again when all are."""
    texts = FLAGGED["two that agree"]
    files = written(tmp_path, texts)
    monkeypatch.setattr(source_stage, "WORTH_A_PROCESS", 1)
    monkeypatch.setattr(source_stage, "GROUP", 1)
    ahead: list[object] = []

    def judge(stage: SourceStage, own: list[Path]) -> None:
        ahead.extend(stage.judge(lambda path: Keras(), CODES, [files[path] for path in own]))

    stage = SourceOfFiles(files, judge_ahead=judge)
    found = stage.judge(lambda path: Keras(), CODES, list(files.values()))
    assert {(item.location.path, item.location.line, item.code) for item in found} == expected(texts)
    assert ahead == []


def test_a_change_of_the_script_that_saves_changes_what_is_said_of_the_one_that_loads(tmp_path: Path) -> None:
    """Nothing of the second script changes, and what an earlier run has said of it is kept."""
    files = written(tmp_path / "files", {"first.py": FIRST + SAVE, "second.py": SECOND_CLEAN})
    first, cache = tmp_path / "files" / "first.py", tmp_path / "cache"
    line = SECOND_MIXED[: SECOND_MIXED.index("# expect")].count("\n") + 1
    for text, codes in (
        (FIRST + SAVE, {"MP702"}),
        (FIRST_MIXED + SAVE, set()),
        (ASKED + SAVE, set()),
        (FIRST + CHECKPOINT, {"MP702"}),
        (FIRST + SAVE.replace("base", "best"), set()),
        (FIRST + SAVE, {"MP702"}),
    ):
        first.write_text(text)
        for _ in range(2):
            assert told(files, cache) == {("second.py", line, code) for code in codes} == told(files)

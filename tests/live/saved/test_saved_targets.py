"""Saved models of every kind, examined as a user would: what is trained, what is inspected, and what is refused."""

from __future__ import annotations

import re
import shutil
import zipfile
from pathlib import Path

import pytest
from checking import Check, check, contents, needs_keras, needs_tensorflow

slow = pytest.mark.slow
SOURCE_OF_OWN = """\
import tensorflow as tf


class Doubled(tf.keras.layers.Layer):
    def call(self, x):
        return x * 2
"""


def examined(directory: Path, name: str, keras: str, *arguments: str) -> Check:
    before = contents(directory)
    done = check(name, *arguments, directory=directory, keras=keras)
    assert contents(directory) == before
    assert done.exit_code in (0, 1, 2) and not done.report["crashed"], str(done)
    return done


def in_both(name: str, *more: str) -> list[object]:
    """The same row in Keras 3 and in tf_keras."""
    return [
        pytest.param(keras, name, *more, marks=[needs_keras(keras), slow], id=f"{name}-{keras}")
        for keras in ("3", "tf_keras")
    ]


@pytest.mark.parametrize(
    ("keras", "name"),
    [
        pytest.param("3", "healthy.h5", marks=needs_keras("3")),
        pytest.param("tf_keras", "healthy.h5", marks=[needs_keras("tf_keras"), slow]),
        pytest.param("tf_keras", "healthy_directory", marks=[needs_keras("tf_keras"), slow]),
    ],
)
def test_a_model_in_a_file_is_trained_under_its_own_policy(saved_models, keras: str, name: str) -> None:
    done = examined(saved_models(keras), name, keras)
    assert (done.codes(), done.exit_code) == ([], 0), str(done)
    (probe,) = done.report["probes"]
    assert (probe["verdict"], probe["policy"], probe["data"]) == ("healthy", "mixed_float16", "synthetic")
    assert probe["optimizer"][0].startswith("LossScaleOptimizer")


@needs_tensorflow
def test_a_graph_is_inspected_and_not_trained(saved_models) -> None:
    done = examined(saved_models("3"), "energy_graph", "3")
    assert done.codes() == ["MP705", "MP706"]
    assert done.exit_code == 1
    assert done.finding("MP706")["severity"] == "warning"
    assert "Exp (1:" in done.finding("MP706")["message"] and "Sum (1:" in done.finding("MP706")["message"]
    assert not done.report["models"] and not done.report["probes"]
    (graph,) = done.report["graphs"]
    assert {v["name"]: v["dtype"] for v in graph["variables"]} == {"half": "float16", "whole": "float32"}
    assert [(signature["name"], signature["inputs"][0]["dtype"]) for signature in graph["signatures"]] == [
        ("serving_default", "float16")
    ]
    assert "inspected, not run" in done.report["targets"][0]["stages"]["training"]["reason"]


@pytest.mark.parametrize(("keras", "name"), in_both("healthy_graph"))
def test_a_healthy_graph(saved_models, keras: str, name: str) -> None:
    done = examined(saved_models(keras), name, keras)
    assert (done.codes(), done.exit_code) == ([], 0), str(done)
    products = {(op["op"], op["dtype"]): op["count"] for op in done.report["graphs"][0]["ops"] if op["op"] == "MatMul"}
    assert products == {("MatMul", "float16"): 2, ("MatMul", "float32"): 1}


@pytest.mark.parametrize(
    ("keras", "name"),
    [
        *in_both("code.keras"),
        *in_both("code.h5"),
        pytest.param("tf_keras", "code_directory", marks=[needs_keras("tf_keras"), slow]),
    ],
)
def test_code_is_refused_unless_it_is_allowed(saved_models, keras: str, name: str) -> None:
    refused = examined(saved_models(keras), name, keras)
    assert refused.exit_code == 2
    assert refused.codes() == ["MP002"]
    told = refused.finding("MP002")
    assert "Lambda layer double" in told["message"] and "--allow-code-in-file" in told["help"]
    if name == "code.h5":
        assert examined(saved_models(keras), name, keras, "--allow-code-in-file").exit_code == 0


@pytest.mark.parametrize(("keras", "name"), [*in_both("own.keras"), *in_both("own.h5")])
def test_a_class_of_ones_own_is_named(saved_models, keras: str, name: str, tmp_path: Path) -> None:
    shutil.copy(saved_models(keras) / name, tmp_path)
    unknown = examined(tmp_path, name, keras)
    assert (unknown.exit_code, unknown.codes()) == (2, ["MP002"]), str(unknown)
    told = unknown.finding("MP002")
    assert "Doubled" in told["message"] and "--custom-objects" in told["help"]
    if name == "own.keras":
        (tmp_path / "own_layers.py").write_text(SOURCE_OF_OWN)
        known = examined(tmp_path, name, keras, "--custom-objects", "own_layers")
        assert known.exit_code == 0, str(known)


def with_configuration(folder: Path, saved: Path, old: str, new: str) -> str:
    """A copy of an archive whose configuration has other numbers; the name of its file."""
    with zipfile.ZipFile(saved) as archive, zipfile.ZipFile(folder / "changed.keras", "w") as changed:
        for name in archive.namelist():
            text = archive.read(name)
            if name == "config.json":
                assert re.search(old, text.decode())
                text = re.sub(old, new, text.decode()).encode()
            changed.writestr(name, text)
    return "changed.keras"


@pytest.mark.parametrize(("keras", "name"), in_both("healthy.keras"))
def test_weights_that_no_file_of_its_size_brings_are_not_made(
    saved_models, keras: str, name: str, tmp_path: Path
) -> None:
    changed = with_configuration(tmp_path, saved_models(keras) / name, r'"units": \d+', '"units": 10000000000')
    done = examined(tmp_path, changed, keras)
    assert (done.exit_code, done.codes()) == (2, ["MP002"]), str(done)
    assert "its layers and metrics ask for weights of" in done.finding("MP002")["message"]


@needs_keras("tf_keras")
@slow
def test_a_saved_model_brings_its_classes_along(saved_models) -> None:
    done = examined(saved_models("tf_keras"), "own_directory", "tf_keras")
    assert (done.codes(), done.exit_code) == ([], 0), str(done)


@needs_tensorflow
@slow
def test_weights_alone_are_no_model(saved_models) -> None:
    done = examined(saved_models("3"), "healthy.weights.h5", "3")
    assert (done.exit_code, done.codes()) == (2, ["MP002"]), str(done)
    assert "weights only" in done.finding("MP002")["message"]


@needs_tensorflow
@slow
def test_half_a_model_that_a_program_could_not_load_is_none(saved_models, tmp_path: Path) -> None:
    shutil.copy(saved_models("3") / "own.keras", tmp_path)
    (tmp_path / "train.py").write_text('import tensorflow as tf\n\nmodel = tf.keras.models.load_model("own.keras")\n')
    done = examined(tmp_path, "train.py", "3")
    assert (done.exit_code, done.codes()) == (2, ["MP002"]), str(done)
    told = done.finding("MP002")
    assert told["line"] == 3
    assert "custom_objects={" in told["help"] and "Doubled" in told["help"]
    assert not done.report["models"]

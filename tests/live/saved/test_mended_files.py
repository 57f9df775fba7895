"""Saved models with other policies, in the Keras that wrote them: the same weights, and outputs within the rounding of
16 bits; and sick ones mended by the command."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from checking import ROOT, check, needs_keras
from own_schemas import assert_fits

from mpdoctor.examiner.saved.archives import SavedFile, saved_file_from_path
from mpdoctor.mending.saved.saved_copies import write_copy
from mpdoctor.mending.saved.saved_policies import layers_in, layers_to_convert, with_policies

pytestmark = pytest.mark.slow
MODELS = ROOT / "tests" / "support" / "converted_models.py"
ROUNDING = {"mixed_float16": 5e-3, "mixed_bfloat16": 5e-2, "float32": 5e-3}  # of the largest output


def run(keras: str, *command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    surroundings = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "PYTHONPATH": str(ROOT)}
    surroundings["TF_USE_LEGACY_KERAS"] = "1" if keras == "tf_keras" else "0"
    return subprocess.run(
        [sys.executable, *command], cwd=folder, env=surroundings, capture_output=True, text=True, timeout=400
    )


def told_of(done: subprocess.CompletedProcess[str]) -> str:
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


ROUND_TRIPS = [
    pytest.param(keras, before, after, marks=needs_keras(keras), id=f"{keras}-{before}-{after}")
    for keras in ("3", "tf_keras")
    for before, after in (
        ("float32", "mixed_float16"),
        ("mixed_float16", "float32"),
        ("mixed_float16", "mixed_bfloat16"),
    )
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("keras", "before", "after"), ROUND_TRIPS)
def test_another_policy_keeps_every_weight(tmp_path: Path, keras: str, before: str, after: str) -> None:
    told_of(run(keras, str(MODELS), "write", str(tmp_path), before, folder=tmp_path))
    old = sorted(tmp_path.glob("*.old.*"))
    wanted = {new_file(path, after).name: path for path in old}
    told = json.loads(told_of(run(keras, str(MODELS), "compare", str(tmp_path), folder=tmp_path)))
    assert set(told) == set(wanted) and len(told) == 14
    for name, seen in told.items():
        assert seen["same"] and seen["variables"], name
        assert seen["moved"] <= ROUNDING[after], (name, seen["moved"])
        assert set(seen["dtypes"]) <= {"float32", "int64", "uint32"}, (name, seen["dtypes"])  # of random seeds
        kept = ("input", "given") if before == "float32" else ("input", "given", "head", "two")
        computing = {policy for path, policy in seen["policies"].items() if not path.startswith(kept)}
        assert computing == {after}, (name, seen["policies"])


def new_file(path: Path, policy: str) -> Path:
    """Beside the old one. Turned back it says what the old one says."""
    saved = saved_file_from_path(str(path))
    layers = layers_in(saved.configuration)
    wanted, kept = layers_to_convert(saved, layers, policy)
    assert wanted and not kept, (path.name, kept)
    new = path.with_name(path.name.replace(".old.", ".new."))
    write_copy(saved, changed(saved, wanted), saved.training, new)
    again = saved_file_from_path(str(new))
    back = changed(again, {layer.path: layer.policy for layer in layers if layer.path in wanted})
    assert without_numbers(back) == without_numbers(saved.configuration)
    return new


def changed(saved: SavedFile, wanted: dict[str, str]) -> Any:
    return with_policies(saved.configuration, wanted, saved.keras_version, saved.form)


def without_numbers(value: Any) -> Any:
    """Of objects that are one."""
    if isinstance(value, list):
        return [without_numbers(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {key: without_numbers(inner) for key, inner in value.items() if key != "shared_object_id"}


# --- sick ones --------------------------------------------------------------------------------------------------------
MENDED = [
    ("3", "overflowing.keras", "", {"boost", "mix"}),
    ("3", "in_a_part.keras", "", {"inner/boost", "head"}),
    ("3", "overflowing.h5", "float32", set()),
    ("tf_keras", "overflowing.keras", "", {"boost", "mix", "norm"}),
    ("tf_keras", "in_a_part.h5", "mixed_bfloat16", set()),
    ("tf_keras", "overflowing.h5", "", {"boost", "mix", "norm"}),
]


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("keras", "name", "policy", "healing"),
    [pytest.param(*row, marks=needs_keras(row[0]), id="-".join(filter(None, row[:3]))) for row in MENDED],
)
def test_a_sick_file_is_mended(tmp_path: Path, keras: str, name: str, policy: str, healing: set[str]) -> None:
    told_of(run(keras, str(MODELS), "sick", str(tmp_path), folder=tmp_path))
    new = f"new{Path(name).suffix}"
    given = (name, "--output", new, "--output-format", "json", *(("--policy", policy) if policy else ()))
    report = json.loads(told_of(run(keras, "-m", "mpdoctor", "mend", *given, folder=tmp_path)))
    assert_fits(report, "mended-file-1.json")
    assert report["mended"] and report["output"] == new
    if not policy:
        assert {path for path in report["healing"] if "layer_norm" not in path} == healing, report["healing"]
    done = check(new, directory=tmp_path, keras=keras)
    assert done.exit_code == 0, str(done)
    assert {path.name for path in tmp_path.iterdir() if path.name.startswith(".")} == set()

"""Saved files are told by their content, read without being loaded, and refused in words where they hold no model."""

from __future__ import annotations

import copy
import importlib.util
import json
import random
import time
import zipfile
from pathlib import Path
from typing import Any

import pytest
from checking import needs_tensorflow
from hypothesis import given
from hypothesis import strategies as st

from mpdoctor.examiner.exceptions import Unusable
from mpdoctor.examiner.saved import archives
from mpdoctor.examiner.saved.archives import saved_file_from_path
from mpdoctor.facts.saved.file import SavedFileFacts

MODEL = {"class_name": "Sequential", "config": {"layers": []}}
POLICY = {"module": "keras", "class_name": "DTypePolicy", "config": {"name": "mixed_float16"}, "registered_name": None}
needs_h5py = pytest.mark.skipif(importlib.util.find_spec("h5py") is None, reason="h5py is not installed")


def archive(path: Path, **files: str | bytes) -> bytes:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files.items():
            file.writestr(name.replace("_json", ".json"), text)
    return path.read_bytes()


def refused(path: Path) -> str:
    with pytest.raises(Unusable) as told:
        saved_file_from_path(str(path))
    assert path.name in str(told.value)
    assert "\n" not in str(told.value)
    return str(told.value)


def test_an_archive(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    archive(path, config_json=json.dumps({**MODEL, "dtype": POLICY}), metadata_json='{"keras_version": "3.15.1"}')
    saved = saved_file_from_path(str(path))
    assert (saved.form, saved.name, saved.keras_version) == ("keras", "m.keras", "3.15.1")
    assert saved.facts() == SavedFileFacts("m.keras", "keras", "3.15.1", ("DTypePolicy",), ("mixed_float16",))


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({"metadata_json": "{}"}, "without config.json"),
        ({"config_json": "[1, 2]"}, "describes no model"),
        ({"config_json": "null"}, "describes no model"),
        ({"config_json": "{}"}, "describes no model"),
        ({"config_json": "{ not json"}, "config.json"),
        ({"config_json": b"\xff\xfe\x00"}, "config.json"),
        ({"config_json": "[" * 100_000}, "config.json"),
        (b"", "is empty"),
        (b"PK\x03\x04", "no .keras file"),
        (b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n", "git lfs pull"),
    ],
    ids=["no-configuration", "a-list", "null", "no-model", "no-json", "no-text", "too-deep", "empty", "zip", "lfs"],
)
def test_a_file_that_is_no_model_is_told_to_be_none(tmp_path: Path, content: Any, words: str) -> None:
    path = tmp_path / "model.keras"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        archive(path, **content)
    assert words in refused(path)


@given(st.data())
def test_a_cut_or_bent_file_is_read_or_refused_in_words(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("files") / "model.keras"
    whole = archive(path, config_json='{"class_name": "Sequential"}', model=b"\0" * 300)
    if data.draw(st.booleans()):
        bent = whole[: data.draw(st.integers(0, len(whole) - 1))]
    else:
        place = data.draw(st.integers(0, len(whole) - 1))
        bent = whole[:place] + bytes([data.draw(st.integers(0, 255))]) + whole[place + 1 :]
    path.write_bytes(bent)
    try:
        assert isinstance(saved_file_from_path(str(path)).configuration, dict)
    except Unusable as told:
        assert "model.keras" in str(told)


def test_an_archive_that_unpacks_to_more_than_any_model_is_not_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(archives, "HARMLESS", 2**20)
    path = tmp_path / "bomb.keras"
    archive(path, config_json=json.dumps(MODEL), model=b"\0" * 4 * 2**20)
    assert "unpacks from" in refused(path)
    monkeypatch.setattr(archives, "LARGEST_CONFIGURATION", 10)
    archive(path, config_json=json.dumps(MODEL))
    assert "config.json of" in refused(path)


def test_a_file_that_is_called_hdf5_is_not_told_to_be_no_archive(tmp_path: Path) -> None:
    path = tmp_path / "weights.h5"
    path.write_bytes(b"not found")
    assert "is no HDF5 file" in refused(path)


@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_a_name_that_a_message_quotes_ends_no_line(tmp_path: Path) -> None:
    """Of a member, an operation, a class: what stands behind its end would read like mpdoctor's own words."""
    path = tmp_path / "m.keras"
    name = "x\n\n✓ m.keras: nothing wrong\x1b[2J\u2028ü"
    with zipfile.ZipFile(path, "w") as file:
        for member in ("config.json", name, name):
            file.writestr(member, json.dumps(MODEL))
    assert "holds x\\n\\n✓ m.keras: nothing wrong\\x1b[2J\\u2028ü twice" in refused(path)


def test_members_that_share_what_is_packed_count_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundred entries of the directory lead to one member, 60 times as large as what is packed of it."""
    monkeypatch.setattr(archives, "HARMLESS", 2**20)
    path = tmp_path / "bomb.keras"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("config.json", json.dumps(MODEL))
        file.writestr("a00", random.Random(1).randbytes(2**13) + b"\0" * 2**19)
        (entry,) = file.infolist()[1:]
        for number in range(1, 100):
            again = copy.copy(entry)
            again.filename = f"a{number:02}"
            file.filelist.append(again)
    assert "unpacks from" in refused(path)


@pytest.mark.parametrize("twice", [False, True])
@pytest.mark.filterwarnings("ignore:Duplicate name")
def test_an_archive_of_more_members_than_any_model_is_not_searched(tmp_path: Path, twice: bool) -> None:
    path = tmp_path / "m.keras"
    with zipfile.ZipFile(path, "w") as file:
        for name in [*map(str, range(20_000)), *["0"] * twice]:
            file.writestr(name, b"")
    started = time.monotonic()
    assert f"holds {20_000 + twice:,} members, and mpdoctor reads at most 10,000" in refused(path)
    assert time.monotonic() - started < 5


def test_weights_of_zeros_are_no_bomb(tmp_path: Path) -> None:
    path = tmp_path / "zeros.keras"
    archive(path, config_json=json.dumps(MODEL), model=b"\0" * 4 * 2**20)
    assert saved_file_from_path(str(path)).configuration == MODEL


def test_a_file_that_cannot_be_opened_is_told_why(tmp_path: Path) -> None:
    (tmp_path / "loop.keras").symlink_to("loop.keras")
    assert "can't be read: Too many levels" in refused(tmp_path / "loop.keras")


# --- HDF5 -----------------------------------------------------------------------------------------------------------
def hdf5(path: Path, groups: tuple[str, ...] = (), **attributes: object) -> Path:
    import h5py

    with h5py.File(path, "w") as file:
        for group in groups:
            file.create_group(group)
        file.attrs.update(attributes)
    return path


@needs_h5py
@pytest.mark.parametrize("name", ["m.h5", "m.hdf5", "m.keras"])
def test_hdf5_is_known_by_its_content(tmp_path: Path, name: str) -> None:
    training = {"loss": {"module": "builtins", "class_name": "function", "config": "mine", "registered_name": None}}
    path = hdf5(
        tmp_path / name, ("model_weights",), keras_version=b"2.10.0", model_config=json.dumps(MODEL),
        training_config=json.dumps(training),
    )  # fmt: skip
    saved = saved_file_from_path(str(path))
    assert (saved.form, saved.keras_version, saved.configuration) == ("hdf5", "2.10.0", MODEL)
    assert saved.facts().own_names == ("mine",)


@needs_h5py
@pytest.mark.parametrize(
    ("groups", "attributes", "words"),
    [
        (("dense",), {"layer_names": ["dense"], "keras_version": "2.10.0"}, "holds weights only"),
        (("layers", "vars"), {}, "holds weights only"),
        (("_layer_checkpoint_dependencies",), {}, "holds weights only"),
        (("pictures", "labels"), {}, "it holds labels, pictures"),
        ((), {}, "it holds nothing"),
        (("a", "b", "c", "d", "e"), {}, "it holds a, b, c, d …"),
        ((), {"model_config": "{"}, "is no JSON"),
        ((), {"model_config": "[]"}, "describes no model"),
    ],
)
def test_an_hdf5_file_without_a_model(
    tmp_path: Path, groups: tuple[str, ...], attributes: dict[str, object], words: str
) -> None:
    assert words in refused(hdf5(tmp_path / "x.h5", groups, **attributes))


@needs_h5py
def test_a_cut_hdf5_file(tmp_path: Path) -> None:
    path = hdf5(tmp_path / "m.h5", ("model_weights",), model_config=json.dumps(MODEL))
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    assert "is damaged" in refused(path)
    path.write_bytes(whole[:8])
    assert "is damaged" in refused(path)


@pytest.mark.parametrize("place", [4, 20])
def test_what_lzma_cannot_unpack_is_told_as_damaged(tmp_path: Path, place: int) -> None:
    """The options of the compression, and what is compressed."""
    path, name = tmp_path / "m.keras", "config.json"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr(name, json.dumps(MODEL))
    content = bytearray(path.read_bytes())
    content[content.index(name.encode()) + len(name) + place] = 0xFF
    path.write_bytes(content)
    assert "is damaged" in refused(path)


# --- SavedModel directories -----------------------------------------------------------------------------------------
@needs_tensorflow
@pytest.mark.slow
def test_a_directory_with_a_saved_model_pb_of_another_kind(tmp_path: Path) -> None:
    import tensorflow as tf

    from mpdoctor.examiner.saved.directories import saved_directory_from_path

    with tf.Graph().as_default() as frozen:
        tf.identity(tf.constant(1.0))
    contents = {
        b"": "is empty",
        b"\xff\xfe no protocol buffer": "is damaged, or no SavedModel",
        frozen.as_graph_def().SerializeToString(): "a frozen graph of TensorFlow 1",
        tf.train.Example().SerializeToString() + b"\x0a\x00": "damaged, or no SavedModel",
        b"version https://git-lfs.github.com/spec/v1\n": "git lfs pull",
    }
    for content, words in contents.items():
        (tmp_path / "saved_model.pb").write_bytes(content)
        with pytest.raises(Unusable) as told:
            saved_directory_from_path(str(tmp_path))
        assert words in str(told.value)
    (tmp_path / "saved_model.pb").unlink()
    (tmp_path / "saved_model.pb").mkdir()
    with pytest.raises(Unusable, match="is no regular file"):
        saved_directory_from_path(str(tmp_path))


@pytest.mark.parametrize("part", ["[],", "{},", '{"class_name": "Dense"},', '"[[[[",'])
def test_a_configuration_of_more_parts_than_any_model_is_not_searched(tmp_path: Path, part: str) -> None:
    path = tmp_path / "m.keras"
    archive(path, config_json='{"class_name": "Sequential", "config": [' + part * 600_000 + "1]}")
    assert "parts, and mpdoctor reads at most 500,000: no model has so many" in refused(path)
    archive(path, config_json='{"class_name": "Sequential", "config": [' + part * 100 + "1]}")
    assert saved_file_from_path(str(path)).contents is not None


def test_a_configuration_with_more_hidden_json_than_any_model_is_not_searched(tmp_path: Path) -> None:
    path = tmp_path / "m.keras"
    archive(path, config_json='{"class_name": "Sequential", "config": [' + r'"\u005b\\u0020",' * 30_000 + "1]}")
    with pytest.raises(Unusable, match="texts that look like JSON"):
        saved_file_from_path(str(path)).contents  # noqa: B018
